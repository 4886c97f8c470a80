//! What an open recording of any format offers, and its parameters.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use perfuse_tables::{Alignment, CallRows, Identities, Offsets};
use perfuse_wire::{Diagnostic, Diagnostics, Endian, RecordView, Rule, Value};

use crate::{AllocationSum, Format, SamplingFacts, ShotSum, Source};

/// What `perfuse info` tells of a file.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Version as the file states it.
    pub version: Option<String>,
    /// Byte order.
    pub endian: Endian,
    /// Size of a pointer in bytes.
    pub pointer_bytes: Option<u8>,
    /// Machine, as `uname -m` spells it.
    pub arch: Option<&'static str>,
    /// Program that wrote it, where its habits tell.
    pub producer: Option<String>,
    /// `monotonic`, `tsc`, `realtime`, `perf` or `unknown`.
    pub clock: &'static str,
    /// First and last time stamp: in nanoseconds unless `clock` is `tsc` or `unknown`, then as the file has them.
    pub span: Option<(u64, u64)>,
    /// Records by kind, every one in the file, by the specification's name.
    pub counts: Vec<(String, u64)>,
    /// Header fields, in the order of the specification.
    pub header: Vec<(&'static str, Value<'static>)>,
}

/// How to put a source's time stamps on the profile's clock: `ns = ticks * numerator / denominator + offset_ns`.
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

impl ClockMap {
    /// A time stamp on the profile's clock. Saturates rather than wraps.
    #[must_use]
    #[inline]
    pub fn ns(&self, ticks: u64) -> i64 {
        let scaled = if self.numerator == self.denominator {
            i64::try_from(ticks).unwrap_or(i64::MAX)
        } else {
            let wide = u128::from(ticks).saturating_mul(u128::from(self.numerator));
            let ns = wide.checked_div(u128::from(self.denominator)).unwrap_or(wide);
            i64::try_from(ns).unwrap_or(i64::MAX)
        };
        scaled.saturating_add(self.offset_ns)
    }

    /// The same without a division for each time stamp, for those around `base`. Never goes back where ticks do not.
    #[must_use]
    pub fn around(&self, base: u64) -> Scale {
        let factor =
            (u128::from(self.numerator) << 64).checked_div(u128::from(self.denominator)).unwrap_or(0);
        Scale { base, base_ns: self.ns(base), whole: (factor >> 64) as u64, fraction: factor as u64 }
    }
}

/// A [`ClockMap`] for many time stamps around one.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    base: u64,
    base_ns: i64,
    /// Nanoseconds in a tick: whole ones, and a rest in units of 2^-64.
    whole: u64,
    fraction: u64,
}

impl Scale {
    /// A time stamp on the profile's clock. Saturates rather than wraps.
    #[must_use]
    #[inline]
    pub fn ns(&self, ticks: u64) -> i64 {
        let away = i128::from(ticks.wrapping_sub(self.base) as i64);
        let rest = away.wrapping_mul(i128::from(self.fraction)) >> 64;
        let scaled = away.wrapping_mul(i128::from(self.whole)).saturating_add(rest);
        let scaled = i64::try_from(scaled).unwrap_or(if away < 0 { i64::MIN } else { i64::MAX });
        self.base_ns.saturating_add(scaled)
    }

    /// The same for time stamps that follow `ticks` in at most `num` steps, which is faster; `None` where that might saturate, or
    /// a tick is a nanosecond or more.
    #[must_use]
    pub fn from(&self, ticks: u64, num: usize) -> Option<Steps> {
        const FAR: i64 = 1 << 61;
        let away = ticks.wrapping_sub(self.base) as i64;
        let is_near = (-FAR..FAR).contains(&away) && (-FAR..FAR).contains(&self.base_ns) && num < 1 << 28;
        let position = i128::from(away).wrapping_mul(i128::from(self.fraction));
        (is_near && self.whole == 0).then_some(Steps {
            position,
            base_ns: self.base_ns,
            fraction: self.fraction,
        })
    }
}

