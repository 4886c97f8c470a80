//! Allocations as if they had been sampled: so all that looks at samples looks at them too.

use arrow_array::RecordBatch;
use perfuse_tables::samples;
use rustc_hash::FxHashMap;

use super::sums::{Sum, Sums};

/// Two rows of `samples` for what a thread allocated from a stack, by the time of its first allocation: event
/// `allocated-bytes` weighs bytes, event `allocations` weighs objects.
#[must_use]
pub fn samples(sums: &Sums, first_sample: u64) -> RecordBatch {
    let mut places = FxHashMap::default();
    let mut rows: Vec<Sum> = Vec::new();
    for sum in sums.all() {
        let place = *places.entry((sum.key.thread_id, sum.key.stack_id)).or_insert(rows.len());
        match rows.get_mut(place) {
            Some(row) => {
                row.count += sum.count;
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
                first_sample + table.len() as u64,
                row.first_ns,
                row.key.thread_id,
                None,
                row.key.stack_id,
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
