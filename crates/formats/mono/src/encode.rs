//! Encoder of the events of a buffer: the inverse of [`decode`](super::decode).

use perfuse_wire::{Endian, ErrorKind, ParseError};

use crate::consts::BUF_ID;
use crate::dialect::LogDialect;
use crate::fields;
use crate::fields::FieldVisitor;
use crate::layout::BufferHeader;
use crate::records::{CounterEntry, Event};

/// Encodes the events of one buffer.
#[derive(Clone, Debug)]
pub struct BufferEncoder {
    data: Vec<u8>,
    dialect: LogDialect,
    header: BufferHeader,
    /// Whether each base of the header is fixed; otherwise the first value becomes the base.
    has_ptr: bool,
    has_obj: bool,
    has_method: bool,
    time: u64,
    method: u64,
    /// Field, value and expectation of a value that cannot be encoded.
    refused: Option<(&'static str, u64, &'static str)>,
}

impl BufferEncoder {
    /// Creates a buffer of a thread. The first value of each kind becomes its base.
    #[must_use]
    pub fn new(dialect: LogDialect, thread_id: u64, time_base: u64) -> Self {
        let header = BufferHeader {
            bufid: BUF_ID,
            len: 0,
            time_base,
            ptr_base: 0,
            obj_base: 0,
            thread_id,
            method_base: 0,
        };
        Self { has_ptr: false, has_obj: false, has_method: false, ..Self::like(dialect, &header) }
    }

    /// Creates a buffer with the bases of another one, so that decoded events are encoded byte for byte.
    #[must_use]
    pub fn like(dialect: LogDialect, header: &BufferHeader) -> Self {
        Self {
            data: Vec::new(),
            dialect,
            header: *header,
            has_ptr: true,
            has_obj: true,
            has_method: true,
            time: header.time_base,
            method: header.method_base,
            refused: None,
        }
    }

    /// Size in bytes of the events so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether the buffer has no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Appends an event.
    ///
    /// # Errors
    /// When this data version has no such event or cannot represent one of its values; nothing is appended then.
    pub fn write(&mut self, event: &mut Event<'_>) -> Result<(), ParseError> {
        let before = (self.data.len(), self.header, self.has_ptr, self.has_obj, self.has_method);
        let (time, method) = (self.time, self.method);
        self.data.push(event.byte.0);
        fields::visit_fields(self, event);
        let Some((field, value, expected)) = self.refused.take() else { return Ok(()) };
        self.data.truncate(before.0);
        (_, self.header, self.has_ptr, self.has_obj, self.has_method) = before;
        (self.time, self.method) = (time, method);
        let mut error = ParseError::new(ErrorKind::Invalid { value, expected }, event.offset, field);
        error.record = event.byte.name();
        Err(error)
    }

    /// Appends the buffer header and the events to `out`.
    ///
    /// # Errors
    /// When the events exceed the maximum length of a buffer.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), ParseError> {
        let kind = ErrorKind::Invalid { value: self.data.len() as u64, expected: "a 32-bit length" };
        let len = u32::try_from(self.data.len()).map_err(|_| ParseError::new(kind, 0, "len"))?;
        BufferHeader { len, ..self.header }.write(out, Endian::Little);
        out.extend_from_slice(&self.data);
        Ok(())
    }

    fn uleb128(&mut self, mut value: u64) {
        while value > 0x7f {
            self.data.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.data.push(value as u8);
    }

    fn sleb128(&mut self, mut value: i64) {
        while !(-0x40..0x40).contains(&value) {
            self.data.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.data.push(value as u8 & 0x7f);
    }

    /// Appends a difference, as a producer of that pointer size computes it.
    fn difference(&mut self, value: u64, base: u64) {
        let wide = value.wrapping_sub(base) as i64;
        let narrow = self.dialect.pointer_bytes == 4;
        self.sleb128(if narrow { (wide as i32).into() } else { wide });
    }
}

impl<'a> FieldVisitor<'a> for BufferEncoder {
    fn dialect(&self) -> &LogDialect {
        &self.dialect
    }

    fn time(&mut self, time: &mut Option<u64>) {
        let time = time.unwrap_or(self.time);
        self.uleb128(time.wrapping_sub(self.time));
        self.time = time;
    }

    fn byte(&mut self, field: &'static str, value: &mut u64) {
        match u8::try_from(*value) {
            Ok(byte) => self.data.push(byte),
            Err(_) => self.reject(field, *value, "a byte"),
        }
    }

    fn value(&mut self, _: &'static str, value: &mut u64) {
        self.uleb128(*value);
    }

    fn signed(&mut self, _: &'static str, value: &mut i64) {
        self.sleb128(*value);
    }

    fn pointer(&mut self, _: &'static str, value: &mut u64) {
        if !std::mem::replace(&mut self.has_ptr, true) {
            self.header.ptr_base = *value;
        }
        self.difference(*value, self.header.ptr_base);
    }

    fn absolute(&mut self, _: &'static str, value: &mut u64) {
        self.difference(*value, 0);
    }

    fn object(&mut self, field: &'static str, value: &mut u64) {
        if *value & 7 != 0 {
            return self.reject(field, *value, "an address that is a multiple of 8");
        }
        let units = *value >> 3;
        if !std::mem::replace(&mut self.has_obj, true) {
            self.header.obj_base = units;
        }
        // Decoders shift the sum left by 3, which drops the upper bits, so the shorter difference around the address
        // space is correct too.
        let wide = units.wrapping_sub(self.header.obj_base) as i64;
        let unused = if self.dialect.pointer_bytes == 4 { 32 } else { 0 };
        self.sleb128((wide << unused) >> unused);
    }

    fn method(&mut self, _: &'static str, value: &mut u64) {
        if !std::mem::replace(&mut self.has_method, true) {
            (self.header.method_base, self.method) = (*value, *value);
        }
        self.difference(*value, self.method);
        self.method = *value;
    }

    fn text(&mut self, field: &'static str, value: &mut &'a [u8]) {
        if let Some(at) = memchr::memchr(0, value) {
            return self.reject(field, at as u64, "a text without NUL");
        }
        self.data.extend_from_slice(value);
        self.data.push(0);
    }

    fn double(&mut self, _: &'static str, bits: &mut u64) {
        self.data.extend_from_slice(&bits.to_le_bytes());
    }

    fn increasing(&mut self, _: &'static str, last: &mut u64, value: &mut u64) {
        self.uleb128(value.wrapping_sub(*last));
        *last = *value;
    }

    fn list<T: Default>(
        &mut self,
        field: &'static str,
        list: &mut Vec<T>,
        each: impl FnMut(&mut Self, &mut T),
    ) {
        self.uleb128(list.len() as u64);
        self.entries(field, list.len() as u64, list, each);
    }

    fn entries<T: Default>(
        &mut self,
        _: &'static str,
        _: u64,
        list: &mut Vec<T>,
        mut each: impl FnMut(&mut Self, &mut T),
    ) {
        for entry in list {
            each(self, entry);
        }
    }

    fn terminated_list(
        &mut self,
        field: &'static str,
        list: &mut Vec<CounterEntry<'a>>,
        mut each: impl FnMut(&mut Self, &mut CounterEntry<'a>),
    ) {
        for entry in list {
            if entry.index == 0 {
                return self.reject(field, 0, "the index of a counter, starting at 1");
            }
            self.uleb128(entry.index);
            each(self, entry);
        }
        self.uleb128(0);
    }

    fn reject(&mut self, field: &'static str, value: u64, expected: &'static str) {
        self.refused = self.refused.or(Some((field, value, expected)));
    }
}