/// Time stamps one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// Nanoseconds since `base_ns`, in units of 2^-64.
    position: i128,
    base_ns: i64,
    fraction: u64,
}

impl Steps {
    /// Goes on by so many ticks: the time on the profile's clock.
    #[inline]
    pub fn step(&mut self, ticks: u32) -> i64 {
        let further = u128::from(ticks).wrapping_mul(u128::from(self.fraction));
        self.position = self.position.wrapping_add_unsigned(further);
        self.base_ns.wrapping_add((self.position >> 64) as i64)
    }
}

/// What rate to take a processor's counter to tick at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rate {
    /// What the recording itself shows, or else what its header says.
    #[default]
    Auto,
    /// What the header says.
    Header,
    /// Ticks a second.
    Hz(u64),
}

/// The clock of a recording's time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// `monotonic`, `tsc`, `realtime`, `perf` or `unknown`.
    pub kind: &'static str,
    /// Ticks a second, where known.
    pub hz: Option<u64>,
    /// Where the rate is from: `defined`, `header`, `estimated`, `given` or `unknown`.
    pub hz_source: &'static str,
    /// Rate that the file states, where it states one.
    pub stated_hz: Option<u64>,
    /// How time stamps become nanoseconds.
    pub map: ClockMap,
    /// How far off those may be; `None` where that is not known, or they are exact.
    pub uncertainty_ns: Option<i64>,
    /// How the offset was found.
    pub alignment: Alignment,
}

impl Clock {
    /// Nanoseconds, of a clock of that kind.
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

/// Where a recording stands among the others of a profile: the keys it numbers on from, its clock, its process.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Key of the source.
    pub source_id: u32,
    /// First keys that are this recording's; its [`Recording::extent`] says how many it takes.
    pub first: Offsets,
    /// How its time stamps become the profile's.
    pub clock: ClockMap,
    /// The pid the recorder knew its process by, where the file has another (pid namespaces).
    pub pid: Option<i32>,
    /// Processes and threads, shared by all recordings of the profile.
    pub identities: Arc<Mutex<Identities>>,
}

impl Placement {
    /// A recording alone, on its own clock.
    #[must_use]
    pub fn alone(recording: &dyn Recording) -> Self {
        Self {
            source_id: 0,
            first: Offsets::default(),
            clock: recording.clock(Rate::Auto).map,
            pid: None,
            identities: Arc::default(),
        }
    }
}

/// A table in record batches, made as they are pulled.
pub type BatchStream = Box<dyn Iterator<Item = RecordBatch> + Send>;

/// Rows of table `call_events`, for who adds calls up.
pub type CallStream = Box<dyn Iterator<Item = CallRows> + Send>;

/// Batches of table `call_events`.
#[must_use]
pub fn call_stream(batches: BatchStream) -> CallStream {
    Box::new(batches.map(CallRows::from))
}

/// What of a table is wanted.
#[derive(Clone, Debug, Default)]
pub struct TableRequest {
    /// Only rows of these code objects (keys as placed), sorted; all where none.
    pub code_objects: Option<Vec<u32>>,
    /// Only rows of this heap shot (key as placed); all where none.
    pub snapshot: Option<u32>,
    /// Whether to fill columns of raw bytes such as `code_objects.code`.
    pub with_bytes: bool,
    /// Whether to leave out the stacks of allocations, which are most of a log's: then `allocations` has none, and `stacks` and
    /// `frames` have not those only allocations need. All others keep their keys.
    pub no_allocation_stacks: bool,
    /// Whether to leave out all stacks: columns of them are null.
    pub no_stacks: bool,
    /// A table whose stacks alone are wanted, of `exceptions`, `lock_events` and `gc_handles`: then that table, `stacks` and
    /// `frames` have keys that only belong to each other, and no stack of any other event is looked at.
    pub stacks_of: Option<&'static str>,
    /// Of `allocations` and `object_moves`, only rows of objects at these addresses, sorted; all where none.
    pub objects: Option<Arc<[u64]>>,
}

