//! Fast paths for allocations and moves, the most frequent events of most logs.

use super::{DecoderState, EventDecoder, number};
use crate::consts::EventByte;

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

/// Reads the number at `at` and moves `at` after it.
#[inline]
fn read_number(data: &[u8], at: &mut usize) -> Option<(u64, u32)> {
    let (value, num_bytes) = number::read_short(data.get(*at..)?)?;
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
        at = at.wrapping_add(number::skip(addresses, num)?);
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
            let object = self.obj_base.wrapping_add_signed(number::sign_extend(object));
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
        let start = self.pos;
        let byte = EventByte(*self.data.get(start)?);
        let with_stack = byte == EventByte::ALLOC_BT;
        if !(with_stack || byte == EventByte::ALLOC)
            || !self.dialect.since_v13()
            || !self.skipped_kinds.has(byte)
        {
            return None;
        }
        let mut at = start.wrapping_add(1);
        let (time_difference, _) = read_number(self.data, &mut at)?;
        let class = number::sign_extend(read_number(self.data, &mut at)?);
        let object = number::sign_extend(read_number(self.data, &mut at)?);
        let size = read_small_number(self.data, &mut at)?;
        let before = DecoderState { pos: start, time: self.time, method: self.method };
        if with_stack {
            let num = read_small_number(self.data, &mut at)?;
            let frames = self.data.get(at..).filter(|rest| num <= rest.len() as u64)?;
            self.pos = at.wrapping_add(number::skip(frames, num)?);
            self.skipped_from.get_or_insert(before);
            self.num_skipped_frames = self.num_skipped_frames.wrapping_add(num);
        } else {
            self.pos = at;
        }
        self.start = start;
        self.time = self.time.wrapping_add(time_difference);
        Some(AllocEvent {
            byte,
            offset: self.base.saturating_add(start as u64),
            time: self.time,
            class: self.ptr_base.wrapping_add_signed(class) & self.mask,
            object: self.obj_base.wrapping_add_signed(object).wrapping_shl(3) & self.mask,
            size,
        })
    }
}
