//! Writes Protocol Buffers: <https://protobuf.dev/programming-guides/encoding>.

/// Fields of a message, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const DELIMITED: u32 = 2;

impl Encoder {
    /// What was written so far.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends to existing bytes.
    #[must_use]
    pub fn appending_to(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// All bytes, including those it was created with.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// A field of type `uint64`, `uint32`, `bool` or an enumeration.
    #[inline]
    pub fn uint(&mut self, field: u32, value: u64) {
        self.tag(field, VARINT);
        self.varint(value);
    }

    /// A field of type `int64` or `int32`.
    #[inline]
    pub fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value.cast_unsigned());
    }

    /// A field of type `double`.
    pub fn double(&mut self, field: u32, value: f64) {
        self.tag(field, FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A field of type `string` or `bytes`, or a message that is encoded already.
    #[inline]
    pub fn data(&mut self, field: u32, value: &[u8]) {
        self.tag(field, DELIMITED);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    /// Fields that are encoded already.
    pub fn append(&mut self, fields: &[u8]) {
        self.bytes.extend_from_slice(fields);
    }

    /// A repeated field of numbers, packed; left out when there are none.
    pub fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_some() {
            self.message(field, |list| values.for_each(|value| list.varint(value)));
        }
    }

    /// A field that is a message.
    #[inline]
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.tag(field, DELIMITED);
        let start = self.bytes.len();
        // Most lengths take one byte; longer ones shift the message that follows.
        self.bytes.push(0);
        write(self);
        let len = self.bytes.len() - start - 1;
        if len < 0x80 {
            self.bytes[start] = len as u8;
        } else {
            self.long(start, len);
        }
    }

    #[cold]
    fn long(&mut self, start: usize, len: usize) {
        let mut size = Self::default();
        size.varint(len as u64);
        self.bytes.splice(start..=start, size.bytes);
    }

    #[inline]
    fn tag(&mut self, field: u32, wire_type: u32) {
        self.varint((field << 3 | wire_type).into());
    }

    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the encoding's own documentation.
    #[test]
    fn numbers_and_strings() {
        let mut message = Encoder::default();
        message.uint(1, 150);
        message.data(2, b"testing");
        message.int(3, -2);
        let mut expected = b"\x08\x96\x01\x12\x07testing\x18\xfe".to_vec();
        expected.extend([0xff; 8]);
        expected.push(1);
        assert_eq!(message.bytes(), expected);
    }

    #[test]
    fn messages_within_messages() {
        let mut message = Encoder::default();
        message.message(3, |inner| inner.uint(1, 150));
        message.packed(6, [3, 270, 86942]);
        message.packed(7, []);
        assert_eq!(message.bytes(), b"\x1a\x03\x08\x96\x01\x32\x06\x03\x8e\x02\x9e\xa7\x05");
    }

    #[test]
    fn a_long_message_moves_up() {
        let mut message = Encoder::default();
        message.message(1, |outer| outer.message(2, |inner| inner.data(3, &[7; 200])));
        let inner = [b"\x1a\xc8\x01".as_slice(), &[7; 200]].concat();
        let outer = [b"\x12\xcb\x01".as_slice(), &inner].concat();
        assert_eq!(message.bytes(), [b"\x0a\xce\x01".as_slice(), &outer].concat());
    }

    #[test]
    fn doubles_are_little_endian() {
        let mut message = Encoder::default();
        message.double(1, 1.0);
        assert_eq!(message.bytes(), b"\x09\0\0\0\0\0\0\xf0\x3f");
    }
}
