//! Allocations in the form of samples, for analyses of samples.

use arrow_array::RecordBatch;
use perfuse_tables::{AllocationSum, samples};
use rustc_hash::FxHashMap;

use super::sums::AllocationSums;

/// Two rows of `samples` per thread and stack, by the time of the first allocation: event `allocated-bytes` has a weight in
/// bytes, event `allocations` in objects.
#[must_use]
pub fn samples(sums: &AllocationSums, first_sample: u64) -> RecordBatch {
    let mut row_of = FxHashMap::default();
    let mut rows: Vec<AllocationSum> = Vec::new();
    for sum in sums.all() {
        let row = *row_of.entry((sum.group.thread_id, sum.group.stack_id)).or_insert(rows.len());
        match rows.get_mut(row) {
            Some(row) => {
                row.count = row.count.saturating_add(sum.count);
                row.bytes = row.bytes.saturating_add(sum.bytes);
                row.first_ns = row.first_ns.min(sum.first_ns);
            }
            None => rows.push(*sum),
        }
    }
    rows.sort_by_key(|row| (row.first_ns, row.record_offset));
    let mut table = samples::Builder::new();
    for row in &rows {
        let weights = [(row.bytes, "bytes", "allocated-bytes"), (row.count, "allocations", "allocations")];
        for (weight, unit, event) in weights {
            table.push(
                first_sample.saturating_add(table.len() as u64),
                row.first_ns,
                row.group.thread_id,
                None,
                row.group.stack_id,
                weight,
                unit,
                event,
                row.source_id,
                row.record_offset,
            );
        }
    }
    table.finish()
}
