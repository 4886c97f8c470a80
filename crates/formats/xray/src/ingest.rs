//! Fills the tables `functions`, `call_events`, `call_sums` and `instants`.

mod columns;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_tables::{call_sums, functions, instants};
use perfuse_workers::{JobResults, num_threads};

use super::basic;
use super::block::{RECORDS_PER_SLICE, TscState};
use super::consts::{Action, FUNCTION_BYTES};
use super::fdr::{FdrSurvey, thread_ids};
use super::ids::FunctionKeys;
use super::log::{LogContent, XRay};
use super::profile::{PathTime, PathTimes, read_path};
use super::record_iter::{RecordItem, RecordIter};
use super::records::{Event, Record, XRayDialect, ends_arguments};
use columns::{CallEventColumns, call_event_key};
use perfuse_recording::{BatchStream, CallStream, Placement, Recording, Scale, call_stream, one_batch};

/// The rows of one table; `None` for a table that the format does not fill.
pub fn table(log: &XRay, name: &str, placement: &Placement) -> Option<BatchStream> {
    match name {
        "functions" => Some(one_batch(functions_batch(log, placement))),
        "call_events" => Some(call_events(log, placement)),
        "call_sums" => Some(call_sums_stream(log, placement)),
        "instants" => Some(instants_stream(log, placement)),
        _ => None,
    }
}

/// Table `functions`: logs contain numbers of functions; an instrumentation map contains their names.
fn functions_batch(log: &XRay, placement: &Placement) -> RecordBatch {
    let mut table = functions::Builder::new();
    for (key, &id) in (placement.first.function..).zip(log.function_ids()) {
        let name = match log.content() {
            LogContent::Fdr(_) => format!("function {id}"),
            LogContent::Basic(_) | LogContent::Profile(_) => format!("function {}", id.cast_signed()),
        };
        table.push(key, Some(id.into()), &name, &name, None, None, None, None);
    }
    table.finish()
}

/// Converts time stamps of this log to the profile's clock.
fn profile_scale(log: &XRay, placement: &Placement) -> Scale {
    placement.clock.around(log.span().map_or(0, |(first, _)| first))
}

/// The key of a thread.
fn thread_key(placement: &Placement, (pid, tid): (i32, i32)) -> u32 {
    let lock = placement.identities.lock();
    let mut identities = lock.unwrap_or_else(std::sync::PoisonError::into_inner);
    identities.thread(placement.own_process(pid), tid)
}

/// Approximate number of bytes of records per batch.
const BATCH_BYTES: usize = RECORDS_PER_SLICE * FUNCTION_BYTES;

/// Ranges of the file that are closer to each other than this are returned to the operating system as one.
const MERGE_DISTANCE_BYTES: usize = 4096;

/// Most batches after which their part of the file is returned to the operating system.
const MOST_BATCHES: usize = 4;

/// Number of batches per segment.
const BATCHES_PER_SEGMENT: usize = 64;

/// Table `call_events`: slices of the log are decoded in parallel, ahead of the consumer, and returned in order.
fn call_events(log: &XRay, placement: &Placement) -> BatchStream {
    let (decoder, jobs) = jobs(log, placement);
    let per_thread = jobs.len().checked_div(num_threads()).unwrap_or_default();
    let groups = jobs.chunks(per_thread.clamp(1, MOST_BATCHES)).map(<[_]>::to_vec).collect();
    Box::new(JobResults::new(groups, move |jobs: Vec<BatchJob>| decoder.batches(&jobs)).flatten())
}

/// Table `call_events` in segments, each decoded by its consumer.
pub fn call_segments(log: &XRay, placement: &Placement) -> Vec<CallStream> {
    let (decoder, jobs) = jobs(log, placement);
    let segment = |jobs: &[BatchJob]| {
        let (decoder, jobs) = (Arc::clone(&decoder), jobs.to_vec());
        // One batch at a time, in the thread of its consumer, so that it stays in that processor's cache.
        call_stream(Box::new(jobs.into_iter().flat_map(move |job| decoder.batches(&[job]))))
    };
    jobs.chunks(BATCHES_PER_SEGMENT).map(segment).collect()
}

/// The batches of `call_events`, and what decodes them.
fn jobs(log: &XRay, placement: &Placement) -> (Arc<CallEventDecoder>, Vec<BatchJob>) {
    let jobs = match log.content() {
        LogContent::Fdr(survey) => fdr_jobs(survey, placement),
        LogContent::Basic(survey) => basic_jobs(survey),
        LogContent::Profile(_) => Vec::new(),
    };
    let decoder = CallEventDecoder {
        log: log.clone(),
        placement: placement.clone(),
        scale: profile_scale(log, placement),
        keys: FunctionKeys::new(log.function_ids(), placement.first.function),
        has_processors: log.has_processors(),
    };
    (Arc::new(decoder), jobs)
}

