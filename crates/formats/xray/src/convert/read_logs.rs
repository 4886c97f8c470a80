//! Reads logs for a conversion: the buffers of FDR logs in order of time, and the records of Basic mode logs.

use rustc_hash::FxHashMap;

use super::selection::RecordSelection;
use crate::basic;
use crate::block::{FdrBlock, TscState};
use crate::consts::Action;
use crate::fdr::{FdrSurvey, thread_ids};
use crate::log::{LogContent, XRay};
use crate::record_iter::{RecordItem, RecordIter};
use crate::records::{Event, Record, XRayDialect, ends_arguments};
use crate::writer::{BufferStart, LogSink, ThreadEvent, ThreadIds, TscStamp, UnsupportedItems, WriteError};
use perfuse_recording::Recording;

/// A buffer of one of the logs.
#[derive(Clone, Copy, Debug)]
pub struct OrderedBuffer<'a> {
    /// The log.
    pub log: &'a XRay,
    /// The survey of the log.
    pub survey: &'a FdrSurvey,
    /// The buffer.
    pub block: &'a FdrBlock,
    /// Its index in the log.
    pub index: usize,
}

/// Wall time of a buffer in seconds and nanoseconds, where it is known.
type WallTime = Option<(i64, i32)>;
/// Wall time and counter at the start of a buffer, as far as it contains them.
type StartTime = (WallTime, Option<u64>);
/// What copies of a buffer have in common: thread, start, and number of records.
type CopyKey = (ThreadIds, StartTime, usize);

/// All buffers: those of each thread in order of time, at the positions that the thread's buffers have in the files.
/// So a log that is in order keeps its order. Copies are removed; their number is returned.
pub fn ordered_buffers<'a>(logs: &[&'a XRay]) -> (Vec<OrderedBuffer<'a>>, u64) {
    let mut all: Vec<OrderedBuffer<'a>> = Vec::new();
    let mut copies = 0u64;
    let mut of_thread: FxHashMap<ThreadIds, Vec<(WallTime, usize)>> = FxHashMap::default();
    let mut seen: FxHashMap<CopyKey, Vec<OrderedBuffer<'a>>> = FxHashMap::default();
    for &log in logs {
        let LogContent::Fdr(survey) = log.content() else { continue };
        let mut last: FxHashMap<ThreadIds, (i64, i32)> = FxHashMap::default();
        for (index, block) in survey.blocks.iter().enumerate() {
            let thread_ids = thread_ids(block);
            // A buffer without a wall time sorts with the thread's buffer before it.
            let wall = block.known_wall().or_else(|| last.get(&thread_ids).copied());
            wall.and_then(|wall| last.insert(thread_ids, wall));
            let start_time = (wall, block.first_cpu.map(|(_, tsc)| tsc));
            let position = OrderedBuffer { log, survey, block, index };
            let same = seen.entry((thread_ids, start_time, block.records.len())).or_default();
            if survey.copies.contains_key(&index) || same.iter().any(|other| is_copy(other, &position)) {
                copies = copies.saturating_add(1);
                continue;
            }
            if logs.len() > 1 && same.len() < MAX_COMPARED {
                same.push(position);
            }
            // Not by the counter: buffers get one where they have none, and would then be in another order.
            of_thread.entry(thread_ids).or_default().push((wall, all.len()));
            all.push(position);
        }
    }
    let mut ordered: Vec<Option<OrderedBuffer<'a>>> = vec![None; all.len()];
    for blocks in of_thread.values() {
        let mut in_time = blocks.clone();
        in_time.sort_unstable();
        for (&(_, to), &(_, from)) in blocks.iter().zip(&in_time) {
            if let Some(slot) = ordered.get_mut(to) {
                *slot = all.get(from).copied();
            }
        }
    }
    (ordered.into_iter().flatten().collect(), copies)
}

/// A thread with the ids of one in another log, at the same time; `None` where all logs can be of the same processes.
pub fn thread_of_two_processes(logs: &[&XRay], buffers: &[OrderedBuffer<'_>]) -> Option<ThreadIds> {
    // By thread, first and last counter in each log; not of buffers whose counters are relative.
    let mut spans: FxHashMap<ThreadIds, FxHashMap<*const XRay, (u64, u64)>> = FxHashMap::default();
    let mut add = |log: &XRay, thread: ThreadIds, (first, last): (u64, u64)| {
        let span = spans.entry(thread).or_default().entry(std::ptr::from_ref(log)).or_insert((first, last));
        *span = (span.0.min(first), span.1.max(last));
    };
    for buffer in buffers.iter().filter(|buffer| buffer.block.first_cpu.is_some()) {
        if let Some(span) = buffer.block.span {
            add(buffer.log, thread_ids(buffer.block), span);
        }
    }
    for &log in logs {
        if let LogContent::Basic(basic::BasicSurvey { span: Some(span), owners, .. }) = log.content() {
            owners.iter().for_each(|&thread| add(log, thread, *span));
        }
    }
    let overlaps = |of: &FxHashMap<*const XRay, (u64, u64)>| {
        let mut spans: Vec<_> = of.values().collect();
        spans.sort_unstable();
        spans.windows(2).any(|two| matches!(two, [one, next] if next.0 < one.1))
    };
    spans.iter().filter(|(_, of)| overlaps(of)).map(|(&thread, _)| thread).min()
}

/// Buffers that share thread, time and size but differ are few, unless the file is hostile: only this many are
/// compared.
const MAX_COMPARED: usize = 8;

/// Whether two logs contain the same buffer; copies within a log are known from its survey.
fn is_copy<'a>(one: &OrderedBuffer<'a>, other: &OrderedBuffer<'a>) -> bool {
    let of = |buffer: &OrderedBuffer<'a>| buffer.log.source().get(buffer.block.records.clone());
    !std::ptr::eq(one.survey, other.survey) && of(one) == of(other)
}

