//! The input and the results of log writers: events of threads, properties of the header, what was written, what
//! could not be represented.

use std::{fmt, io};

use perfuse_wire::Endian;

use crate::consts::Action;
use crate::encode;
use crate::header::Mode;
use crate::records::XRayDialect;

/// Size in bytes of the buffers of an FDR log made from a source without buffers.
pub const BUFFER_BYTES: u64 = 1 << 16;

/// Process and thread id; 0 where unknown.
pub type ThreadIds = (i32, i32);

/// The counter, and the processor it was read on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TscStamp {
    /// The counter.
    pub tsc: u64,
    /// The processor.
    pub cpu: u16,
}

/// An event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadEvent<'a> {
    /// A function entry or exit.
    Call {
        /// What happened.
        action: Action,
        /// The function id.
        function_id: u32,
    },
    /// The function entered last has this argument.
    Argument(u64),
    /// A custom or typed event.
    Event {
        /// Number of the event type, in a typed event.
        event_type: Option<u16>,
        /// The bytes of the event.
        payload: &'a [u8],
    },
}

/// The properties in the header of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpec {
    /// FDR or Basic.
    pub mode: Mode,
    /// FDR 1 to 5, Basic 1 to 3.
    pub version: u16,
    /// Byte order.
    pub endian: Endian,
    /// Ticks per second of the counter; 0 where unknown.
    pub cycle_frequency: u64,
    /// Whether the counter ticks at a constant rate, and in idle states.
    pub tsc_flags: (bool, bool),
    /// FDR: size in bytes of a buffer; in version 1 the distance of buffers.
    pub buffer_size: u64,
}

impl LogSpec {
    /// A log of a counter that ticks at a constant rate, with buffers as the runtime makes them.
    #[must_use]
    pub fn new(mode: Mode, version: u16, endian: Endian, cycle_frequency: u64) -> Self {
        Self { mode, version, endian, cycle_frequency, tsc_flags: (true, true), buffer_size: BUFFER_BYTES }
    }

    /// Whether a runtime ever wrote logs of this mode and version.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.mode != Mode::Profile && (1..=self.mode.latest_version()).contains(&self.version)
    }

    /// How records are encoded: with the bytes of their events, as specified.
    #[must_use]
    pub fn dialect(&self) -> XRayDialect {
        XRayDialect { version: self.version, endian: self.endian, payloads: true }
    }

    /// The bytes of the header.
    pub(super) fn header(&self) -> Vec<u8> {
        let buffer_size = if self.mode == Mode::Fdr { self.buffer_size } else { 0 };
        let Self { mode, version, endian, cycle_frequency, tsc_flags, .. } = *self;
        encode::header(mode, version, tsc_flags, cycle_frequency, buffer_size, endian)
    }
}

/// The numbers of items that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Number of buffers of an FDR log.
    pub num_buffers: u64,
    /// Number of function records.
    pub num_calls: u64,
    /// Number of custom and typed events.
    pub num_events: u64,
    /// The items that could not be represented.
    pub unsupported: UnsupportedItems,
}

/// Why a log cannot be written.
#[derive(Debug)]
pub enum WriteError {
    /// The output failed.
    Io(io::Error),
    /// This mode has no such version.
    Version(Mode, u16),
    /// A buffer exceeds the distance of buffers in version 1.
    TooLarge {
        /// Size of the buffer in bytes.
        bytes: u64,
        /// The distance in bytes.
        buffer_size: u64,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Version(mode, version) => write!(f, "there is no version {version} of {mode:?} mode"),
            Self::TooLarge { bytes, buffer_size } => {
                write!(f, "a buffer of {bytes} bytes, where version 1 reserves {buffer_size} for each")
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

/// The data in the preamble of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferStart {
    /// Process and thread; the process is written from version 3 on, unless it is 0.
    pub thread_ids: ThreadIds,
    /// Seconds and microseconds of CLOCK_MONOTONIC at the start of the buffer; both 0 where unknown.
    pub wall: (i64, i32),
    /// The counter at that time.
    pub at: TscStamp,
}

/// Receives the events of threads: by buffers, or by threads in order of time.
pub trait LogSink {
    /// Starts a buffer: the events up to its end are those of its thread.
    fn begin(&mut self, start: &BufferStart);

    /// Ends the buffer. Without `even_empty`, a buffer without events is not written.
    fn end(&mut self, even_empty: bool) -> Result<(), WriteError>;

    /// The source contains an absolute counter and the processor here.
    fn new_cpu(&mut self, at: TscStamp);

    /// The source contains an absolute counter here.
    fn wrap(&mut self, tsc: u64);

    /// Writes an event of a thread.
    fn write_event(&mut self, thread_ids: ThreadIds, at: TscStamp, event: ThreadEvent<'_>);

    /// Returns the first error since the last call.
    fn check(&mut self) -> Result<(), WriteError>;
}

/// A sink that can be finished.
pub trait FinishLog: LogSink {
    /// Writes the rest, and returns what was written.
    fn finish(&mut self) -> Result<WriteSummary, WriteError>;
}

/// Numbers of items that the log cannot represent, or that the source lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsupportedItems {
    /// Buffers, or records of Basic mode, whose process id the version cannot represent.
    pub pids: u64,
    /// Wall times of buffers, which Basic mode cannot represent; without them the counter's rate cannot be estimated.
    pub wall_times: u64,
    /// Buffers that were given wall time 0, as the source has none.
    pub unknown_wall_times: u64,
    /// Buffers that were given processor 0 and a counter from 0 on, as the source has neither.
    pub unknown_counters: u64,
    /// Processor numbers that were truncated to 8 bits.
    pub cpus: u64,
    /// Tail exits that were written as exits.
    pub tail_exits: u64,
    /// Arguments that were left out.
    pub arguments: u64,
    /// Custom and typed events that were left out.
    pub events: u64,
    /// Function records that were left out, as their ids exceed 28 bits.
    pub function_ids: u64,
    /// Events whose bytes were overwritten in the source; written with as many bytes `0xff`.
    pub payloads: u64,
    /// Buffers of versions 1 to 3 in which bytes of events look like records: those versions do not state whether the
    /// bytes are there, so readers have to guess.
    pub ambiguous: u64,
    /// Arguments without an entry that were left out.
    pub orphan_arguments: u64,
    /// Records of unknown kinds that were left out.
    pub unknown: u64,
    /// Duplicate buffers, or records of Basic mode, that were written once.
    pub copies: u64,
}

impl UnsupportedItems {
    /// All counts with their names.
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

    /// Adds other counts.
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
