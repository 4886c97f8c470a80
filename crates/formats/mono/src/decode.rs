//! Decoder of the events of a buffer.
//!
//! Reads do not return errors one by one: after the end of the data or an invalid value they return 0, and the first
//! error is reported once per event. So the code that reads the fields of an event has no error paths.

pub mod backtraces;
pub mod calls;
mod leb128;
pub mod runs;

use perfuse_wire::{ErrorKind, ParseError};

use crate::consts::{EventByte, KindSet};
use crate::dialect::LogDialect;
use crate::fields;
use crate::fields::FieldVisitor;
use crate::layout::BufferHeader;
use crate::records::{CounterEntry, Event};

pub use crate::decode::calls::MethodEvent;
pub use crate::decode::runs::{AllocEvent, HeapObjectSummary};

/// The decoder's state between two events.
#[derive(Clone, Copy, Debug)]
pub struct DecoderState {
    pos: usize,
    time: u64,
    method: u64,
}

impl DecoderState {
    /// Time of the previous timed event.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// The method that the next one is relative to.
    #[must_use]
    pub fn method(&self) -> u64 {
        self.method
    }
}

/// Decodes the events of one buffer.
#[derive(Clone, Debug)]
pub struct EventDecoder<'a> {
    /// The events of the buffer.
    data: &'a [u8],
    pos: usize,
    /// File offset of the first byte of `data`.
    base: u64,
    dialect: LogDialect,
    mask: u64,
    ptr_base: u64,
    obj_base: u64,
    time: u64,
    method: u64,
    /// Kinds of events whose backtraces are skipped.
    skipped_kinds: KindSet,
    /// Number of frames in skipped backtraces.
    num_skipped_frames: u64,
    /// Position of the current event.
    start: usize,
    /// How often skipped backtraces had to be decoded after all.
    num_redecoded: u32,
    /// The last state in which `method` was valid, if a backtrace was skipped since.
    skipped_from: Option<DecoderState>,
    /// The first error: kind, position and field.
    error: Option<(ErrorKind, usize, &'static str)>,
}

impl<'a> EventDecoder<'a> {
    /// Decodes `data`, the events after a buffer header. `base` is the file offset of its first byte.
    #[must_use]
    pub fn new(dialect: LogDialect, header: &BufferHeader, data: &'a [u8], base: u64) -> Self {
        Self {
            data,
            pos: 0,
            base,
            mask: dialect.pointer_mask(),
            dialect,
            ptr_base: header.ptr_base,
            obj_base: header.obj_base,
            time: header.time_base,
            method: header.method_base,
            skipped_kinds: KindSet::default(),
            num_skipped_frames: 0,
            start: 0,
            num_redecoded: 0,
            skipped_from: None,
            error: None,
        }
    }

