//! Runs of the two events that logs can consist of almost whole, calls and objects of heap shots, without making an
//! [`Event`](crate::mono::records::Event) of each: several times faster.
//!
//! A run ends before anything else, and before whatever is unusual: a number of nine bytes, the last bytes of a buffer, damage.
//! [`Decoder::read`] goes on there.

use super::Decoder;
use crate::mono::consts::EventByte;

/// The highest bit of each byte: clear in the last byte of a number.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// A call is entered or left.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Which of the three events it is.
    pub byte: EventByte,
    /// When.
    pub time: u64,
    /// The method.
    pub method: u64,
    /// Absolute offset.
    pub offset: u64,
}

/// An object of a heap shot, without its references.
#[derive(Clone, Copy, Debug)]
pub struct BareObject {
    /// When; that of the timed event before it where it has none.
    pub time: u64,
    /// Class, or since data version 15 vtable.
    pub class: u64,
    /// Its size in bytes, as stored.
    pub size: u64,
    /// How many references it has.
    pub num_references: u64,
    /// Absolute offset.
    pub offset: u64,
}

/// The bits of a number whose last byte's highest bit is at `last_bit` of a word it begins; seven of each byte are pushed
/// together.
#[inline(always)]
fn bits(word: u64, last_bit: u32) -> u64 {
    let word = word & (u64::MAX >> 63u32.wrapping_sub(last_bit));
    let word = word & 0x7f7f_7f7f_7f7f_7f7f;
    let word = (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1);
    let word = (word & 0x0000_3fff_0000_3fff) | ((word & 0x3fff_0000_3fff_0000) >> 2);
    (word & 0x0000_0000_0fff_ffff) | ((word & 0x0fff_ffff_0000_0000) >> 4)
}

/// The same of a signed number.
#[inline(always)]
fn signed_bits(word: u64, last_bit: u32) -> i64 {
    let unused = 64u32.wrapping_sub((last_bit.wrapping_add(1) >> 3).wrapping_mul(7));
    (bits(word, last_bit).wrapping_shl(unused) as i64).wrapping_shr(unused)
}

impl Decoder<'_> {
    /// Whether an event is of a call.
    #[must_use]
    #[inline(always)]
    pub fn is_call(byte: EventByte) -> bool {
        matches!(byte, EventByte::METHOD_ENTER | EventByte::METHOD_LEAVE | EventByte::METHOD_EXC_LEAVE)
    }

    /// Tells of calls as long as they follow each other.
    #[inline]
    pub fn calls(&mut self, mut each: impl FnMut(Call)) {
        if self.fault.is_some() || !self.next_byte().is_some_and(Self::is_call) {
            return;
        }
        if self.left.is_some() {
            self.catch_up();
        }
        let (mut pos, mut time, mut method) = (self.pos, self.time, self.method);
        // A call is a byte and two numbers, which most often end within the word behind it.
        while let Some([byte, word @ ..]) = self.data.get(pos..).and_then(|rest| rest.first_chunk::<9>()) {
            let word = u64::from_le_bytes(*word);
            let ends = !word & HIGHEST;
            let behind = ends & ends.wrapping_sub(1);
            let byte = EventByte(*byte);
            if !Self::is_call(byte) || behind == 0 {
                break;
            }
            let (first, second) = (ends.trailing_zeros(), behind.trailing_zeros());
            time = time.wrapping_add(bits(word, first));
            let begins = first.wrapping_add(1);
            let difference = signed_bits(word.wrapping_shr(begins), second.wrapping_sub(begins));
            method = method.wrapping_add_signed(difference) & self.mask;
            each(Call { byte, time, method, offset: self.base.wrapping_add(pos as u64) });
            pos = pos.wrapping_add(1).wrapping_add((second.wrapping_add(1) >> 3) as usize);
        }
        (self.pos, self.time, self.method) = (pos, time, method);
    }

    /// Tells of objects of a heap shot as long as they follow each other.
    #[inline]
    pub fn objects(&mut self, mut each: impl FnMut(BareObject)) {
        let (modern, third) = (self.dialect.modern(), self.dialect.third());
        let numbers_of_a_reference = if self.dialect.version >= 2 { 2 } else { 1 };
        while self.fault.is_none() && self.data.get(self.pos) == Some(&EventByte::HEAP_OBJECT.0) {
            let (start, before) = (self.pos, self.time);
            self.pos = start.wrapping_add(1);
            let Some(object) = self.bare_object(modern, third) else {
                (self.pos, self.time) = (start, before);
                return;
            };
            if object.num_references > self.rest().len() as u64
                || !self.skip_numbers(object.num_references.wrapping_mul(numbers_of_a_reference))
            {
                (self.pos, self.time) = (start, before);
                return;
            }
            each(BareObject { offset: self.base.wrapping_add(start as u64), ..object });
        }
    }

    #[inline(always)]
    fn bare_object(&mut self, modern: bool, third: bool) -> Option<BareObject> {
        if modern {
            self.time = self.time.wrapping_add(self.short_number()?.0);
        }
        self.short_number()?;
        let (word, last_bit) = self.short_word()?;
        let class = self.ptr_base.wrapping_add_signed(signed_bits(word, last_bit)) & self.mask;
        let (size, _) = self.short_number()?;
        if third {
            self.data.get(self.pos)?;
            self.pos = self.pos.wrapping_add(1);
        }
        let (num_references, _) = self.short_number()?;
        Some(BareObject { time: self.time, class, size, num_references, offset: 0 })
    }

    /// A word that a number begins, and where in it the number ends; `None` where it is longer, or the buffer's end near.
    #[inline(always)]
    fn short_word(&mut self) -> Option<(u64, u32)> {
        let word = u64::from_le_bytes(*self.rest().first_chunk::<8>()?);
        let ends = !word & HIGHEST;
        let last_bit = ends.trailing_zeros();
        self.pos = self.pos.wrapping_add((last_bit.wrapping_add(1) >> 3) as usize);
        (ends != 0).then_some((word, last_bit))
    }

    #[inline(always)]
    fn short_number(&mut self) -> Option<(u64, u32)> {
        let (word, last_bit) = self.short_word()?;
        Some((bits(word, last_bit), last_bit))
    }

    /// Passes over numbers of eight bytes at most; `false` where one is longer, or the buffer's end near.
    #[inline(always)]
    fn skip_numbers(&mut self, num: u64) -> bool {
        let mut left = num;
        // Bytes of a number that began in the word before.
        let mut begun = 0u32;
        while left > 0 {
            let Some(eight) = self.rest().first_chunk::<8>() else { return false };
            let ends = !u64::from_le_bytes(*eight) & HIGHEST;
            let here = (ends >> 7).wrapping_mul(0x0101_0101_0101_0101) >> 56;
            if begun.wrapping_add(ends.trailing_zeros() >> 3) >= 8 {
                return false;
            }
            if here >= left {
                // The byte up to which that many end: those before are taken out one by one.
                let mut ends = ends;
                for _ in 1..left {
                    ends &= ends.wrapping_sub(1);
                }
                self.pos = self.pos.wrapping_add((ends.trailing_zeros().wrapping_add(1) >> 3) as usize);
                return true;
            }
            left = left.wrapping_sub(here);
            begun = ends.leading_zeros() >> 3;
            self.pos = self.pos.wrapping_add(8);
        }
        true
    }
}
