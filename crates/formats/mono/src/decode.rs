//! Events out of the bytes of a buffer.
//!
//! Reads do not fail one by one: past the end, or behind a value that cannot be, they give 0, and the first fault is asked for
//! once an event. That keeps the fields of an event one straight run of code.

use perfuse_wire::{ErrorKind, ParseError};

use super::consts::{EventByte, KindSet};
use super::dialect::Dialect;
use super::layout::BufferHeader;
use super::records::shape::{self, Codec};
use super::records::{CounterValue, Event};

mod lean;
mod number;
mod quick;
mod runs;

pub use quick::Alloc;
pub use runs::{BareObject, Call};

/// What the events read so far have left behind for the next one.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pos: usize,
    time: u64,
    method: u64,
}

impl State {
    /// Time of the timed event before.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.time
    }
}

/// Reads the events of one buffer.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    data: &'a [u8],
    pos: usize,
    /// Offset in the file of the first byte.
    base: u64,
    dialect: Dialect,
    mask: u64,
    ptr_base: u64,
    obj_base: u64,
    time: u64,
    method: u64,
    /// Kinds of events whose backtraces are passed over.
    lean: KindSet,
    /// Their frames so far.
    num_passed: u64,
    /// Where this event begins.
    start: usize,
    /// How often what was passed over was wanted after all.
    num_missed: u32,
    /// The last place where `method` was right, if a backtrace was passed over since.
    left: Option<State>,
    fault: Option<(ErrorKind, usize, &'static str)>,
}

