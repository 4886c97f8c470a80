//! Decodes the records of FDR logs.

use perfuse_wire::{Cursor, Endian, ParseError};

use super::consts::{Action, FUNCTION_BYTES, METADATA_BYTES, MetadataKind};
use super::layout::{
    BufferExtents, CallArgument, CustomEventV1, CustomEventV4, CustomEventV5, FunctionRecord, NewBuffer,
    NewCpuId, Pid, TscWrap, TypedEventV3, TypedEventV5, WallTimeMarker,
};

/// How the records of a log are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XRayDialect {
    /// Version in the header; an unknown one is read as the latest.
    pub version: u16,
    /// Byte order.
    pub endian: Endian,
    /// Whether event markers are followed by the bytes of the event; LLVM 5 to 7 overwrite them with the next record.
    pub payloads: bool,
}

/// The time of an event, in the form of its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTime {
    /// Absolute counter; later deltas do not include it.
    Tsc(u64),
    /// Ticks since the previous record with a time; later deltas continue from here.
    Delta(i32),
}

/// A custom or typed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Size as stated, in bytes.
    pub size: i32,
    /// Time of the event.
    pub time: EventTime,
    /// Processor, in version 4.
    pub cpu: Option<u16>,
    /// Number of the event type, in a typed event.
    pub event_type: Option<u16>,
    /// The bytes of the event; fewer than stated where the buffer ends or the writer overwrote them.
    pub payload: &'a [u8],
}

