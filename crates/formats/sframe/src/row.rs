//! Frame row entries (FREs), as stored.

use std::fmt;

use perfuse_wire::{Endian, ErrorKind, ParseError};

/// The info byte of a row (`sfre_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FreInfo(pub u8);

impl FreInfo {
    /// Bit 0: the CFA is relative to the stack pointer, else to the frame pointer.
    #[must_use]
    pub const fn cfa_from_sp(self) -> bool {
        self.0 & 1 != 0
    }

    /// Bits 1-4: number of words.
    #[must_use]
    pub const fn num_words(self) -> u8 {
        self.0 >> 1 & 0xf
    }

    /// Bits 5-6: size code of the words.
    #[must_use]
    pub const fn word_size_code(self) -> u8 {
        self.0 >> 5 & 3
    }

    /// Size in bytes of a word; `None` for the undefined size code 3.
    #[must_use]
    pub const fn word_bytes(self) -> Option<usize> {
        match self.word_size_code() {
            0 => Some(1),
            1 => Some(2),
            2 => Some(4),
            _ => None,
        }
    }

    /// Bit 7, aarch64: the return address is signed.
    #[must_use]
    pub const fn ra_mangled(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// Builds the byte from its parts.
    #[must_use]
    pub const fn new(cfa_from_sp: bool, num_words: u8, word_size_code: u8, ra_mangled: bool) -> Self {
        Self(cfa_from_sp as u8 | (num_words & 0xf) << 1 | (word_size_code & 3) << 5 | (ra_mangled as u8) << 7)
    }
}

impl fmt::Display for FreInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.cfa_from_sp() { "SP" } else { "FP" })?;
        write!(f, " {} words", self.num_words())?;
        match self.word_bytes() {
            Some(bytes) => write!(f, " of {bytes}B")?,
            None => f.write_str(" of unknown size")?,
        }
        f.write_str(if self.ra_mangled() { " MANGLED_RA" } else { "" })
    }
}

/// A frame row entry (FRE).
#[derive(Clone, Copy, Debug)]
pub struct Fre<'a> {
    /// Its offset in the section.
    pub at: usize,
    /// Offset from which it applies: from the start of the function, or in the block that repeats.
    pub start: u32,
    /// The info byte.
    pub info: FreInfo,
    /// Size in bytes.
    pub size: usize,
    words: &'a [u8],
    endian: Endian,
}

impl<'a> Fre<'a> {
    /// A row with this info byte whose words are all 0.
    pub(super) fn with_words_of_zero(info: FreInfo) -> Self {
        let words_bytes = info.word_bytes().unwrap_or(0).saturating_mul(info.num_words().into());
        let words = [0u8; 64].get(..words_bytes).unwrap_or_default();
        Self { at: 0, start: 0, info, size: 0, words, endian: Endian::Little }
    }

    /// The row with at most this many words; the others are left out.
    pub(super) fn with_num_words(self, num: u8) -> Self {
        let info = self.info;
        let num = num.min(info.num_words());
        let info = FreInfo::new(info.cfa_from_sp(), num, info.0 >> 5 & 3, info.ra_mangled());
        let len = info.word_bytes().unwrap_or(0).saturating_mul(num.into());
        Self { info, words: self.words.get(..len).unwrap_or(self.words), ..self }
    }

    /// A word as a signed offset.
    #[must_use]
    #[inline]
    pub fn word(&self, index: usize) -> Option<i32> {
        Some(match *self.bytes_of(index)? {
            [byte] => i32::from(byte.cast_signed()),
            [a, b] => {
                i32::from(number(u16::from_le_bytes, u16::from_be_bytes, [a, b], self.endian).cast_signed())
            }
            [a, b, c, d] => {
                number(u32::from_le_bytes, u32::from_be_bytes, [a, b, c, d], self.endian).cast_signed()
            }
            _ => return None,
        })
    }

    /// A word as an unsigned FLEX control word.
    #[must_use]
    #[inline]
    pub fn control(&self, index: usize) -> Option<u32> {
        Some(match *self.bytes_of(index)? {
            [byte] => u32::from(byte),
            [a, b] => u32::from(number(u16::from_le_bytes, u16::from_be_bytes, [a, b], self.endian)),
            [a, b, c, d] => number(u32::from_le_bytes, u32::from_be_bytes, [a, b, c, d], self.endian),
            _ => return None,
        })
    }

    /// All words, signed.
    pub fn words(self) -> impl Iterator<Item = i32> + 'a {
        (0..usize::from(self.info.num_words())).map_while(move |index| self.word(index))
    }

    /// Whether info byte and words are equal, so that both rows describe the same recovery.
    #[must_use]
    pub fn has_same_recovery(&self, other: &Fre<'_>) -> bool {
        self.info == other.info && self.words == other.words
    }

    #[inline]
    fn bytes_of(&self, index: usize) -> Option<&'a [u8]> {
        let size = self.info.word_bytes()?;
        let from = index.checked_mul(size)?;
        self.words.get(from..from.checked_add(size)?)
    }
}

