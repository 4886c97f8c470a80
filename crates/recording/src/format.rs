//! The parts of what a format declares about itself: its role, its clocks, what can be done with its files.

use std::io;
use std::path::Path;

use perfuse_tables::Alignment;

use crate::{Source, UnpackLimit};

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
    /// A whole profile, made of recordings: nothing is joined with it.
    SavedProfile,
}

impl Role {
    /// The role in Python and JSON: `samples`, `code_dump`, `call_trace`, `runtime_log`, `unwind_tables` or `saved_profile`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::CodeDump => "code_dump",
            Self::CallTrace => "call_trace",
            Self::RuntimeLog => "runtime_log",
            Self::UnwindTables => "unwind_tables",
            Self::SavedProfile => "saved_profile",
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
    pub read: fn(&Path, UnpackLimit) -> io::Result<Source>,
}
