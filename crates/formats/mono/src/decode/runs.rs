//! Fast paths for allocations and moves, and for runs of heapshot objects: with [`calls`](crate::decode::calls), the
//! most frequent events of most logs. No [`Event`] is built for each. A run ends before any other event and before
//! anything unusual: a number of nine bytes, the last bytes of a buffer, damage. [`EventDecoder::read`] continues
//! there.

use crate::consts::EventByte;
use crate::decode::backtraces::{EncodedBacktrace, KnownBacktraces, Meaning};
use crate::decode::{EventDecoder, leb128};
use crate::records::{Event, EventBody, HeapObject};

/// The highest bit of each byte: clear in the last byte of a number.
const HIGHEST: u64 = 0x8080_8080_8080_8080;

/// A heapshot object without its references.
#[derive(Clone, Copy, Debug)]
pub struct HeapObjectSummary {
    /// Its time, or that of the previous timed event.
    pub time: u64,
    /// Address of the object.
    pub object: u64,
    /// Class; since data version 15, vtable.
    pub class: u64,
    /// Generation; 0 before profiler 3.
    pub generation: u8,
    /// Size in bytes, as stored.
    pub size: u64,
    /// Number of its references.
    pub num_references: u64,
    /// File offset of the event.
    pub offset: u64,
}

impl HeapObjectSummary {
    /// Built from a completely decoded event.
    #[must_use]
    pub fn new(it: &HeapObject, time: u64, num_references: u64, offset: u64) -> Self {
        let HeapObject { object, class, size, generation } = *it;
        Self { time, object, class, generation: generation as u8, size, num_references, offset }
    }
}

/// Bytes of an object that are processed together: the ends of the numbers in them are the bits of one word.
const WINDOW: usize = 32;
/// Bytes after the window that a number which starts in the window may need.
const LOOKAHEAD: usize = 16;

type WindowBytes = [u8; WINDOW + LOOKAHEAD];

/// The value of the number at the start of a word. `last_bit` is the position of its last byte's highest bit. Joins
/// the seven low bits of each byte.
#[inline(always)]
fn join_bits(word: u64, last_bit: u32) -> u64 {
    let word = word & (u64::MAX >> 63u32.wrapping_sub(last_bit));
    if last_bit < 32 {
        let word = word & 0x7f7f_7f7f;
        let word = (word & 0x007f_007f) | ((word & 0x7f00_7f00) >> 1);
        return (word & 0x3fff) | ((word & 0x3fff_0000) >> 2);
    }
    let word = word & 0x7f7f_7f7f_7f7f_7f7f;
    let word = (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1);
    let word = (word & 0x0000_3fff_0000_3fff) | ((word & 0x3fff_0000_3fff_0000) >> 2);
    (word & 0x0000_0000_0fff_ffff) | ((word & 0x0fff_ffff_0000_0000) >> 4)
}

/// The number in bytes `start` to `end` of a chunk and its count of bits; `None` if it has nine bytes or more.
#[inline(always)]
fn number(chunk: &WindowBytes, start: u32, end: u32) -> Option<(u64, u32)> {
    let word = u64::from_le_bytes(*chunk.get(start as usize..)?.first_chunk::<8>()?);
    let len = end.wrapping_sub(start).wrapping_add(1);
    (len <= 8).then(|| (join_bits(word, len.wrapping_mul(8).wrapping_sub(1)), len.wrapping_mul(7)))
}

/// The signed number in bytes `start` to `end`.
#[inline(always)]
fn signed(chunk: &WindowBytes, start: u32, end: u32) -> Option<i64> {
    let (value, bits) = number(chunk, start, end)?;
    let unused = 64u32.wrapping_sub(bits);
    Some((value.wrapping_shl(unused) as i64).wrapping_shr(unused))
}

/// A bit for each of sixteen bytes: whether a number ends there.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ends_in_sixteen(bytes: &[u8; 16]) -> u32 {
    use std::arch::x86_64::{_mm_movemask_epi8, _mm_set_epi64x};
    let [low, high] = [0, 8].map(|at| half(bytes, at) as i64);
    // SAFETY: every x86-64 processor has SSE2.
    let highest = unsafe { _mm_movemask_epi8(_mm_set_epi64x(high, low)) };
    !(highest as u32) & 0xffff
}

