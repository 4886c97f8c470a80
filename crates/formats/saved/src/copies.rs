//! Recordings in a saved profile: compressed copies, of which bytes that no table needs may be blank.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch};
use perfuse_recording::{
    BatchStream, CallStream, Clock, Format, Placement, Position, Rate, RecordedPrograms, Recording, Repaired,
    SamplingFacts, Source, Summary, TableRequest, WallClockTime, in_memory_bytes,
};
use perfuse_tables::{AllocationSum, CodeUnwinding, FrameRecovery, Offsets, SnapshotSum, UserStack};
use perfuse_wire::{Diagnostics, RecordView};
use rayon::prelude::*;

/// Copies of this size are compressed as much as possible.
const SMALL_BYTES: usize = 4 << 20;
const SMALL_LEVEL: i32 = 19;
const LARGE_LEVEL: i32 = 9;
/// Bytes of a frame of a larger copy: frames are packed and unpacked in parallel.
const FRAME_BYTES: usize = 4 << 20;
/// Largest frame that is unpacked as a whole.
const MAX_FRAME_BYTES: u64 = 16 << 20;
/// Number of bytes that are unpacked at once otherwise.
const CHUNK_BYTES: usize = 1 << 20;

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Writes the bytes of a recording, compressed by zstd, with zeros in place of some ranges, which are sorted.
///
/// # Errors
/// Those of the output.
pub fn write_copy(source: &Source, blank: &[Range<u64>], mut out: impl Write) -> io::Result<()> {
    let level = if source.len() <= SMALL_BYTES { SMALL_LEVEL } else { LARGE_LEVEL };
    let starts: Vec<usize> = (0..source.len().max(1)).step_by(FRAME_BYTES).collect();
    let frame = |start: &usize| {
        let end = start.saturating_add(FRAME_BYTES).min(source.len());
        let mut bytes = source.get(*start..end).unwrap_or_default().to_vec();
        let first = blank.partition_point(|range| range.end <= *start as u64);
        for range in
            blank.get(first..).unwrap_or_default().iter().take_while(|range| range.start < end as u64)
        {
            let place =
                |at: u64| usize::try_from(at).unwrap_or(end).clamp(*start, end).saturating_sub(*start);
            if let Some(zeros) = bytes.get_mut(place(range.start)..place(range.end)) {
                zeros.fill(0);
            }
        }
        let mut packer = zstd::bulk::Compressor::new(level)?;
        packer.include_checksum(true)?;
        packer.compress(&bytes)
    };
    for group in starts.chunks(perfuse_workers::num_threads().max(1)) {
        perfuse_stopping::checkpoint();
        let packed: Vec<_> = perfuse_workers::install(|| group.par_iter().map(frame).collect());
        for one in packed {
            out.write_all(&one?)?;
        }
    }
    out.flush()
}

/// Unpacks a copy of a recording that had `size` bytes.
///
/// # Errors
/// Where it is damaged or has another size.
pub fn read_copy(packed: &[u8], size: u64, path: &str, most: u64) -> io::Result<Source> {
    if size > most {
        return Err(invalid(format!("the recording of {size} bytes in {} is too large", packed.len())));
    }
    let frames = frames(packed, size);
    if let Some(frames) = frames.as_deref().filter(|_| size <= in_memory_bytes()) {
        return perfuse_recording::Spill::of(unpack_in_memory(frames, size)?).finish(path);
    }
    let mut spill = perfuse_recording::Spill::default();
    match frames {
        Some(frames) => {
            for group in frames.chunks(perfuse_workers::num_threads().max(1)) {
                perfuse_stopping::checkpoint();
                let unpack = |(frame, len): &(&[u8], usize)| zstd::bulk::decompress(frame, *len);
                let unpacked: Vec<_> = perfuse_workers::install(|| group.par_iter().map(unpack).collect());
                for one in unpacked {
                    spill.push(&one?)?;
                }
            }
        }
        None => {
            let mut decoder = zstd::Decoder::with_buffer(packed)?.take(size.saturating_add(1));
            let mut chunk = vec![0u8; CHUNK_BYTES];
            loop {
                perfuse_stopping::checkpoint();
                match decoder.read(&mut chunk)? {
                    0 => break,
                    len => spill.push(chunk.get(..len).unwrap_or_default())?,
                }
            }
        }
    }
    if spill.len() != size {
        return Err(invalid(format!("the recording has not {size} bytes")));
    }
    spill.finish(path)
}