/// The input of one batch.
#[derive(Clone, Debug)]
enum BatchJob {
    /// Slices of FDR blocks.
    Fdr(Vec<BlockSlice>),
    /// Positions in the time order of a Basic mode log.
    Basic(Range<usize>),
}

/// A range of an FDR block that can be decoded on its own.
#[derive(Clone, Debug)]
struct BlockSlice {
    block: usize,
    range: Range<usize>,
    clock: TscState,
    thread_id: u32,
}

/// Groups the slices of an FDR log into batches.
fn fdr_jobs(survey: &FdrSurvey, placement: &Placement) -> Vec<BatchJob> {
    let mut jobs = Vec::new();
    let mut slices = Vec::new();
    let mut bytes = 0usize;
    for &index in &survey.order {
        let Some(block) = survey.blocks.get(index) else { continue };
        let thread_id = thread_key(placement, thread_ids(block));
        let ends = block.slices.iter().skip(1).map(|&(offset, _)| offset).chain([block.records.end]);
        for (&(start, clock), end) in block.slices.iter().zip(ends) {
            let clock = survey.clock(index, clock);
            slices.push(BlockSlice { block: index, range: start..end, clock, thread_id });
            bytes = bytes.saturating_add(end.saturating_sub(start));
            if bytes >= BATCH_BYTES {
                jobs.push(BatchJob::Fdr(std::mem::take(&mut slices)));
                bytes = 0;
            }
        }
    }
    if !slices.is_empty() {
        jobs.push(BatchJob::Fdr(slices));
    }
    jobs
}

/// Divides a Basic mode log into batches.
fn basic_jobs(survey: &basic::BasicSurvey) -> Vec<BatchJob> {
    let num = survey.order.as_ref().map_or(survey.num_records, Vec::len);
    let starts = (0..num).step_by(RECORDS_PER_SLICE);
    starts.map(|start| BatchJob::Basic(start..start.saturating_add(RECORDS_PER_SLICE).min(num))).collect()
}

struct CallEventDecoder {
    log: XRay,
    placement: Placement,
    scale: Scale,
    keys: FunctionKeys,
    has_processors: bool,
}

impl CallEventDecoder {
    /// Returns the pages of the file that jobs read; those of neighbouring ranges at once, to save system calls.
    fn release(&self, jobs: &[BatchJob]) {
        let source = self.log.source();
        let in_order = matches!(self.log.content(), LogContent::Basic(survey) if survey.order.is_none());
        let mut next = 0..0;
        let mut add = |range: Range<usize>| {
            if next.end <= range.start && range.start.saturating_sub(next.end) < MERGE_DISTANCE_BYTES {
                next.end = range.end;
            } else {
                source.release(std::mem::replace(&mut next, range));
            }
        };
        for job in jobs {
            match job {
                BatchJob::Fdr(slices) => slices.iter().for_each(|unit| add(unit.range.clone())),
                BatchJob::Basic(positions) if in_order => {
                    add(basic::record_offset(positions.start)..basic::record_offset(positions.end));
                }
                BatchJob::Basic(_) => {}
            }
        }
        source.release(next);
    }

    /// Decodes batches that are next to each other.
    fn batches(&self, jobs: &[BatchJob]) -> Vec<RecordBatch> {
        let batches = jobs.iter().map(|job| self.batch(job)).collect();
        self.release(jobs);
        batches
    }

    /// Decodes a batch.
    fn batch(&self, job: &BatchJob) -> RecordBatch {
        let columns = match (job, self.log.content()) {
            (BatchJob::Fdr(slices), LogContent::Fdr(survey)) => self.fdr(survey, slices),
            (BatchJob::Basic(positions), LogContent::Basic(survey)) => self.basic(survey, positions.clone()),
            _ => CallEventColumns::default(),
        };
        columns.finish(self.placement.source_id)
    }

    /// A processor as a record states it; `None` where the log states none.
    fn cpu(&self, stated: Option<u16>) -> Option<u32> {
        stated.filter(|_| self.has_processors).map(u32::from)
    }

