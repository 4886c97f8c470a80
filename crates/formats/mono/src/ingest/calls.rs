//! Table `call_events`: enters and leaves of methods.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use perfuse_recording::{BatchStream, CallStream, ClockMap, Placement};
use perfuse_tables::{CallEvent, CallRow, CallRun, Choices, call_events};

use crate::consts::{EventByte, KindSet};
use crate::decode::calls::{FollowingLeave, MethodEvent};
use crate::ingest::scan;
use crate::ingest::threads::ThreadKeys;
use crate::log::LogData;
use crate::names::LogNames;
use crate::reader::{RELEASE_BYTES, file_range};
use crate::records::{Event, EventBody};

const KINDS: KindSet =
    KindSet::of(&[EventByte::METHOD_ENTER, EventByte::METHOD_LEAVE, EventByte::METHOD_EXC_LEAVE]);

/// The kind of a call event, by the upper half of its byte.
const KINDS_BY_BYTE: [CallEvent; 4] =
    [CallEvent::Exit, CallEvent::Exit, CallEvent::Enter, CallEvent::ExceptionExit];

/// Number of segments of a log. Each has its own call tree, and merging the trees has a cost; with fewer segments a
/// processor waits longer for the last one.
const NUM_SEGMENTS: usize = 4;

/// Number of methods whose functions are cached: a power of two.
const CACHE_SIZE: usize = 1 << 11;

/// Table `call_events`.
pub fn call_events(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    let threads = ThreadKeys::new(log, placement);
    let placement = placement.clone();
    scan::scan_batches(log, KINDS, move |log, group| {
        let mut functions = FunctionCache::new(&placement);
        CallReader { log, placement: &placement, threads: &threads, functions: &mut functions }
            .read_batch(group)
    })
}

/// The table in segments. A segment is decoded by its consumer, one buffer at a time, so that the rows stay in the
/// consumer's cache.
pub fn segments(log: &Arc<LogData>, placement: &Placement) -> Vec<CallStream> {
    let threads = ThreadKeys::new(log, placement);
    let groups = scan::buffer_groups(log, KINDS, &scan::BufferSelection::default());
    let len = groups.len().div_ceil(NUM_SEGMENTS).max(1);
    let segments = groups.chunks(len).map(|groups| -> CallStream {
        let (log, placement, threads) = (Arc::clone(log), placement.clone(), threads.clone());
        let mut functions = FunctionCache::new(&placement);
        let mut mapped = 0..0;
        let mut rows = Arc::default();
        Box::new(groups.concat().into_iter().map(move |buffer| {
            let found = log.survey().buffers.list.get(buffer);
            let bytes = file_range(found, found);
            if bytes.end > mapped.end {
                log.source.release(mapped.start..bytes.start);
                mapped = bytes.start..bytes.start.saturating_add(RELEASE_BYTES);
            }
            let (placement, threads, functions) = (&placement, &threads, &mut functions);
            CallReader { log: &log, placement, threads, functions }.read_run(buffer, &mut rows).into()
        }))
    });
    segments.collect()
}

/// Decodes the calls of buffers into rows.
struct CallReader<'a> {
    log: &'a LogData,
    placement: &'a Placement,
    threads: &'a ThreadKeys,
    functions: &'a mut FunctionCache,
}

impl CallReader<'_> {
    /// The rows of several buffers as a batch.
    fn read_batch(mut self, buffers: &[usize]) -> RecordBatch {
        let num = buffers.iter().fold(0usize, |sum, buffer| sum.saturating_add(self.max_calls(*buffer)));
        let mut rows = CallColumns::with_capacity(num);
        for &buffer in buffers {
            self.for_each_call(buffer, |row| rows.push(&row));
            rows.end_buffer(self.threads.of_buffer(self.log, buffer));
        }
        rows.finish(self.placement.source_id)
    }

    /// The rows of one buffer, in the memory of earlier ones where their consumer has dropped these.
    fn read_run(mut self, buffer: usize, memory: &mut Arc<Vec<CallRow>>) -> CallRun {
        if Arc::get_mut(memory).is_none() {
            *memory = Arc::default();
        }
        let mut num_exits = 0usize;
        if let Some(rows) = Arc::get_mut(memory) {
            rows.clear();
            rows.reserve(self.max_calls(buffer));
            self.for_each_call(buffer, |row| {
                num_exits = num_exits.wrapping_add((row.exit_offset > 0).into());
                rows.push(row);
            });
        }
        let (thread_id, source_id) = (self.threads.of_buffer(self.log, buffer), self.placement.source_id);
        CallRun { thread_id, source_id, rows: Arc::clone(memory), num_exits }
    }

    /// Upper bound of the number of calls in a buffer.
    fn max_calls(&self, buffer: usize) -> usize {
        self.log.survey().events.events_per_buffer.get(buffer).map_or(0, |num| *num as usize)
    }

    /// Passes each call of a buffer to `each`.
    #[inline(always)]
    fn for_each_call(&mut self, buffer: usize, mut each: impl FnMut(CallRow)) {
        let (survey, names) = (self.log.survey(), self.log.names());
        let Some(buffer) = survey.buffers.list.get(buffer) else { return };
        let mut event = Event::default();
        let without_backtraces = KindSet::of(&[EventByte::ALLOC_BT]);
        let mut decoder =
            buffer.decoder(&self.log.source, survey.dialect).skip_backtraces(without_backtraces);
        let mut rows = RowMaker { clock: self.placement.clock, functions: self.functions, names };
        loop {
            decoder.read_calls(|call, leave| rows.make(&call, leave, &mut each));
            let Some(Ok(())) = decoder.read(&mut event) else { break };
            if let EventBody::Call { method } = event.body {
                let (byte, time) = (event.byte, decoder.time());
                rows.make(&MethodEvent { byte, time, method, offset: event.offset }, None, &mut each);
            }
        }
    }
}

