//! Fast path for runs of calls. Most calls have no calls in them: the leave of a method follows its enter, and is decoded
//! with it. A run ends where those of [`runs`](crate::decode::runs) do.

use crate::consts::EventByte;
use crate::decode::{EventDecoder, leb128};

/// An enter or leave of a method.
#[derive(Clone, Copy, Debug)]
pub struct MethodEvent {
    /// METHOD_ENTER, METHOD_LEAVE or METHOD_EXC_LEAVE.
    pub byte: EventByte,
    /// Its time.
    pub time: u64,
    /// Address of the method.
    pub method: u64,
    /// File offset of the event.
    pub offset: u64,
}

/// The METHOD_LEAVE that follows a METHOD_ENTER and is of the same method.
#[derive(Clone, Copy, Debug)]
pub struct FollowingLeave {
    /// Its time.
    pub time: u64,
    /// File offset of the event.
    pub offset: u64,
}

/// Bytes that are enough for an event whose numbers have at most eight bytes and for the leave after it, and for reading
/// them as words.
const MAX_BYTES: usize = 24;

/// The number in the second and third byte of an event, where it has two.
#[inline(always)]
fn two_bytes(start: u32) -> u64 {
    (start >> 8 & 0x7f | start >> 9 & 0x3f80).into()
}

/// A call event as stored: what it adds to time and method, and its length in bytes.
struct StoredCall {
    byte: EventByte,
    time_difference: u64,
    method_difference: i64,
    len: usize,
}

impl StoredCall {
    /// `None` for other events, and for numbers of nine bytes.
    #[inline(always)]
    fn read(bytes: &[u8; MAX_BYTES]) -> Option<Self> {
        let [byte, b1, b2, b3, ..] = *bytes;
        let byte = EventByte(byte);
        if !EventDecoder::is_call(byte) {
            return None;
        }
        let start = u32::from_le_bytes([byte.0, b1, b2, b3]);
        // The difference of two times mostly has two bytes.
        let (time_difference, num_bytes) = if start & 0x80_8000 == 0x8000 {
            (two_bytes(start), 2)
        } else {
            leb128::read_short(bytes.get(1..)?)?
        };
        let at = num_bytes.wrapping_add(1) as usize;
        let (value, num_bytes) = leb128::read_short(bytes.get(at..)?)?;
        let method_difference = leb128::sign_extend((value, num_bytes.wrapping_mul(7)));
        Some(Self { byte, time_difference, method_difference, len: at.wrapping_add(num_bytes as usize) })
    }
}

/// Difference of times and length in bytes of a METHOD_LEAVE with these bytes, if it is of the method of the event before
/// and less than 16 µs after that.
#[inline(always)]
fn read_leave(bytes: [u8; 4]) -> Option<(u64, usize)> {
    const BYTE: u32 = EventByte::METHOD_LEAVE.0 as u32;
    let start = u32::from_le_bytes(bytes);
    if start & 0xff80_80ff == 0x8000 | BYTE {
        Some((two_bytes(start), 4))
    } else if start & 0x00ff_80ff == BYTE {
        Some(((start >> 8 & 0x7f).into(), 3))
    } else {
        None
    }
}

/// A METHOD_ENTER and the METHOD_LEAVE after it in the form that most have: differences of times in two bytes, that of methods
/// in up to four, and 0 in the leave, which is of the same method.
struct LeafCall {
    enter: u32,
    leave: u32,
    /// Bytes from the difference of methods on.
    method: u32,
    /// Position of the highest bit of its last byte.
    last_bit: u32,
}

