//! Rows of table `tracepoint_fields`: what the raw data of tracepoints' samples contains.

use arrow_array::RecordBatch;
use perfuse_tables::tracepoint_fields;
use rustc_hash::FxHashMap;

use super::perf_file::PerfFile;
use super::sample::SampleRecord;
use super::sample_rows::{SampleRow, SampleRows};
use super::tracepoints::{TraceFieldValue, Tracepoint};

/// Rows of the table.
pub struct TracepointFieldRows {
    /// The tracepoints, by the index of their event.
    tracepoints: FxHashMap<usize, Tracepoint>,
    table: tracepoint_fields::Builder,
}

impl TracepointFieldRows {
    /// Rows of a file.
    pub fn new(file: &PerfFile) -> Self {
        let tracepoints = file.tracepoints().iter().map(|one| (one.event, one.clone())).collect();
        Self { tracepoints, table: tracepoint_fields::Builder::new() }
    }
}

impl SampleRows for TracepointFieldRows {
    fn push(&mut self, row: &SampleRow<'_>, sample: &SampleRecord<'_>) {
        let (Some(tracepoint), Some(raw)) = (self.tracepoints.get(&row.event), sample.raw) else { return };
        for (name, value) in tracepoint.values(raw, row.endian) {
            let (number, text) = match value {
                TraceFieldValue::Number(number) => (Some(number), None),
                TraceFieldValue::Text(text) => (None, Some(text)),
            };
            self.table.push(
                row.sample_id,
                row.ts_ns,
                &row.attribute.name,
                name,
                number,
                text.as_deref(),
                row.source_id,
                row.record_offset,
            );
        }
    }

    fn len(&self) -> usize {
        self.table.len()
    }

    fn finish(&mut self) -> RecordBatch {
        self.table.finish()
    }
}
