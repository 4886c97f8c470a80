//! Allocations and moves are most of most logs, and mostly short of anything that needs care: they are read in one go.

use super::{Decoder, State, number};
use crate::consts::EventByte;

/// An allocation without its backtrace.
#[derive(Clone, Copy, Debug)]
pub struct Alloc {
    /// With or without a backtrace.
    pub byte: EventByte,
    /// Absolute offset of its first byte.
    pub offset: u64,
    /// When.
    pub time: u64,
    /// Its class; since data version 15 its vtable.
    pub class: u64,
    /// Its address.
    pub object: u64,
    /// Its size in bytes, as stored.
    pub size: u64,
}

/// The number at a place, which goes on behind it.
#[inline]
fn next(data: &[u8], at: &mut usize) -> Option<(u64, u32)> {
    let (value, num_bytes) = number::short(data.get(*at..)?)?;
    *at = at.wrapping_add(num_bytes as usize);
    Some((value, num_bytes.wrapping_mul(7)))
}

/// The same for numbers that are mostly of one byte.
#[inline]
fn small(data: &[u8], at: &mut usize) -> Option<u64> {
    match *data.get(*at)? {
        byte @ ..0x80 => {
            *at = at.wrapping_add(1);
            Some(byte.into())
        }
        _ => next(data, at).map(|(value, _)| value),
    }
}

impl Decoder<'_> {
    /// How many addresses the next event tells, if it is a move of objects that can be passed over in one go, and its time.
    #[inline]
    pub fn moves(&mut self) -> Option<(u64, u64)> {
        let mut at = self.pos.wrapping_add(1);
        if *self.data.get(self.pos)? != EventByte::GC_MOVE.0 {
            return None;
        }
        let (passed, _) = next(self.data, &mut at)?;
        let num = small(self.data, &mut at)?;
        let addresses = self.data.get(at..).filter(|rest| num <= rest.len() as u64)?;
        at = at.wrapping_add(number::skip(addresses, num)?);
        (self.start, self.pos) = (self.pos, at);
        self.time = self.time.wrapping_add(passed);
        Some((num, self.time))
    }

    /// Reads as many of some objects as can be read in one go; returns how many are left.
    #[inline]
    pub(super) fn read_objects(&mut self, num: u64, list: &mut Vec<u64>) -> u64 {
        let mut at = self.pos;
        let mut left = num;
        while left > 0 {
            let Some(object) = next(self.data, &mut at) else { break };
            let object = self.obj_base.wrapping_add_signed(number::signed(object));
            list.push(object.wrapping_shl(3) & self.mask);
            left = left.wrapping_sub(1);
        }
        self.pos = at;
        left
    }

    /// The next event, if it is an allocation that can be read in one go, without its backtrace; else nothing is read, and
    /// [`read`](Self::read) has it.
    #[inline]
    pub fn alloc(&mut self) -> Option<Alloc> {
        let start = self.pos;
        let byte = EventByte(*self.data.get(start)?);
        let with_stack = byte == EventByte::ALLOC_BT;
        if !(with_stack || byte == EventByte::ALLOC) || !self.dialect.modern() || !self.lean.has(byte) {
            return None;
        }
        let mut at = start.wrapping_add(1);
        let (passed, _) = next(self.data, &mut at)?;
        let class = number::signed(next(self.data, &mut at)?);
        let object = number::signed(next(self.data, &mut at)?);
        let size = small(self.data, &mut at)?;
        let before = State { pos: start, time: self.time, method: self.method };
        if with_stack {
            let num = small(self.data, &mut at)?;
            let frames = self.data.get(at..).filter(|rest| num <= rest.len() as u64)?;
            self.pos = at.wrapping_add(number::skip(frames, num)?);
            self.left.get_or_insert(before);
            self.num_passed = self.num_passed.wrapping_add(num);
        } else {
            self.pos = at;
        }
        self.start = start;
        self.time = self.time.wrapping_add(passed);
        Some(Alloc {
            byte,
            offset: self.base.saturating_add(start as u64),
            time: self.time,
            class: self.ptr_base.wrapping_add_signed(class) & self.mask,
            object: self.obj_base.wrapping_add_signed(object).wrapping_shl(3) & self.mask,
            size,
        })
    }
}