impl LeafCall {
    #[inline(always)]
    fn read(bytes: &[u8; MAX_BYTES]) -> Option<Self> {
        const ENTER: u32 = EventByte::METHOD_ENTER.0 as u32;
        const LEAVE: u32 = EventByte::METHOD_LEAVE.0 as u32;
        let start = u64::from_le_bytes(*bytes.first_chunk()?);
        let (enter, method) = (start as u32, (start >> 24) as u32);
        let ends = !method & 0x8080_8080;
        if enter & 0x80_80ff != 0x8000 | ENTER || ends == 0 {
            return None;
        }
        let call = Self { enter, leave: 0, method, last_bit: ends.trailing_zeros() };
        let leave = u32::from_le_bytes(*bytes.get(call.enter_len()..)?.first_chunk()?);
        (leave & 0xff80_80ff == 0x8000 | LEAVE).then_some(Self { leave, ..call })
    }

    /// Length in bytes of the METHOD_ENTER.
    #[inline(always)]
    fn enter_len(&self) -> usize {
        (self.last_bit >> 3).wrapping_add(4) as usize
    }

    /// Length in bytes of both.
    #[inline(always)]
    fn len(&self) -> usize {
        self.enter_len().wrapping_add(4)
    }

    /// Differences of times of the enter and of the leave.
    #[inline(always)]
    fn time_differences(&self) -> (u64, u64) {
        (two_bytes(self.enter), two_bytes(self.leave))
    }

    #[inline(always)]
    fn method_difference(&self) -> i64 {
        // The last byte becomes the highest, so that the sign is at the same bit whatever the length is.
        let unused = 31u32.wrapping_sub(self.last_bit);
        let word = self.method.wrapping_shl(unused) & 0x7f7f_7f7f;
        let word = (word & 0x007f_007f) << 1 | (word & 0x7f00_7f00);
        let word = (word & 0x0000_7fff) << 2 | (word & 0x7fff_0000);
        let sign_is_highest = (word << 1) as i32;
        (sign_is_highest.wrapping_shr((unused >> 3).wrapping_mul(7).wrapping_add(4))).into()
    }
}

/// What the calls of a run add up to.
#[derive(Clone, Copy, Debug)]
pub struct CallCounts {
    /// Number of METHOD_ENTER.
    pub num_enters: u64,
    /// Number of METHOD_LEAVE.
    pub num_leaves: u64,
    /// Number of METHOD_EXC_LEAVE.
    pub num_exceptions: u64,
    /// Times of the earliest and the latest call, where there are any; time 0 is not a time.
    pub span: Option<(u64, u64)>,
}

