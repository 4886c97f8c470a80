//! Encodes records: the inverse of [`records`](super::records), byte for byte.

use std::{fmt, io};

use perfuse_wire::{Endian, Put};

use super::consts::{REPEATED_NAME, RecordTag};
use super::layout::{self, RecordPrefix};
use super::records::{DebugInfoEntry, DebugInfoRecord, LoadRecord, UnwindingInfoRecord};

/// Reason why a record could not be written.
#[derive(Debug)]
pub enum WriteError {
    /// The output could not be written.
    Io(io::Error),
    /// A text contains a NUL, at which readers end it.
    Nul {
        /// The field.
        field: &'static str,
    },
    /// The size of a record has more than 32 bits.
    TooLarge {
        /// Size the record would have.
        size: u64,
    },
    /// Debug information does not directly precede the load that it describes.
    Order {
        /// Address in the debug information that has no load yet.
        pending: u64,
        /// Address of the record that was written instead.
        code_addr: u64,
    },
    /// The file was closed before the load of the last debug information.
    Pending {
        /// Address in the debug information.
        code_addr: u64,
    },
    /// The file is closed.
    Closed,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Nul { field } => write!(f, "{field} contains a NUL, at which readers end it"),
            Self::TooLarge { size } => {
                write!(f, "a record of {size} bytes is too large: its size field has 32 bits")
            }
            Self::Order { pending, code_addr } => write!(
                f,
                "the code at {pending:#x} has debug information but no load yet; the next record is for the code at {code_addr:#x}"
            ),
            Self::Pending { code_addr } => {
                write!(f, "closed although the code at {code_addr:#x} has debug information but no load")
            }
            Self::Closed => f.write_str("the dump is closed"),
        }
    }
}

impl std::error::Error for WriteError {}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Checks that a text contains no NUL.
///
/// # Errors
/// [`WriteError::Nul`].
pub fn check_text<'a>(text: &'a [u8], field: &'static str) -> Result<&'a [u8], WriteError> {
    if text.contains(&0) { Err(WriteError::Nul { field }) } else { Ok(text) }
}

/// Appends a record: its prefix, then its body.
///
/// # Errors
/// [`WriteError::TooLarge`].
pub fn record(
    tag: RecordTag,
    timestamp: u64,
    body: &[u8],
    endian: Endian,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let size = (body.len() as u64).saturating_add(RecordPrefix::SIZE);
    let total_size = u32::try_from(size).map_err(|_| WriteError::TooLarge { size })?;
    RecordPrefix { id: tag.0, total_size, timestamp }.write(out, endian);
    out.extend_from_slice(body);
    Ok(())
}

impl LoadRecord<'_> {
    /// Encodes the body.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Vec<u8> {
        let fixed = &self.fixed;
        let mut out = Vec::with_capacity(self.name.len().saturating_add(self.code.len()).saturating_add(64));
        if self.wide_tid {
            out.put_u32(fixed.pid, endian);
            out.put_u32(0, endian);
            out.put_u64(self.tid, endian);
            for field in [fixed.vma, fixed.code_addr, fixed.code_size, fixed.code_index] {
                out.put_u64(field, endian);
            }
        } else {
            fixed.write(&mut out, endian);
        }
        out.extend_from_slice(self.name);
        if self.name_terminated {
            out.push(0);
        }
        out.extend_from_slice(self.code);
        out.extend_from_slice(self.padding);
        out
    }
}

impl UnwindingInfoRecord<'_> {
    /// Encodes the body.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.data.len().saturating_add(32));
        self.fixed.write(&mut out, endian);
        out.extend_from_slice(self.data);
        out.extend_from_slice(self.padding);
        out
    }
}

impl DebugInfoRecord<'_> {
    /// Encodes the body. In the byte order of the record, the result equals what was read, damaged entries included. In the
    /// other byte order, only entries before the first damaged one are converted.
    #[must_use]
    pub fn encode(&self, endian: Endian) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.entries.remaining().saturating_add(16));
        self.fixed.write(&mut out, endian);
        let mut at = self.entries;
        if endian != at.endian() {
            for _ in 0..self.fixed.nr_entry {
                let mut next = at;
                let (Ok(fixed), Ok(name)) = (layout::DebugEntry::read(&mut next), next.c_string("name"))
                else {
                    break;
                };
                fixed.write(&mut out, endian);
                out.extend_from_slice(name);
                out.push(0);
                at = next;
            }
        }
        out.extend_from_slice(at.rest());
        out
    }
}

/// Encodes the body of a JIT_CODE_DEBUG_INFO. With `repeat`, a name equal to the previous one becomes `0xff`, which perf
/// and few other readers support.
///
/// # Errors
/// [`WriteError::Nul`] for a name with a NUL.
pub fn debug_info(
    code_addr: u64,
    entries: &[DebugInfoEntry<'_>],
    repeat: bool,
    endian: Endian,
) -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    layout::DebugInfo { code_addr, nr_entry: entries.len() as u64 }.write(&mut out, endian);
    let mut previous = None;
    for entry in entries {
        entry.fixed.write(&mut out, endian);
        let same = repeat && previous == Some(entry.name);
        out.extend_from_slice(if same { REPEATED_NAME } else { check_text(entry.name, "name")? });
        out.push(0);
        previous = Some(entry.name);
    }
    Ok(out)
}