    /// Decodes slices of an FDR log.
    fn fdr(&self, survey: &FdrSurvey, slices: &[BlockSlice]) -> CallEventColumns {
        let bytes = slices.iter().fold(0usize, |sum, unit| sum.saturating_add(unit.range.len()));
        let mut columns = CallEventColumns::with_capacity(bytes.checked_div(FUNCTION_BYTES).unwrap_or(0));
        for unit in slices {
            let Some(block) = survey.blocks.get(unit.block) else { continue };
            let dialect = XRayDialect { payloads: block.payloads, ..self.log.header().dialect() };
            self.slice_events(unit, dialect, &mut columns);
        }
        columns
    }

    /// Decodes one slice of an FDR log.
    fn slice_events(&self, unit: &BlockSlice, dialect: XRayDialect, columns: &mut CallEventColumns) {
        let mut records = RecordIter::new(self.log.source(), unit.range.clone(), dialect);
        let mut clock = unit.clock;
        // The function whose entry an argument would belong to.
        let mut last_entry = None;
        columns.start_run(unit.thread_id, self.cpu(clock.cpu));
        loop {
            let run = records.functions(usize::MAX);
            if let Some((action, id)) = run.last() {
                columns.functions(&run, &mut clock, &self.scale, &self.keys);
                last_entry = matches!(action, Action::ENTRY | Action::ENTRY_ARGS).then_some(id);
            }
            match records.next() {
                Some(RecordItem::Metadata { record: Record::CallArgument(value), offset, .. }) => {
                    if let Some(id) = last_entry {
                        columns.argument(self.scale.ns(clock.tsc), self.keys.get(id), value, offset as u64);
                    }
                }
                Some(RecordItem::Metadata { record, .. }) => {
                    clock.metadata(&record);
                    if let Record::NewCpuId { .. } = record {
                        columns.start_run(unit.thread_id, self.cpu(clock.cpu));
                    }
                    if ends_arguments(&record) {
                        last_entry = None;
                    }
                }
                Some(RecordItem::Function { .. }) => last_entry = None,
                Some(RecordItem::Broken(_)) | None => return,
            }
        }
    }

    /// Decodes records of a Basic mode log.
    fn basic(&self, survey: &basic::BasicSurvey, positions: Range<usize>) -> CallEventColumns {
        let mut columns = CallEventColumns::with_capacity(positions.len());
        let (source, header) = (self.log.source(), self.log.header());
        let version = header.dialect().version;
        let mut threads: Vec<((i32, i32), u32)> = Vec::new();
        let mut last_entry: Option<(basic::BasicItem, i64)> = self.entry_before(survey, positions.start);
        for position in positions {
            let Some(index) = record_index(survey, position) else { continue };
            let Some(entry) = basic::read_item(source, index, header.endian) else { continue };
            let Some(thread_ids) = entry.thread_ids(version) else { continue };
            let thread_id = match threads.iter().rev().find(|(ids, _)| *ids == thread_ids) {
                Some(&(_, id)) => id,
                None => {
                    let id = thread_key(&self.placement, thread_ids);
                    threads.push((thread_ids, id));
                    id
                }
            };
            let offset = basic::record_offset(index) as u64;
            match entry {
                basic::BasicItem::Function(record) => {
                    let ts_ns = self.scale.ns(record.tsc);
                    last_entry = (record.kind == 3).then_some((entry, ts_ns));
                    if let Some(kind) = call_event_key(Action(record.kind)) {
                        columns.start_run(thread_id, self.cpu(Some(record.cpu.into())));
                        let function = self.keys.get(record.function_id.cast_unsigned());
                        columns.push(ts_ns, kind, function, offset);
                    }
                }
                basic::BasicItem::Argument(argument) => {
                    if let Some((basic::BasicItem::Function(record), ts_ns)) = last_entry
                        && (record.function_id, record.tid) == (argument.function_id, argument.tid)
                    {
                        columns.start_run(thread_id, self.cpu(Some(record.cpu.into())));
                        let function = self.keys.get(argument.function_id.cast_unsigned());
                        columns.argument(ts_ns, function, argument.argument, offset);
                    }
                }
                basic::BasicItem::Unknown(_) | basic::BasicItem::Unwritten => {}
            }
        }
        columns
    }

    /// The entry that an argument at this position would belong to, with its time.
    fn entry_before(&self, survey: &basic::BasicSurvey, position: usize) -> Option<(basic::BasicItem, i64)> {
        let index = record_index(survey, position.checked_sub(1)?)?;
        match basic::read_item(self.log.source(), index, self.log.header().endian)? {
            entry @ basic::BasicItem::Function(record) if record.kind == 3 => {
                Some((entry, self.scale.ns(record.tsc)))
            }
            _ => None,
        }
    }
}

