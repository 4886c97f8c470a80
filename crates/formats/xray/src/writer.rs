//! Writes logs of FDR and Basic mode, of any version and byte order, as their versions should be written: extents that are
//! true, a processor and counter at the beginning of every buffer, nothing in what is unused.

mod basic;
mod buffer;
mod fdr;
mod log;
mod misfits;
mod sink;
mod to_basic;
mod to_fdr;
mod to_yaml;

use std::{fmt, io};

use perfuse_wire::Endian;

use super::consts::{Action, LAST_BASIC_VERSION, LAST_FDR_VERSION};
use super::encode;
use super::header::Mode;
use super::records::Dialect;

pub use basic::BasicWriter;
pub use buffer::{Beginning, Buffer};
pub use fdr::FdrWriter;
pub use log::LogWriter;
pub use misfits::Misfits;
pub use sink::{Finish, Sink};
pub use to_basic::ToBasic;
pub use to_fdr::ToFdr;
pub use to_yaml::ToYaml;

/// Size in bytes of the buffers of an FDR log that is made of what has none.
pub const BUFFER_BYTES: u64 = 1 << 16;

/// Process and thread; 0 where a log does not say.
pub type Owner = (i32, i32);

/// The counter, and the processor it is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The counter.
    pub tsc: u64,
    /// The processor.
    pub cpu: u16,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<'a> {
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

    fn header(&self) -> Vec<u8> {
        let buffer_size = if self.mode == Mode::Fdr { self.buffer_size } else { 0 };
        let Self { mode, version, endian, cycle_frequency, tsc_flags, .. } = *self;
        encode::header(mode, version, tsc_flags, cycle_frequency, buffer_size, endian)
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Buffers of an FDR log.
    pub num_buffers: u64,
    /// Function records.
    pub num_calls: u64,
    /// Custom and typed events.
    pub num_events: u64,
    /// What did not fit.
    pub misfits: Misfits,
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

#[cfg(test)]
mod tests;
