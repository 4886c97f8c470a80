//! Skipping of backtraces that are not requested, eight bytes at a time: they are most of a log of allocations. Since
//! data version 13 a method is encoded as the difference to the previous one, in whatever event that was, so skipped
//! backtraces are decoded after all when a later event contains a method.

use perfuse_wire::ErrorKind;

use super::{DecoderState, EventDecoder, number};
use crate::consts::KindSet;
use crate::records::Event;

/// After this many decoded skipped backtraces, the rest of the buffer is decoded without skipping.
const MAX_REDECODED: u32 = 8;
impl EventDecoder<'_> {
    /// Skips the backtraces of these kinds of events, which is several times faster. Such an event has no frames, or
    /// all of them where methods of other events need them.
    #[must_use]
    pub fn skip_backtraces(self, kinds: KindSet) -> Self {
        Self { skipped_kinds: kinds, ..self }
    }

    /// Number of frames in the skipped backtraces.
    #[must_use]
    pub fn num_skipped_frames(&self) -> u64 {
        self.num_skipped_frames
    }

    /// Skips a backtrace. Reports the same errors as decoding it.
    #[inline]
    pub(super) fn skip_backtrace(&mut self) {
        if self.skipped_from.is_none() && self.dialect.since_v13() {
            self.skipped_from = Some(DecoderState { pos: self.start, time: self.time, method: self.method });
        }
        let num = self.uleb128("frames");
        let have = self.remaining().len() as u64;
        if num > have {
            return self.fail(ErrorKind::Short { need: num, have }, "frames");
        }
        self.num_skipped_frames = self.num_skipped_frames.wrapping_add(num);
        if let Some(bytes) = number::skip(self.remaining(), num) {
            self.pos = self.pos.wrapping_add(bytes);
            return;
        }
        // Near the end of the buffer, or a number does not end.
        for _ in 0..num {
            self.uleb128("method");
            if self.error.is_some() {
                return;
            }
        }
    }

    /// Decodes skipped backtraces to compute the value of `method` before the current event.
    #[cold]
    pub(super) fn decode_skipped(&mut self) {
        let Some(skipped_from) = self.skipped_from.take() else { return };
        let mut decoder = self.clone().skip_backtraces(KindSet::default()).resume(skipped_from);
        // Runs of calls are decoded together: hide the current event from them.
        decoder.data = self.data.get(..self.start).unwrap_or_default();
        let mut event = Event::default();
        loop {
            decoder.read_calls(|_| ());
            if !matches!(decoder.read(&mut event), Some(Ok(()))) {
                break;
            }
        }
        self.method = decoder.method;
        self.num_redecoded = self.num_redecoded.saturating_add(1);
        if self.num_redecoded >= MAX_REDECODED {
            self.skipped_kinds = KindSet::default();
        }
    }
}
