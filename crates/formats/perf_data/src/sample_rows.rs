//! Tables with rows for parts of samples, in the order of the samples.

use std::sync::{Arc, PoisonError};

use arrow_array::RecordBatch;
use perfuse_recording::Placement;
use perfuse_tables::BATCH_ROWS;
use perfuse_wire::Endian;
use rustc_hash::FxHashMap;

use super::attribute::EventAttribute;
use super::off_cpu;
use super::order::TimeOrder;
use super::perf_file::PerfFile;
use super::reader::RecordPages;
use super::sample::SampleRecord;

/// What rows of a sample have in common.
#[derive(Clone, Copy, Debug)]
pub struct SampleRow<'a> {
    /// Key of the sample.
    pub sample_id: u64,
    /// Its time on the profile's clock, in nanoseconds.
    pub ts_ns: i64,
    /// Its process.
    pub process_id: u32,
    /// Index of its event.
    pub event: usize,
    /// Its event.
    pub attribute: &'a EventAttribute,
    /// Byte order of the recording.
    pub endian: Endian,
    /// Recording.
    pub source_id: u32,
    /// Offset of its record.
    pub record_offset: u64,
}

/// Makes the rows of a table.
pub trait SampleRows {
    /// Adds the rows of a sample.
    fn push(&mut self, row: &SampleRow<'_>, sample: &SampleRecord<'_>);
    /// Number of rows.
    fn len(&self) -> usize;
    /// Returns the rows as Arrow and removes them.
    fn finish(&mut self) -> RecordBatch;
}

/// Number of samples after which pages of the file are returned to the operating system.
const SAMPLES_BEFORE_RELEASE: u64 = 4096;

/// Batches of a table with rows for parts of samples.
pub struct SampleRowBatches<R> {
    file: Arc<PerfFile>,
    placement: Placement,
    order: TimeOrder,
    processes: FxHashMap<i32, u32>,
    next_id: u64,
    rows: R,
    pages: RecordPages,
}

impl<R: SampleRows> SampleRowBatches<R> {
    /// Batches of a file.
    pub fn new(file: &Arc<PerfFile>, placement: &Placement, rows: R) -> Self {
        Self {
            file: file.clone(),
            placement: placement.clone(),
            order: TimeOrder::samples(file),
            processes: FxHashMap::default(),
            next_id: placement.first.sample,
            rows,
            pages: RecordPages::default(),
        }
    }
}

impl<R: SampleRows> Iterator for SampleRowBatches<R> {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let Self { file, placement, order, processes, next_id, rows, pages } = self;
        while rows.len() < BATCH_ROWS {
            let Some(timed) = order.next(file) else { break };
            let Some(record) = file.at(timed.location) else { continue };
            let Some(head) = file.sample_head(&record) else { continue };
            let sample_id = *next_id;
            *next_id = next_id.saturating_add(1);
            // Few samples may have rows: pages are returned during a batch, too.
            if sample_id % SAMPLES_BEFORE_RELEASE == 0 {
                pages.release_before(file, order.oldest());
            }
            let Ok(sample) = file.sample(&record) else { continue };
            let found = file.attributes.find(record.record_type, record.body, file.endian);
            let Some((event, _)) = found else { continue };
            let Some(attribute) = file.attributes.list().get(event) else { continue };
            let pid = head.pid.unwrap_or(-1);
            let process_id = *processes.entry(pid).or_insert_with(|| {
                let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
                identities.process(file.guests.identity(placement, pid))
            });
            let time = off_cpu::time_within(head.time.unwrap_or(0), file.survey().span);
            let row = SampleRow {
                sample_id,
                ts_ns: placement.clock.ns(time),
                process_id,
                event,
                attribute,
                endian: file.endian,
                source_id: placement.source_id,
                record_offset: record.offset,
            };
            rows.push(&row, &sample);
        }
        pages.release_before(file, order.oldest());
        (rows.len() > 0).then(|| rows.finish())
    }
}
