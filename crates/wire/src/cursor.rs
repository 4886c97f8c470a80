//! Cursors over bytes with absolute offsets, and their counterpart for writing.

use crate::error::{ErrorKind, ParseError};

/// Byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// Name in tables and output: `little` or `big`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Little => "little",
            Self::Big => "big",
        }
    }

    /// The byte order of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Little, Self::Big].into_iter().find(|endian| endian.name() == name)
    }
}

/// Consecutive fields of fixed sizes, `N` bytes in total; see [`layout!`](crate::layout!).
#[derive(Clone, Copy, Debug)]
pub struct FixedFields<'a, const N: usize> {
    bytes: &'a [u8; N],
    at: usize,
    endian: Endian,
}

impl<const N: usize> FixedFields<'_, N> {
    /// Reads the next field with the function for the byte order. Fields beyond the `N` bytes are 0.
    #[inline(always)]
    pub fn take<const M: usize, T>(&mut self, le: fn([u8; M]) -> T, be: fn([u8; M]) -> T) -> T {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<M>()).copied();
        self.at = self.at.wrapping_add(M);
        match self.endian {
            Endian::Little => le(bytes.unwrap_or([0; M])),
            Endian::Big => be(bytes.unwrap_or([0; M])),
        }
    }
}

/// A position in a slice of bytes, with the absolute offset of those bytes in the file.
///
/// Every read moves forward or fails. Reads do not allocate.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    data: &'a [u8],
    pos: usize,
    base: u64,
    endian: Endian,
}

macro_rules! read_int {
    ($name:ident, $ty:ty) => {
        #[doc = concat!("Reads one `", stringify!($ty), "` in the cursor's byte order.")]
        #[inline]
        pub fn $name(&mut self, field: &'static str) -> Result<$ty, ParseError> {
            let bytes = self.array(field)?;
            Ok(match self.endian {
                Endian::Little => <$ty>::from_le_bytes(bytes),
                Endian::Big => <$ty>::from_be_bytes(bytes),
            })
        }
    };
}

impl<'a> Cursor<'a> {
    /// A cursor over `data`, whose first byte is at offset `base` in the file.
    #[must_use]
    #[inline]
    pub fn new(data: &'a [u8], base: u64, endian: Endian) -> Self {
        // Every record is read through a cursor: a pass over a file ends here when it is stopped.
        perfuse_stopping::checkpoint();
        Self { data, pos: 0, base, endian }
    }

    /// Absolute offset of the next byte.
    #[must_use]
    #[inline]
    pub fn offset(&self) -> u64 {
        self.base.saturating_add(self.pos as u64)
    }

    /// Number of bytes left.
    #[must_use]
    #[inline]
    pub fn remaining(&self) -> usize {
        self.data.len().saturating_sub(self.pos)
    }