/// Where a walk over records stands; the default is the first record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Absolute offset of the next record; 0 means the first one.
    pub offset: u64,
    /// Its index.
    pub index: u64,
    /// What else the format needs to go on (an offset inside an unpacked block).
    pub inner: u64,
}

/// One thing that was changed to make a file valid.
#[derive(Clone, Debug)]
pub struct Change {
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// Where, in the file as it was.
    pub offset: u64,
    /// What was done.
    pub message: String,
}

/// What a repair did.
#[derive(Clone, Debug, Default)]
pub struct Repaired {
    /// Every change.
    pub changes: Vec<Change>,
    /// What could not be saved.
    pub lost: Vec<Diagnostic>,
    /// Records that were read.
    pub records_in: u64,
    /// Records that were written.
    pub records_out: u64,
}

/// An open file of any format.
pub trait Recording: Send + Sync {
    /// Its format.
    fn format(&self) -> &'static Format;

    /// Its bytes.
    fn source(&self) -> &Arc<Source>;

    /// Version, producer, counts: one pass over the record headers.
    fn summary(&self) -> Summary;

    /// Decodes the record at a position and moves the position past it; `None` at the end.
    fn next_record<'a>(&'a self, at: &mut Position) -> Option<RecordView<'a>>;

    /// Holds the whole file against its specification.
    fn check(&self, sink: &mut Diagnostics);

    /// What reading it for its tables finds, without another pass: less than [`check`](Self::check) where that is dear.
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

    /// The clock of its time stamps. Nanoseconds of whatever clock the summary names, unless a format has another.
    fn clock(&self, _rate: Rate) -> Clock {
        Clock::nanoseconds(self.summary().clock)
    }

    /// First and last time stamp, as the file has them.
    fn span(&self) -> Option<(u64, u64)> {
        self.summary().span
    }

    /// Facts about the sampled machine and processes that other recordings are matched and aligned with; `None` where the
    /// format records none.
    fn sampling_facts(&self) -> Option<SamplingFacts> {
        None
    }

    /// Bits of the numbers its functions have instead of names, where an instrumentation map is to name them.
    fn function_id_bits(&self) -> Option<u32> {
        None
    }

    /// How many keys of each kind its tables take.
    fn extent(&self) -> Offsets;

    /// Whether a table has rows of this file, as far as that can be told without making it; where it cannot, whether its
    /// format fills it.
    fn fills(&self, table: &str) -> bool {
        self.format().tables.contains(&table)
    }

    /// How many rows a table has, where that is known without making it.
    fn num_rows(&self, _table: &str) -> Option<u64> {
        None
    }

    /// One of the common tables in [`Format::tables`]; `None` for a table it does not fill.
    fn table(&self, name: &str, placement: &Placement, request: &TableRequest) -> Option<BatchStream>;

    /// Table `call_events` in parts that follow each other, each of which can be made without the others; in one part unless a
    /// format can do better.
    fn call_segments(&self, placement: &Placement) -> Vec<CallStream> {
        let whole = self.table("call_events", placement, &TableRequest::default());
        whole.into_iter().map(call_stream).collect()
    }

    /// Table `allocations` added up, where that is known without making it: of one thread and type there may be several sums.
    fn allocation_sums(&self, _placement: &Placement) -> Option<Vec<AllocationSum>> {
        None
    }

    /// Heap shots added up, where that is known without making their tables: of one shot and type there is one sum.
    fn shot_sums(&self, _placement: &Placement) -> Option<Vec<ShotSum>> {
        None
    }

    /// The recording as its own type, for what only one format has.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// A table of one batch.
#[must_use]
pub fn one_batch(batch: RecordBatch) -> BatchStream {
    Box::new(std::iter::once(batch))
}
