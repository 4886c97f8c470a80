//! The content of one FDR buffer: its thread and times, the number of its records, and where decoding can start.

use std::ops::Range;

use perfuse_wire::ParseError;

use super::consts::{Action, FUNCTION_BYTES, MetadataKind};
use super::event_payloads::{payloads_follow, shorten_by_overwritten};
use super::ids::FunctionIds;
use super::reader::{BufferEnd, BufferExtent};
use super::record_iter::{RecordItem, RecordIter};
use super::records::{Event, EventTime, Record, XRayDialect};

/// Number of function records between two offsets from which decoding can start.
pub const RECORDS_PER_SLICE: usize = 1 << 14;

/// Number of records of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Function records by action; the last four actions are undefined.
    pub functions: [u64; 8],
    /// Metadata records of known kinds.
    pub metadata: [u64; 10],
    /// Metadata records of unknown kinds.
    pub unknown: u64,
}

impl RecordCounts {
    /// Adds the counts of another block.
    pub fn add(&mut self, other: &Self) {
        let pairs = self.functions.iter_mut().zip(other.functions);
        for (count_here, other_count) in pairs.chain(self.metadata.iter_mut().zip(other.metadata)) {
            *count_here = count_here.saturating_add(other_count);
        }
        self.unknown = self.unknown.saturating_add(other.unknown);
    }

    /// Number of metadata records of one kind.
    #[must_use]
    pub fn of(&self, kind: MetadataKind) -> u64 {
        self.metadata.get(usize::from(kind.0)).copied().unwrap_or(self.unknown)
    }

    fn count(&mut self, kind: MetadataKind) {
        let count = self.metadata.get_mut(usize::from(kind.0)).unwrap_or(&mut self.unknown);
        *count = count.saturating_add(1);
    }

    /// Number of function records and events.
    #[must_use]
    pub fn num_events(&self) -> u64 {
        let events = [MetadataKind::CUSTOM_EVENT_MARKER, MetadataKind::TYPED_EVENT_MARKER];
        self.functions.iter().copied().chain(events.map(|kind| self.of(kind))).fold(0, u64::saturating_add)
    }

    /// Number of all records.
    #[must_use]
    pub fn total(&self) -> u64 {
        let all = self.functions.iter().chain(&self.metadata);
        all.fold(self.unknown, |sum, &count| sum.saturating_add(count))
    }
}

/// A span of counters that contains another too. Of two counters that one is later that follows the other by less than half
/// of all counters: a counter that wraps around does not become early.
#[must_use]
pub fn joined(span: Option<(u64, u64)>, (first, last): (u64, u64)) -> (u64, u64) {
    let Some((low, high)) = span else { return (first, last) };
    let is_before = |a: u64, b: u64| a.wrapping_sub(b).cast_signed() < 0;
    (if is_before(first, low) { first } else { low }, if is_before(high, last) { last } else { high })
}

/// The counter and the processor at a position in a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TscState {
    /// The counter. Relative to the start of the buffer until a record contains an absolute counter.
    pub tsc: u64,
    /// Processor.
    pub cpu: Option<u16>,
    /// Whether a record contained an absolute counter.
    pub is_whole: bool,
}

impl TscState {
    /// Applies a function record.
    #[inline]
    pub fn step(&mut self, tsc_delta: u32) {
        self.tsc = self.tsc.wrapping_add(u64::from(tsc_delta));
    }

    /// Applies a metadata record; returns the time of an event.
    pub fn metadata(&mut self, record: &Record<'_>) -> Option<u64> {
        match record {
            Record::NewCpuId { cpu, tsc } => {
                (self.tsc, self.cpu, self.is_whole) = (*tsc, Some(*cpu), true);
                None
            }
            Record::TscWrap { tsc } => {
                (self.tsc, self.is_whole) = (*tsc, true);
                None
            }
            Record::Custom(Event { time, .. }) | Record::Typed(Event { time, .. }) => Some(match *time {
                EventTime::Tsc(tsc) => tsc,
                EventTime::Delta(delta) => {
                    self.tsc = self.tsc.wrapping_add_signed(delta.into());
                    self.tsc
                }
            }),
            _ => None,
        }
    }

    /// This state in a buffer that continues from the last state of another.
    #[must_use]
    pub fn after(self, before: Self) -> Self {
        if self.is_whole {
            return self;
        }
        Self {
            tsc: self.tsc.wrapping_add(before.tsc),
            cpu: self.cpu.or(before.cpu),
            is_whole: before.is_whole,
        }
    }
}

