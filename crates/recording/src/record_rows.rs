//! Table `records` of any format, from its decoded records.

use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_tables::{BATCH_ROWS, records};
use perfuse_wire::RecordView;

use crate::{BatchStream, Placement, Position, Recording, TableRequest};

/// A table of a recording: one that its format fills, or `records`, which every format has.
#[must_use]
pub fn table_of(
    recording: &Arc<dyn Recording>,
    name: &str,
    placement: &Placement,
    request: &TableRequest,
) -> Option<BatchStream> {
    let own = recording.table(name, placement, request);
    if own.is_some() || name != "records" {
        return own;
    }
    let (recording, placement) = (Arc::clone(recording), placement.clone());
    Some(Box::new(RecordRows { recording, placement, at: Some(Position::default()) }))
}

struct RecordRows {
    recording: Arc<dyn Recording>,
    placement: Placement,
    /// Position of the next record; `None` at the end.
    at: Option<Position>,
}

impl Iterator for RecordRows {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let mut at = self.at.take()?;
        let mut table = records::Builder::new();
        while table.len() < BATCH_ROWS {
            let Some(RecordView { index, offset, size, name, timestamp, .. }) =
                self.recording.next_record(&mut at)
            else {
                return Some(table.finish());
            };
            let ts_ns = timestamp.map(|timestamp| self.placement.clock.ns(timestamp));
            table.push(self.placement.source_id, index, offset, size, &name, ts_ns);
        }
        self.at = Some(at);
        Some(table.finish())
    }
}
