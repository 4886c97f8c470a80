//! The previous walk over a thread's stack: the outer frames of its next stack are mostly the same.
//!
//! A caller's registers are a function of the frame's registers, of its step, and of words in the copy of the stack. Where a walk
//! arrives at registers of the previous one, and the words that it read from there on are the same in the new copy, the outer
//! frames are the same too. They are compared from the outermost one inwards: where they are on the stack is known, so that no word is
//! needed to find the next.

use super::memory::StackCopy;
use super::registers::{Machine, Registers};
use super::step::{UnwindBase, UnwindRule, UnwindStep};
use super::walk::{FoundStep, UnwoundFrame};

/// The previous walk over the stack of a thread, outermost frame first. Only one that found the outermost frame is remembered.
#[derive(Debug, Default)]
pub struct PreviousWalk {
    machine: Option<Machine>,
    outer: Frames,
    /// Number of frames in `outer` whose callers are the same in the present copy of the stack.
    num_same: usize,
    /// Number of frames in `outer` that may be the present one, or are outside of it.
    num_ahead: usize,
    /// Frames found in the present walk, innermost first.
    inner: Frames,
}

/// Frames, and what their callers were computed from.
#[derive(Debug, Default)]
struct Frames {
    rows: Vec<WalkedFrame>,
    /// Values of known registers, of one frame after the other.
    values: Vec<u64>,
    /// Addresses and values of words on the stack, of one frame after the other.
    words: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct WalkedFrame {
    found: UnwoundFrame,
    /// Whether its program counter was taken for a return address when its step was looked up.
    was_return: bool,
    /// Lower bound of the caller's stack pointer.
    low: u64,
    /// Bit set of known registers.
    known: u64,
    /// Ends of its registers and words in [`Frames`].
    values_end: usize,
    words_end: usize,
    /// Time in which its step is valid; empty where its caller depends on more than registers, step and words.
    from_ns: i64,
    until_ns: i64,
}

impl PreviousWalk {
    /// Begins a walk over another copy of the stack.
    pub(super) fn begin(&mut self, machine: Machine, stack: &StackCopy<'_>, at_ns: i64) {
        if self.machine.replace(machine) != Some(machine) {
            self.outer.truncate(0);
        }
        self.inner.truncate(0);
        self.num_same = self.outer.num_same(stack, at_ns);
        self.num_ahead = self.outer.rows.len();
    }

    /// Adds a frame and all outside of it, at most so many, if the previous walk was at that frame and the outer ones are the same.
    pub(super) fn repeat(
        &mut self,
        registers: &Registers,
        low: u64,
        found: UnwoundFrame,
        at_most: usize,
        frames: &mut Vec<UnwoundFrame>,
    ) -> bool {
        while self.row_ahead().is_some_and(|row| row.found.sp < found.sp) {
            self.num_ahead = self.num_ahead.saturating_sub(1);
        }
        let num_rows = self.num_ahead;
        if num_rows > self.num_same.min(at_most) || !self.outer.ends_at(num_rows, registers, low, found) {
            return false;
        }
        self.outer.truncate(num_rows);
        if let Some(row) = self.outer.rows.last_mut() {
            // What was called from here may have information of another source.
            row.found = found;
        }
        frames.extend(self.outer.rows.iter().rev().map(|row| row.found));
        self.outer.extend_reversed(&self.inner);
        true
    }

    /// The frame of the previous walk that may be the present one.
    fn row_ahead(&self) -> Option<&WalkedFrame> {
        self.outer.rows.get(self.num_ahead.checked_sub(1)?)
    }

    /// Adds a frame of the present walk that has a step, before it is left.
    pub(super) fn add(&mut self, registers: &Registers, low: u64, is_return: bool, found: UnwoundFrame) {
        self.inner.values.extend(registers.known_values());
        self.inner.rows.push(WalkedFrame {
            found,
            was_return: is_return,
            low,
            known: registers.known(),
            values_end: self.inner.values.len(),
            words_end: self.inner.words.len(),
            from_ns: 0,
            until_ns: 0,
        });
    }

