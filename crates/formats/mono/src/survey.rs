//! The survey of a log: one parallel scan of all buffers for counts, damage and definitions.

pub mod definitions;
pub mod rare_events;
pub mod totals;

use perfuse_recording::Source;
use perfuse_wire::ParseError;
use perfuse_workers::{in_call, install};
use rayon::prelude::*;

use crate::consts::{EventByte, KindSet};
use crate::decode::EventDecoder;
use crate::decode::backtraces::{KnownBacktraces, Meaning};
use crate::decode::calls::MethodEvent;
use crate::decode::runs::{AllocEvent, HeapObjectSummary};
use crate::dialect::LogDialect;
use crate::reader::{BufferList, EventBuffer, file_range};
use crate::records::{Event, EventBody};
use crate::survey::definitions::Definitions;
use crate::survey::rare_events::RareEvents;
use crate::survey::totals::{AllocationTotals, AllocationTotalsBuilder, HeapshotTotals};

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
    pub events_per_buffer: Vec<u64>,
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
    pub fn new(data: &Source, dialect: LogDialect, first: u64) -> Self {
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
            events_per_buffer,
            rare_events,
            num_moves,
            heapshots,
        } = part;
        let (mut definitions, mut rare_events) = (definitions, rare_events);
        definitions::clear_invalid_sizes(&mut definitions.methods);
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
            events_per_buffer,
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

    /// Passes every allocation of a buffer to `each`, with what its backtrace stands for. `meaning_of` gets the methods of
    /// a backtrace that `known` does not contain, and the time.
    #[inline]
    pub fn for_each_alloc_and_backtrace<T: Copy>(
        &self,
        data: &[u8],
        number: usize,
        known: &mut KnownBacktraces<T>,
        mut meaning_of: impl FnMut(&[u64], u64) -> Meaning<T>,
        mut each: impl FnMut(&AllocEvent, T),
    ) {
        let Some(buffer) = self.buffers.list.get(number) else { return };
        let mut decoder = buffer.decoder(data, self.dialect);
        let mut event = Event::default();
        loop {
            while let Some((alloc, value)) = decoder.read_alloc_and_backtrace(known, &mut meaning_of) {
                each(&alloc, value);
            }
            let Some(Ok(())) = decoder.read(&mut event) else { return };
            if let EventBody::Alloc { class, object, size } = event.body {
                let (byte, offset, time) = (event.byte, event.offset, event.time.unwrap_or(0));
                let value = meaning_of(&event.frames, time).value();
                each(&AllocEvent { byte, offset, time, class, object, size }, value);
            }
        }
    }

    /// Positions of the rare events of a buffer, if all of these kinds are rare; `None` if the buffer must be read
    /// whole.
    fn rare_events_of(&self, number: usize, kinds: KindSet) -> Option<&[rare_events::EventPosition]> {
        if rare_events::are_rare(kinds) { self.rare_events.in_buffer(number) } else { None }
    }

    /// Number of events of a kind.
    #[must_use]
    pub fn count(&self, byte: EventByte) -> u64 {
        self.counts.get(usize::from(byte.0)).copied().unwrap_or(0)
    }

    /// Index in the log of the first event of each buffer.
    #[must_use]
    pub fn first_indices(&self) -> Vec<u64> {
        let running = self.events_per_buffer.iter().scan(0u64, |next, length| {
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
fn scan(data: &Source, buffers: &[EventBuffer], dialect: LogDialect) -> SurveyPart {
    let tasks = tasks(buffers);
    let scan_task = |(first, list): (usize, &[EventBuffer])| {
        let range = file_range(list.first(), list.last());
        data.prepare(range.clone());
        let mut task = SurveyTask::new(dialect);
        for (at, buffer) in list.iter().enumerate() {
            task.read_buffer(data, first.saturating_add(at), buffer);
        }
        data.release(range);
        task.finish()
    };
    install(|| tasks.into_par_iter().map(in_call(scan_task)).reduce(SurveyPart::new, SurveyPart::merge))
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

/// The results from some buffers.
pub(super) struct SurveyPart {
    pub counts: [u64; 256],
    pub span: Option<(u64, u64)>,
    pub faults: Vec<(usize, ParseError)>,
    pub definitions: Definitions,
    pub allocations: AllocationTotals,
    pub heapshots: HeapshotTotals,
    pub num_moves: u64,
    pub rare_events: RareEvents,
    pub kinds: Vec<KindSet>,
    pub events_per_buffer: Vec<u64>,
}

impl SurveyPart {
    pub(super) fn new() -> Self {
        Self {
            counts: [0; 256],
            span: None,
            faults: Vec::new(),
            definitions: Definitions::default(),
            allocations: AllocationTotals::default(),
            heapshots: HeapshotTotals::default(),
            num_moves: 0,
            rare_events: RareEvents::default(),
            kinds: Vec::new(),
            events_per_buffer: Vec::new(),
        }
    }

    /// Adds the results from the following buffers.
    pub(super) fn merge(mut self, other: Self) -> Self {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
        self.span = match (self.span, other.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.faults.extend(other.faults);
        self.definitions.append(other.definitions);
        self.allocations.append(other.allocations);
        self.heapshots.append(other.heapshots);
        self.num_moves = self.num_moves.saturating_add(other.num_moves);
        self.rare_events.append(other.rare_events);
        self.kinds.extend(other.kinds);
        self.events_per_buffer.extend(other.events_per_buffer);
        self
    }
}

/// A task that surveys consecutive buffers.
pub(super) struct SurveyTask {
    part: SurveyPart,
    dialect: LogDialect,
    allocations: AllocationTotalsBuilder,
    heapshots: totals::HeapshotTotalsBuilder,
}

/// The results from the current buffer.
struct BufferTally {
    thread: u64,
    kinds: KindSet,
    num_events: u64,
    time_base: u64,
    first_time: u64,
    last_time: u64,
}

impl BufferTally {
    /// Extends the time span. Mono 4.6 writes time 0 in the first COUNTERS event, which has the time of its buffer.
    #[inline(always)]
    fn add_time(&mut self, time: u64) {
        let time = if time == 0 { self.time_base } else { time };
        if time != 0 {
            (self.first_time, self.last_time) = (self.first_time.min(time), self.last_time.max(time));
        }
    }
}

/// Number of METHOD_ENTER, METHOD_LEAVE and METHOD_EXC_LEAVE events among `num` calls, from the sums of the bits 0x10
/// and 0x20 of their event bytes. This needs fewer additions per call than three counts.
fn count_call_kinds(num: u64, sum_0x10: u64, sum_0x20: u64) -> (u64, u64, u64) {
    // The event bytes are 0x23, 0x13 and 0x33.
    let (sum_0x10, sum_0x20) = (sum_0x10 >> 4, sum_0x20 >> 5);
    let num_exceptions = sum_0x10.wrapping_add(sum_0x20).wrapping_sub(num);
    (sum_0x20.wrapping_sub(num_exceptions), sum_0x10.wrapping_sub(num_exceptions), num_exceptions)
}

impl SurveyTask {
    pub(super) fn new(dialect: LogDialect) -> Self {
        Self {
            part: SurveyPart::new(),
            dialect,
            allocations: AllocationTotalsBuilder::new(),
            heapshots: totals::HeapshotTotalsBuilder::default(),
        }
    }

    pub(super) fn finish(self) -> SurveyPart {
        SurveyPart { allocations: self.allocations.finish(), heapshots: self.heapshots.finish(), ..self.part }
    }

    /// Surveys a buffer.
    pub(super) fn read_buffer(&mut self, data: &[u8], number: usize, buffer: &EventBuffer) {
        let mut decoder = buffer.decoder(data, self.dialect).skip_backtraces(KindSet::all());
        let mut event = Event::default();
        let thread = buffer.header.thread_id & self.dialect.pointer_mask();
        let mut tally = BufferTally {
            thread,
            kinds: KindSet::default(),
            num_events: 0,
            time_base: buffer.header.time_base,
            first_time: u64::MAX,
            last_time: 0,
        };
        self.part.definitions.begin_buffer(number, buffer, self.dialect.pointer_mask());
        self.part.rare_events.begin_buffer(buffer.len);
        loop {
            self.read_run(&mut decoder, &mut tally);
            let state = decoder.state();
            let Some(read) = decoder.read(&mut event) else { break };
            if let Err(error) = read {
                self.part.faults.push((number, error));
                break;
            }
            self.part.rare_events.add(event.byte, state);
            self.add_event(&event, &mut tally);
        }
        self.part.rare_events.end_buffer();
        self.allocations.end_buffer(number, buffer, self.part.definitions.has_own_thread_event());
        self.part.definitions.num_frames =
            self.part.definitions.num_frames.saturating_add(decoder.num_skipped_frames());
        self.part.kinds.push(tally.kinds);
        self.part.events_per_buffer.push(tally.num_events);
        if tally.first_time <= tally.last_time {
            let (a, b) = self.part.span.unwrap_or((tally.first_time, tally.last_time));
            self.part.span = Some((a.min(tally.first_time), b.max(tally.last_time)));
        }
    }

    /// Surveys the following run of frequent events: allocations and moves, calls, or heapshot objects.
    #[inline]
    fn read_run(&mut self, decoder: &mut EventDecoder<'_>, tally: &mut BufferTally) {
        let Some(next) = decoder.next_byte() else { return };
        let before = tally.num_events;
        if matches!(next, EventByte::ALLOC | EventByte::ALLOC_BT | EventByte::GC_MOVE) {
            let (mut with_stack, mut without_stack, mut moves) = (0u64, 0u64, 0u64);
            loop {
                if let Some(it) = decoder.read_alloc() {
                    let is_with_stack = u64::from(it.byte == EventByte::ALLOC_BT);
                    with_stack = with_stack.wrapping_add(is_with_stack);
                    without_stack = without_stack.wrapping_add(1 ^ is_with_stack);
                    tally.add_time(it.time);
                    self.allocations.add(it.class, it.object, it.size, it.time, it.offset);
                } else if let Some((num_addresses, time)) = decoder.skip_moves() {
                    moves = moves.wrapping_add(1);
                    self.part.num_moves = self.part.num_moves.saturating_add(num_addresses / 2);
                    tally.add_time(time);
                } else {
                    break;
                }
            }
            self.count(EventByte::ALLOC_BT, with_stack, tally);
            self.count(EventByte::ALLOC, without_stack, tally);
            self.count(EventByte::GC_MOVE, moves, tally);
        } else if EventDecoder::is_call(next) {
            let (mut num, mut sum_0x10, mut sum_0x20) = (0u64, 0u64, 0u64);
            let (mut first_time, mut last_time) = (u64::MAX, 0);
            let mut add = |call: &MethodEvent| {
                num = num.wrapping_add(1);
                sum_0x10 = sum_0x10.wrapping_add((call.byte.0 & 0x10).into());
                sum_0x20 = sum_0x20.wrapping_add((call.byte.0 & 0x20).into());
                // Maps time 0, which is not a time, to the maximum.
                first_time = first_time.min(call.time.wrapping_sub(1));
                last_time = last_time.max(call.time);
            };
            decoder.read_call_times(|call, leave| {
                add(&call);
                leave.iter().for_each(&mut add);
            });
            // Near the end of a buffer there may be none.
            if num > 0 {
                tally.add_time(first_time.wrapping_add(1));
                tally.add_time(last_time);
            }
            let (entered, left, num_exceptions) = count_call_kinds(num, sum_0x10, sum_0x20);
            self.count(EventByte::METHOD_ENTER, entered, tally);
            self.count(EventByte::METHOD_LEAVE, left, tally);
            self.count(EventByte::METHOD_EXC_LEAVE, num_exceptions, tally);
        } else if next == EventByte::HEAP_OBJECT {
            let mut num = 0u64;
            let (heapshots, thread, is_timed) = (&mut self.heapshots, tally.thread, self.dialect.since_v13());
            decoder.read_heap_objects(|object| {
                heapshots.add(thread, &object);
                num = num.wrapping_add(1);
                if is_timed {
                    tally.add_time(object.time);
                }
            });
            self.count(next, num, tally);
        }
        if tally.num_events != before {
            self.part.definitions.advance_to(decoder.time());
        }
    }

    /// Adds to the number of events of a kind.
    #[inline]
    fn count(&mut self, byte: EventByte, more: u64, tally: &mut BufferTally) {
        if more > 0 {
            tally.kinds.add(byte);
            tally.num_events = tally.num_events.wrapping_add(more);
            if let Some(count) = self.part.counts.get_mut(usize::from(byte.0)) {
                *count = count.wrapping_add(more);
            }
        }
    }

    /// Surveys an event that is not part of a run.
    #[inline]
    fn add_event(&mut self, event: &Event<'_>, tally: &mut BufferTally) {
        self.count(event.byte, 1, tally);
        if let Some(time) = event.time {
            tally.add_time(time);
        }
        self.part.definitions.add_event(event);
        match event.body {
            EventBody::Alloc { class, object, size } => {
                self.allocations.add(class, object, size, event.time.unwrap_or(0), event.offset);
            }
            EventBody::GcMove => {
                let num = event.addresses.len() as u64 / 2;
                self.part.num_moves = self.part.num_moves.saturating_add(num);
            }
            EventBody::HeapshotBoundary => self.heapshots.end_section(),
            EventBody::HeapObject(it) => {
                let (time, num_references) = (self.part.definitions.time(), event.references.len() as u64);
                let it = HeapObjectSummary::new(&it, time, num_references, event.offset);
                self.heapshots.add(tally.thread, &it);
            }
            _ => {}
        }
    }
}