/// A bit for each of sixteen bytes: whether a number ends there.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn ends_in_sixteen(bytes: &[u8; 16]) -> u32 {
    let [low, high] = [0, 8].map(|at| {
        let word = !half(bytes, at) & HIGHEST;
        // Gathers the highest bits of all bytes.
        ((word >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    });
    low | high << 8
}

/// Eight of the sixteen bytes as a word.
#[inline(always)]
fn half(bytes: &[u8; 16], at: usize) -> u64 {
    bytes.get(at..).and_then(|half| half.first_chunk()).map_or(0, |half| u64::from_le_bytes(*half))
}

/// A bit for each byte of the window: whether a number ends there.
#[inline(always)]
fn ends(chunk: &WindowBytes) -> u64 {
    let sixteens = chunk.as_chunks::<16>().0.iter().zip((0..WINDOW as u32).step_by(16));
    sixteens.fold(0, |ends, (bytes, at)| ends | u64::from(ends_in_sixteen(bytes)).wrapping_shl(at))
}

/// Removes the lowest set bit and returns its position; 64 if there is none.
#[inline(always)]
fn take_end(ends: &mut u64) -> u32 {
    let at = ends.trailing_zeros();
    *ends &= ends.wrapping_sub(1);
    at
}

/// Whether a number that ends at or before byte `last` has more than eight bytes.
#[inline(always)]
fn has_long_number(ends: u64, last: u32) -> bool {
    let within = u64::MAX >> 63u32.wrapping_sub(last);
    let run = !ends & within;
    let run = run & (run >> 1);
    let run = run & (run >> 2);
    run & (run >> 4) != 0
}

/// The fields of a heapshot object before its references.
struct HeapObjectFields {
    time: u64,
    object: i64,
    class: i64,
    generation: u8,
    size: u64,
    num_references: u64,
    /// Length in bytes without the event byte.
    len: u32,
    /// Whether `len` includes the references.
    is_whole: bool,
}

impl EventDecoder<'_> {
    /// The chunk at a position; `None` near the end of the buffer.
    #[inline(always)]
    fn chunk(&self, pos: usize) -> Option<&WindowBytes> {
        self.data.get(pos..)?.first_chunk()
    }

    /// Decodes the heapshot objects up to the next other event and passes each to `each`.
    #[inline]
    pub fn read_heap_objects(&mut self, mut each: impl FnMut(HeapObjectSummary)) {
        if self.error.is_some() {
            return;
        }
        let (since_v13, is_profiler_3) = (self.dialect.since_v13(), self.dialect.is_profiler_3());
        let numbers_per_reference = if self.dialect.version >= 2 { 2 } else { 1 };
        let (mut pos, mut time) = (self.pos, self.time);
        while self.data.get(pos) == Some(&EventByte::HEAP_OBJECT.0)
            && let Some(chunk) = self.chunk(pos.wrapping_add(1))
            && let Some(fields) = read_object_fields(chunk, since_v13, is_profiler_3, numbers_per_reference)
        {
            let start = pos;
            pos = pos.wrapping_add(1).wrapping_add(fields.len as usize);
            let num = fields.num_references;
            if !fields.is_whole {
                match self.position_after_numbers(pos, num.wrapping_mul(numbers_per_reference)) {
                    Some(end) => pos = end,
                    None => {
                        pos = start;
                        break;
                    }
                }
            }
            time = time.wrapping_add(fields.time);
            each(HeapObjectSummary {
                time,
                object: self.obj_base.wrapping_add_signed(fields.object).wrapping_shl(3) & self.mask,
                generation: fields.generation,
                class: self.ptr_base.wrapping_add_signed(fields.class) & self.mask,
                size: fields.size,
                num_references: num,
                offset: self.base.wrapping_add(start as u64),
            });
        }
        (self.pos, self.time) = (pos, time);
    }

    /// Position after `num` numbers of at most eight bytes; `None` if one is longer, or near the end of the buffer.
    fn position_after_numbers(&self, pos: usize, num: u64) -> Option<usize> {
        let rest = self.data.get(pos..)?;
        if num > rest.len() as u64 {
            return None;
        }
        let (mut rest, mut pos, mut left) = (rest, pos, num);
        // Bytes that a number had in the previous word.
        let mut begun = 0u32;
        while left > 0 {
            let (eight, after) = rest.split_first_chunk::<8>()?;
            let mut ends = !u64::from_le_bytes(*eight) & HIGHEST;
            if begun.wrapping_add(ends.trailing_zeros() >> 3) >= 8 {
                return None;
            }
            let here = (ends >> 7).wrapping_mul(0x0101_0101_0101_0101) >> 56;
            if here >= left {
                for _ in 1..left {
                    ends &= ends.wrapping_sub(1);
                }
                return Some(pos.wrapping_add((ends.trailing_zeros().wrapping_add(1) >> 3) as usize));
            }
            left = left.wrapping_sub(here);
            begun = ends.leading_zeros() >> 3;
            (rest, pos) = (after, pos.wrapping_add(8));
        }
        Some(pos)
    }
}

