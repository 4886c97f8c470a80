//! Encodes one buffer of an FDR log.

use perfuse_wire::Endian;

use super::sink::{BufferStart, TscStamp};
use crate::consts::{Action, FUNCTION_ID_BITS, MetadataKind};
use crate::encode::{self, EncodeError, action_of_version, has_kind};
use crate::event_payloads::is_ambiguous;
use crate::records::{Event, EventTime, Record, XRayDialect, pack};

/// Gathers the records of a buffer. Times may be in any order: TSCWrap is written where a delta cannot represent the
/// step, and NewCPUId where the processor changes.
#[derive(Clone, Debug)]
pub struct BufferWriter {
    dialect: XRayDialect,
    bytes: Vec<u8>,
    /// Size of the preamble in bytes.
    preamble: usize,
    /// The counter that the next delta is relative to, and the processor.
    base: TscStamp,
    /// The entry that an argument would belong to: offset of its record, and its function id.
    entry: Option<(usize, u32)>,
    has_events: bool,
    /// Whether the preamble has a wall time; 0 stands for an unknown one.
    has_wall: bool,
    /// Offset at which the last event ends.
    event_end: usize,
}

impl BufferWriter {
    /// A buffer with its preamble: NewBuffer, WallTimeMarker, Pid where the version has it, and NewCPUId.
    #[must_use]
    pub fn new(dialect: XRayDialect, start: &BufferStart) -> Self {
        let mut buffer = Self {
            dialect,
            bytes: Vec::new(),
            preamble: 0,
            base: start.at,
            entry: None,
            has_events: false,
            has_wall: false,
            event_end: 0,
        };
        buffer.restart(start);
        buffer
    }

    /// Starts another buffer in the memory of this one.
    pub fn restart(&mut self, start: &BufferStart) {
        self.bytes.clear();
        (self.entry, self.has_events, self.event_end) = (None, false, 0);
        let (pid, tid) = start.thread_ids;
        let (seconds, microseconds) = start.wall;
        self.has_wall = start.wall != (0, 0);
        self.record(&Record::NewBuffer { tid });
        self.record(&Record::WallTime { seconds, microseconds });
        if has_kind(self.dialect.version, MetadataKind::PID) {
            self.record(&Record::Pid(pid));
        }
        self.new_cpu(start.at);
        self.preamble = self.bytes.len();
    }

