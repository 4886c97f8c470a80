//! Skipping of backtraces that are not requested, eight bytes at a time: they are most of a log of allocations. Since
//! data version 13 a method is encoded as the difference to the previous one, in whatever event that was, so skipped
//! backtraces are decoded after all when a later event contains a method.

use perfuse_wire::ErrorKind;

use super::{Decoder, State, number};
use crate::consts::KindSet;
use crate::records::Event;

/// After this many decoded skipped backtraces, the rest of the buffer is decoded without skipping.
const MOST_MISSED: u32 = 8;
impl Decoder<'_> {
    /// Skips the backtraces of these kinds of events, which is several times faster. Such an event has no frames, or
    /// all of them where methods of other events need them.
    #[must_use]
    pub fn lean(self, kinds: KindSet) -> Self {
        Self { lean: kinds, ..self }
    }

    /// Number of frames in the skipped backtraces.
    #[must_use]
    pub fn num_passed(&self) -> u64 {
        self.num_passed
    }

    /// Skips a backtrace. Reports the same errors as decoding it.
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
        // Near the end of the buffer, or a number does not end.
        for _ in 0..num {
            self.uleb128("method");
            if self.fault.is_some() {
                return;
            }
        }
    }

    /// Decodes skipped backtraces to compute the value of `method` before the current event.
    #[cold]
    pub(super) fn catch_up(&mut self) {
        let Some(left) = self.left.take() else { return };
        let mut again = self.clone().lean(KindSet::default()).resume(left);
        // Runs of calls are decoded together: hide the current event from them.
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