/// A buffer, or the part of one that begins with another NewBuffer.
#[derive(Clone, Debug)]
pub struct FdrBlock {
    /// Offset of BufferExtents, or else of the first record.
    pub offset: u64,
    /// Range of the records, without BufferExtents, up to where they can be read.
    pub records: Range<usize>,
    /// Where the buffer ends, whether readable or not.
    pub end: usize,
    /// How that end was determined.
    pub bound: BufferEnd,
    /// Whether it begins with another NewBuffer in the buffer of the previous block.
    pub is_later_part: bool,
    /// Thread id.
    pub tid: Option<i32>,
    /// Process id.
    pub pid: Option<i32>,
    /// Seconds and microseconds of CLOCK_MONOTONIC when the buffer was started.
    pub wall: Option<(i64, i32)>,
    /// Processor and counter of the first NewCPUId, which belong to the wall time.
    pub first_cpu: Option<(u16, u64)>,
    /// The numbers of all processors, combined by `or`: 0 where each is 0.
    pub cpus: u16,
    /// Whether event markers are followed by the bytes of the event.
    pub payloads: bool,
    /// Number of records by kind.
    pub counts: RecordCounts,
    /// Number of bytes of events, as their markers state.
    pub event_bytes: u64,
    /// The state after the last record.
    pub last: TscState,
    /// Smallest and largest counter, absolute or relative.
    pub span: Option<(u64, u64)>,
    /// Offsets from which decoding can start, with the state there.
    pub slices: Vec<(usize, TscState)>,
    /// Why the end of the buffer cannot be read.
    pub broken: Option<Box<ParseError>>,
    /// Number of bytes known to be missing at the end.
    pub missing: u64,
}

/// Reads a buffer, which becomes several blocks where it contains several NewBuffer records. Function ids are added
/// to `ids`.
#[must_use]
pub fn read_blocks(
    data: &[u8],
    extent: &BufferExtent,
    dialect: XRayDialect,
    ids: &mut FunctionIds,
) -> Vec<FdrBlock> {
    let payloads = dialect.version > 3 || payloads_follow(data, extent, dialect);
    BlockBuilder::new(data, extent, XRayDialect { payloads, ..dialect }, ids).run()
}

/// Reads the records of a block from an offset on: a block of the same buffer, without the records before it.
#[must_use]
pub fn read_rest(data: &[u8], block: &FdrBlock, dialect: XRayDialect, offset: usize) -> FdrBlock {
    let dialect = XRayDialect { payloads: block.payloads, ..dialect };
    let mut records = RecordIter::new(data, block.records.start..offset, dialect);
    let mut clock = TscState::default();
    loop {
        records.functions(usize::MAX).for_each(|_, _, delta| clock.step(delta));
        let Some(RecordItem::Metadata { record, .. }) = records.next() else { break };
        clock.metadata(&record);
    }
    let records = offset..block.records.end;
    let extent = BufferExtent { extents: None, records, bound: block.bound };
    let mut ids = FunctionIds::default();
    let mut builder = BlockBuilder::new(data, &extent, dialect, &mut ids);
    builder.clock = clock;
    let Some(rest) = builder.run().into_iter().next() else { return block.clone() };
    let FdrBlock { records, counts, event_bytes, last, span, slices, .. } = rest;
    FdrBlock { records, counts, event_bytes, last, span, slices, ..block.clone() }
}

impl FdrBlock {
    /// The wall time; `None` where it is unknown, which writers state with 0.
    #[must_use]
    pub fn known_wall(&self) -> Option<(i64, i32)> {
        self.wall.filter(|&wall| wall != (0, 0))
    }

    /// Whether it has custom or typed events.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.counts.of(MetadataKind::CUSTOM_EVENT_MARKER) > 0
            || self.counts.of(MetadataKind::TYPED_EVENT_MARKER) > 0
    }
}

/// Reads one buffer into blocks.
struct BlockBuilder<'a, 'b> {
    data: &'a [u8],
    extent: &'a BufferExtent,
    dialect: XRayDialect,
    ids: &'b mut FunctionIds,
    blocks: Vec<FdrBlock>,
    clock: TscState,
}

impl<'a, 'b> BlockBuilder<'a, 'b> {
    fn new(data: &'a [u8], extent: &'a BufferExtent, dialect: XRayDialect, ids: &'b mut FunctionIds) -> Self {
        Self { data, extent, dialect, ids, blocks: Vec::new(), clock: TscState::default() }
    }

    /// An empty block that starts at this offset.
    fn block(&self, start: usize) -> FdrBlock {
        let missing = if let BufferEnd::Cut(missing) = self.extent.bound { missing } else { 0 };
        let is_later_part = start != self.extent.records.start;
        let extents = self.extent.extents.filter(|_| !is_later_part);
        let mut counts = RecordCounts::default();
        if extents.is_some() {
            counts.count(MetadataKind::BUFFER_EXTENTS);
        }
        FdrBlock {
            offset: extents.unwrap_or(start as u64),
            records: start..start,
            end: self.extent.records.end,
            bound: self.extent.bound,
            is_later_part,
            tid: None,
            pid: None,
            wall: None,
            first_cpu: None,
            cpus: 0,
            payloads: self.dialect.payloads,
            counts,
            event_bytes: 0,
            last: TscState::default(),
            span: None,
            slices: Vec::new(),
            broken: None,
            missing,
        }
    }