/// Replaces the bytes of overwritten events. Unlike zeros, no reader takes it for a record.
const FILLER: u8 = 0xff;

/// Passes the start, the records and the end of a buffer to a sink.
pub fn read_buffer<S: LogSink>(
    buffer: &OrderedBuffer<'_>,
    selection: &RecordSelection,
    sink: &mut S,
    unsupported: &mut UnsupportedItems,
) -> Result<(), WriteError> {
    let thread_ids = thread_ids(buffer.block);
    if !selection.has_thread(thread_ids) {
        return Ok(());
    }
    let source = buffer.log.source();
    let dialect = XRayDialect { payloads: buffer.block.payloads, ..buffer.log.header().dialect() };
    let records = buffer.block.records.clone();
    let clock = buffer.survey.carried.get(&buffer.index).copied().unwrap_or_default();
    let filler_bytes_left = records.len();
    let wall = buffer.block.wall;
    let mut replay = BufferReplay {
        sink,
        unsupported,
        thread_ids,
        wall,
        clock,
        has_begun: false,
        entered: false,
        filler_bytes_left,
    };
    replay.replay(RecordIter::new(source, records.clone(), dialect), dialect);
    replay.begin(replay.clock);
    replay.sink.end(true)?;
    source.release(records);
    Ok(())
}

struct BufferReplay<'a, S> {
    sink: &'a mut S,
    unsupported: &'a mut UnsupportedItems,
    thread_ids: ThreadIds,
    wall: Option<(i64, i32)>,
    clock: TscState,
    /// Whether the start was passed on: with the first NewCPUId, or else with the first record that has a time.
    has_begun: bool,
    /// Whether an argument would follow an entry.
    entered: bool,
    /// Limit of the bytes written for overwritten events: not more than the size of the buffer, whatever sizes events
    /// state.
    filler_bytes_left: usize,
}

/// Counter and processor of a state; processor 0 where unknown.
fn tsc_stamp(clock: TscState) -> TscStamp {
    TscStamp { tsc: clock.tsc, cpu: clock.cpu.unwrap_or(0) }
}

