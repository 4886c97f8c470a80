//! Encodes records as bytes, the inverse of `records.rs`. Unused bytes are 0.

use std::fmt;

use perfuse_wire::{Endian, Put};

use super::basic::BasicItem;
use super::consts::{
    Action, BASIC_BYTES, FDR_LOG, FUNCTION_ID_BITS, METADATA_BYTES, MetadataKind, NAIVE_LOG,
};
use super::header::Mode;
use super::layout::{
    BufferExtents, CallArgument, CustomEventV1, CustomEventV4, CustomEventV5, EndOfBuffer, FileHeader,
    NewBuffer, NewCpuId, Pid, TscWrap, TypedEventV3, TypedEventV5, WallTimeMarker,
};
use super::records::{Event, EventTime, Record, XRayDialect, metadata_byte, pack};

/// Why a record cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The version does not define this record.
    Kind {
        /// The kind of the record.
        kind: MetadataKind,
        /// The version.
        version: u16,
    },
    /// Function ids have 28 bits.
    FunctionId(u32),
    /// Events contain the absolute counter before version 5, and a delta from version 5 on.
    EventTime {
        /// The version.
        version: u16,
    },
    /// The size of an event has 31 bits.
    EventSize(usize),
    /// The stated size of an event differs from the number of its bytes.
    Stated {
        /// The stated size.
        size: i32,
        /// Number of bytes.
        bytes: usize,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { kind, version } => write!(f, "version {version} has no {kind}"),
            Self::FunctionId(id) => write!(f, "function id {id} has more than {FUNCTION_ID_BITS} bits"),
            Self::EventTime { version } if *version < 5 => {
                write!(f, "an event of version {version} has the counter, not a delta")
            }
            Self::EventTime { version } => {
                write!(f, "an event of version {version} has a delta, not the counter")
            }
            Self::EventSize(size) => write!(f, "an event of {size} bytes; its size field has 31 bits"),
            Self::Stated { size, bytes } => write!(f, "an event of {bytes} bytes states {size}"),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Whether FDR logs of a version define metadata records of a kind.
#[must_use]
pub fn has_kind(version: u16, kind: MetadataKind) -> bool {
    match kind {
        MetadataKind::END_OF_BUFFER => version == 1,
        MetadataKind::BUFFER_EXTENTS => version >= 2,
        MetadataKind::TYPED_EVENT_MARKER | MetadataKind::PID => version >= 3,
        kind => kind.name().is_some(),
    }
}

/// The action in the form its version has: before 4, arguments follow a plain entry.
#[must_use]
#[inline]
pub fn action_of_version(version: u16, action: Action) -> Action {
    if version < 4 && action == Action::ENTRY_ARGS { Action::ENTRY } else { action }
}

/// Appends a function record with the low 28 bits of the id.
#[inline]
pub fn function(action: Action, function_id: u32, tsc_delta: u32, endian: Endian, out: &mut Vec<u8>) {
    out.put_u32(pack(action, function_id, endian), endian);
    out.put_u32(tsc_delta, endian);
}

/// The header of a log: flags at the position of its byte order, unused fields 0.
#[must_use]
pub fn header(
    mode: Mode,
    version: u16,
    tsc_flags: (bool, bool),
    cycle_frequency: u64,
    buffer_size: u64,
    endian: Endian,
) -> Vec<u8> {
    let (constant, nonstop) = (u32::from(tsc_flags.0), u32::from(tsc_flags.1));
    let flags = match endian {
        Endian::Little => constant | (nonstop << 1),
        Endian::Big => (constant << 31) | (nonstop << 30),
    };
    let r#type = if mode == Mode::Basic { NAIVE_LOG } else { FDR_LOG };
    let mut out = Vec::new();
    FileHeader { version, r#type, flags, cycle_frequency, buffer_size, reserved: 0 }.write(&mut out, endian);
    out
}

impl Record<'_> {
    /// Appends the record in the form of a version.
    ///
    /// # Errors
    /// Where the version cannot represent it. Nothing is appended then.
    pub fn encode(&self, dialect: XRayDialect, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let (version, endian) = (dialect.version, dialect.endian);
        let kind = match *self {
            Self::Function { action, function_id, tsc_delta } => {
                if function_id >> FUNCTION_ID_BITS != 0 {
                    return Err(EncodeError::FunctionId(function_id));
                }
                function(action, function_id, tsc_delta, endian, out);
                return Ok(());
            }
            Self::NewBuffer { .. } => MetadataKind::NEW_BUFFER,
            Self::EndOfBuffer => MetadataKind::END_OF_BUFFER,
            Self::NewCpuId { .. } => MetadataKind::NEW_CPU_ID,
            Self::TscWrap { .. } => MetadataKind::TSC_WRAP,
            Self::WallTime { .. } => MetadataKind::WALL_TIME_MARKER,
            Self::Custom(_) => MetadataKind::CUSTOM_EVENT_MARKER,
            Self::CallArgument(_) => MetadataKind::CALL_ARGUMENT,
            Self::BufferExtents(_) => MetadataKind::BUFFER_EXTENTS,
            Self::Typed(_) => MetadataKind::TYPED_EVENT_MARKER,
            Self::Pid(_) => MetadataKind::PID,
            Self::Unknown(kind) => return Err(EncodeError::Kind { kind, version }),
        };
        if !has_kind(version, kind) {
            return Err(EncodeError::Kind { kind, version });
        }
        let begin = out.len();
        let first = metadata_byte(kind, endian);
        let mut payload: &[u8] = &[];
        match *self {
            Self::NewBuffer { tid } => NewBuffer { kind: first, tid }.write(out, endian),
            Self::NewCpuId { cpu, tsc } => {
                NewCpuId { kind: first, cpu_id: cpu, absolute_tsc: tsc }.write(out, endian);
            }
            Self::TscWrap { tsc } => TscWrap { kind: first, absolute_tsc: tsc }.write(out, endian),
            Self::WallTime { seconds, microseconds } => {
                WallTimeMarker { kind: first, seconds, microseconds }.write(out, endian);
            }
            Self::CallArgument(argument) => CallArgument { kind: first, argument }.write(out, endian),
            Self::BufferExtents(size) => BufferExtents { kind: first, size }.write(out, endian),
            Self::Pid(pid) => Pid { kind: first, pid }.write(out, endian),
            Self::Custom(event) | Self::Typed(event) => {
                payload = event.marker(first, dialect, out)?;
            }
            Self::EndOfBuffer | Self::Function { .. } | Self::Unknown(_) => {
                EndOfBuffer { kind: first }.write(out, endian);
            }
        }
        out.resize(begin.saturating_add(METADATA_BYTES), 0);
        out.extend_from_slice(payload);
        Ok(())
    }
}

impl<'a> Event<'a> {
    /// Appends the fields of its marker, and returns the bytes that follow it.
    fn marker(&self, kind: u8, dialect: XRayDialect, out: &mut Vec<u8>) -> Result<&'a [u8], EncodeError> {
        let XRayDialect { version, endian, payloads } = dialect;
        let event_size = self.size;
        if payloads && usize::try_from(event_size) != Ok(self.payload.len()) {
            return Err(match i32::try_from(self.payload.len()) {
                Ok(_) => EncodeError::Stated { size: event_size, bytes: self.payload.len() },
                Err(_) => EncodeError::EventSize(self.payload.len()),
            });
        }
        match (self.time, self.event_type) {
            (EventTime::Tsc(absolute_tsc), Some(event_type)) if version < 5 => {
                TypedEventV3 { kind, event_size, absolute_tsc, event_type }.write(out, endian);
            }
            (EventTime::Tsc(absolute_tsc), None) if version < 4 => {
                CustomEventV1 { kind, event_size, absolute_tsc }.write(out, endian);
            }
            (EventTime::Tsc(absolute_tsc), None) if version == 4 => {
                let cpu_id = self.cpu.unwrap_or(0);
                CustomEventV4 { kind, event_size, absolute_tsc, cpu_id }.write(out, endian);
            }
            (EventTime::Delta(tsc_delta), Some(event_type)) if version >= 5 => {
                TypedEventV5 { kind, event_size, tsc_delta, event_type }.write(out, endian);
            }
            (EventTime::Delta(tsc_delta), None) if version >= 5 => {
                CustomEventV5 { kind, event_size, tsc_delta }.write(out, endian);
            }
            _ => return Err(EncodeError::EventTime { version }),
        }
        Ok(if payloads { self.payload } else { &[] })
    }
}

impl BasicItem {
    /// Appends a record of a Basic mode log; of an unknown type only the type.
    pub fn encode(&self, endian: Endian, out: &mut Vec<u8>) {
        let begin = out.len();
        match self {
            Self::Function(record) => record.write(out, endian),
            Self::Argument(argument) => argument.write(out, endian),
            Self::Unknown(record_type) => out.put_u16(*record_type, endian),
            Self::Unwritten => {}
        }
        out.resize(begin.saturating_add(BASIC_BYTES), 0);
    }
}
