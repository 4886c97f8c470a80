//! What every log writer takes in and returns: the events of threads, the header's facts, what was written and what was not.

use std::{fmt, io};

use perfuse_wire::Endian;

use crate::consts::{Action, LAST_BASIC_VERSION, LAST_FDR_VERSION};
use crate::encode;
use crate::header::Mode;
use crate::records::Dialect;

/// Size in bytes of the buffers of an FDR log that is made of what has none.
pub const BUFFER_BYTES: u64 = 1 << 16;

/// Process and thread; 0 where a log does not say.
pub type ThreadIds = (i32, i32);

/// The counter, and the processor it is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TscStamp {
    /// The counter.
    pub tsc: u64,
    /// The processor.
    pub cpu: u16,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadEvent<'a> {
    /// It entered or left a function.
    Call {
        /// Which of the two, and how.
        action: Action,
        /// The function.
        function_id: u32,
    },
    /// The function just entered has this argument.
    Argument(u64),
    /// It told bytes of the program's own.
    Event {
        /// Number of their type, of a typed event.
        event_type: Option<u16>,
        /// The bytes.
        payload: &'a [u8],
    },
}

/// What the header of a log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpec {
    /// FDR or Basic.
    pub mode: Mode,
    /// FDR 1 to 5, Basic 1 to 3.
    pub version: u16,
    /// Byte order.
    pub endian: Endian,
    /// Ticks a second of the counter; 0 where unknown.
    pub cycle_frequency: u64,
    /// Whether the counter ticks at one rate, and through idle states.
    pub tsc_flags: (bool, bool),
    /// FDR: size in bytes of a buffer; of version 1, the distance of buffers.
    pub buffer_size: u64,
}

impl LogSpec {
    /// Whether logs of this mode and version were ever written.
    #[must_use]
    pub fn is_known(&self) -> bool {
        match self.mode {
            Mode::Fdr => (1..=LAST_FDR_VERSION).contains(&self.version),
            Mode::Basic => (1..=LAST_BASIC_VERSION).contains(&self.version),
            Mode::Profile => false,
        }
    }

    /// How records are written: with the bytes of their events, as every specification has it.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        Dialect { version: self.version, endian: self.endian, payloads: true }
    }

    pub(super) fn header(&self) -> Vec<u8> {
        let buffer_size = if self.mode == Mode::Fdr { self.buffer_size } else { 0 };
        let Self { mode, version, endian, cycle_frequency, tsc_flags, .. } = *self;
        encode::header(mode, version, tsc_flags, cycle_frequency, buffer_size, endian)
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Buffers of an FDR log.
    pub num_buffers: u64,
    /// Function records.
    pub num_calls: u64,
    /// Custom and typed events.
    pub num_events: u64,
    /// What did not fit.
    pub unsupported: UnsupportedItems,
}

/// Why a log cannot be written.
#[derive(Debug)]
pub enum WriteError {
    /// The sink refused.
    Io(io::Error),
    /// No log of that mode and version was ever written.
    Version(Mode, u16),
    /// Buffers of version 1 lie at equal distances, and this one is larger.
    TooLarge {
        /// Bytes it takes.
        bytes: u64,
        /// Their distance.
        buffer_size: u64,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Version(mode, version) => write!(f, "there is no version {version} of {mode:?} mode"),
            Self::TooLarge { bytes, buffer_size } => {
                write!(f, "a buffer of {bytes} bytes where version 1 has {buffer_size} for each")
            }
        }
    }
}

impl std::error::Error for WriteError {}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// What a buffer begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferStart {
    /// Process and thread; the process is written from version 3 on, unless it is 0.
    pub thread_ids: ThreadIds,
    /// Seconds and microseconds of CLOCK_MONOTONIC when it was begun; both 0 where that is not known.
    pub wall: (i64, i32),
    /// The counter at that time.
    pub at: TscStamp,
}

/// Takes in what threads did: by buffers, or thread by thread in order of time.
pub trait LogSink {
    /// A buffer begins: what is told until its end is of its thread.
    fn begin(&mut self, start: &BufferStart);

    /// The buffer ends. Without `even_empty` there was none if nothing was told.
    fn end(&mut self, even_empty: bool) -> Result<(), WriteError>;

    /// The log has the counter whole here, and the processor.
    fn new_cpu(&mut self, at: TscStamp);

    /// The log has the counter whole here.
    fn wrap(&mut self, tsc: u64);

    /// A thread did something.
    fn write_event(&mut self, thread_ids: ThreadIds, at: TscStamp, event: ThreadEvent<'_>);

    /// What failed since it was asked last.
    fn check(&mut self) -> Result<(), WriteError>;
}

/// A sink that ends.
pub trait FinishLog: LogSink {
    /// Writes what is left, and says what was written.
    fn finish(&mut self) -> Result<WriteSummary, WriteError>;
}

/// How many of what did not fit, or was not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsupportedItems {
    /// Buffers, or records of Basic mode, whose process the version cannot tell.
    pub pids: u64,
    /// Wall times of buffers, which Basic mode has not; with them goes what the log shows of its counter's rate.
    pub wall_times: u64,
    /// Buffers that were given wall time 0, as the log they are made of has none.
    pub unknown_wall_times: u64,
    /// Buffers that were given a processor, and a counter from 0 on, as the log says neither.
    pub unknown_counters: u64,
    /// Processors whose number does not fit; 8 bits of it were written.
    pub cpus: u64,
    /// Tail exits, written as exits.
    pub tail_exits: u64,
    /// Arguments that were left out.
    pub arguments: u64,
    /// Custom and typed events that were left out.
    pub events: u64,
    /// Function records that were left out, as their ids have more than 28 bits.
    pub function_ids: u64,
    /// Events whose bytes had been overwritten: written with as many `0xff`.
    pub payloads: u64,
    /// Buffers of versions 1 to 3 in which bytes of events look like records: those versions do not say whether the bytes
    /// are there, and readers have to guess.
    pub ambiguous: u64,
    /// Arguments of no entry, left out.
    pub orphan_arguments: u64,
    /// Records of no known kind, left out.
    pub unknown: u64,
    /// Buffers, or records of Basic mode, that were there twice: written once.
    pub copies: u64,
}

impl UnsupportedItems {
    /// Every count, with its name.
    #[must_use]
    pub fn counts(&self) -> [(&'static str, u64); 14] {
        [
            ("pids", self.pids),
            ("wall_times", self.wall_times),
            ("unknown_wall_times", self.unknown_wall_times),
            ("unknown_counters", self.unknown_counters),
            ("cpus", self.cpus),
            ("tail_exits", self.tail_exits),
            ("arguments", self.arguments),
            ("events", self.events),
            ("function_ids", self.function_ids),
            ("payloads", self.payloads),
            ("doubtful", self.ambiguous),
            ("orphans", self.orphan_arguments),
            ("unknown", self.unknown),
            ("copies", self.copies),
        ]
    }

    /// Counts those of another part too.
    pub fn add(&mut self, other: &Self) {
        let own_counts: [&mut u64; 14] = [
            &mut self.pids,
            &mut self.wall_times,
            &mut self.unknown_wall_times,
            &mut self.unknown_counters,
            &mut self.cpus,
            &mut self.tail_exits,
            &mut self.arguments,
            &mut self.events,
            &mut self.function_ids,
            &mut self.payloads,
            &mut self.ambiguous,
            &mut self.orphan_arguments,
            &mut self.unknown,
            &mut self.copies,
        ];
        for (own_counts, (_, count)) in own_counts.into_iter().zip(other.counts()) {
            *own_counts = own_counts.saturating_add(count);
        }
    }
}