/// Unpacks frames in parallel, each to its place.
fn unpack_in_memory(frames: &[(&[u8], usize)], size: u64) -> io::Result<Vec<u8>> {
    let mismatch = || invalid(format!("the recording has not {size} bytes"));
    let len = usize::try_from(size).map_err(|_| mismatch())?;
    if frames.iter().try_fold(0usize, |sum, (_, len)| sum.checked_add(*len)) != Some(len) {
        return Err(mismatch());
    }
    let mut unpacked = vec![0u8; len];
    let (mut rest, mut places) = (unpacked.as_mut_slice(), Vec::new());
    for (frame, len) in frames {
        let (place, after) = rest.split_at_mut_checked(*len).ok_or_else(mismatch)?;
        places.push((*frame, place));
        rest = after;
    }
    for group in places.chunks_mut(perfuse_workers::num_threads().max(1)) {
        perfuse_stopping::checkpoint();
        let unpack = |(frame, place): &mut (&[u8], &mut [u8])| {
            let len = zstd::bulk::decompress_to_buffer(frame, place)?;
            if len == place.len() { Ok(()) } else { Err(mismatch()) }
        };
        perfuse_workers::install(|| group.par_iter_mut().map(unpack).collect::<io::Result<()>>())?;
    }
    Ok(unpacked)
}

/// The frames of a copy with their sizes; `None` where it has one, or they are not as [`write_copy`] makes them.
fn frames(packed: &[u8], size: u64) -> Option<Vec<(&[u8], usize)>> {
    let (mut rest, mut left) = (packed, size);
    let mut all = Vec::new();
    while !rest.is_empty() {
        let len = zstd::zstd_safe::find_frame_compressed_size(rest).ok()?;
        let (frame, after) = rest.split_at_checked(len).filter(|_| len > 0)?;
        let unpacked = zstd::zstd_safe::get_frame_content_size(frame).ok()??;
        left = left.checked_sub(unpacked).filter(|_| unpacked <= MAX_FRAME_BYTES)?;
        all.push((frame, usize::try_from(unpacked).ok()?));
        rest = after;
    }
    (all.len() > 1).then_some(all)
}

/// A recording whose copy lacks the machine code of some code objects.
pub struct SavedCopy {
    inner: Arc<dyn Recording>,
    /// Numbers of the code objects whose bytes it has, sorted; all where `None`.
    code: Option<Vec<u32>>,
}

impl SavedCopy {
    /// Of a recording that was read from a copy.
    #[must_use]
    pub fn new(inner: Arc<dyn Recording>, code: Option<Vec<u32>>) -> Self {
        Self { inner, code }
    }
}

/// The batch with null for the machine code of code objects that are not in `kept`.
fn without_blank_code(batch: RecordBatch, kept: &[u32], first: u32) -> RecordBatch {
    let schema = batch.schema();
    let (Ok(ids), Ok(code)) = (schema.index_of("code_object_id"), schema.index_of("code")) else {
        return batch;
    };
    let ids = batch.column(ids).as_primitive_opt::<UInt32Type>();
    let bytes = batch.column(code).as_binary_opt::<i32>();
    let (Some(ids), Some(bytes)) = (ids, bytes) else { return batch };
    let is_kept = |id: u32| id.checked_sub(first).is_some_and(|number| kept.binary_search(&number).is_ok());
    let rows = ids.values().iter().enumerate();
    let known: BinaryArray =
        rows.map(|(row, id)| (is_kept(*id) && bytes.is_valid(row)).then(|| bytes.value(row))).collect();
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    if let Some(column) = columns.get_mut(code) {
        *column = Arc::new(known);
    }
    RecordBatch::try_new(schema, columns).unwrap_or(batch)
}

