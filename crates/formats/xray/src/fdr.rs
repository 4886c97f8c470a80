//! One pass over an FDR log: its blocks, their order in time, their copies.

use std::ops::Range;

use perfuse_workers::{in_call, install};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rustc_hash::FxHashMap;

use super::block::{FdrBlock, RecordCounts, TscState, joined, read_blocks};
use super::header::Header;
use super::ids::FunctionIds;
use super::reader::{BufferExtent, FileRegion, Reader};
use perfuse_recording::Source;

/// Number of bytes that are read together.
const BATCH_BYTES: usize = 1 << 20;

/// The result of one pass over an FDR log.
#[derive(Debug, Default)]
pub struct FdrSurvey {
    /// The blocks, in file order.
    pub blocks: Vec<FdrBlock>,
    /// Ranges that are not part of any block.
    pub gaps: Vec<Range<usize>>,
    /// Indexes of the blocks in order of time: by wall time, then counter, then file order. Without copies.
    pub order: Vec<usize>,
    /// For each copy, the block that it duplicates.
    pub copies: FxHashMap<usize, usize>,
    /// The initial counter and processor of blocks without a NewCPUId of their own.
    pub carried: FxHashMap<usize, TscState>,
    /// Number of records by kind.
    pub counts: RecordCounts,
    /// The numbers of all processors, combined by `or`: 0 where each is 0.
    pub cpus: u16,
    /// All function ids, ascending.
    pub function_ids: Vec<u32>,
    /// Smallest and largest counter.
    pub span: Option<(u64, u64)>,
}

/// Neighbouring items that are read together, since one system call per small buffer is expensive.
#[derive(Clone, Debug)]
pub struct ReadBatch {
    /// Range of the items.
    pub items: Range<usize>,
    /// Range of their bytes.
    pub bytes: Range<usize>,
}

/// Divides items in file order into batches of about a megabyte.
#[must_use]
pub fn read_batches<T>(items: &[T], bytes_of: impl Fn(&T) -> Range<usize>) -> Vec<ReadBatch> {
    let mut read_batches: Vec<ReadBatch> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let bytes = bytes_of(item);
        match read_batches.last_mut() {
            Some(last) if last.bytes.len() < BATCH_BYTES => {
                last.items.end = index.saturating_add(1);
                last.bytes.end = bytes.end.max(last.bytes.end);
            }
            _ => read_batches.push(ReadBatch { items: index..index.saturating_add(1), bytes }),
        }
    }
    read_batches
}

/// Process and thread ids of a block; 0 where unknown.
#[must_use]
pub fn thread_ids(block: &FdrBlock) -> (i32, i32) {
    (block.pid.unwrap_or(0), block.tid.unwrap_or(0))
}

