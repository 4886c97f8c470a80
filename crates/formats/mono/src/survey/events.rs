//! What the events of a log contain: counts, damage, definitions, totals; from one parallel scan of all buffers.

use perfuse_recording::Source;
use perfuse_wire::ParseError;
use perfuse_workers::{in_call, install};
use rayon::prelude::*;

use crate::consts::{EventByte, KindSet};
use crate::decode::EventDecoder;
use crate::decode::runs::HeapObjectSummary;
use crate::dialect::LogDialect;
use crate::reader::{EventBuffer, file_range};
use crate::records::{Event, EventBody};
use crate::survey::definitions::Definitions;
use crate::survey::rare_events::RareEvents;
use crate::survey::totals::{
    AllocationTotals, AllocationTotalsBuilder, HeapshotTotals, HeapshotTotalsBuilder,
};

/// Bytes of events per parallel task.
const TASK_BYTES: u64 = 1 << 20;

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

/// What the events of some buffers contain.
#[derive(Debug)]
pub struct EventSurvey {
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

impl EventSurvey {
    /// Scans all buffers in parallel with one encoding.
    pub fn of(data: &Source, buffers: &[EventBuffer], dialect: LogDialect) -> Self {
        let tasks = tasks(buffers);
        let scan_task = |(first, list): (usize, &[EventBuffer])| {
            let range = file_range(list.first(), list.last());
            let mut task = SurveyTask::new(dialect);
            for (at, buffer) in list.iter().enumerate() {
                task.read_buffer(data, first.saturating_add(at), buffer);
            }
            data.release(range);
            task.finish()
        };
        install(|| tasks.into_par_iter().map(in_call(scan_task)).reduce(Self::new, Self::merge))
    }

    fn new() -> Self {
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
    fn merge(mut self, other: Self) -> Self {
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
struct SurveyTask {
    part: EventSurvey,
    dialect: LogDialect,
    allocations: AllocationTotalsBuilder,
    heapshots: HeapshotTotalsBuilder,
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

impl SurveyTask {
    fn new(dialect: LogDialect) -> Self {
        Self {
            part: EventSurvey::new(),
            dialect,
            allocations: AllocationTotalsBuilder::new(),
            heapshots: HeapshotTotalsBuilder::default(),
        }
    }

    fn finish(self) -> EventSurvey {
        EventSurvey {
            allocations: self.allocations.finish(),
            heapshots: self.heapshots.finish(),
            ..self.part
        }
    }

    /// Surveys a buffer.
    fn read_buffer(&mut self, data: &[u8], number: usize, buffer: &EventBuffer) {
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
            // Near the end of a buffer there may be none.
            let counts = decoder.count_calls();
            if let Some((first_time, last_time)) = counts.span {
                tally.add_time(first_time);
                tally.add_time(last_time);
            }
            self.count(EventByte::METHOD_ENTER, counts.num_enters, tally);
            self.count(EventByte::METHOD_LEAVE, counts.num_leaves, tally);
            self.count(EventByte::METHOD_EXC_LEAVE, counts.num_exceptions, tally);
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
