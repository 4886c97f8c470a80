//! Calls that the recorder added up itself: rows of table `call_sums`.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_tables::access::{ColumnError, lists, numbers};

use super::NONE;
use super::tree::{Place, Tree};

impl Tree {
    /// Puts a batch of `call_sums` among the calls. They have no time of their own: their paths begin at 0.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn add_sums(&mut self, batch: &RecordBatch) -> Result<(), ColumnError> {
        let threads = numbers::<UInt32Type>(batch, "thread_id")?;
        let paths = lists(batch, "functions")?;
        let calls = numbers::<UInt64Type>(batch, "num_calls")?;
        let selves = numbers::<Int64Type>(batch, "self_ns")?;
        let sources = numbers::<UInt32Type>(batch, "source_id")?;
        let offsets = numbers::<UInt64Type>(batch, "record_offset")?;
        let functions = paths.values().as_primitive_opt::<UInt64Type>();
        let functions = functions.ok_or(ColumnError { column: "functions" })?.values();
        let ends = paths.value_offsets();
        for row in 0..batch.num_rows() {
            let path = &functions[ends[row] as usize..ends[row + 1] as usize];
            let thread_id = threads.value(row);
            if path.is_empty() || !self.options().selection.has(thread_id) {
                continue;
            }
            // The recorder's arithmetic goes under where a stack was left by `longjmp`.
            let self_ns = selves.value(row).max(0).unsigned_abs();
            let group = self.group(thread_id, None);
            let mut node = self.thread(thread_id);
            for &function in path.iter().rev() {
                node = self.child(node, u32::try_from(function).unwrap_or(NONE - 1), group);
                let total_ns = &mut self.nodes[node as usize].total_ns;
                *total_ns = total_ns.saturating_add(self_ns);
            }
            let node = node as usize;
            self.nodes[node].num_calls = self.nodes[node].num_calls.saturating_add(calls.value(row));
            self.nodes[node].self_ns = self.nodes[node].self_ns.saturating_add(self_ns);
            let (source_id, record_offset) = (sources.value(row), offsets.value(row));
            self.places[node] = Place { source_id, record_offset, ..self.places[node] };
        }
        Ok(())
    }
}