impl FdrSurvey {
    /// Reads the whole file, its buffers in parallel.
    #[must_use]
    pub fn new(source: &Source, header: &Header) -> Self {
        let mut extents: Vec<BufferExtent> = Vec::new();
        let mut gaps: Vec<Range<usize>> = Vec::new();
        for region in Reader::new(source, header) {
            match region {
                FileRegion::Buffer(extent) => extents.push(extent),
                FileRegion::Gap(range) => match gaps.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => gaps.push(range),
                },
            }
        }
        let dialect = header.dialect();
        let jobs = read_batches(&extents, |extent| extent.records.clone());
        let walk = |ReadBatch { items, bytes }| {
            let mut ids = FunctionIds::default();
            let extents = extents.get(items).unwrap_or_default().iter();
            let blocks: Vec<FdrBlock> =
                extents.flat_map(|extent| read_blocks(source, extent, dialect, &mut ids)).collect();
            source.release(bytes);
            (blocks, ids)
        };
        let walked: Vec<_> = install(|| jobs.into_par_iter().map(in_call(walk)).collect());
        let mut blocks = Vec::with_capacity(walked.iter().map(|(blocks, _)| blocks.len()).sum());
        let ids = walked.into_iter().fold(FunctionIds::default(), |ids, (more, block_ids)| {
            blocks.extend(more);
            ids.union(block_ids)
        });
        let mut survey = Self { gaps, function_ids: ids.sorted(), blocks, ..Self::default() };
        survey.find_copies(source);
        survey.complete();
        survey
    }

    /// The survey of a part of the blocks of another one.
    #[must_use]
    pub fn of_blocks(blocks: Vec<FdrBlock>, whole: &Self) -> Self {
        let (gaps, function_ids) = (whole.gaps.clone(), whole.function_ids.clone());
        let mut survey = Self { gaps, function_ids, blocks, ..Self::default() };
        survey.complete();
        survey
    }

    /// Fills what follows from the blocks and their copies.
    fn complete(&mut self) {
        self.counts = self.blocks.iter().fold(RecordCounts::default(), |mut counts, block| {
            counts.add(&block.counts);
            counts
        });
        self.cpus = self.blocks.iter().fold(0, |all, block| all | block.cpus);
        self.sort_by_time();
        self.carry_tsc_states();
    }

    /// Finds copies: the runtime's queue may flush the slot of a buffer that is still in use, so that the content of
    /// another one appears twice.
    fn find_copies(&mut self, source: &Source) {
        let mut first: FxHashMap<_, Vec<usize>> = FxHashMap::default();
        for (index, block) in self.blocks.iter().enumerate() {
            let bytes = |block: &FdrBlock| source.get(block.records.clone()).unwrap_or_default();
            let Some(wall) = block.known_wall() else { continue };
            let same =
                first.entry((thread_ids(block), wall, block.first_cpu, block.records.len())).or_default();
            let original = same.iter().copied().find(|&earlier| {
                self.blocks.get(earlier).is_some_and(|earlier| bytes(earlier) == bytes(block))
            });
            match original {
                Some(original) => {
                    self.copies.insert(index, original);
                }
                // Blocks that share all this but differ are few, unless the file is hostile: only this many are
                // compared.
                None if same.len() < 8 => same.push(index),
                None => {}
            }
        }
    }

    /// Computes the order of the blocks in time.
    fn sort_by_time(&mut self) {
        // A block without a wall time sorts with the thread's block before it.
        let mut last: FxHashMap<(i32, i32), (i64, i32)> = FxHashMap::default();
        let mut keyed = Vec::with_capacity(self.blocks.len());
        for (index, block) in self.blocks.iter().enumerate() {
            let thread_ids = thread_ids(block);
            let wall = block.known_wall().or_else(|| last.get(&thread_ids).copied());
            if let Some(wall) = wall {
                last.insert(thread_ids, wall);
            }
            if !self.copies.contains_key(&index) {
                keyed.push((wall, block.first_cpu.map(|(_, tsc)| tsc), index));
            }
        }
        keyed.sort();
        self.order = keyed.into_iter().map(|(_, _, index)| index).collect();
    }

    /// Carries counter and processor over: LLVM 5 writes NewCPUId in the first buffer of a thread only.
    fn carry_tsc_states(&mut self) {
        let mut last: FxHashMap<(i32, i32), TscState> = FxHashMap::default();
        for &index in &self.order {
            let Some(block) = self.blocks.get(index) else { continue };
            let before = last.get(&thread_ids(block)).copied();
            let begins_whole = block.slices.first().is_none_or(|(_, clock)| clock.is_whole);
            let mut span = block.span;
            if let Some(before) = before.filter(|_| !begins_whole) {
                self.carried.insert(index, before);
                if !block.last.is_whole {
                    let add = |tsc: u64| tsc.wrapping_add(before.tsc);
                    span = span.map(|(low, high)| (add(low), add(high)));
                }
            }
            last.insert(thread_ids(block), before.map_or(block.last, |before| block.last.after(before)));
            self.span = span.map(|span| joined(self.span, span)).or(self.span);
        }
    }

    /// The state at the start of a slice of a block.
    #[must_use]
    pub fn clock(&self, index: usize, unit: TscState) -> TscState {
        match self.carried.get(&index) {
            Some(&before) => unit.after(before),
            None => unit,
        }
    }
}