impl EventDecoder<'_> {
    /// Whether an event is METHOD_ENTER, METHOD_LEAVE or METHOD_EXC_LEAVE.
    #[must_use]
    #[inline(always)]
    pub fn is_call(byte: EventByte) -> bool {
        matches!(byte, EventByte::METHOD_ENTER | EventByte::METHOD_LEAVE | EventByte::METHOD_EXC_LEAVE)
    }

    /// Bytes at a position that are enough for a call and the leave after it; `None` near the end of the buffer.
    #[inline(always)]
    fn call_bytes(&self, pos: usize) -> Option<&[u8; MAX_BYTES]> {
        self.data.get(pos..)?.first_chunk()
    }

    /// Decodes the calls up to the next other event and passes each to `each`, an enter together with the leave of its
    /// method where that is the next event.
    #[inline(always)]
    pub fn read_calls(&mut self, mut each: impl FnMut(MethodEvent, Option<FollowingLeave>)) {
        if self.skipped_from.is_some() && self.next_byte().is_some_and(Self::is_call) {
            self.start = self.pos;
            self.decode_skipped();
        }
        if self.error.is_some() {
            return;
        }
        let (mut pos, mut time, mut method) = (self.pos, self.time, self.method);
        // `each` is called in one place, so that it is inlined.
        while let Some(bytes) = self.call_bytes(pos) {
            let start = pos;
            let (byte, entered, leave) = if let Some(leaf) = LeafCall::read(bytes) {
                let (enter, leave) = leaf.time_differences();
                let entered = time.wrapping_add(enter);
                time = entered.wrapping_add(leave);
                method = method.wrapping_add_signed(leaf.method_difference()) & self.mask;
                pos = pos.wrapping_add(leaf.len());
                (EventByte::METHOD_ENTER, entered, Some(leaf.enter_len()))
            } else if let Some(call) = StoredCall::read(bytes) {
                let entered = time.wrapping_add(call.time_difference);
                time = entered;
                method = method.wrapping_add_signed(call.method_difference) & self.mask;
                pos = pos.wrapping_add(call.len);
                let next = bytes.get(call.len..).and_then(<[u8]>::first_chunk::<4>);
                let is_enter = call.byte == EventByte::METHOD_ENTER;
                let leave = next.filter(|_| is_enter).and_then(|next| read_leave(*next));
                if let Some((time_difference, len)) = leave {
                    time = time.wrapping_add(time_difference);
                    pos = pos.wrapping_add(len);
                }
                (call.byte, entered, leave.map(|_| call.len))
            } else {
                break;
            };
            let offset = self.base.wrapping_add(start as u64);
            let leave = leave.map(|len| FollowingLeave { time, offset: offset.wrapping_add(len as u64) });
            each(MethodEvent { byte, time: entered, method, offset }, leave);
        }
        (self.pos, self.time, self.method) = (pos, time, method);
    }

    /// Counts the calls up to the next other event. Their methods are not decoded, which takes less than half of the time: they
    /// are computed later if an event needs them, as those of skipped backtraces.
    #[inline]
    pub fn count_calls(&mut self) -> CallCounts {
        let (mut num_enters, mut num_leaves, mut num_exceptions) = (0u64, 0u64, 0u64);
        let (mut first_time, mut last_time) = (u64::MAX, 0u64);
        let before = self.state();
        if self.error.is_none() {
            while let Some(call) = self.next_call() {
                self.time = self.time.wrapping_add(call.time_difference);
                self.pos = self.pos.wrapping_add(call.len);
                num_enters = num_enters.wrapping_add((call.byte == EventByte::METHOD_ENTER).into());
                num_leaves = num_leaves.wrapping_add((call.byte == EventByte::METHOD_LEAVE).into());
                num_exceptions =
                    num_exceptions.wrapping_add((call.byte == EventByte::METHOD_EXC_LEAVE).into());
                // Maps time 0 to the maximum.
                first_time = first_time.min(self.time.wrapping_sub(1));
                let num = self.pass_leaf_calls();
                num_enters = num_enters.wrapping_add(num);
                num_leaves = num_leaves.wrapping_add(num);
                last_time = last_time.max(self.time);
            }
        }
        let is_any = self.pos != before.pos;
        if is_any {
            self.skipped_from.get_or_insert(before);
        }
        let span = is_any.then_some((first_time.wrapping_add(1), last_time));
        CallCounts { num_enters, num_leaves, num_exceptions, span }
    }

    /// The next event if it is a call. Zeros are appended at the end of the buffer: a call that ends in them is incomplete.
    #[inline(always)]
    fn next_call(&self) -> Option<StoredCall> {
        if let Some(bytes) = self.call_bytes(self.pos) {
            return StoredCall::read(bytes);
        }
        let (rest, mut padded) = (self.remaining(), [0; MAX_BYTES]);
        padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        StoredCall::read(&padded).filter(|call| call.len <= rest.len())
    }

    /// Passes leaf calls and returns their number. Their times are not before that of the event before, which is not 0.
    #[inline(always)]
    fn pass_leaf_calls(&mut self) -> u64 {
        // A buffer has less than 2^32 bytes, and the sum of so many differences does not overflow.
        const FAR: u64 = 1 << 62;
        if !(1..FAR).contains(&self.time) {
            return 0;
        }
        let (mut pos, mut time, mut num) = (self.pos, self.time, 0u64);
        while let Some(call) = self.call_bytes(pos).and_then(LeafCall::read) {
            let (enter, leave) = call.time_differences();
            time = time.wrapping_add(enter).wrapping_add(leave);
            pos = pos.wrapping_add(call.len());
            num = num.wrapping_add(1);
        }
        (self.pos, self.time) = (pos, time);
        num
    }
}
