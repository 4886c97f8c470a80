//! Backtraces that nobody asked for are passed over, eight bytes at a time: they are most of a log of allocations.
//!
//! Since data version 13 a method is told by its difference to the one before, in whatever event that was. So what is passed over
//! is read after all, once an event behind it has a method.

use perfuse_wire::ErrorKind;

use super::{Decoder, State, number};
use crate::consts::KindSet;
use crate::records::Event;

/// A buffer where so many backtraces were missed has methods everywhere: what is left of it is read as it comes.
const MOST_MISSED: u32 = 8;
impl Decoder<'_> {
    /// The same walk without the backtraces of these kinds of events: they come out empty, several times faster, or
    /// whole where methods of other events need them.
    #[must_use]
    pub fn lean(self, kinds: KindSet) -> Self {
        Self { lean: kinds, ..self }
    }

    /// Frames of the backtraces that were passed over.
    #[must_use]
    pub fn num_passed(&self) -> u64 {
        self.num_passed
    }

    /// Passes over a backtrace, which has the faults it would have if it were read.
    #[inline]
    pub(super) fn pass_over(&mut self) {
        if self.left.is_none() && self.dialect.modern() {
            self.left = Some(State { pos: self.start, time: self.time, method: self.method });
        }
        let num = self.uleb128("frames");
        let have = self.rest().len() as u64;
        if num > have {
            return self.fail(ErrorKind::Short { need: num, have }, "frames");
        }
        self.num_passed = self.num_passed.wrapping_add(num);
        if let Some(bytes) = number::skip(self.rest(), num) {
            self.pos = self.pos.wrapping_add(bytes);
            return;
        }
        // The end of the buffer is near, or a number has no end.
        for _ in 0..num {
            self.uleb128("method");
            if self.fault.is_some() {
                return;
            }
        }
    }

    /// Reads what was passed over, for the method before this event.
    #[cold]
    pub(super) fn catch_up(&mut self) {
        let Some(left) = self.left.take() else { return };
        let mut again = self.clone().lean(KindSet::default()).resume(left);
        // Calls are read many at a time: nothing of this event is to be among them.
        again.data = self.data.get(..self.start).unwrap_or_default();
        let mut event = Event::default();
        loop {
            again.calls(|_| ());
            if !matches!(again.read(&mut event), Some(Ok(()))) {
                break;
            }
        }
        self.method = again.method;
        self.num_missed = self.num_missed.saturating_add(1);
        if self.num_missed >= MOST_MISSED {
            self.lean = KindSet::default();
        }
    }
}
