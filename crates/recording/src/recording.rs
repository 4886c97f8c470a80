//! The two halves of the interface: a [`Format`] opens recordings, and a [`Recording`] states its format.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use perfuse_addresses::recorded_symbols::RecordedFile;
use perfuse_mapped::open_regular;
use perfuse_tables::{
    Alignment, AllocationSum, CallRows, CodeUnwinding, FrameRecovery, Identities, Offsets, ProcessIdentity,
    SnapshotSum, UserStack,
};
use perfuse_wire::{Diagnostic, Diagnostics, Endian, Layout, ParseError, RecordView, Rule, Value};

use crate::{
    Capabilities, ClockPolicy, RecordedPrograms, RecordingDirectory, Role, SamplingFacts, Sniff, Source,
};

/// Facts about a file from its header and one pass over its record headers; `perfuse info` prints them.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Version as the file states it.
    pub version: Option<String>,
    /// Byte order.
    pub endian: Endian,
    /// Size of a pointer in bytes.
    pub pointer_bytes: Option<u8>,
    /// Machine architecture, as `uname -m` spells it.
    pub arch: Option<&'static str>,
    /// Program that wrote it, where the file states or shows it.
    pub producer: Option<String>,
    /// Clock of its time stamps, one of `ClockPolicy::kinds`.
    pub clock: &'static str,
    /// First and last time stamp: in nanoseconds, or in ticks where `clock` is `tsc` or `unknown`.
    pub span: Option<(u64, u64)>,
    /// Number of records by kind, named as in the specification.
    pub counts: Vec<(String, u64)>,
    /// Header fields, in the order of the specification.
    pub header: Vec<(&'static str, Value<'static>)>,
}

impl Summary {
    /// The summary of a file that states no machine, clock or header; kinds without records are left out.
    #[must_use]
    pub fn of_counts(counts: &[(&str, u64)]) -> Self {
        let present = counts.iter().filter(|(_, count)| *count > 0);
        Self {
            version: None,
            endian: Endian::Little,
            pointer_bytes: None,
            arch: None,
            producer: None,
            clock: "unknown",
            span: None,
            counts: present.map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            header: Vec::new(),
        }
    }
}

/// Conversion of a source's time stamps to the profile's clock: `ns = ticks * numerator / denominator + offset_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockMap {
    /// Nanoseconds in `denominator` ticks.
    pub numerator: u64,
    /// Ticks in `numerator` nanoseconds; never 0.
    pub denominator: u64,
    /// Added after scaling.
    pub offset_ns: i64,
}

impl Default for ClockMap {
    fn default() -> Self {
        Self { numerator: 1, denominator: 1, offset_ns: 0 }
    }
}

/// The latest time, 2^62 ns: the year 2116 on a clock that counts from 1970. Damaged time stamps are later; they become this
/// one, so that 64 bits are enough for the difference between two times and for a time with some duration added.
const LATEST_NS: i64 = 1 << 62;
/// The earliest time.
const EARLIEST_NS: i64 = -(1 << 61);

impl ClockMap {
    /// Converts a time stamp to the profile's clock. Saturates rather than wraps, at times that no clock shows.
    #[must_use]
    #[inline]
    pub fn ns(&self, ticks: u64) -> i64 {
        // Times and offsets of real clocks: their sum is within the limits.
        const FAR: u64 = 1 << 61;
        let is_sum = self.numerator == self.denominator && self.offset_ns.unsigned_abs() < FAR;
        if is_sum && ticks < FAR {
            return (ticks as i64).wrapping_add(self.offset_ns);
        }
        let scaled = if self.numerator == self.denominator {
            i64::try_from(ticks).unwrap_or(i64::MAX)
        } else {
            let wide = u128::from(ticks).saturating_mul(u128::from(self.numerator));
            let ns = wide.checked_div(u128::from(self.denominator)).unwrap_or(wide);
            i64::try_from(ns).unwrap_or(i64::MAX)
        };
        scaled.saturating_add(self.offset_ns).clamp(EARLIEST_NS, LATEST_NS)
    }