#[inline]
fn number<const N: usize, T>(
    le: fn([u8; N]) -> T,
    be: fn([u8; N]) -> T,
    bytes: [u8; N],
    endian: Endian,
) -> T {
    match endian {
        Endian::Little => le(bytes),
        Endian::Big => be(bytes),
    }
}

/// Iterator over the rows of a function; ends after the first that cannot be read.
#[derive(Clone, Debug)]
pub struct FreIter<'a> {
    data: &'a [u8],
    at: usize,
    start_bytes: Option<usize>,
    rows_left: u32,
    endian: Endian,
    file_offset: u64,
}

impl<'a> FreIter<'a> {
    /// Rows from this offset of the section on; `data` is the section up to the end of its rows.
    pub(super) fn new(
        data: &'a [u8],
        at: usize,
        start_bytes: Option<usize>,
        num_rows: u32,
        endian: Endian,
        file_offset: u64,
    ) -> Self {
        Self { data, at, start_bytes, rows_left: num_rows, endian, file_offset }
    }

    /// Whether all rows have been read.
    #[inline]
    pub(super) fn is_at_end(&self) -> bool {
        self.rows_left == 0
    }

    /// Continues at the row that begins at this offset of the section, with `num_skipped` rows skipped.
    pub(super) fn skip_to(&mut self, at: usize, num_skipped: u32) {
        self.at = at;
        self.rows_left = self.rows_left.saturating_sub(num_skipped);
    }

    /// Start, info byte and the following eight bytes of the next row of a little-endian section whose row starts
    /// have `START` bytes. `None` at the end, or where fewer than 16 bytes follow.
    #[inline]
    pub(super) fn peek<const START: u32>(&self) -> Option<(u32, FreInfo, u64)> {
        let bytes = self.data.get(self.at..)?.first_chunk::<16>().filter(|_| self.rows_left > 0)?;
        let row = u128::from_le_bytes(*bytes);
        let bits = START.wrapping_mul(8);
        let start = row as u32 & u32::MAX.wrapping_shr(32u32.wrapping_sub(bits));
        // Loaded on its own, so that the address of the next row does not depend on the wider load.
        let info = FreInfo(bytes.get(START as usize).copied().unwrap_or(0));
        Some((start, info, row.wrapping_shr(bits.wrapping_add(8)) as u64))
    }

    /// Moves past a row of `size` bytes that was read by [`peek`](Self::peek), and returns its offset.
    #[inline]
    pub(super) fn pass(&mut self, size: usize) -> usize {
        let at = self.at;
        (self.at, self.rows_left) = (at.saturating_add(size), self.rows_left.saturating_sub(1));
        at
    }

    #[inline]
    fn read(&self) -> Result<Fre<'a>, ParseError> {
        let at = self.at;
        let error = |kind, at: usize, field| Err(ParseError::new(kind, self.offset(at), field));
        let Some(start_bytes) = self.start_bytes else {
            let kind = ErrorKind::Invalid { value: 3, expected: "an FRE type of 0, 1 or 2" };
            return error(kind, at, "fre_type");
        };
        let rest = self.data.get(at..).unwrap_or_default();
        let short = |need: usize| ErrorKind::Short { need: need as u64, have: rest.len() as u64 };
        let (start, info) = match (start_bytes, rest) {
            (1, &[a, info, ..]) => (u32::from(a), info),
            (2, &[a, b, info, ..]) => {
                (u32::from(number(u16::from_le_bytes, u16::from_be_bytes, [a, b], self.endian)), info)
            }
            (4, &[a, b, c, d, info, ..]) => {
                (number(u32::from_le_bytes, u32::from_be_bytes, [a, b, c, d], self.endian), info)
            }
            _ => return error(short(start_bytes.saturating_add(1)), at, "sfre_start_address"),
        };
        let info = FreInfo(info);
        let fixed = start_bytes.saturating_add(1);
        let words_bytes = match info.word_bytes() {
            Some(bytes) => bytes.saturating_mul(usize::from(info.num_words())),
            None if info.num_words() == 0 => 0,
            None => {
                let kind = ErrorKind::Invalid { value: 3, expected: "a word size code of 0, 1 or 2" };
                return error(kind, at.saturating_add(start_bytes), "sfre_info");
            }
        };
        let size = fixed.saturating_add(words_bytes);
        match rest.get(fixed..size) {
            Some(words) => Ok(Fre { at, start, info, size, words, endian: self.endian }),
            None => error(short(size), at, "sfre_words"),
        }
    }

    /// Converts an offset in the section to an offset in the file.
    fn offset(&self, at: usize) -> u64 {
        self.file_offset.saturating_add(at as u64)
    }
}

impl<'a> Iterator for FreIter<'a> {
    type Item = Result<Fre<'a>, ParseError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.rows_left = self.rows_left.checked_sub(1)?;
        perfuse_stopping::checkpoint_at(self.rows_left as usize);
        let row = self.read();
        match &row {
            Ok(row) => self.at = self.at.saturating_add(row.size),
            Err(_) => self.rows_left = 0,
        }
        Some(row)
    }
}