    /// File offset of the next event.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.base.saturating_add(self.pos as u64)
    }

    /// The state before the next event.
    #[must_use]
    pub fn state(&self) -> DecoderState {
        DecoderState { pos: self.pos, time: self.time, method: self.method }
    }

    /// Time of the last timed event.
    #[must_use]
    #[inline]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// The byte of the next event; `None` at the end of the buffer.
    #[must_use]
    #[inline]
    pub fn next_byte(&self) -> Option<EventByte> {
        self.data.get(self.pos).map(|byte| EventByte(*byte))
    }

    /// Continues with a state that another decoder of the same buffer had.
    #[must_use]
    pub fn resume(self, DecoderState { pos, time, method }: DecoderState) -> Self {
        Self { pos, time, method, ..self }
    }

    /// Moves to a later event. The value of `method` becomes unknown; it is computed from the skipped bytes if an
    /// event needs it.
    pub fn jump_to(&mut self, to: DecoderState) {
        self.skipped_from.get_or_insert(DecoderState { pos: self.pos, time: self.time, method: self.method });
        (self.pos, self.time) = (to.pos, to.time);
    }

    /// Decodes the next event into `event`; `None` at the end of the buffer. After an error nothing more can be read,
    /// because values depend on the previous ones.
    #[inline]
    pub fn read(&mut self, event: &mut Event<'a>) -> Option<Result<(), ParseError>> {
        perfuse_stopping::checkpoint();
        let start = self.pos;
        let byte = EventByte(*self.data.get(start)?);
        if self.error.is_some() {
            return None;
        }
        self.pos = start.saturating_add(1);
        self.start = start;
        if event.begin(byte) {
            fields::visit_fields(self, event);
        } else {
            self.reject("event", byte.0.into(), "an event of this data version");
        }
        event.offset = self.base.saturating_add(start as u64);
        event.size = self.pos.saturating_sub(start) as u64;
        match self.error {
            None => Some(Ok(())),
            Some(_) => Some(Err(self.parse_error(event))),
        }
    }

    /// The first error, as that of an event.
    #[cold]
    fn parse_error(&self, event: &Event<'_>) -> ParseError {
        let (kind, pos, field) = self.error.unwrap_or((ErrorKind::Overlong, self.pos, ""));
        let mut error = ParseError::new(kind, self.base.saturating_add(pos as u64), field);
        error.record = event.byte.name();
        error
    }

    /// Stores an error at the current position unless there is one already.
    #[cold]
    fn fail(&mut self, kind: ErrorKind, field: &'static str) {
        if self.error.is_none() {
            self.error = Some((kind, self.pos, field));
        }
    }

    /// The bytes that are left.
    #[inline]
    fn remaining(&self) -> &'a [u8] {
        self.data.get(self.pos..).unwrap_or_default()
    }

    /// Reads a LEB128 number; returns its bits and their count.
    #[inline]
    fn leb128(&mut self, field: &'static str) -> (u64, u32) {
        match self.remaining() {
            [byte @ ..0x80, ..] => {
                self.pos = self.pos.wrapping_add(1);
                (u64::from(*byte), 7)
            }
            remaining => self.long_leb128(remaining, field),
        }
    }

    /// Reads a LEB128 number of more than one byte.
    #[inline]
    fn long_leb128(&mut self, remaining: &'a [u8], field: &'static str) -> (u64, u32) {
        let Some((value, num_bytes)) = leb128::read_short(remaining) else { return self.slow_leb128(field) };
        self.pos = self.pos.wrapping_add(num_bytes as usize);
        (value, num_bytes.wrapping_mul(7))
    }

    /// Reads a LEB128 number that is longer than eight bytes, near the end of the data, or damaged.
    #[cold]
    fn slow_leb128(&mut self, field: &'static str) -> (u64, u32) {
        let (mut value, mut bits) = (0u64, 0u32);
        for (at, byte) in self.remaining().iter().enumerate() {
            if bits > 63 {
                self.fail(ErrorKind::Overlong, field);
                return (0, 7);
            }
            value |= u64::from(byte & 0x7f).wrapping_shl(bits);
            bits = bits.saturating_add(7);
            if byte & 0x80 == 0 {
                self.pos = self.pos.saturating_add(at).saturating_add(1);
                return (value, bits);
            }
        }
        let have = self.remaining().len() as u64;
        self.fail(ErrorKind::Short { need: have.saturating_add(1), have }, field);
        (0, 7)
    }

    #[inline]
    fn uleb128(&mut self, field: &'static str) -> u64 {
        self.leb128(field).0
    }

    #[inline]
    fn sleb128(&mut self, field: &'static str) -> i64 {
        leb128::sign_extend(self.leb128(field))
    }

    /// Takes the next `len` bytes.
    #[inline]
    fn take(&mut self, len: usize, field: &'static str) -> &'a [u8] {
        match self.remaining().get(..len) {
            Some(bytes) => {
                self.pos = self.pos.wrapping_add(len);
                bytes
            }
            None => {
                self.fail(ErrorKind::Short { need: len as u64, have: self.remaining().len() as u64 }, field);
                &[]
            }
        }
    }
}