impl<'a> Decoder<'a> {
    /// Reads `data`, the events behind a buffer header; their first byte lies at `base` in the file.
    #[must_use]
    pub fn new(dialect: Dialect, header: &BufferHeader, data: &'a [u8], base: u64) -> Self {
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
            lean: KindSet::default(),
            num_passed: 0,
            start: 0,
            num_missed: 0,
            left: None,
            fault: None,
        }
    }

    /// Absolute offset of the next event.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.base.saturating_add(self.pos as u64)
    }

    /// Where reading stands.
    #[must_use]
    pub fn state(&self) -> State {
        State { pos: self.pos, time: self.time, method: self.method }
    }

    /// Time of the last timed event.
    #[must_use]
    #[inline]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// What the next event begins with.
    #[must_use]
    #[inline]
    pub fn next_byte(&self) -> Option<EventByte> {
        self.data.get(self.pos).map(|byte| EventByte(*byte))
    }

    /// The same walk, gone on with where another one of this buffer stood.
    #[must_use]
    pub fn resume(self, State { pos, time, method }: State) -> Self {
        Self { pos, time, method, ..self }
    }

    /// Goes on to an event further behind, of which the method before it need not be known: it is read after all where an event
    /// needs it.
    pub fn jump(&mut self, to: State) {
        self.left.get_or_insert(State { pos: self.pos, time: self.time, method: self.method });
        (self.pos, self.time) = (to.pos, to.time);
    }

    /// Reads the next event into `event`; `None` at the end of the buffer. Behind an error nothing more can be read: what
    /// follows depends on what could not be.
    #[inline]
    pub fn read(&mut self, event: &mut Event<'a>) -> Option<Result<(), ParseError>> {
        let start = self.pos;
        let byte = EventByte(*self.data.get(start)?);
        if self.fault.is_some() {
            return None;
        }
        self.pos = start.saturating_add(1);
        self.start = start;
        if event.begin(byte) {
            shape::fields(self, event);
        } else {
            self.refuse("event", byte.0.into(), "an event of this data version");
        }
        event.offset = self.base.saturating_add(start as u64);
        event.size = self.pos.saturating_sub(start) as u64;
        match self.fault {
            None => Some(Ok(())),
            Some(_) => Some(Err(self.error(event))),
        }
    }

    #[cold]
    fn error(&self, event: &Event<'_>) -> ParseError {
        let (kind, pos, field) = self.fault.unwrap_or((ErrorKind::Overlong, self.pos, ""));
        let mut error = ParseError::new(kind, self.base.saturating_add(pos as u64), field);
        error.record = event.byte.name();
        error
    }

    #[cold]
    fn fail(&mut self, kind: ErrorKind, field: &'static str) {
        if self.fault.is_none() {
            self.fault = Some((kind, self.pos, field));
        }
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.data.get(self.pos..).unwrap_or_default()
    }

    /// The bits of a LEB128 number and how many they are.
    #[inline]
    fn leb128(&mut self, field: &'static str) -> (u64, u32) {
        match self.rest() {
            [byte @ ..0x80, ..] => {
                self.pos = self.pos.wrapping_add(1);
                (u64::from(*byte), 7)
            }
            rest => self.long_leb128(rest, field),
        }
    }

    #[inline]
    fn long_leb128(&mut self, rest: &'a [u8], field: &'static str) -> (u64, u32) {
        let Some((value, num_bytes)) = number::short(rest) else { return self.slow_leb128(field) };
        self.pos = self.pos.wrapping_add(num_bytes as usize);
        (value, num_bytes.wrapping_mul(7))
    }

    #[cold]
    fn slow_leb128(&mut self, field: &'static str) -> (u64, u32) {
        let (mut value, mut bits) = (0u64, 0u32);
        for (at, byte) in self.rest().iter().enumerate() {
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
        let have = self.rest().len() as u64;
        self.fail(ErrorKind::Short { need: have.saturating_add(1), have }, field);
        (0, 7)
    }

    #[inline]
    fn uleb128(&mut self, field: &'static str) -> u64 {
        self.leb128(field).0
    }

    #[inline]
    fn sleb128(&mut self, field: &'static str) -> i64 {
        number::signed(self.leb128(field))
    }

    #[inline]
    fn take(&mut self, len: usize, field: &'static str) -> &'a [u8] {
        match self.rest().get(..len) {
            Some(bytes) => {
                self.pos = self.pos.wrapping_add(len);
                bytes
            }
            None => {
                self.fail(ErrorKind::Short { need: len as u64, have: self.rest().len() as u64 }, field);
                &[]
            }
        }
    }
}

impl<'a> Codec<'a> for Decoder<'a> {
    #[inline]
    fn dialect(&self) -> &Dialect {
        &self.dialect
    }

    #[inline]
    fn time(&mut self, time: &mut Option<u64>) {
        // Samples and JIT events are stamped before their buffer is made: their difference is negative, and wraps.
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
        if self.left.is_some() {
            self.catch_up();
        }
        self.method = self.method.wrapping_add_signed(self.sleb128(field)) & self.mask;
        *value = self.method;
    }

    #[inline]
    fn text(&mut self, field: &'static str, value: &mut &'a [u8]) {
        let rest = self.rest();
        match memchr::memchr(0, rest) {
            Some(len) => {
                *value = rest.get(..len).unwrap_or_default();
                self.pos = self.pos.wrapping_add(len).wrapping_add(1);
            }
            None => self.fail(ErrorKind::NoTerminator, field),
        }
    }

    fn double(&mut self, field: &'static str, bits: &mut u64) {
        *bits = self.take(8, field).first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    }

    #[inline]
    fn growing(&mut self, field: &'static str, last: &mut u64, value: &mut u64) {
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
        if num > self.rest().len() as u64 {
            return self.entries(field, num, list, |codec, object| codec.object("object", object));
        }
        for _ in 0..self.read_objects(num, list) {
            let mut object = 0;
            self.object("object", &mut object);
            if self.fault.is_some() {
                return;
            }
            list.push(object);
        }
    }

    #[inline]
    fn backtrace(&mut self, byte: EventByte, list: &mut Vec<u64>, each: impl FnMut(&mut Self, &mut u64)) {
        if self.lean.has(byte) { self.pass_over() } else { self.list("frames", list, each) }
    }

    #[inline]
    fn entries<T: Default>(
        &mut self,
        field: &'static str,
        num: u64,
        list: &mut Vec<T>,
        mut each: impl FnMut(&mut Self, &mut T),
    ) {
        // An entry takes a byte or more, so a count of more entries than bytes is a lie before anything is kept.
        let have = self.rest().len() as u64;
        if num > have {
            return self.fail(ErrorKind::Short { need: num, have }, field);
        }
        for _ in 0..num {
            let mut entry = T::default();
            each(self, &mut entry);
            if self.fault.is_some() {
                return;
            }
            list.push(entry);
        }
    }

    fn series(
        &mut self,
        field: &'static str,
        list: &mut Vec<CounterValue<'a>>,
        mut each: impl FnMut(&mut Self, &mut CounterValue<'a>),
    ) {
        loop {
            let index = self.uleb128(field);
            if index == 0 || self.fault.is_some() {
                return;
            }
            let mut entry = CounterValue { index, ..CounterValue::default() };
            each(self, &mut entry);
            list.push(entry);
        }
    }

    #[cold]
    fn refuse(&mut self, field: &'static str, value: u64, expected: &'static str) {
        self.fail(ErrorKind::Invalid { value, expected }, field);
    }
}
