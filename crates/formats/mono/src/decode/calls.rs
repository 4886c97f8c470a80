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

/// A call before its values are added to those of the previous event.
struct EncodedCall {
    byte: EventByte,
    time_difference: u64,
    method_difference: i64,
    len: usize,
}

impl EncodedCall {
    /// Bytes that are enough for a call whose numbers have at most eight bytes, and for reading them as words.
    const MAX_BYTES: usize = 24;

    /// The call at the start of some bytes; `None` if the slow path is needed.
    #[inline(always)]
    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<{ Self::MAX_BYTES }>()?;
        let start = u64::from_le_bytes(*bytes.first_chunk()?);
        let byte = EventByte(start as u8);
        if !EventDecoder::is_call(byte) {
            return None;
        }
        // The difference of two times mostly has two bytes.
        let (time_difference, at) = if start & 0x80_8000 == 0x8000 {
            (start >> 8 & 0x7f | start >> 9 & 0x3f80, 3)
        } else {
            let (value, num_bytes) = leb128::read_short(bytes.get(1..)?)?;
            (value, num_bytes.wrapping_add(1) as usize)
        };
        let (value, num_bytes) = leb128::read_short(bytes.get(at..)?)?;
        let method_difference = leb128::sign_extend((value, num_bytes.wrapping_mul(7)));
        Some(Self { byte, time_difference, method_difference, len: at.wrapping_add(num_bytes as usize) })
    }

    /// The leave of the method that the event before these bytes entered, if it is at their start.
    #[inline(always)]
    fn read_leave(bytes: &[u8]) -> Option<Self> {
        let start = u32::from_le_bytes(*bytes.first_chunk()?);
        let byte = EventByte(start as u8);
        if byte != EventByte::METHOD_LEAVE {
            return None;
        }
        if start & 0xff80_8000 == 0x8000 {
            let time_difference = u64::from(start >> 8 & 0x7f | start >> 9 & 0x3f80);
            return Some(Self { byte, time_difference, method_difference: 0, len: 4 });
        }
        Self::read(bytes).filter(|leave| leave.method_difference == 0)
    }
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
    #[inline]
    pub fn read_calls(&mut self, each: impl FnMut(MethodEvent, Option<MethodEvent>)) {
        if self.skipped_from.is_some() && self.next_byte().is_some_and(Self::is_call) {
            self.start = self.pos;
            self.decode_skipped();
        }
        self.read_call_times(each);
    }

    /// The same, but after a skipped backtrace the methods are not valid. They are computed later if an event needs them.
    #[inline]
    pub fn read_call_times(&mut self, mut each: impl FnMut(MethodEvent, Option<MethodEvent>)) {
        if self.error.is_some() {
            return;
        }
        let (mut pos, mut time, mut method) = (self.pos, self.time, self.method);
        let mut pass = |call: EncodedCall| {
            let offset = self.base.wrapping_add(pos as u64);
            time = time.wrapping_add(call.time_difference);
            method = method.wrapping_add_signed(call.method_difference) & self.mask;
            pos = pos.wrapping_add(call.len);
            let event = MethodEvent { byte: call.byte, time, method, offset };
            (event, self.data.get(pos..).unwrap_or_default())
        };
        let mut rest = self.remaining();
        while let Some(call) = EncodedCall::read(rest) {
            let (call, after) = pass(call);
            let is_enter = call.byte == EventByte::METHOD_ENTER;
            let leave = if is_enter { EncodedCall::read_leave(after) } else { None };
            let leave = leave.map(&mut pass);
            rest = leave.map_or(after, |(_, after)| after);
            each(call, leave.map(|(leave, _)| leave));
        }
        (self.pos, self.time, self.method) = (pos, time, method);
    }
}