    /// States what the caller of the frame that was added last was computed from; without a CFA it was found to have none.
    pub(super) fn left(
        &mut self,
        found: FoundStep,
        step: &UnwindStep,
        cfa: Option<u64>,
        stack: &StackCopy<'_>,
    ) {
        let Frames { rows, words, .. } = &mut self.inner;
        let Some(row) = rows.last_mut() else { return };
        if !step.is_signal && add_words(step, cfa, stack, words).is_some() {
            (row.from_ns, row.until_ns) = (found.from_ns, found.until_ns);
        }
        row.words_end = words.len();
    }

    /// Ends a walk that found the outermost frame itself.
    pub(super) fn end(&mut self) {
        self.outer.truncate(0);
        self.outer.extend_reversed(&self.inner);
    }

    /// Forgets the walk.
    pub(super) fn clear(&mut self) {
        self.outer.truncate(0);
        self.inner.truncate(0);
    }
}

impl Frames {
    fn truncate(&mut self, num_rows: usize) {
        self.rows.truncate(num_rows);
        self.values.truncate(self.rows.last().map_or(0, |row| row.values_end));
        self.words.truncate(self.rows.last().map_or(0, |row| row.words_end));
    }

    /// Adds frames in the opposite order.
    fn extend_reversed(&mut self, other: &Self) {
        for (at, row) in other.rows.iter().enumerate().rev() {
            let (values, words) = other.starts(at);
            self.values.extend_from_slice(other.values.get(values..row.values_end).unwrap_or_default());
            self.words.extend_from_slice(other.words.get(words..row.words_end).unwrap_or_default());
            self.rows.push(WalkedFrame {
                values_end: self.values.len(),
                words_end: self.words.len(),
                ..*row
            });
        }
    }

    /// Where the registers and the words of a frame begin.
    fn starts(&self, at: usize) -> (usize, usize) {
        let before = at.checked_sub(1).and_then(|before| self.rows.get(before));
        before.map_or((0, 0), |row| (row.values_end, row.words_end))
    }

    /// Number of frames, from the first, whose callers are the same in a copy of the stack at a time.
    fn num_same(&self, stack: &StackCopy<'_>, at_ns: i64) -> usize {
        let mut words = self.words.iter();
        let mut num_words = 0usize;
        let is_same = |row: &&WalkedFrame| {
            let own = row.words_end.saturating_sub(std::mem::replace(&mut num_words, row.words_end));
            (row.from_ns..row.until_ns).contains(&at_ns)
                && words.by_ref().take(own).all(|&(address, value)| stack.word(address) == Some(value))
        };
        self.rows.iter().take_while(is_same).count()
    }

    /// Whether the last of so many frames has these registers.
    fn ends_at(&self, num_rows: usize, registers: &Registers, low: u64, found: UnwoundFrame) -> bool {
        let Some(at) = num_rows.checked_sub(1) else { return false };
        let Some(row) = self.rows.get(at) else { return false };
        let values = self.values.get(self.starts(at).0..row.values_end).unwrap_or_default();
        (row.found.pc, row.low, row.was_return, row.known)
            == (found.pc, low, found.is_return, registers.known())
            && values.iter().copied().eq(registers.known_values())
    }
}

/// Adds the words that a step reads; `None` where it depends on anything else than registers and words of the copy.
fn add_words(
    step: &UnwindStep,
    cfa: Option<u64>,
    stack: &StackCopy<'_>,
    words: &mut Vec<(u64, u64)>,
) -> Option<()> {
    // Only the outermost frame is left without a CFA.
    let Some(cfa) = cfa else { return Some(()) };
    if !matches!(step.cfa, UnwindRule::Value(UnwindBase::Register(_), _)) {
        return None;
    }
    for (_, rule) in &step.rules {
        match rule {
            UnwindRule::Memory(UnwindBase::Cfa, offset) => {
                let address = cfa.wrapping_add_signed(*offset);
                words.push((address, stack.word(address)?));
            }
            UnwindRule::Value(UnwindBase::Cfa | UnwindBase::Register(_), _) | UnwindRule::Undefined => {}
            UnwindRule::Memory(..) | UnwindRule::Value(UnwindBase::Expression(_), _) => return None,
        }
    }
    Some(())
}