    /// Reads all records of the buffer.
    fn run(mut self) -> Vec<FdrBlock> {
        let mut records = RecordIter::new(self.data, self.extent.records.clone(), self.dialect);
        let mut block = self.block(records.offset());
        loop {
            self.functions(&mut records, &mut block);
            match records.next() {
                None => break,
                Some(RecordItem::Function { .. }) => {}
                Some(RecordItem::Broken(error)) => {
                    block.broken = Some(Box::new(error));
                    break;
                }
                Some(RecordItem::Metadata { offset, record, .. }) => {
                    if matches!(record, Record::NewBuffer { .. }) && offset > block.records.start {
                        let next = self.block(offset);
                        self.finish(std::mem::replace(&mut block, next), offset);
                    }
                    if self.metadata(&mut block, &record, offset, &mut records) {
                        break;
                    }
                }
            }
        }
        let end = records.offset();
        self.finish(block, end);
        self.blocks
    }

    /// Completes a block that ends at this offset, and the one before it.
    fn finish(&mut self, mut block: FdrBlock, end: usize) {
        block.records.end = end;
        block.last = std::mem::take(&mut self.clock);
        self.blocks.push(block);
        if let [.., before, last] = self.blocks.as_mut_slice() {
            before.end = last.records.start;
            before.missing = 0;
        }
    }

    /// Reads a run of function records.
    fn functions(&mut self, records: &mut RecordIter<'_>, block: &mut FdrBlock) {
        loop {
            let (offset, before) = (records.offset(), self.clock);
            let run = records.functions(RECORDS_PER_SLICE);
            if run.is_empty() {
                return;
            }
            let (mut tsc, counts, ids) = (self.clock.tsc, &mut block.counts.functions, &mut *self.ids);
            run.for_each(|Action(action), id, delta| {
                tsc = tsc.wrapping_add(u64::from(delta));
                if let Some(count) = counts.get_mut(usize::from(action)) {
                    *count = count.wrapping_add(1);
                }
                ids.insert(id);
            });
            self.clock.tsc = tsc;
            self.extend_span(block, before.tsc, tsc);
            let starts_slice = block.slices.last().is_none_or(|&(last, _)| {
                offset.saturating_sub(last) >= RECORDS_PER_SLICE.saturating_mul(FUNCTION_BYTES)
            });
            if starts_slice {
                block.slices.push((offset, before));
            }
        }
    }

    /// Extends the span of a block by two counters.
    fn extend_span(&self, block: &mut FdrBlock, first: u64, last: u64) {
        block.span = Some(joined(block.span, (first, last)));
    }

    /// Reads a metadata record; returns whether it ends the buffer.
    fn metadata(
        &mut self,
        block: &mut FdrBlock,
        record: &Record<'_>,
        offset: usize,
        records: &mut RecordIter<'_>,
    ) -> bool {
        let kind = match record {
            Record::NewBuffer { tid } => {
                block.tid = Some(*tid);
                MetadataKind::NEW_BUFFER
            }
            Record::EndOfBuffer => MetadataKind::END_OF_BUFFER,
            Record::NewCpuId { cpu, tsc } => {
                let _ = block.first_cpu.get_or_insert((*cpu, *tsc));
                block.cpus |= cpu;
                MetadataKind::NEW_CPU_ID
            }
            Record::TscWrap { .. } => MetadataKind::TSC_WRAP,
            Record::WallTime { seconds, microseconds } => {
                let _ = block.wall.get_or_insert((*seconds, *microseconds));
                MetadataKind::WALL_TIME_MARKER
            }
            Record::Custom(event) | Record::Typed(event) => {
                block.event_bytes = block.event_bytes.saturating_add(u64::try_from(event.size).unwrap_or(0));
                if block.slices.is_empty() {
                    block.slices.push((offset, self.clock));
                }
                if event.event_type.is_some() {
                    MetadataKind::TYPED_EVENT_MARKER
                } else {
                    MetadataKind::CUSTOM_EVENT_MARKER
                }
            }
            Record::CallArgument(_) => MetadataKind::CALL_ARGUMENT,
            Record::BufferExtents(_) => MetadataKind::BUFFER_EXTENTS,
            Record::Pid(pid) => {
                // Earlier versions do not define this kind: the bytes only look like it.
                if self.dialect.version >= 3 {
                    let _ = block.pid.get_or_insert(*pid);
                }
                MetadataKind::PID
            }
            Record::Unknown(kind) => *kind,
            Record::Function { .. } => return false,
        };
        block.counts.count(kind);
        let was_whole = self.clock.is_whole;
        let event = self.clock.metadata(record);
        if self.clock.is_whole && !was_whole {
            // Relative counters are not part of the span.
            block.span = None;
        }
        if let Some(tsc) = event.filter(|_| self.clock.is_whole) {
            self.extend_span(block, tsc, tsc);
        }
        if let Record::Custom(event) | Record::Typed(event) = record {
            shorten_by_overwritten(records, event, self.dialect);
        }
        kind == MetadataKind::END_OF_BUFFER && self.dialect.version == 1
    }
}
