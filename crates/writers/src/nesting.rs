//! Whether slices nest with the calls of their thread.
//!
//! Viewers nest each slice in the open one of its track, so a slice is drawn among calls only if it really nests:
//! calls open at its start last until its end, and those that begin in it end in it. Where both share a time stamp, a
//! viewer cannot order them; such a slice counts as not nesting.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use rustc_hash::FxHashSet;

use super::spans::Span;
use perfuse_engine::calls::Selection;

/// Tracks the calls of threads that have slices.
#[derive(Debug, Default)]
pub struct Nesting {
    threads: Vec<ThreadNesting>,
    /// By number of the slice.
    found: Vec<NestingState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NestingState {
    /// No call crossed it so far.
    Open,
    /// It ended without a crossing call.
    Nests,
    Crossed,
}

#[derive(Debug, Default)]
struct ThreadNesting {
    /// Slices that have not begun, the last first: start, end and number.
    waiting: Vec<(i64, i64, usize)>,
    /// Number of calls around each slice that has begun, which is never less than around the one before.
    begun: Vec<(u32, usize)>,
    /// Those slices by their ends, and that number again.
    ends: BinaryHeap<Reverse<(i64, usize, u32)>>,
    last_ns: Option<i64>,
}

impl Nesting {
    /// Starts with the slices to classify.
    pub fn of(spans: &[Span]) -> Self {
        let mut threads: Vec<ThreadNesting> = Vec::new();
        for (number, span) in spans.iter().enumerate() {
            let index = span.thread_id as usize;
            if index >= threads.len() {
                threads.resize_with(index + 1, ThreadNesting::default);
            }
            threads[index].waiting.push((span.start_ns, span.end_ns, number));
        }
        for thread in &mut threads {
            thread.waiting.sort_unstable_by_key(|&place| Reverse(place));
        }
        Self { threads, found: vec![NestingState::Open; spans.len()] }
    }

    /// A call begins or ends; `before` and `after` are the numbers of calls that are open then.
    #[inline]
    pub fn edge(&mut self, thread_id: u32, ts_ns: i64, before: u32, after: u32) {
        if let Some(thread) = self.threads.get_mut(thread_id as usize)
            && (thread.last_ns.is_none() || !(thread.waiting.is_empty() && thread.ends.is_empty()))
        {
            thread.edge(ts_ns, before, after, &mut self.found);
        }
    }

    /// By number, whether slices nest with the calls of their threads. Those that were cut share that moment with the calls
    /// that were. Threads in `unsure` had calls open at the start without an edge.
    pub fn finish(self, spans: &[Span], selection: &Selection, unsure: &FxHashSet<u32>) -> Vec<bool> {
        let nests = |(span, found): (&Span, NestingState)| {
            let cut = |range: &Range<i64>| span.start_ns == range.start || span.end_ns == range.end;
            let has_calls = self.threads[span.thread_id as usize].last_ns.is_some();
            let is_cut = has_calls && selection.time_ns.as_ref().is_some_and(cut);
            found != NestingState::Crossed && !is_cut && !unsure.contains(&span.thread_id)
        };
        spans.iter().zip(self.found.iter().copied()).map(nests).collect()
    }
}

impl ThreadNesting {
    fn edge(&mut self, ts_ns: i64, before: u32, after: u32, found: &mut [NestingState]) {
        if self.last_ns.replace(ts_ns).is_some_and(|last| ts_ns < last) {
            // Time stamps decrease: all open and future slices are uncertain.
            let open = self.ends.drain().map(|Reverse((_, number, _))| number);
            open.chain(self.waiting.drain(..).map(|(_, _, number)| number))
                .for_each(|number| found[number] = NestingState::Crossed);
            return;
        }
        while let Some((start_ns, end_ns, number)) = self.waiting.pop_if(|place| place.0 <= ts_ns) {
            if start_ns == ts_ns {
                found[number] = NestingState::Crossed;
            } else {
                self.begun.push((before, number));
                self.ends.push(Reverse((end_ns, number, before)));
            }
        }
        while let Some(&Reverse((end_ns, number, depth))) = self.ends.peek()
            && end_ns <= ts_ns
        {
            self.ends.pop();
            if found[number] == NestingState::Open {
                let nests = end_ns < ts_ns && before == depth;
                found[number] = if nests { NestingState::Nests } else { NestingState::Crossed };
            }
        }
        while let Some((_, number)) = self.begun.pop_if(|&mut (depth, _)| depth > after) {
            if found[number] == NestingState::Open {
                found[number] = NestingState::Crossed;
            }
        }
    }
}
