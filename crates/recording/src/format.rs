//! What a format declares about itself: its role, its clocks, the names of its files, what can be done with them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perfuse_tables::Alignment;
use perfuse_wire::{Layout, ParseError, Rule};

use crate::{Recording, Source};

/// Opens a source whose first bytes are of a format.
pub type Open = fn(Arc<Source>) -> Result<Arc<dyn Recording>, ParseError>;

/// What a recording contributes to a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Samples of running programs: call chains or stacks with weights.
    Samples,
    /// The code that a process generated; it names the functions in another recording's samples.
    CodeDump,
    /// Function calls, one by one or summed up.
    CallTrace,
    /// Events of a managed runtime: allocations, collections, locks, exceptions, calls.
    RuntimeLog,
    /// How stacks are unwound; nothing about what ran.
    UnwindTables,
}

impl Role {
    /// The role in Python and JSON: `samples`, `code_dump`, `call_trace`, `runtime_log` or `unwind_tables`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::CodeDump => "code_dump",
            Self::CallTrace => "call_trace",
            Self::RuntimeLog => "runtime_log",
            Self::UnwindTables => "unwind_tables",
        }
    }

    /// Whether recordings of the role log events over their whole span, so that the span is that of what they cover.
    #[must_use]
    pub fn logs_events(self) -> bool {
        matches!(self, Self::CallTrace | Self::RuntimeLog)
    }
}

/// How certain a format is that a file is of it; a greater value is more certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sniff {
    /// The file is not of the format.
    No,
    /// Nothing contradicts the format, which has no magic number or is embedded in containers of other purposes.
    Likely,
    /// The file has the format's magic number or an equally distinctive header.
    Certain,
}

impl Sniff {
    /// `likely`, `certain`, or nothing.
    #[must_use]
    pub fn certainty(self) -> Option<&'static str> {
        match self {
            Self::No => None,
            Self::Likely => Some("likely"),
            Self::Certain => Some("certain"),
        }
    }

    /// `Certain` where a magic number is present, else `No`.
    #[must_use]
    pub fn by_magic(is_present: bool) -> Self {
        if is_present { Self::Certain } else { Self::No }
    }
}

/// Which clocks a format's time stamps are of, and how they are put on the clock of a profile.
#[derive(Clone, Copy, Debug)]
pub struct ClockPolicy {
    /// Values that `Summary::clock` takes; none where the format has no times.
    pub kinds: &'static [&'static str],
    /// Ways to align a recording with another one, preferred ones first.
    pub alignments: &'static [Alignment],
    /// Header field with the time at which the recording began, in its records' units; `marker` needs it.
    pub start_field: Option<&'static str>,
}

impl ClockPolicy {
    /// The policy of a format without times.
    pub const TIMELESS: Self = Self { kinds: &[], alignments: &[], start_field: None };
}

/// Optional parts that a format has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Files of the format can be written.
    pub writer: bool,
    /// Damaged files can be repaired.
    pub repair: bool,
}

/// A recording that is a directory of files.
#[derive(Clone, Copy, Debug)]
pub struct RecordingDirectory {
    /// Name of the file that every such directory contains and that the format's `sniff` is certain of.
    pub main_file: &'static str,
    /// Reads the files of the directory as one source.
    pub read: fn(&Path) -> io::Result<Source>,
}

/// A format: how it is recognized and opened, and what others need to know about it.
#[derive(Debug)]
pub struct Format {
    /// Name in the registry and on the command line: `jitdump`.
    pub name: &'static str,
    /// Title in text for people: `JITDUMP`.
    pub title: &'static str,
    /// One line: which programs write it, what it contains.
    pub about: &'static str,
    /// What a recording of the format contributes to a profile.
    pub role: Role,
    /// Name of the report about a recording of the format alone.
    pub report: &'static str,
    /// Clocks of its time stamps.
    pub clock: ClockPolicy,
    /// Header field with the id of the recorded process, as the process itself knew it.
    pub process_field: Option<&'static str>,
    /// Patterns of file names with `*` as the only wildcard, without the suffix of a compressed file.
    pub files: &'static [&'static str],
    /// How a recording that is a directory is read; `None` where the format has none.
    pub directory: Option<RecordingDirectory>,
    /// Optional parts it has.
    pub capabilities: Capabilities,
    /// How certain it is that a file with these first bytes is of the format.
    pub sniff: fn(&[u8]) -> Sniff,
    /// Opens a file; fails only where not even the header can be read.
    pub open: Open,
    /// What a user can do where a recognized file cannot be opened.
    pub refused: Option<&'static str>,
    /// Its numbered rules.
    pub rules: &'static [&'static Rule],
    /// Its header and records; empty where the format is not binary.
    pub layouts: &'static [&'static Layout],
    /// Common tables it fills, besides `sources`, `clocks`, `records` and `diagnostics`, which all fill.
    pub tables: &'static [&'static str],
}

impl Format {
    /// The file that a recording directory of this format is recognized by; `None` where it is not such a directory.
    #[must_use]
    pub fn main_file_of(&self, directory: &Path) -> Option<PathBuf> {
        let main_file = directory.join(self.directory?.main_file);
        let mut head = [0; 64];
        let num_read = io::Read::read(&mut std::fs::File::open(&main_file).ok()?, &mut head).ok()?;
        let is_certain = (self.sniff)(head.get(..num_read)?) == Sniff::Certain;
        is_certain.then_some(main_file)
    }
}