    /// The byte order in which fields are read.
    #[must_use]
    #[inline]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// All bytes that are left; does not move.
    #[must_use]
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.data.get(self.pos..).unwrap_or_default()
    }

    read_int!(u16, u16);
    read_int!(u32, u32);
    read_int!(i32, i32);
    read_int!(u64, u64);
    read_int!(i64, i64);

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self, field: &'static str) -> Result<u8, ParseError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// Reads one signed byte.
    #[inline]
    pub fn i8(&mut self, field: &'static str) -> Result<i8, ParseError> {
        Ok(self.u8(field)?.cast_signed())
    }

    /// Reads the next `len` bytes.
    #[inline]
    pub fn bytes(&mut self, len: u64, field: &'static str) -> Result<&'a [u8], ParseError> {
        let end = usize::try_from(len).ok().and_then(|len| self.pos.checked_add(len));
        match end.and_then(|end| Some((end, self.data.get(self.pos..end)?))) {
            Some((end, bytes)) => {
                self.pos = end;
                Ok(bytes)
            }
            None => Err(self.short(len, field)),
        }
    }

    /// Reads bytes up to the next NUL. The NUL is read but not returned.
    #[inline]
    pub fn c_string(&mut self, field: &'static str) -> Result<&'a [u8], ParseError> {
        let rest = self.rest();
        match memchr::memchr(0, rest) {
            Some(len) => {
                let text = rest.get(..len).unwrap_or_default();
                self.pos = self.pos.saturating_add(len).saturating_add(1);
                Ok(text)
            }
            None => Err(ParseError::new(ErrorKind::NoTerminator, self.offset(), field)),
        }
    }

    /// Reads an unsigned LEB128 number of at most 64 bits; a larger one is [`ErrorKind::Overlong`].
    pub fn uleb128(&mut self, field: &'static str) -> Result<u64, ParseError> {
        let start = self.offset();
        let mut value = 0u64;
        let mut shift = 0u32;
        loop {
            let byte = self.u8(field)?;
            let low = u64::from(byte & 0x7f);
            let part = low.checked_shl(shift).filter(|part| part.checked_shr(shift) == Some(low));
            match part {
                Some(part) => value |= part,
                None => return Err(ParseError::new(ErrorKind::Overlong, start, field)),
            }
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift = shift.saturating_add(7);
        }
    }

    /// Reads a signed LEB128 number of at most 64 bits; a larger one is [`ErrorKind::Overlong`].
    pub fn sleb128(&mut self, field: &'static str) -> Result<i64, ParseError> {
        let start = self.offset();
        let mut value = 0i64;
        let mut shift = 0u32;
        loop {
            let byte = self.u8(field)?;
            if shift > 63 {
                return Err(ParseError::new(ErrorKind::Overlong, start, field));
            }
            value |= i64::from(byte & 0x7f).wrapping_shl(shift);
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                if shift < 64 && byte & 0x40 != 0 {
                    value |= (-1i64).wrapping_shl(shift);
                }
                return Ok(value);
            }
        }
    }

    /// Returns a cursor over the next `len` bytes and moves past them.
    pub fn split(&mut self, len: u64, field: &'static str) -> Result<Self, ParseError> {
        let base = self.offset();
        let data = self.bytes(len, field)?;
        Ok(Self { data, pos: 0, base, endian: self.endian })
    }

    /// Reads `N` bytes.
    #[inline]
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], ParseError> {
        match self.rest().first_chunk::<N>() {
            Some(bytes) => {
                self.pos = self.pos.saturating_add(N);
                Ok(*bytes)
            }
            None => Err(self.short(N as u64, field)),
        }
    }

    /// Reads `N` bytes of fields of fixed sizes; `None`, without moving, where fewer are left.
    #[inline]
    pub fn fixed_fields<const N: usize>(&mut self) -> Option<FixedFields<'a, N>> {
        let bytes = self.rest().first_chunk::<N>()?;
        self.pos = self.pos.saturating_add(N);
        Some(FixedFields { bytes, at: 0, endian: self.endian })
    }

    /// The error for a field of `need` bytes.
    #[cold]
    fn short(&self, need: u64, field: &'static str) -> ParseError {
        ParseError::new(ErrorKind::Short { need, have: self.remaining() as u64 }, self.offset(), field)
    }
}

/// Appends typed fields in either byte order: the counterpart of [`Cursor`] for writing.
pub trait Put {
    /// Appends a `u16`.
    fn put_u16(&mut self, value: u16, endian: Endian);
    /// Appends a `u32`.
    fn put_u32(&mut self, value: u32, endian: Endian);
    /// Appends a `u64`.
    fn put_u64(&mut self, value: u64, endian: Endian);
    /// Appends an `i32`.
    fn put_i32(&mut self, value: i32, endian: Endian);
    /// Appends an `i64`.
    fn put_i64(&mut self, value: i64, endian: Endian);
}

macro_rules! put_int {
    ($name:ident, $ty:ty) => {
        fn $name(&mut self, value: $ty, endian: Endian) {
            self.extend_from_slice(&match endian {
                Endian::Little => value.to_le_bytes(),
                Endian::Big => value.to_be_bytes(),
            });
        }
    };
}

impl Put for Vec<u8> {
    put_int!(put_u16, u16);
    put_int!(put_u32, u32);
    put_int!(put_u64, u64);
    put_int!(put_i32, i32);
    put_int!(put_i64, i64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_endians_at_absolute_offsets() {
        let data = [1, 0, 0, 0, 0, 0, 0, 2];
        let mut c = Cursor::new(&data, 100, Endian::Little);
        assert_eq!(c.u32("a").unwrap(), 1);
        assert_eq!(c.offset(), 104);
        let mut c = Cursor::new(c.rest(), c.offset(), Endian::Big);
        assert_eq!(c.u32("b").unwrap(), 2);
        let e = c.u32("c").unwrap_err();
        assert_eq!(e.to_string(), "short data in c: need 4, have 0 (offset 0x6c)");
    }

    #[test]
    fn leb128_of_the_dwarf_specification() {
        let mut c = Cursor::new(&[0xe5, 0x8e, 0x26, 0x80, 0x7f], 0, Endian::Little);
        assert_eq!(c.uleb128("u").unwrap(), 624_485);
        assert_eq!(c.sleb128("s").unwrap(), -128);
        let mut c = Cursor::new(&[0xff; 11], 0, Endian::Little);
        assert!(c.uleb128("u").is_err());
    }

    #[test]
    fn a_length_past_the_end_is_an_error_and_does_not_move() {
        let mut c = Cursor::new(&[1, 2, 3], 0, Endian::Little);
        assert!(c.bytes(u64::MAX, "code").is_err());
        assert!(c.c_string("name").is_err());
        assert_eq!(c.remaining(), 3);
    }
}