/// Decodes the fields of a heapshot object before its references; `None` where the slow path is needed.
#[inline(always)]
fn read_object_fields(
    chunk: &WindowBytes,
    since_v13: bool,
    is_profiler_3: bool,
    numbers_per_reference: u64,
) -> Option<HeapObjectFields> {
    const REFERENCES: u64 = WINDOW as u64;
    let all = ends(chunk);
    let mut left = all;
    let (mut time, mut begin) = (0, 0);
    if since_v13 {
        let end = take_end(&mut left);
        time = number(chunk, 0, end)?.0;
        begin = end.wrapping_add(1);
    }
    let object = take_end(&mut left);
    let class = take_end(&mut left);
    let mut previous = take_end(&mut left);
    let size = (class, previous);
    let mut generation_byte = 0;
    if is_profiler_3 {
        // The generation is a byte, not a LEB128 number: where its highest bit is set, the ends of numbers found are
        // wrong.
        let generation = take_end(&mut left);
        if generation != previous.wrapping_add(1) {
            return None;
        }
        previous = generation;
        generation_byte = *chunk.get(generation as usize)?;
    }
    let mut last = take_end(&mut left);
    if last >= WINDOW as u32 {
        return None;
    }
    let class = signed(chunk, object.wrapping_add(1), class)?;
    let object = signed(chunk, begin, object)?;
    let size = number(chunk, size.0.wrapping_add(1), size.1)?.0;
    let num_references = number(chunk, previous.wrapping_add(1), last)?.0;
    let header_end = last;
    let num_numbers = num_references.wrapping_mul(numbers_per_reference);
    let mut is_whole = num_references < REFERENCES;
    if is_whole {
        for _ in 0..num_numbers {
            last = take_end(&mut left);
        }
        is_whole = last < WINDOW as u32;
    }
    if !is_whole {
        last = header_end;
    }
    let len = last.wrapping_add(1);
    let generation = generation_byte;
    let fields = HeapObjectFields { time, object, class, generation, size, num_references, len, is_whole };
    (!has_long_number(all, last)).then_some(fields)
}

/// An allocation without its backtrace.
#[derive(Clone, Copy, Debug)]
pub struct AllocEvent {
    /// ALLOC or ALLOC_BT.
    pub byte: EventByte,
    /// File offset of the event.
    pub offset: u64,
    /// Its time.
    pub time: u64,
    /// Class; since data version 15, vtable.
    pub class: u64,
    /// Address of the object.
    pub object: u64,
    /// Size in bytes, as stored.
    pub size: u64,
}

impl AllocEvent {
    /// The allocation that an event is; `None` for other events.
    #[must_use]
    pub fn of(event: &Event<'_>) -> Option<Self> {
        let EventBody::Alloc { class, object, size } = event.body else { return None };
        let (byte, offset, time) = (event.byte, event.offset, event.time.unwrap_or(0));
        Some(Self { byte, offset, time, class, object, size })
    }
}

/// Reads the number at `at` and moves `at` after it.
#[inline]
fn read_number(data: &[u8], at: &mut usize) -> Option<(u64, u32)> {
    let (value, num_bytes) = leb128::read_short(data.get(*at..)?)?;
    *at = at.wrapping_add(num_bytes as usize);
    Some((value, num_bytes.wrapping_mul(7)))
}

/// Reads a number that mostly has one byte.
#[inline]
fn read_small_number(data: &[u8], at: &mut usize) -> Option<u64> {
    match *data.get(*at)? {
        byte @ ..0x80 => {
            *at = at.wrapping_add(1);
            Some(byte.into())
        }
        _ => read_number(data, at).map(|(value, _)| value),
    }
}