    /// The first time stamp that is not before a time on the profile's clock; the inverse of [`ns`](Self::ns).
    #[must_use]
    pub fn ticks(&self, ns: i64) -> u64 {
        let since_zero = i128::from(ns).saturating_sub(i128::from(self.offset_ns));
        let numerator = i128::from(self.numerator.max(1));
        let scaled = since_zero.saturating_mul(i128::from(self.denominator));
        let ticks = scaled.saturating_add(numerator).saturating_sub(1).checked_div_euclid(numerator);
        u64::try_from(ticks.unwrap_or(0).max(0)).unwrap_or(u64::MAX)
    }

    /// A conversion without a division per time stamp, for time stamps around `base`. It is monotonic.
    #[must_use]
    pub fn around(&self, base: u64) -> Scale {
        let factor =
            (u128::from(self.numerator) << 64).checked_div(u128::from(self.denominator)).unwrap_or(0);
        Scale { base, base_ns: self.ns(base), whole: (factor >> 64) as u64, fraction: factor as u64 }
    }
}

/// A [`ClockMap`] prepared for many time stamps around one base.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    base: u64,
    base_ns: i64,
    /// Nanoseconds per tick: the integer part, and the fraction in units of 2^-64.
    whole: u64,
    fraction: u64,
}

impl Scale {
    /// Converts a time stamp to the profile's clock. Saturates as [`ClockMap::ns`] does.
    #[must_use]
    #[inline]
    pub fn ns(&self, ticks: u64) -> i64 {
        let away = i128::from(ticks.wrapping_sub(self.base) as i64);
        let rest = away.wrapping_mul(i128::from(self.fraction)) >> 64;
        let scaled = away.wrapping_mul(i128::from(self.whole)).saturating_add(rest);
        let scaled = i64::try_from(scaled).unwrap_or(if away < 0 { i64::MIN } else { i64::MAX });
        self.base_ns.saturating_add(scaled).clamp(EARLIEST_NS, LATEST_NS)
    }

    /// A faster conversion for at most `num` time stamps that follow `ticks`; `None` where it might saturate, or a tick is a
    /// nanosecond or more.
    #[must_use]
    pub fn from(&self, ticks: u64, num: usize) -> Option<Steps> {
        const FAR: i64 = 1 << 60;
        let away = ticks.wrapping_sub(self.base) as i64;
        let is_near = (-FAR..FAR).contains(&away) && (-FAR..2 * FAR).contains(&self.base_ns) && num < 1 << 28;
        let position = i128::from(away).wrapping_mul(i128::from(self.fraction));
        (is_near && self.whole == 0).then_some(Steps {
            position,
            base_ns: self.base_ns,
            fraction: self.fraction,
        })
    }
}

/// A conversion of time stamps that are given as differences, each to the one before.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// Nanoseconds since `base_ns`, in units of 2^-64.
    position: i128,
    base_ns: i64,
    fraction: u64,
}

impl Steps {
    /// Advances by `ticks` and returns the time on the profile's clock.
    #[inline]
    pub fn step(&mut self, ticks: u32) -> i64 {
        let further = u128::from(ticks).wrapping_mul(u128::from(self.fraction));
        self.position = self.position.wrapping_add_unsigned(further);
        self.base_ns.wrapping_add((self.position >> 64) as i64)
    }
}

/// Which rate of a processor's counter to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rate {
    /// The rate that the recording itself shows, else the one in its header.
    #[default]
    Auto,
    /// The rate in the header.
    Header,
    /// A given rate in ticks per second.
    Hz(u64),
}

/// The clock of a recording's time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Clock, one of `ClockPolicy::kinds`.
    pub kind: &'static str,
    /// Ticks per second, where known.
    pub hz: Option<u64>,
    /// Origin of the rate: `defined`, `header`, `unverified` (of a header that nothing confirms), `estimated`, `given` or `unknown`.
    pub hz_source: &'static str,
    /// Rate in the file's header, where it has one.
    pub stated_hz: Option<u64>,
    /// Conversion of time stamps to nanoseconds.
    pub map: ClockMap,
    /// Greatest error of those nanoseconds; `None` where it is not known, or they are exact.
    pub uncertainty_ns: Option<i64>,
    /// How the offset was found.
    pub alignment: Alignment,
}

impl Clock {
    /// All values of [`kind`](Self::kind).
    pub const KINDS: &[&str] =
        &["monotonic", "tsc", "realtime", "perf", "unknown", "monotonic_raw", "boottime", "tai"];