/// Makes rows of calls.
struct RowMaker<'a> {
    clock: ClockMap,
    functions: &'a mut FunctionCache,
    names: &'a LogNames,
}

impl RowMaker<'_> {
    /// Passes the row of a call to `each`: with the leave that follows, if that is of the same function, else both.
    #[inline(always)]
    fn make(&mut self, call: &MethodEvent, leave: Option<FollowingLeave>, each: &mut impl FnMut(CallRow)) {
        let cached = self.functions.cached(call.method);
        let function_id =
            cached.unwrap_or_else(|| self.functions.look_up(self.names, call.method, call.time));
        let entry = self.row(call, function_id);
        let Some(FollowingLeave { time, offset }) = leave else { return each(entry) };
        if cached.is_some() {
            let exit_offset = offset.wrapping_sub(call.offset) as u8;
            each(CallRow { exit_ns: self.clock.ns(time), exit_offset, ..entry });
        } else {
            // The function of a method that is not in the cache may change between the two.
            let leave = MethodEvent { byte: EventByte::METHOD_LEAVE, time, offset, ..*call };
            each(entry);
            let function_id = self.functions.look_up(self.names, call.method, time);
            each(self.row(&leave, function_id));
        }
    }

    #[inline(always)]
    fn row(&self, call: &MethodEvent, function_id: u32) -> CallRow {
        let kind = KINDS_BY_BYTE.get(usize::from(call.byte.0 >> 4) & 3).copied();
        CallRow {
            ts_ns: self.clock.ns(call.time),
            exit_ns: 0,
            record_offset: call.offset,
            function_id,
            kind: kind.unwrap_or(CallEvent::Exit),
            exit_offset: 0,
        }
    }
}

/// Keys of functions, with a cache of recent methods.
struct FunctionCache {
    first: u32,
    /// Method and key, at the slot of the method.
    recent: Box<[(u64, u32); CACHE_SIZE]>,
}

impl FunctionCache {
    fn new(placement: &Placement) -> Self {
        // An entry that was never set has a method that belongs to another slot.
        let recent = Box::new(std::array::from_fn(|at| (if at == 0 { 8 } else { 0 }, 0)));
        Self { first: placement.first.function, recent }
    }

    /// Key of the function of a method that is in the cache: the same at any time.
    #[inline(always)]
    fn cached(&self, method: u64) -> Option<u32> {
        self.recent.get(slot(method)).filter(|(cached, _)| *cached == method).map(|(_, key)| *key)
    }

    /// Key of the function of a method at a time.
    #[inline(never)]
    fn look_up(&mut self, names: &LogNames, method: u64, time: u64) -> u32 {
        let key = self.first.saturating_add(names.function(method, time));
        if names.are_constant(&[method])
            && let Some(entry) = self.recent.get_mut(slot(method))
        {
            *entry = (method, key);
        }
        key
    }
}

/// Cache slot of a method. Addresses of methods are some words apart.
#[inline(always)]
fn slot(method: u64) -> usize {
    ((method >> 3) ^ (method >> 14)) as usize % CACHE_SIZE
}

/// Columns of a batch under construction.
struct CallColumns {
    ts_ns: Vec<i64>,
    threads: Vec<u32>,
    kinds: Vec<i32>,
    functions: Vec<u32>,
    offsets: Vec<u64>,
}

impl CallColumns {
    fn with_capacity(num: usize) -> Self {
        Self {
            ts_ns: Vec::with_capacity(num),
            threads: Vec::new(),
            kinds: Vec::with_capacity(num),
            functions: Vec::with_capacity(num),
            offsets: Vec::with_capacity(num),
        }
    }

    #[inline(always)]
    fn push(&mut self, row: &CallRow) {
        self.push_event(row, row.ts_ns, row.kind, row.record_offset);
        if let Some(exit) = row.exit() {
            self.push_event(row, exit.ts_ns, CallEvent::Exit, exit.record_offset);
        }
    }

    #[inline(always)]
    fn push_event(&mut self, row: &CallRow, ts_ns: i64, kind: CallEvent, record_offset: u64) {
        self.ts_ns.push(ts_ns);
        self.kinds.push(kind as i32);
        self.functions.push(row.function_id);
        self.offsets.push(record_offset);
    }

    /// Sets the thread of the rows added since the last call.
    fn end_buffer(&mut self, thread_id: u32) {
        self.threads.resize(self.ts_ns.len(), thread_id);
    }

    fn finish(self, source_id: u32) -> RecordBatch {
        let num = self.ts_ns.len();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(self.ts_ns)),
            Arc::new(UInt32Array::from(self.threads)),
            Arc::new(UInt32Array::new_null(num)),
            CallEvent::array(self.kinds),
            Arc::new(UInt32Array::from(self.functions)),
            Arc::new(UInt64Array::new_null(num)),
            Arc::new(UInt32Array::from(vec![source_id; num])),
            Arc::new(UInt64Array::from(self.offsets)),
        ];
        call_events::batch(columns)
    }
}
