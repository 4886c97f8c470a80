//! The events of each thread in a compact encoding: input interleaves threads, the format needs one thread after the other.

use perfuse_tables::StartReason;

use super::super::ordered::{CallEnd, CallSink};

/// The tapes of all threads.
#[derive(Debug, Default)]
pub struct Tapes(Vec<Option<Tape>>);

impl Tapes {
    /// The tape of a thread; `None` where it has no calls.
    pub fn take(&mut self, thread_id: u32) -> Option<Tape> {
        self.0.get_mut(thread_id as usize)?.take()
    }

    #[inline]
    fn push(&mut self, thread_id: u32, function_id: u32, opens: bool, ts_ns: i64) {
        let index = thread_id as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index].get_or_insert_with(|| Tape::starting(ts_ns)).push(function_id, opens, ts_ns);
    }
}

impl CallSink for Tapes {
    #[inline]
    fn begin_call(&mut self, thread_id: u32, function_id: u32, start_ns: i64, _start_reason: StartReason) {
        self.push(thread_id, function_id, true, start_ns);
    }

    #[inline]
    fn end_call(&mut self, thread_id: u32, function_id: u32, end: &CallEnd<'_>) {
        self.push(thread_id, function_id, false, end.end_ns);
    }

    fn failed(&self) -> bool {
        false
    }
}

/// The events of a thread: for each its function, whether it begins, and the time since the previous one, in groups of
/// seven bits.
#[derive(Debug)]
pub struct Tape {
    bytes: Vec<u8>,
    start_ns: i64,
    last_ns: i64,
    num_events: u64,
}

/// The begin or the end of a call, as a tape returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapeEvent {
    /// Whether a call begins; else the innermost one ends.
    pub opens: bool,
    /// Its function.
    pub function_id: u32,
    /// Time on the profile's clock; never before that of the event that precedes it.
    pub ts_ns: i64,
}

impl Tape {
    fn starting(start_ns: i64) -> Self {
        Self { bytes: Vec::new(), start_ns, last_ns: start_ns, num_events: 0 }
    }

    #[inline]
    fn push(&mut self, function_id: u32, opens: bool, ts_ns: i64) {
        self.put(u64::from(function_id) << 1 | u64::from(opens));
        // Times on a tape never decrease, even where the clock did.
        let ts_ns = ts_ns.max(self.last_ns);
        self.put(ts_ns.wrapping_sub(self.last_ns).cast_unsigned());
        self.last_ns = ts_ns;
        self.num_events += 1;
    }

    #[inline]
    fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Time of the first and the last event.
    pub fn span_ns(&self) -> (i64, i64) {
        (self.start_ns, self.last_ns)
    }

    /// How many events there are.
    pub fn num_events(&self) -> u64 {
        self.num_events
    }

    /// The events.
    pub fn events(&self) -> impl Iterator<Item = TapeEvent> {
        let mut bytes = self.bytes.iter();
        let mut next = move || {
            let mut value = 0;
            for (shift, &byte) in (0..).step_by(7).zip(bytes.by_ref()) {
                value |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    return Some(value);
                }
            }
            None
        };
        let mut ts_ns = self.start_ns;
        std::iter::from_fn(move || {
            let (what, passed) = (next()?, next()?);
            ts_ns = ts_ns.wrapping_add(passed.cast_signed());
            Some(TapeEvent { opens: what & 1 == 1, function_id: (what >> 1) as u32, ts_ns })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_round_trip() {
        let mut tape = Tape::starting(i64::MIN);
        let events =
            [(true, 0, i64::MIN), (true, u32::MAX, -5), (false, u32::MAX, 300), (false, 0, i64::MAX)];
        let events = events.map(|(opens, function_id, ts_ns)| TapeEvent { opens, function_id, ts_ns });
        events.iter().for_each(|event| tape.push(event.function_id, event.opens, event.ts_ns));
        assert_eq!(tape.events().collect::<Vec<_>>(), events);
        assert_eq!((tape.span_ns(), tape.num_events()), ((i64::MIN, i64::MAX), 4));
    }

    #[test]
    fn times_never_decrease() {
        let mut tape = Tape::starting(7);
        tape.push(1, true, 7);
        tape.push(1, false, 3);
        assert_eq!(tape.events().map(|event| event.ts_ns).collect::<Vec<_>>(), [7, 7]);
    }
}