impl<'a> FieldVisitor<'a> for EventDecoder<'a> {
    #[inline]
    fn dialect(&self) -> &LogDialect {
        &self.dialect
    }

    #[inline]
    fn time(&mut self, time: &mut Option<u64>) {
        // Samples and METHOD_JIT events are stamped before their buffer is created: their time difference is negative
        // and wraps.
        self.time = self.time.wrapping_add(self.uleb128("time"));
        *time = Some(self.time);
    }

    #[inline]
    fn byte(&mut self, field: &'static str, value: &mut u64) {
        *value = self.take(1, field).first().copied().unwrap_or(0).into();
    }

    #[inline]
    fn value(&mut self, field: &'static str, value: &mut u64) {
        *value = self.uleb128(field);
    }

    #[inline]
    fn signed(&mut self, field: &'static str, value: &mut i64) {
        *value = self.sleb128(field);
    }

    #[inline]
    fn pointer(&mut self, field: &'static str, value: &mut u64) {
        *value = self.ptr_base.wrapping_add_signed(self.sleb128(field)) & self.mask;
    }

    #[inline]
    fn absolute(&mut self, field: &'static str, value: &mut u64) {
        *value = self.sleb128(field) as u64 & self.mask;
    }

    #[inline]
    fn object(&mut self, field: &'static str, value: &mut u64) {
        *value = self.obj_base.wrapping_add_signed(self.sleb128(field)).wrapping_shl(3) & self.mask;
    }

    #[inline]
    fn method(&mut self, field: &'static str, value: &mut u64) {
        if self.skipped_from.is_some() {
            self.decode_skipped();
        }
        self.method = self.method.wrapping_add_signed(self.sleb128(field)) & self.mask;
        *value = self.method;
    }

    #[inline]
    fn text(&mut self, field: &'static str, value: &mut &'a [u8]) {
        let remaining = self.remaining();
        match memchr::memchr(0, remaining) {
            Some(len) => {
                *value = remaining.get(..len).unwrap_or_default();
                self.pos = self.pos.wrapping_add(len).wrapping_add(1);
            }
            None => self.fail(ErrorKind::NoTerminator, field),
        }
    }

    fn double(&mut self, field: &'static str, bits: &mut u64) {
        *bits = self.take(8, field).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    }

    #[inline]
    fn increasing(&mut self, field: &'static str, last: &mut u64, value: &mut u64) {
        *last = last.wrapping_add(self.uleb128(field));
        *value = *last;
    }

    #[inline]
    fn list<T: Default>(
        &mut self,
        field: &'static str,
        list: &mut Vec<T>,
        each: impl FnMut(&mut Self, &mut T),
    ) {
        let num = self.uleb128(field);
        self.entries(field, num, list, each);
    }

    fn objects(&mut self, field: &'static str, list: &mut Vec<u64>) {
        let num = self.uleb128(field);
        if num > self.remaining().len() as u64 {
            return self.entries(field, num, list, |decoder, object| decoder.object("object", object));
        }
        for _ in 0..self.read_object_run(num, list) {
            let mut object = 0;
            self.object("object", &mut object);
            if self.error.is_some() {
                return;
            }
            list.push(object);
        }
    }

    #[inline]
    fn backtrace(&mut self, byte: EventByte, list: &mut Vec<u64>, each: impl FnMut(&mut Self, &mut u64)) {
        if self.skipped_kinds.has(byte) { self.skip_backtrace() } else { self.list("frames", list, each) }
    }

    #[inline]
    fn entries<T: Default>(
        &mut self,
        field: &'static str,
        num: u64,
        list: &mut Vec<T>,
        mut each: impl FnMut(&mut Self, &mut T),
    ) {
        // An entry has at least one byte, so a count larger than the remaining bytes is rejected before anything is
        // stored.
        let have = self.remaining().len() as u64;
        if num > have {
            return self.fail(ErrorKind::Short { need: num, have }, field);
        }
        for _ in 0..num {
            let mut entry = T::default();
            each(self, &mut entry);
            if self.error.is_some() {
                return;
            }
            list.push(entry);
        }
    }

    fn terminated_list(
        &mut self,
        field: &'static str,
        list: &mut Vec<CounterEntry<'a>>,
        mut each: impl FnMut(&mut Self, &mut CounterEntry<'a>),
    ) {
        loop {
            let index = self.uleb128(field);
            if index == 0 || self.error.is_some() {
                return;
            }
            let mut entry = CounterEntry { index, ..CounterEntry::default() };
            each(self, &mut entry);
            list.push(entry);
        }
    }

    /// Flags of 0 and printable text: an event that starts with 0 is an allocation, whose bytes are not text.
    #[cold]
    fn has_name(&self, _: &[u8]) -> bool {
        let [0, rest @ ..] = self.remaining() else { return false };
        let name = memchr::memchr(0, rest).and_then(|len| rest.get(..len)).unwrap_or_default();
        name.len() > 1 && std::str::from_utf8(name).is_ok_and(|name| !name.chars().any(char::is_control))
    }

    #[cold]
    fn reject(&mut self, field: &'static str, value: u64, expected: &'static str) {
        self.fail(ErrorKind::Invalid { value, expected }, field);
    }
}