    /// All values of [`hz_source`](Self::hz_source).
    pub const HZ_SOURCES: &[&str] = &["defined", "header", "unverified", "estimated", "given", "unknown"];

    /// A clock of that kind that counts nanoseconds.
    #[must_use]
    pub fn nanoseconds(kind: &'static str) -> Self {
        Self {
            kind,
            hz: Some(1_000_000_000),
            hz_source: "defined",
            stated_hz: None,
            map: ClockMap::default(),
            uncertainty_ns: None,
            alignment: Alignment::SameClock,
        }
    }
}

/// A time on a recording's clock and on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClockTime {
    /// In the file's own unit.
    pub ticks: u64,
    /// Nanoseconds since 1970-01-01 (UTC).
    pub realtime_ns: i64,
}

/// How a recording is placed in a profile: its first keys, its clock, its process.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Key of the source.
    pub source_id: u32,
    /// First keys of this recording; [`Recording::extent`] is how many it takes.
    pub first: Offsets,
    /// Conversion of its time stamps to the profile's clock.
    pub clock: ClockMap,
    /// Pid of its process in the recorder's pid namespace, where the file has another.
    pub pid: Option<i32>,
    /// By pid, which of the processes with that pid its process is, from 0; pids of the first are left out.
    pub nth_of_pid: Arc<BTreeMap<i32, u32>>,
    /// Processes and threads, shared by all recordings of the profile.
    pub identities: Arc<Mutex<Identities>>,
}

impl Placement {
    /// The placement of a recording that is alone in its profile, on its own clock.
    #[must_use]
    pub fn alone(recording: &dyn Recording) -> Self {
        Self {
            source_id: 0,
            first: Offsets::default(),
            clock: recording.clock(Rate::Auto).map,
            pid: None,
            nth_of_pid: Arc::default(),
            identities: Arc::default(),
        }
    }

    /// The process of a log of one process, with its pid in the file.
    #[must_use]
    pub fn own_process(&self, recorded: i32) -> ProcessIdentity {
        self.process(self.pid.unwrap_or(recorded))
    }

    /// The process with a pid of the recorder's pid namespace.
    #[must_use]
    pub fn process(&self, pid: i32) -> ProcessIdentity {
        ProcessIdentity::new(pid, self.nth_of_pid.get(&pid).copied().unwrap_or(0))
    }
}

/// The record batches of a table, decoded on demand.
pub type BatchStream = Box<dyn Iterator<Item = RecordBatch> + Send>;

/// Rows of table `call_events`, for aggregation.
pub type CallStream = Box<dyn Iterator<Item = CallRows> + Send>;

/// Converts batches of table `call_events` to rows.
#[must_use]
pub fn call_stream(batches: BatchStream) -> CallStream {
    Box::new(batches.map(CallRows::from))
}

/// Which rows and columns of a table to decode.
#[derive(Clone, Debug, Default)]
pub struct TableRequest {
    /// Only rows of these code objects (keys as placed), sorted; all where `None`.
    pub code_objects: Option<Vec<u32>>,
    /// At least the rows of these functions (keys as placed), sorted; all where `None`.
    pub functions: Option<Vec<u32>>,
    /// Only rows of this heap snapshot (key as placed); all where `None`.
    pub snapshot: Option<u32>,
    /// Whether to fill columns of raw bytes such as `code_objects.code`.
    pub with_bytes: bool,
    /// Whether to omit the stacks of allocations, which are most of a log's stacks: column `allocations.stack_id` is null, and
    /// `stacks` and `frames` lack the rows that only allocations refer to. The other keys do not change.
    pub no_allocation_stacks: bool,
    /// Whether to omit all stacks: the columns that refer to them are null.
    pub no_stacks: bool,
    /// One of `exceptions`, `lock_events` and `gc_handles`: only the stacks of this table are decoded. The keys in that table,
    /// `stacks` and `frames` then refer only to each other.
    pub stacks_of: Option<&'static str>,
    /// Of `allocations` and `object_moves`, only rows of objects at these addresses, sorted; all where `None`.
    pub objects: Option<Arc<[u64]>>,
}