impl EventDecoder<'_> {
    /// If the next event is GC_MOVE and can be skipped whole, skips it and returns the number of addresses and the
    /// time.
    #[inline]
    pub fn skip_moves(&mut self) -> Option<(u64, u64)> {
        let mut at = self.pos.wrapping_add(1);
        if *self.data.get(self.pos)? != EventByte::GC_MOVE.0 {
            return None;
        }
        let (time_difference, _) = read_number(self.data, &mut at)?;
        let num = read_small_number(self.data, &mut at)?;
        let addresses = self.data.get(at..).filter(|rest| num <= rest.len() as u64)?;
        at = at.wrapping_add(leb128::skip(addresses, num)?);
        (self.start, self.pos) = (self.pos, at);
        self.time = self.time.wrapping_add(time_difference);
        Some((num, self.time))
    }

    /// Reads object addresses until one needs the slow path; returns the number of addresses left.
    #[inline]
    pub(super) fn read_object_run(&mut self, num: u64, list: &mut Vec<u64>) -> u64 {
        let mut at = self.pos;
        let mut left = num;
        while left > 0 {
            let Some(object) = read_number(self.data, &mut at) else { break };
            let object = self.obj_base.wrapping_add_signed(leb128::sign_extend(object));
            list.push(object.wrapping_shl(3) & self.mask);
            left = left.wrapping_sub(1);
        }
        self.pos = at;
        left
    }

    /// If the next event is an allocation that the fast path can decode, returns it without its backtrace. Otherwise
    /// reads nothing; [`read`](Self::read) decodes the event.
    #[inline]
    pub fn read_alloc(&mut self) -> Option<AllocEvent> {
        self.next_byte().filter(|byte| self.skipped_kinds.has(*byte))?;
        let (alloc, mut end) = self.alloc_fields()?;
        if alloc.byte == EventByte::ALLOC_BT {
            let num = read_small_number(self.data, &mut end)?;
            let frames = self.data.get(end..).filter(|rest| num <= rest.len() as u64)?;
            end = end.wrapping_add(leb128::skip(frames, num)?);
            self.skipped_from.get_or_insert(self.state());
            self.num_skipped_frames = self.num_skipped_frames.wrapping_add(num);
        }
        self.pass_alloc(&alloc, end);
        Some(alloc)
    }

    /// The same with what its backtrace stands for: `meaning_of` is asked about backtraces that `known` does not contain.
    #[inline]
    pub fn read_alloc_and_backtrace<T: Copy>(
        &mut self,
        known: &mut KnownBacktraces<T>,
        meaning_of: impl FnOnce(&[u64], u64) -> Meaning<T>,
    ) -> Option<(AllocEvent, T)> {
        let (alloc, mut at) = self.alloc_fields()?;
        if self.skipped_from.is_some() {
            return None;
        }
        let num = if alloc.byte == EventByte::ALLOC_BT { read_small_number(self.data, &mut at)? } else { 0 };
        let Some(num_after_first) = num.checked_sub(1) else {
            self.pass_alloc(&alloc, at);
            return Some((alloc, meaning_of(&[], alloc.time).value()));
        };
        let first = leb128::sign_extend(read_number(self.data, &mut at)?);
        let first = self.method.wrapping_add_signed(first) & self.mask;
        let rest = self.data.get(at..).filter(|rest| num_after_first <= rest.len() as u64)?;
        let (value, last, len) = match known.find_last(first, num_after_first, rest) {
            Some(found) => found,
            None => {
                let len = leb128::skip(rest, num_after_first)?;
                let encoded = EncodedBacktrace { first, others: rest.get(..len)? };
                let (value, last) = match known.find(&encoded) {
                    Some(found) => found,
                    None => {
                        let methods = encoded.decode(num_after_first, self.mask)?;
                        let last = methods.last().copied().unwrap_or(first);
                        (known.add(&encoded, &methods, meaning_of(&methods, alloc.time)), last)
                    }
                };
                (value, last, len)
            }
        };
        self.method = last;
        self.pass_alloc(&alloc, at.wrapping_add(len));
        Some((alloc, value))
    }

    /// The fields of an allocation before its backtrace, and the position after them, if the fast path can decode it.
    #[inline]
    fn alloc_fields(&self) -> Option<(AllocEvent, usize)> {
        let start = self.pos;
        let byte = EventByte(*self.data.get(start)?);
        if !matches!(byte, EventByte::ALLOC | EventByte::ALLOC_BT) || !self.dialect.since_v13() {
            return None;
        }
        let mut at = start.wrapping_add(1);
        let (time_difference, _) = read_number(self.data, &mut at)?;
        let class = leb128::sign_extend(read_number(self.data, &mut at)?);
        let object = leb128::sign_extend(read_number(self.data, &mut at)?);
        let size = read_small_number(self.data, &mut at).filter(|&size| size != 0)?;
        let alloc = AllocEvent {
            byte,
            offset: self.base.saturating_add(start as u64),
            time: self.time.wrapping_add(time_difference),
            class: self.ptr_base.wrapping_add_signed(class) & self.mask,
            object: self.obj_base.wrapping_add_signed(object).wrapping_shl(3) & self.mask,
            size,
        };
        Some((alloc, at))
    }

    /// Moves to the end of an allocation, `end`.
    #[inline]
    fn pass_alloc(&mut self, alloc: &AllocEvent, end: usize) {
        perfuse_stopping::checkpoint();
        (self.start, self.pos, self.time) = (self.pos, end, alloc.time);
    }
}