/// After this many decoded skipped backtraces, the rest of the buffer is decoded without skipping.
const MAX_REDECODED: u32 = 8;
impl EventDecoder<'_> {
    /// Skips the backtraces of these kinds of events, which is several times faster: they are most of a log of
    /// allocations. Since data version 13 a method is encoded as the difference to the previous one in any event, so
    /// skipped backtraces are decoded after all when a later event contains a method. The events then have no frames,
    /// or all of them.
    #[must_use]
    pub fn skip_backtraces(self, kinds: KindSet) -> Self {
        Self { skipped_kinds: kinds, ..self }
    }

    /// Number of frames in the skipped backtraces.
    #[must_use]
    pub fn num_skipped_frames(&self) -> u64 {
        self.num_skipped_frames
    }

    /// Skips a backtrace. Reports the same errors as decoding it.
    #[inline]
    pub(super) fn skip_backtrace(&mut self) {
        if self.skipped_from.is_none() && self.dialect.since_v13() {
            self.skipped_from = Some(DecoderState { pos: self.start, time: self.time, method: self.method });
        }
        let num = self.uleb128("frames");
        let have = self.remaining().len() as u64;
        if num > have {
            return self.fail(ErrorKind::Short { need: num, have }, "frames");
        }
        self.num_skipped_frames = self.num_skipped_frames.wrapping_add(num);
        if let Some(bytes) = leb128::skip(self.remaining(), num) {
            self.pos = self.pos.wrapping_add(bytes);
            return;
        }
        // Near the end of the buffer, or a number does not end.
        for _ in 0..num {
            self.uleb128("method");
            if self.error.is_some() {
                return;
            }
        }
    }

    /// Decodes skipped backtraces to compute the value of `method` before the current event.
    #[cold]
    pub(super) fn decode_skipped(&mut self) {
        let Some(skipped_from) = self.skipped_from.take() else { return };
        let mut decoder = self.clone().skip_backtraces(KindSet::default()).resume(skipped_from);
        // Runs of calls are decoded together: hide the current event from them.
        decoder.data = self.data.get(..self.start).unwrap_or_default();
        let mut event = Event::default();
        loop {
            decoder.read_calls(|_, _| ());
            if !matches!(decoder.read(&mut event), Some(Ok(()))) {
                break;
            }
        }
        self.method = decoder.method;
        self.num_redecoded = self.num_redecoded.saturating_add(1);
        if self.num_redecoded >= MAX_REDECODED {
            self.skipped_kinds = KindSet::default();
        }
    }
}