/// A position between records; the default is that of the first record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Absolute offset of the next record; 0 means the first one.
    pub offset: u64,
    /// Its index.
    pub index: u64,
    /// Further state of the format, for example an offset inside an unpacked block.
    pub inner: u64,
}

/// One thing that was changed to make a file valid.
#[derive(Clone, Debug)]
pub struct Change {
    /// The violated rule.
    pub rule: &'static Rule,
    /// Offset in the original file.
    pub offset: u64,
    /// Description of the change.
    pub message: String,
}

/// The result of a repair.
#[derive(Clone, Debug, Default)]
pub struct Repaired {
    /// Every change; without one the written bytes are those of the file.
    pub changes: Vec<Change>,
    /// Data that could not be recovered.
    pub lost: Vec<Diagnostic>,
    /// Kinds of records that are not copied, because the output contains them in another form: name and reason.
    pub rewritten: Vec<(String, &'static str)>,
}

/// The position of the first record that satisfies a condition, or that after the last record. Reads every record before it.
pub fn position_of<R: Recording + ?Sized>(
    recording: &R,
    condition: impl Fn(&RecordView<'_>) -> bool,
) -> Position {
    let mut at = Position::default();
    loop {
        perfuse_stopping::checkpoint();
        let before = at;
        match recording.read_record(&mut at, &|_| false) {
            Some(record) if condition(&record) => return before,
            Some(_) => {}
            None => return at,
        }
    }
}

/// Opens a source whose first bytes are of a format.
pub type Open = fn(Arc<Source>) -> Result<Arc<dyn Recording>, ParseError>;

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
        let num_read = io::Read::read(&mut open_regular(&main_file).ok()?, &mut head).ok()?;
        let is_certain = (self.sniff)(head.get(..num_read)?) == Sniff::Certain;
        is_certain.then_some(main_file)
    }
}

/// An open file of any format.
pub trait Recording: Send + Sync {
    /// Its format.
    fn format(&self) -> &'static Format;

    /// Its bytes.
    fn source(&self) -> &Arc<Source>;

    /// Version, producer, counts: one pass over the record headers.
    fn summary(&self) -> Summary;