impl Recording for SavedCopy {
    fn format(&self) -> &'static Format {
        self.inner.format()
    }

    fn source(&self) -> &Arc<Source> {
        self.inner.source()
    }

    fn summary(&self) -> Summary {
        self.inner.summary()
    }

    fn read_record<'a>(&'a self, at: &mut Position, wanted: &dyn Fn(&str) -> bool) -> Option<RecordView<'a>> {
        self.inner.read_record(at, wanted)
    }

    fn seek_index(&self, index: u64) -> Position {
        self.inner.seek_index(index)
    }

    fn seek_offset(&self, offset: u64) -> Option<Position> {
        self.inner.seek_offset(offset)
    }

    fn check(&self, sink: &mut Diagnostics) {
        self.inner.check(sink);
    }

    fn findings(&self, sink: &mut Diagnostics) {
        self.inner.findings(sink);
    }

    fn repair(&self, out: &mut std::fs::File) -> io::Result<Repaired> {
        self.inner.repair(out)
    }

    fn clock(&self, rate: Rate) -> Clock {
        self.inner.clock(rate)
    }

    fn span(&self) -> Option<(u64, u64)> {
        self.inner.span()
    }

    fn without_copies_of(&self, earlier: &[Arc<dyn Recording>]) -> Option<(Arc<dyn Recording>, u64)> {
        let (rest, num_copied) = self.inner.without_copies_of(earlier)?;
        Some((Arc::new(Self::new(rest, self.code.clone())), num_copied))
    }

    fn pids(&self) -> Vec<i32> {
        self.inner.pids()
    }

    fn process_start(&self) -> Option<i64> {
        self.inner.process_start()
    }

    fn wall_clock_time(&self) -> Option<WallClockTime> {
        self.inner.wall_clock_time()
    }

    fn recorded_programs(&self) -> RecordedPrograms {
        self.inner.recorded_programs()
    }

    fn sampling_facts(&self) -> Option<SamplingFacts> {
        self.inner.sampling_facts()
    }

    fn function_id_bits(&self) -> Option<u32> {
        self.inner.function_id_bits()
    }

    fn extent(&self) -> Offsets {
        self.inner.extent()
    }

    fn fills(&self, table: &str) -> bool {
        self.inner.fills(table)
    }

    fn num_rows(&self, table: &str) -> Option<u64> {
        self.inner.num_rows(table)
    }

    fn table(&self, name: &str, placement: &Placement, request: &TableRequest) -> Option<BatchStream> {
        let batches = self.inner.table(name, placement, request)?;
        let (Some(kept), true) = (&self.code, name == "code_objects" && request.with_bytes) else {
            return Some(batches);
        };
        let (kept, first) = (kept.clone(), placement.first.code_object);
        Some(Box::new(batches.map(move |batch| without_blank_code(batch, &kept, first))))
    }

    fn call_segments(&self, placement: &Placement) -> Vec<CallStream> {
        self.inner.call_segments(placement)
    }

    fn allocation_sums(&self, placement: &Placement) -> Option<Vec<AllocationSum>> {
        self.inner.allocation_sums(placement)
    }

    fn snapshot_sums(&self, placement: &Placement) -> Option<Vec<SnapshotSum>> {
        self.inner.snapshot_sums(placement)
    }

    fn num_user_stacks(&self) -> u64 {
        self.inner.num_user_stacks()
    }

    fn has_link_registers(&self) -> bool {
        self.inner.has_link_registers()
    }

    fn user_stack(&self, number: u64, registers: &mut Vec<u64>) -> Option<UserStack<'_>> {
        self.inner.user_stack(number, registers)
    }

    fn code_unwinding(&self, code_object: u32) -> Option<CodeUnwinding<'_>> {
        self.inner.code_unwinding(code_object)
    }

    fn recovery(&self, address: u64) -> Option<FrameRecovery> {
        self.inner.recovery(address)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self.inner.as_any()
    }
}
