//! Sums of calls made by the recorder: rows of table `call_sums`.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Int64Array, RecordBatch};
use perfuse_tables::access::{ColumnError, lists, numbers};

use super::tree::CallPathTree;
use crate::NONE;

impl CallPathTree {
    /// Adds a batch of `call_sums`. Sums have no time: their paths begin at 0.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn add_sums(&mut self, batch: &RecordBatch) -> Result<(), ColumnError> {
        let threads = numbers::<UInt32Type>(batch, "thread_id")?;
        let paths = lists(batch, "functions")?;
        let calls = numbers::<UInt64Type>(batch, "num_calls")?;
        let totals = numbers::<Int64Type>(batch, "total_ns")?;
        let selves = numbers::<Int64Type>(batch, "self_ns")?;
        let sources = numbers::<UInt32Type>(batch, "source_id")?;
        let offsets = numbers::<UInt64Type>(batch, "record_offset")?;
        let functions = paths.values().as_primitive_opt::<UInt64Type>();
        let functions = functions.ok_or(ColumnError { column: "functions" })?.values();
        let starts = paths.value_offsets();
        let ranges = starts.iter().zip(starts.iter().skip(1));
        for (row, (&start, &end)) in (0..batch.num_rows()).zip(ranges) {
            let path = functions.get(start as usize..end as usize).unwrap_or_default();
            let thread_id = threads.value(row);
            if path.is_empty() || !self.options().selection.has(thread_id) {
                continue;
            }
            let ns = |column: &Int64Array| column.value(row).max(0).unsigned_abs();
            let (total_ns, self_ns) = (ns(totals), ns(selves));
            let group = self.group(thread_id, None);
            let mut node = self.thread(thread_id);
            for &function in path.iter().rev() {
                node = self.child(node, u32::try_from(function).unwrap_or(NONE - 1), group);
                if let Some(node) = self.nodes.get_mut(node as usize) {
                    node.total_ns = node.total_ns.saturating_add(self_ns);
                }
            }
            let summed = self.summed.entry(node).or_default();
            *summed = summed.saturating_add(total_ns);
            let (Some(node), Some(place)) =
                (self.nodes.get_mut(node as usize), self.places.get_mut(node as usize))
            else {
                continue;
            };
            node.num_calls = node.num_calls.saturating_add(calls.value(row));
            node.self_ns = node.self_ns.saturating_add(self_ns);
            (place.source_id, place.record_offset) = (sources.value(row), offsets.value(row));
        }
        Ok(())
    }
}