    /// Reads the record at a position and advances the position; `None` at the end. The time stamp and fields of a record whose
    /// name `wanted` does not accept may be left out.
    fn read_record<'a>(&'a self, at: &mut Position, wanted: &dyn Fn(&str) -> bool) -> Option<RecordView<'a>>;

    /// Decodes the record at a position and advances the position; `None` at the end.
    fn next_record<'a>(&'a self, at: &mut Position) -> Option<RecordView<'a>> {
        self.read_record(at, &|_| true)
    }

    /// The position of the first record with at least this index. Reads the records before it, without their fields, unless the
    /// format has an index.
    fn seek_index(&self, index: u64) -> Position {
        position_of(self, |record| record.index >= index)
    }

    /// The position of the first record that begins at or after an offset; `None` where the records are not in the order of
    /// their offsets.
    fn seek_offset(&self, offset: u64) -> Option<Position> {
        Some(position_of(self, |record| record.offset >= offset))
    }

    /// Compares the whole file with its specification.
    fn check(&self, sink: &mut Diagnostics);

    /// Reports the problems that decoding its tables finds, without another pass: fewer than [`check`](Self::check) where a
    /// complete check is expensive.
    fn findings(&self, sink: &mut Diagnostics) {
        self.check(sink);
    }

    /// Writes the longest valid file that can be recovered.
    ///
    /// # Errors
    /// Those of the output, and `Unsupported` for a format that cannot be repaired.
    fn repair(&self, _out: &mut File) -> io::Result<Repaired> {
        let message = format!("{} files cannot be repaired", self.format().title);
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }

    /// The clock of its time stamps; nanoseconds of the summary's clock unless the format overrides it.
    fn clock(&self, _rate: Rate) -> Clock {
        Clock::nanoseconds(self.summary().clock)
    }

    /// First and last time stamp in the file's own unit.
    fn span(&self) -> Option<(u64, u64)> {
        self.summary().span
    }

    /// The recording without what earlier ones contain too, as the logs of a process and of one that it forked do, and the number of
    /// events that were left out; `None` where there are none.
    fn without_copies_of(&self, _earlier: &[Arc<dyn Recording>]) -> Option<(Arc<dyn Recording>, u64)> {
        None
    }

    /// Pids of the processes that it logs, where the recording is the log of few processes; empty for others.
    fn pids(&self) -> Vec<i32> {
        Vec::new()
    }

    /// When the process of a log began, as its header states it: logs of one process state one time.
    fn process_start(&self) -> Option<i64> {
        None
    }

    /// A time that the recording has on both its clock and the wall clock; `None` where it contains no time of day.
    fn wall_clock_time(&self) -> Option<WallClockTime> {
        None
    }

    /// Programs of the recorded processes; empty where the format records none.
    fn recorded_programs(&self) -> RecordedPrograms {
        RecordedPrograms::default()
    }

    /// Functions of mapped files, in recordings that list them.
    fn recorded_symbols(&self) -> Vec<RecordedFile> {
        Vec::new()
    }

    /// Facts about the sampled machine and processes that other recordings are matched and aligned with; `None` where the
    /// format records none.
    fn sampling_facts(&self) -> Option<SamplingFacts> {
        None
    }

    /// Size in bits of its function ids, where functions have ids that an instrumentation map names; `None` where they have
    /// names.
    fn function_id_bits(&self) -> Option<u32> {
        None
    }

    /// Number of keys of each kind that its tables take.
    fn extent(&self) -> Offsets;

    /// Whether a table has rows of this file, as far as that is known without decoding it; otherwise whether the format fills
    /// the table.
    fn fills(&self, table: &str) -> bool {
        self.format().tables.contains(&table)
    }

    /// Number of rows of a table, where that is known without decoding it.
    fn num_rows(&self, _table: &str) -> Option<u64> {
        None
    }

    /// One of the common tables in [`Format::tables`]; `None` for a table it does not fill. `records` is made of its records
    /// unless it has a faster way: see [`table_of`](crate::table_of).
    fn table(&self, name: &str, placement: &Placement, request: &TableRequest) -> Option<BatchStream>;

    /// Table `call_events` in consecutive segments that can be decoded independently; one segment unless the format overrides
    /// it.
    fn call_segments(&self, placement: &Placement) -> Vec<CallStream> {
        let whole = self.table("call_events", placement, &TableRequest::default());
        whole.into_iter().map(call_stream).collect()
    }

    /// Sums over table `allocations`, where they are known without decoding it; a thread and type may have several.
    fn allocation_sums(&self, _placement: &Placement) -> Option<Vec<AllocationSum>> {
        None
    }

    /// Sums over heap snapshots, where they are known without decoding their tables; one per snapshot and type.
    fn snapshot_sums(&self, _placement: &Placement) -> Option<Vec<SnapshotSum>> {
        None
    }

    /// Number of samples that have a copy of their user stack.
    fn num_user_stacks(&self) -> u64 {
        0
    }

    /// Whether samples have a link register, from which one more caller may be known.
    fn has_link_registers(&self) -> bool {
        false
    }

    /// Copy of a user stack, by its number in column `callchains.user_stack`. `registers` receives the DWARF number and the value of
    /// each register, the program counter last. Of a sample with only a link register, it receives that one, and the copy is
    /// empty; of a machine that is not supported, none. `None` for other samples.
    fn user_stack(&self, _number: u64, _registers: &mut Vec<u64>) -> Option<UserStack<'_>> {
        None
    }

    /// Unwinding information recorded for a code object, by its number within the recording (its key less the first one).
    fn code_unwinding(&self, _code_object: u32) -> Option<CodeUnwinding<'_>> {
        None
    }

    /// Rule for leaving the function at an address, of a file that contains unwinding rows.
    fn recovery(&self, _address: u64) -> Option<FrameRecovery> {
        None
    }

    /// Ranges of bytes, sorted, that only columns of raw bytes and unwinding need: machine code, copies of stacks. A saved profile
    /// leaves them out. `keep_code` selects code objects, by their number within the recording, whose code is kept.
    fn omissible_bytes(&self, _keep_code: &dyn Fn(u32) -> bool) -> Vec<Range<u64>> {
        Vec::new()
    }

    /// The recording as its concrete type, for what only one format has.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// A stream of one batch.
#[must_use]
pub fn one_batch(batch: RecordBatch) -> BatchStream {
    Box::new(std::iter::once(batch))
}