impl<S: LogSink> BufferReplay<'_, S> {
    /// Passes all records to the sink.
    fn replay(&mut self, mut records: RecordIter<'_>, dialect: XRayDialect) {
        loop {
            let run = records.functions(usize::MAX);
            run.for_each(|action, function_id, delta| self.call(action, function_id, delta));
            let Some(step) = records.next() else { return };
            let record = match step {
                RecordItem::Metadata { record, .. } => record,
                RecordItem::Function { action, function_id, tsc_delta, .. } => {
                    self.call(action, function_id, tsc_delta);
                    continue;
                }
                RecordItem::Broken(_) => return,
            };
            if ends_arguments(&record) {
                self.entered = false;
            }
            match record {
                Record::CallArgument(value) => self.argument(value),
                Record::Custom(event) | Record::Typed(event) => {
                    self.event(&record, &event, dialect);
                }
                Record::NewCpuId { .. } | Record::TscWrap { .. } => self.counter(&record),
                Record::Unknown(_) => self.unsupported.unknown = self.unsupported.unknown.saturating_add(1),
                _ => {}
            }
        }
    }

    #[inline]
    fn call(&mut self, action: Action, function_id: u32, delta: u32) {
        self.clock.step(delta);
        if action.name().is_none() {
            self.unsupported.unknown = self.unsupported.unknown.saturating_add(1);
            self.entered = false;
            return;
        }
        self.begin(self.clock);
        self.entered = matches!(action, Action::ENTRY | Action::ENTRY_ARGS);
        self.sink.write_event(
            self.thread_ids,
            tsc_stamp(self.clock),
            ThreadEvent::Call { action, function_id },
        );
    }

    /// Passes on an argument, if it follows an entry.
    fn argument(&mut self, value: u64) {
        if self.entered {
            self.sink.write_event(self.thread_ids, tsc_stamp(self.clock), ThreadEvent::Argument(value));
        } else {
            self.unsupported.orphan_arguments = self.unsupported.orphan_arguments.saturating_add(1);
        }
    }

    /// Applies a NewCPUId or TSCWrap, and passes it on.
    fn counter(&mut self, record: &Record<'_>) {
        self.clock.metadata(record);
        match record {
            Record::NewCpuId { .. } if self.has_begun => self.sink.new_cpu(tsc_stamp(self.clock)),
            Record::NewCpuId { .. } => self.begin(self.clock),
            _ => {
                self.begin(self.clock);
                self.sink.wrap(self.clock.tsc);
            }
        }
    }

    /// Passes on an event, with filler for overwritten bytes.
    fn event(&mut self, record: &Record<'_>, event: &Event<'_>, dialect: XRayDialect) {
        let Some(tsc) = self.clock.metadata(record) else { return };
        self.begin(TscState { tsc, ..self.clock });
        let at = TscStamp { tsc, cpu: event.cpu.or(self.clock.cpu).unwrap_or(0) };
        let filler;
        let payload = if dialect.payloads || event.size == 0 {
            event.payload
        } else {
            let size = usize::try_from(event.size).unwrap_or(0);
            let size = if size <= self.filler_bytes_left { size } else { 0 };
            self.filler_bytes_left = self.filler_bytes_left.saturating_sub(size);
            self.unsupported.payloads = self.unsupported.payloads.saturating_add(1);
            filler = vec![FILLER; size];
            &filler
        };
        self.sink.write_event(
            self.thread_ids,
            at,
            ThreadEvent::Event { event_type: event.event_type, payload },
        );
    }

    /// Passes the start of the buffer on, if not done yet: with the counter of the first record where there is no
    /// NewCPUId.
    #[inline]
    fn begin(&mut self, clock: TscState) {
        if !self.has_begun {
            self.has_begun = true;
            let is_unknown = !clock.is_whole && clock != TscState::default();
            let so_far = self.unsupported.unknown_counters;
            self.unsupported.unknown_counters = so_far.saturating_add(is_unknown.into());
            let wall = self.wall.unwrap_or_default();
            self.sink.begin(&BufferStart { thread_ids: self.thread_ids, wall, at: tsc_stamp(clock) });
        }
    }
}

/// Number of records after which the sink is asked for errors.
const RECORDS_PER_CHECK: usize = 1 << 16;

/// Passes the records of a log to a sink, those of each thread in order of time.
pub fn read_basic_log<S: LogSink>(
    log: &XRay,
    survey: &basic::BasicSurvey,
    selection: &RecordSelection,
    sink: &mut S,
    unsupported: &mut UnsupportedItems,
) -> Result<(), WriteError> {
    let header = log.header();
    let version = header.dialect().version;
    let num = survey.order.as_ref().map_or(survey.num_records, Vec::len);
    unsupported.copies = unsupported.copies.saturating_add(survey.copies.0);
    let mut at = TscStamp::default();
    // The function and thread of the entry that an argument would belong to.
    let mut entered = None;
    for position in 0..num {
        if position & RECORDS_PER_CHECK.saturating_sub(1) == 0 {
            sink.check()?;
            if survey.order.is_none() {
                log.source().release(
                    basic::record_offset(position.saturating_sub(RECORDS_PER_CHECK))
                        ..basic::record_offset(position),
                );
            }
        }
        let index = match &survey.order {
            Some(order) => order.get(position).map_or(usize::MAX, |&index| index as usize),
            None => position,
        };
        let Some(entry) = basic::read_item(log.source(), index, header.endian) else { continue };
        let thread_ids = entry.thread_ids(version).unwrap_or_default();
        match entry {
            basic::BasicItem::Function(record) if record.kind <= Action::ENTRY_ARGS.0 => {
                let action = Action(record.kind);
                entered = matches!(action, Action::ENTRY | Action::ENTRY_ARGS)
                    .then_some((record.function_id, record.tid));
                at = TscStamp { tsc: record.tsc, cpu: record.cpu.into() };
                let function_id = record.function_id.cast_unsigned();
                if selection.has_thread(thread_ids) {
                    sink.write_event(thread_ids, at, ThreadEvent::Call { action, function_id });
                }
            }
            basic::BasicItem::Argument(argument) if entered == Some((argument.function_id, argument.tid)) => {
                if selection.has_thread(thread_ids) {
                    sink.write_event(thread_ids, at, ThreadEvent::Argument(argument.argument));
                }
            }
            basic::BasicItem::Argument(_) => {
                unsupported.orphan_arguments = unsupported.orphan_arguments.saturating_add(1)
            }
            basic::BasicItem::Function(_) | basic::BasicItem::Unknown(_) => {
                entered = None;
                unsupported.unknown = unsupported.unknown.saturating_add(1);
            }
            basic::BasicItem::Unwritten => {}
        }
    }
    sink.check()
}
