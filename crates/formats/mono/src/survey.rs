//! The survey of a log: one parallel scan of all buffers for counts, damage and definitions.

use perfuse_wire::ParseError;
use rayon::prelude::*;

use super::consts::{EventByte, KindSet};
use super::decode::AllocEvent;
use super::dialect::LogDialect;
use super::reader::{BufferList, EventBuffer};
use super::records::{Event, EventBody};
use allocated::AllocationTotals;
use facts::Definitions;
use marks::RareEvents;
use shots::HeapshotTotals;
use task::{SurveyPart, SurveyTask};

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
pub struct LogSurvey {
    /// The encoding of the events.
    pub dialect: LogDialect,
    /// The buffers of the log.
    pub buffers: BufferList,
    /// Number of events by event byte.
    pub counts: [u64; 256],
    /// Times of the earliest and the latest event.
    pub span: Option<(u64, u64)>,
    /// The error that ended the reading of a buffer, with the buffer's index.
    pub faults: Vec<(usize, ParseError)>,
    /// The definitions in the log: names, loaded types, compiled methods and so on.
    pub definitions: Definitions,
    /// Totals of the allocations.
    pub allocations: AllocationTotals,
    /// Kinds of events in each buffer, so that a table reads only the buffers it needs.
    pub kinds: Vec<KindSet>,
    /// Number of events in each buffer.
    pub lengths: Vec<u64>,
    /// Positions of rare events.
    pub rare_events: RareEvents,
    /// Number of moved objects.
    pub num_moves: u64,
    /// Totals of the heapshots.
    pub heapshots: HeapshotTotals,
}

impl LogSurvey {
    /// Surveys a log whose first buffer has the file offset `first`.
    #[must_use]
    pub fn new(data: &[u8], dialect: LogDialect, first: u64) -> Self {
        let buffers = BufferList::find(data, first);
        let part = scan(data, &buffers.list, dialect);
        let candidates = dialect.candidates();
        // A truncated buffer ends inside an event in every encoding.
        let is_truncated =
            |number: &usize| buffers.list.get(*number).is_none_or(|it| it.len < it.header.len.into());
        let num_misread =
            |part: &SurveyPart| part.faults.iter().filter(|(number, _)| !is_truncated(number)).count();
        if num_misread(&part) == 0 || candidates.len() < 2 {
            return Self::complete(dialect, buffers, part);
        }
        // No field of the file distinguishes the layouts of one data version: the one with the fewest unreadable
        // buffers is selected.
        let mut best = part;
        let mut best_dialect = dialect;
        for other in candidates.into_iter().skip(1) {
            let part = scan(data, &buffers.list, other);
            if num_misread(&part) < num_misread(&best) {
                (best, best_dialect) = (part, other);
            }
        }
        Self::complete(best_dialect, buffers, best)
    }

    /// Completes the results of all tasks.
    fn complete(dialect: LogDialect, buffers: BufferList, part: SurveyPart) -> Self {
        let SurveyPart {
            counts,
            span,
            faults,
            definitions,
            allocations,
            kinds,
            lengths,
            rare_events,
            num_moves,
            heapshots,
        } = part;
        let (mut definitions, mut rare_events) = (definitions, rare_events);
        code::clear_invalid_sizes(&mut definitions.methods);
        rare_events.finish();
        Self {
            dialect,
            buffers,
            counts,
            span,
            faults,
            definitions,
            allocations,
            kinds,
            lengths,
            rare_events,
            num_moves,
            heapshots,
        }
    }

    /// Passes every event of these kinds in a buffer to `each`, with its time or that of the previous timed event.
    /// Events of the kinds in `without_backtraces` may lack their backtraces.
    #[inline]
    pub fn for_each_event<'a>(
        &self,
        data: &'a [u8],
        number: usize,
        kinds: KindSet,
        without_backtraces: KindSet,
        mut each: impl FnMut(u64, &Event<'a>),
    ) {
        let Some(buffer) = self.buffers.list.get(number) else { return };
        let mut decoder = buffer.decoder(data, self.dialect).skip_backtraces(without_backtraces);
        let mut event = Event::default();
        if let Some(rare_events) = self.rare_events_of(number, kinds) {
            for position in rare_events.iter().filter(|position| kinds.has(position.byte)) {
                decoder.jump_to(position.state);
                if let Some(Ok(())) = decoder.read(&mut event) {
                    each(event.time.unwrap_or(position.state.time()), &event);
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
    pub fn for_each_alloc(&self, data: &[u8], number: usize, mut each: impl FnMut(&AllocEvent)) {
        let Some(buffer) = self.buffers.list.get(number) else { return };
        let mut decoder = buffer.decoder(data, self.dialect).skip_backtraces(KindSet::all());
        let mut event = Event::default();
        loop {
            while let Some(alloc) = decoder.read_alloc() {
                each(&alloc);
            }
            let Some(Ok(())) = decoder.read(&mut event) else { return };
            if let EventBody::Alloc { class, object, size } = event.body {
                let (byte, offset) = (event.byte, event.offset);
                each(&AllocEvent { byte, offset, time: event.time.unwrap_or(0), class, object, size });
            }
        }
    }

    /// Positions of the rare events of a buffer, if all of these kinds are rare; `None` if the buffer must be read
    /// whole.
    fn rare_events_of(&self, number: usize, kinds: KindSet) -> Option<&[marks::EventPosition]> {
        if marks::are_rare(kinds) { self.rare_events.in_buffer(number) } else { None }
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
fn scan(data: &[u8], buffers: &[EventBuffer], dialect: LogDialect) -> SurveyPart {
    let tasks = tasks(buffers);
    let parts = tasks.into_par_iter().map(|(first, list)| {
        let mut task = SurveyTask::new(dialect);
        for (at, buffer) in list.iter().enumerate() {
            task.read_buffer(data, first.saturating_add(at), buffer);
        }
        task.finish()
    });
    parts.reduce(SurveyPart::new, SurveyPart::merge)
}

/// Runs of buffers of about equal size in bytes, each with the index of its first buffer.
pub fn tasks(buffers: &[EventBuffer]) -> Vec<(usize, &[EventBuffer])> {
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
        let (task, others) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        tasks.push((first, task));
        first = first.saturating_add(len);
        rest = others;
    }
    tasks
}
