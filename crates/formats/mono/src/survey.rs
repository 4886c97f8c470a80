//! The survey of a log: one parallel scan of all buffers for counts, damage and definitions.

use perfuse_wire::ParseError;
use rayon::prelude::*;

use super::consts::{EventByte, KindSet};
use super::decode::Alloc;
use super::dialect::Dialect;
use super::reader::{Buffer, Buffers};
use super::records::{Body, Event};
use allocated::Allocated;
use facts::Facts;
use marks::Marks;
use shots::Held;
use task::{Part, Task};

pub mod allocated;
mod code;
pub mod facts;
pub mod marks;
pub mod shots;
mod task;

/// Bytes of events per parallel task.
const TASK_BYTES: u64 = 1 << 20;

/// The result of the survey.
#[derive(Debug)]
pub struct Survey {
    /// The encoding of the events.
    pub dialect: Dialect,
    /// The buffers of the log.
    pub buffers: Buffers,
    /// Number of events by event byte.
    pub counts: [u64; 256],
    /// Times of the earliest and the latest event.
    pub span: Option<(u64, u64)>,
    /// The error that ended the reading of a buffer, with the buffer's index.
    pub faults: Vec<(usize, ParseError)>,
    /// The definitions in the log: names, loaded types, compiled methods and so on.
    pub facts: Facts,
    /// Totals of the allocations.
    pub allocated: Allocated,
    /// Kinds of events in each buffer, so that a table reads only the buffers it needs.
    pub kinds: Vec<KindSet>,
    /// Number of events in each buffer.
    pub lengths: Vec<u64>,
    /// Positions of rare events.
    pub marks: Marks,
    /// Number of moved objects.
    pub num_moves: u64,
    /// Totals of the heapshots.
    pub held: Held,
}

impl Survey {
    /// Surveys a log whose first buffer has the file offset `first`.
    #[must_use]
    pub fn make(data: &[u8], dialect: Dialect, first: u64) -> Self {
        let buffers = Buffers::find(data, first);
        let part = pass(data, &buffers.list, dialect);
        let candidates = dialect.candidates();
        // A truncated buffer ends inside an event in every encoding.
        let cut = |number: &usize| buffers.list.get(*number).is_none_or(|it| it.len < it.header.len.into());
        let misread = |part: &Part| part.faults.iter().filter(|(number, _)| !cut(number)).count();
        if misread(&part) == 0 || candidates.len() < 2 {
            return Self::of(dialect, buffers, part);
        }
        // No field of the file distinguishes the layouts of one data version: the one with the fewest unreadable
        // buffers is selected.
        let mut best = part;
        let mut chosen = dialect;
        for other in candidates.into_iter().skip(1) {
            let part = pass(data, &buffers.list, other);
            if misread(&part) < misread(&best) {
                (best, chosen) = (part, other);
            }
        }
        Self::of(chosen, buffers, best)
    }

    /// Completes the results of all tasks.
    fn of(dialect: Dialect, buffers: Buffers, part: Part) -> Self {
        let Part { counts, span, faults, facts, allocated, kinds, lengths, marks, num_moves, held } = part;
        let (mut facts, mut marks) = (facts, marks);
        code::keep_real(&mut facts.methods);
        marks.finish();
        Self {
            dialect,
            buffers,
            counts,
            span,
            faults,
            facts,
            allocated,
            kinds,
            lengths,
            marks,
            num_moves,
            held,
        }
    }

    /// Passes every event of these kinds in a buffer to `each`, with its time or that of the previous timed event.
    /// Events of the kinds in `passed_over` may lack their backtraces.
    #[inline]
    pub fn each<'a>(
        &self,
        data: &'a [u8],
        number: usize,
        kinds: KindSet,
        passed_over: KindSet,
        mut each: impl FnMut(u64, &Event<'a>),
    ) {
        let Some(buffer) = self.buffers.list.get(number) else { return };
        let mut decoder = buffer.decoder(data, self.dialect).lean(passed_over);
        let mut event = Event::default();
        if let Some(marks) = self.marks_of(number, kinds) {
            for mark in marks.iter().filter(|mark| kinds.has(mark.byte)) {
                decoder.jump(mark.state);
                if let Some(Ok(())) = decoder.read(&mut event) {
                    each(event.time.unwrap_or(mark.state.time()), &event);
                }
            }
            return;
        }
        let mut time = buffer.header.time_base;
        while let Some(Ok(())) = decoder.read(&mut event) {
            time = event.time.unwrap_or(time);
            if kinds.has(event.byte) {
                each(time, &event);
            }
        }
    }

    /// Passes every allocation of a buffer to `each`, without its backtrace.
    #[inline]
    pub fn each_alloc(&self, data: &[u8], number: usize, mut each: impl FnMut(&Alloc)) {
        let Some(buffer) = self.buffers.list.get(number) else { return };
        let mut decoder = buffer.decoder(data, self.dialect).lean(KindSet::all());
        let mut event = Event::default();
        loop {
            while let Some(alloc) = decoder.alloc() {
                each(&alloc);
            }
            let Some(Ok(())) = decoder.read(&mut event) else { return };
            if let Body::Alloc { class, object, size } = event.body {
                let (byte, offset) = (event.byte, event.offset);
                each(&Alloc { byte, offset, time: event.time.unwrap_or(0), class, object, size });
            }
        }
    }

    /// Positions of the rare events of a buffer, if all of these kinds are rare; `None` if the buffer must be read
    /// whole.
    fn marks_of(&self, number: usize, kinds: KindSet) -> Option<&[marks::Mark]> {
        if marks::are_marked(kinds) { self.marks.of(number) } else { None }
    }

    /// Number of events of a kind.
    #[must_use]
    pub fn count(&self, byte: EventByte) -> u64 {
        self.counts.get(usize::from(byte.0)).copied().unwrap_or(0)
    }

    /// Index in the log of the first event of each buffer.
    #[must_use]
    pub fn first_indices(&self) -> Vec<u64> {
        let running = self.lengths.iter().scan(0u64, |next, length| {
            let first = *next;
            *next = next.saturating_add(*length);
            Some(first)
        });
        running.collect()
    }

    /// Number of all readable events.
    #[must_use]
    pub fn num_events(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// Scans all buffers in parallel with one encoding.
fn pass(data: &[u8], buffers: &[Buffer], dialect: Dialect) -> Part {
    let tasks = tasks(buffers);
    let parts = tasks.into_par_iter().map(|(first, list)| {
        let mut task = Task::new(dialect);
        for (at, buffer) in list.iter().enumerate() {
            task.read(data, first.saturating_add(at), buffer);
        }
        task.finish()
    });
    parts.reduce(Part::new, Part::merge)
}

/// Runs of buffers of about equal size in bytes, each with the index of its first buffer.
pub fn tasks(buffers: &[Buffer]) -> Vec<(usize, &[Buffer])> {
    let mut tasks = Vec::new();
    let (mut rest, mut first) = (buffers, 0usize);
    while !rest.is_empty() {
        let mut bytes = 0u64;
        let len = rest.iter().take_while(|buffer| {
            let more = bytes < TASK_BYTES;
            bytes = bytes.saturating_add(buffer.len).saturating_add(1);
            more
        });
        let len = len.count().max(1);
        let (task, behind) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        tasks.push((first, task));
        first = first.saturating_add(len);
        rest = behind;
    }
    tasks
}
