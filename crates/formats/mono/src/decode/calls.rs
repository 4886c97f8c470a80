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

    /// Decodes the calls up to the next other event and passes each to `each`, an enter together with the leave of its
    /// method where that is the next event.
    #[inline(always)]
    pub fn read_calls(&mut self, each: impl FnMut(MethodEvent, Option<FollowingLeave>)) {
        if self.skipped_from.is_some() && self.next_byte().is_some_and(Self::is_call) {
            self.start = self.pos;
            self.decode_skipped();
        }
        self.read_run_of_calls(each);
    }

    /// Counts the calls up to the next other event. Their methods are not needed: those after a skipped backtrace, which are
    /// not valid, are computed later if an event needs them.
    #[inline]
    pub fn count_calls(&mut self) -> CallCounts {
        // The event bytes are 0x23, 0x13 and 0x33. Sums of their bits need fewer additions than three counts.
        let (mut num, mut sum_0x10, mut sum_0x20, mut num_following) = (0u64, 0u64, 0u64, 0u64);
        let (mut first_time, mut last_time) = (u64::MAX, 0);
        self.read_run_of_calls(|call, leave| {
            num = num.wrapping_add(1);
            sum_0x10 = sum_0x10.wrapping_add((call.byte.0 & 0x10).into());
            sum_0x20 = sum_0x20.wrapping_add((call.byte.0 & 0x20).into());
            num_following = num_following.wrapping_add(leave.is_some().into());
            let end = leave.map_or(call.time, |leave| leave.time);
            // Maps time 0 to the maximum.
            first_time = first_time.min(call.time.wrapping_sub(1)).min(end.wrapping_sub(1));
            last_time = last_time.max(call.time).max(end);
        });
        let (num_0x10, num_0x20) = (sum_0x10 >> 4, sum_0x20 >> 5);
        let num_exceptions = num_0x10.wrapping_add(num_0x20).wrapping_sub(num);
        CallCounts {
            num_enters: num_0x20.wrapping_sub(num_exceptions),
            num_leaves: num_0x10.wrapping_sub(num_exceptions).wrapping_add(num_following),
            num_exceptions,
            span: (num > 0).then_some((first_time.wrapping_add(1), last_time)),
        }
    }

    #[inline(always)]
    fn read_run_of_calls(&mut self, mut each: impl FnMut(MethodEvent, Option<FollowingLeave>)) {
        if self.error.is_some() {
            return;
        }
        let (mut pos, mut time, mut method) = (self.pos, self.time, self.method);
        while let Some(bytes) = self.data.get(pos..).and_then(<[u8]>::first_chunk::<MAX_BYTES>) {
            let [byte, b1, b2, b3, ..] = *bytes;
            let byte = EventByte(byte);
            if !Self::is_call(byte) {
                break;
            }
            let start = u32::from_le_bytes([byte.0, b1, b2, b3]);
            // The difference of two times mostly has two bytes.
            let (time_difference, num_bytes) = if start & 0x80_8000 == 0x8000 {
                (two_bytes(start), 2)
            } else if let Some(read) = bytes.get(1..).and_then(leb128::read_short) {
                read
            } else {
                break;
            };
            let at = num_bytes.wrapping_add(1) as usize;
            let Some((value, num_bytes)) = bytes.get(at..).and_then(leb128::read_short) else { break };
            let len = at.wrapping_add(num_bytes as usize);
            let difference = leb128::sign_extend((value, num_bytes.wrapping_mul(7)));
            time = time.wrapping_add(time_difference);
            method = method.wrapping_add_signed(difference) & self.mask;
            let call = MethodEvent { byte, time, method, offset: self.base.wrapping_add(pos as u64) };
            pos = pos.wrapping_add(len);
            let next = bytes.get(len..).and_then(<[u8]>::first_chunk::<4>);
            let leave = next.filter(|_| byte == EventByte::METHOD_ENTER).and_then(|next| read_leave(*next));
            let leave = leave.map(|(time_difference, len)| {
                time = time.wrapping_add(time_difference);
                let offset = self.base.wrapping_add(pos as u64);
                pos = pos.wrapping_add(len);
                FollowingLeave { time, offset }
            });
            each(call, leave);
        }
        (self.pos, self.time, self.method) = (pos, time, method);
    }
}