/// The index of the record at a position in the time order.
fn record_index(survey: &basic::BasicSurvey, position: usize) -> Option<usize> {
    match &survey.order {
        Some(order) => order.get(position).map(|&index| index as usize),
        None => Some(position),
    }
}

/// Table `instants`: a batch for each block that contains events.
fn instants_stream(log: &XRay, placement: &Placement) -> BatchStream {
    let (log, placement) = (log.clone(), placement.clone());
    let order = match log.content() {
        LogContent::Fdr(survey) => survey.order.clone(),
        LogContent::Basic(_) | LogContent::Profile(_) => Vec::new(),
    };
    let scale = profile_scale(&log, &placement);
    Box::new(order.into_iter().filter_map(move |index| instants_batch(&log, &placement, scale, index)))
}

/// The events of a block; `None` where it has none.
fn instants_batch(log: &XRay, placement: &Placement, scale: Scale, index: usize) -> Option<RecordBatch> {
    let LogContent::Fdr(survey) = log.content() else { return None };
    let block = survey.blocks.get(index)?;
    if !block.has_events() {
        return None;
    }
    let thread_id = thread_key(placement, thread_ids(block));
    let dialect = XRayDialect { payloads: block.payloads, ..log.header().dialect() };
    let &(start, clock) = block.slices.first()?;
    let mut clock = survey.clock(index, clock);
    let mut records = RecordIter::new(log.source(), start..block.records.end, dialect);
    let has_processors = log.has_processors();
    let mut table = instants::Builder::new();
    loop {
        records.functions(usize::MAX).for_each(|_, _, delta| clock.step(delta));
        let Some(step) = records.next() else { break };
        let RecordItem::Metadata { offset, record, .. } = step else { continue };
        let (Some(tsc), Record::Custom(event) | Record::Typed(event)) = (clock.metadata(&record), record)
        else {
            continue;
        };
        let Event { cpu, event_type, payload, size, .. } = event;
        let kind = if event_type.is_some() { "typed_event" } else { "custom_event" };
        let name = std::str::from_utf8(payload).ok().filter(|text| !text.chars().any(char::is_control));
        // Overwritten bytes are null; an event of size 0 has none that could be overwritten.
        let payload = (block.payloads || size == 0).then_some(payload);
        table.push(
            scale.ns(tsc),
            thread_id,
            cpu.or(clock.cpu).filter(|_| has_processors).map(u32::from),
            kind,
            name.filter(|text| !text.is_empty()),
            event_type.map(u32::from),
            None,
            payload,
            placement.source_id,
            offset as u64,
        );
    }
    log.source().release(block.records.clone());
    Some(table.finish())
}

/// Table `call_sums`: a batch for each thread of a profile.
fn call_sums_stream(log: &XRay, placement: &Placement) -> BatchStream {
    let (log, placement) = (log.clone(), placement.clone());
    let keys = FunctionKeys::new(log.function_ids(), placement.first.function);
    let num = match log.content() {
        LogContent::Profile(survey) => survey.blocks.len(),
        LogContent::Fdr(_) | LogContent::Basic(_) => 0,
    };
    Box::new((0..num).filter_map(move |index| call_sums_batch(&log, &placement, &keys, index)))
}

/// The call paths of a thread.
fn call_sums_batch(
    log: &XRay,
    placement: &Placement,
    keys: &FunctionKeys,
    index: usize,
) -> Option<RecordBatch> {
    let LogContent::Profile(survey) = log.content() else { return None };
    let block = survey.blocks.get(index)?;
    let pid = log.header().profile.map_or(0, |profile| profile.pid as i32);
    let thread_id = thread_key(placement, (pid, block.header.thread as i32));
    let mut table = call_sums::Builder::new();
    let mut times = PathTimes::default();
    let mut paths = Vec::new();
    let mut cursor = block.cursor(log.source(), log.header().endian);
    while cursor.remaining() > 0 {
        let Ok(path) = read_path(&mut cursor) else { break };
        paths.push((times.add(&path), path));
    }
    times.finish(|ticks| placement.clock.ns(ticks).saturating_sub(placement.clock.offset_ns));
    for (number, path) in paths {
        let PathTime { total_ns, self_ns } = times.take(number);
        let functions: Vec<u64> =
            path.functions.iter().map(|id| keys.get(id.cast_unsigned()).into()).collect();
        table.push(thread_id, &functions, path.calls, total_ns, self_ns, placement.source_id, path.offset);
    }
    Some(table.finish())
}