    /// Whether it contains nothing but the preamble.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == self.preamble
    }

    /// Completes the buffer. In versions 1 to 3 only a record after an event shows that the bytes of the event are
    /// there, so one is appended.
    pub fn seal(&mut self) {
        if self.dialect.version < 4 && self.has_events && self.event_end == self.bytes.len() {
            self.new_cpu(self.base);
        }
    }

    /// Whether a reader may take bytes of events for records. Versions 1 to 3 do not state that the bytes are there.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        if !self.has_events || self.dialect.version > 3 {
            return false;
        }
        let mut records = self.bytes.clone();
        if self.dialect.version == 1 {
            let _ = Record::EndOfBuffer.encode(self.dialect, &mut records);
        }
        is_ambiguous(&records, self.dialect)
    }

    /// Whether the preamble has a wall time.
    #[must_use]
    pub fn has_wall(&self) -> bool {
        self.has_wall
    }

    /// The records, without BufferExtents and EndOfBuffer.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends NewCPUId.
    pub fn new_cpu(&mut self, at: TscStamp) {
        self.record(&Record::NewCpuId { cpu: at.cpu, tsc: at.tsc });
        self.base = at;
    }

    /// Appends TSCWrap.
    pub fn wrap(&mut self, tsc: u64) {
        self.record(&Record::TscWrap { tsc });
        self.base.tsc = tsc;
    }

    /// Appends a function record.
    ///
    /// # Errors
    /// For an id of more than 28 bits.
    #[inline]
    pub fn call(&mut self, at: TscStamp, action: Action, function_id: u32) -> Result<(), EncodeError> {
        if function_id >> FUNCTION_ID_BITS != 0 {
            return Err(EncodeError::FunctionId(function_id));
        }
        let delta = at.tsc.wrapping_sub(self.base.tsc);
        let tsc_delta = match u32::try_from(delta) {
            Ok(delta) if at.cpu == self.base.cpu && delta <= self.largest_delta() => delta,
            _ => {
                self.write_new_time(at);
                0
            }
        };
        self.base.tsc = at.tsc;
        let is_entry = matches!(action, Action::ENTRY | Action::ENTRY_ARGS);
        self.entry = is_entry.then_some((self.bytes.len(), function_id));
        let action = action_of_version(self.dialect.version, action);
        encode::function(action, function_id, tsc_delta, self.dialect.endian, &mut self.bytes);
        Ok(())
    }

    /// Appends an argument of the function entered last. Returns false, and appends nothing, where another record
    /// followed the entry.
    pub fn argument(&mut self, argument: u64) -> bool {
        let Some((offset, function_id)) = self.entry else { return false };
        let XRayDialect { version, endian, .. } = self.dialect;
        let word = pack(action_of_version(version, Action::ENTRY_ARGS), function_id, endian);
        if let Some(bytes) = self.bytes.get_mut(offset..).and_then(|rest| rest.first_chunk_mut::<4>()) {
            *bytes = match endian {
                Endian::Little => word.to_le_bytes(),
                Endian::Big => word.to_be_bytes(),
            };
        }
        self.record(&Record::CallArgument(argument));
        true
    }

    /// Appends a custom or typed event.
    ///
    /// # Errors
    /// Where the version has no such event, or its size exceeds 2 GiB.
    pub fn event(
        &mut self,
        at: TscStamp,
        event_type: Option<u16>,
        payload: &[u8],
    ) -> Result<(), EncodeError> {
        let version = self.dialect.version;
        let kind = if event_type.is_some() {
            MetadataKind::TYPED_EVENT_MARKER
        } else {
            MetadataKind::CUSTOM_EVENT_MARKER
        };
        if !has_kind(version, kind) {
            return Err(EncodeError::Kind { kind, version });
        }
        let size = i32::try_from(payload.len()).map_err(|_| EncodeError::EventSize(payload.len()))?;
        let has_cpu = version == 4 && event_type.is_none();
        if at.cpu != self.base.cpu && !has_cpu {
            self.new_cpu(at);
        }
        let time = if version < 5 {
            EventTime::Tsc(at.tsc)
        } else {
            let delta = i32::try_from(at.tsc.wrapping_sub(self.base.tsc).cast_signed());
            let delta = delta.unwrap_or_else(|_| {
                self.wrap(at.tsc);
                0
            });
            self.base.tsc = at.tsc;
            EventTime::Delta(delta)
        };
        let event = Event { size, time, cpu: has_cpu.then_some(at.cpu), event_type, payload };
        self.record(&if event_type.is_some() { Record::Typed(event) } else { Record::Custom(event) });
        (self.entry, self.has_events, self.event_end) = (None, true, self.bytes.len());
        Ok(())
    }

    /// Largest delta that the runtime of a version writes: 31 bits in version 5, 32 before.
    #[inline]
    fn largest_delta(&self) -> u32 {
        if self.dialect.version < 5 { u32::MAX } else { i32::MAX.unsigned_abs() }
    }

    #[cold]
    fn write_new_time(&mut self, at: TscStamp) {
        if at.cpu == self.base.cpu { self.wrap(at.tsc) } else { self.new_cpu(at) }
    }

    /// Appends a metadata record that the version has.
    fn record(&mut self, record: &Record<'_>) {
        let written = record.encode(self.dialect, &mut self.bytes);
        debug_assert_eq!(written, Ok(()), "{record:?}");
        if !matches!(record, Record::CallArgument(_)) {
            self.entry = None;
        }
    }
}