/// A record of an FDR log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A function entry or exit.
    Function {
        /// What it reports.
        action: Action,
        /// The function id, 28 bits.
        function_id: u32,
        /// Ticks since the previous record with a time.
        tsc_delta: u32,
    },
    /// Starts a buffer.
    NewBuffer {
        /// Thread id.
        tid: i32,
    },
    /// Ends a buffer of version 1.
    EndOfBuffer,
    /// The processor from here on.
    NewCpuId {
        /// Number of the processor.
        cpu: u16,
        /// Counter.
        tsc: u64,
    },
    /// The absolute counter.
    TscWrap {
        /// Counter.
        tsc: u64,
    },
    /// The time at which the buffer was started, on CLOCK_MONOTONIC.
    WallTime {
        /// Seconds.
        seconds: i64,
        /// Microseconds.
        microseconds: i32,
    },
    /// A custom event.
    Custom(Event<'a>),
    /// A typed event.
    Typed(Event<'a>),
    /// The argument of the function entered before this record.
    CallArgument(u64),
    /// Size of the buffer that follows.
    BufferExtents(u64),
    /// The process id.
    Pid(i32),
    /// A metadata record of an unknown kind.
    Unknown(MetadataKind),
}

/// Whether a record with this first byte is a metadata record.
#[must_use]
#[inline]
pub fn is_metadata(first: u8, endian: Endian) -> bool {
    match endian {
        Endian::Little => first & 1 == 1,
        Endian::Big => first & 0x80 != 0,
    }
}

/// The kind of a metadata record, from its first byte.
#[must_use]
#[inline]
pub fn metadata_kind(first: u8, endian: Endian) -> MetadataKind {
    match endian {
        Endian::Little => MetadataKind(first >> 1),
        Endian::Big => MetadataKind(first & 0x7f),
    }
}

/// The first byte of a metadata record of this kind.
#[must_use]
pub fn metadata_byte(kind: MetadataKind, endian: Endian) -> u8 {
    match endian {
        Endian::Little => (kind.0 << 1) | 1,
        Endian::Big => 0x80 | kind.0,
    }
}

/// Action and function id of the first word of a function record.
#[must_use]
#[inline]
pub fn unpack(word: u32, endian: Endian) -> (Action, u32) {
    match endian {
        Endian::Little => (Action(((word >> 1) & 7) as u8), word >> 4),
        Endian::Big => (Action(((word >> 28) & 7) as u8), word & 0x0fff_ffff),
    }
}

/// Whether an argument after the record belongs to no call: one after an event, or after a change of the counter.
#[must_use]
pub const fn ends_arguments(record: &Record<'_>) -> bool {
    matches!(record, Record::Custom(_) | Record::Typed(_) | Record::NewCpuId { .. } | Record::TscWrap { .. })
}

/// The first word of a function record; the id is truncated to 28 bits.
#[must_use]
pub fn pack(action: Action, function_id: u32, endian: Endian) -> u32 {
    let (action, id) = (u32::from(action.0 & 7), function_id & 0x0fff_ffff);
    match endian {
        Endian::Little => (id << 4) | (action << 1),
        Endian::Big => (action << 28) | id,
    }
}

impl<'a> Record<'a> {
    /// Decodes the record at the start of `bytes`, which are at `offset` in the file; also returns its size.
    ///
    /// # Errors
    /// When the bytes end inside the record: the size of an event exceeds them, or is negative.
    pub fn read(bytes: &'a [u8], offset: u64, dialect: XRayDialect) -> Result<(Self, usize), ParseError> {
        let mut cursor = Cursor::new(bytes, offset, dialect.endian);
        let first = Cursor::new(bytes, offset, dialect.endian).u8("kind")?;
        if !is_metadata(first, dialect.endian) {
            let FunctionRecord { word, tsc_delta } = FunctionRecord::read(&mut cursor)?;
            let (action, function_id) = unpack(word, dialect.endian);
            return Ok((Self::Function { action, function_id, tsc_delta }, FUNCTION_BYTES));
        }
        let mut body = cursor.split(METADATA_BYTES as u64, "data")?;
        let record = match metadata_kind(first, dialect.endian) {
            MetadataKind::NEW_BUFFER => Self::NewBuffer { tid: NewBuffer::read(&mut body)?.tid },
            MetadataKind::END_OF_BUFFER => Self::EndOfBuffer,
            MetadataKind::NEW_CPU_ID => {
                let NewCpuId { cpu_id, absolute_tsc, .. } = NewCpuId::read(&mut body)?;
                Self::NewCpuId { cpu: cpu_id, tsc: absolute_tsc }
            }
            MetadataKind::TSC_WRAP => Self::TscWrap { tsc: TscWrap::read(&mut body)?.absolute_tsc },
            MetadataKind::WALL_TIME_MARKER => {
                let WallTimeMarker { seconds, microseconds, .. } = WallTimeMarker::read(&mut body)?;
                Self::WallTime { seconds, microseconds }
            }
            MetadataKind::CUSTOM_EVENT_MARKER => {
                Self::Custom(Event::custom(&mut body, &mut cursor, dialect)?)
            }
            MetadataKind::CALL_ARGUMENT => Self::CallArgument(CallArgument::read(&mut body)?.argument),
            MetadataKind::BUFFER_EXTENTS => Self::BufferExtents(BufferExtents::read(&mut body)?.size),
            MetadataKind::TYPED_EVENT_MARKER => Self::Typed(Event::typed(&mut body, &mut cursor, dialect)?),
            MetadataKind::PID => Self::Pid(Pid::read(&mut body)?.pid),
            kind => Self::Unknown(kind),
        };
        let taken = bytes.len().saturating_sub(cursor.remaining());
        Ok((record, taken))
    }
}

impl<'a> Event<'a> {
    /// Decodes a custom event: its marker, and the bytes after it.
    fn custom(
        body: &mut Cursor<'_>,
        after: &mut Cursor<'a>,
        dialect: XRayDialect,
    ) -> Result<Self, ParseError> {
        let (size, time, cpu) = match dialect.version {
            0..=3 => {
                let CustomEventV1 { event_size, absolute_tsc, .. } = CustomEventV1::read(body)?;
                (event_size, EventTime::Tsc(absolute_tsc), None)
            }
            4 => {
                let CustomEventV4 { event_size, absolute_tsc, cpu_id, .. } = CustomEventV4::read(body)?;
                (event_size, EventTime::Tsc(absolute_tsc), Some(cpu_id))
            }
            _ => {
                let CustomEventV5 { event_size, tsc_delta, .. } = CustomEventV5::read(body)?;
                (event_size, EventTime::Delta(tsc_delta), None)
            }
        };
        let payload = payload(after, size, dialect)?;
        Ok(Self { size, time, cpu, event_type: None, payload })
    }

    /// Decodes a typed event: its marker, and the bytes after it.
    fn typed(
        body: &mut Cursor<'_>,
        after: &mut Cursor<'a>,
        dialect: XRayDialect,
    ) -> Result<Self, ParseError> {
        let (size, time, event_type) = if dialect.version < 5 {
            let TypedEventV3 { event_size, absolute_tsc, event_type, .. } = TypedEventV3::read(body)?;
            (event_size, EventTime::Tsc(absolute_tsc), event_type)
        } else {
            let TypedEventV5 { event_size, tsc_delta, event_type, .. } = TypedEventV5::read(body)?;
            (event_size, EventTime::Delta(tsc_delta), event_type)
        };
        let payload = payload(after, size, dialect)?;
        Ok(Self { size, time, cpu: None, event_type: Some(event_type), payload })
    }
}

/// The bytes of an event; empty where the writer overwrote them.
fn payload<'a>(after: &mut Cursor<'a>, size: i32, dialect: XRayDialect) -> Result<&'a [u8], ParseError> {
    if !dialect.payloads {
        return Ok(&[]);
    }
    // A negative size exceeds any buffer.
    after.bytes(u64::try_from(size).unwrap_or(u64::MAX), "event")
}
