//! One recording: its records, its diagnostics, its tables.

use std::sync::Arc;

use perfuse_formats::{Format, Placement, Position, Recording, TableRequest};
use perfuse_wire::Diagnostics;

use crate::open::open;

/// Reads every record.
///
/// # Panics
/// When a record is outside the file, or reading does not move forward.
pub(crate) fn records(format: &'static Format, bytes: &[u8]) {
    let Some(recording) = open(format, bytes) else { return };
    let len = bytes.len() as u64;
    let mut at = Position::default();
    let (mut last_record, mut last_position) = (None, None);
    while let Some(record) = recording.next_record(&mut at) {
        assert!(record.offset <= len, "record at {} of {len} bytes", record.offset);
        // The position may go back into a record whose size is wrong, to a record that starts after it; records that share
        // their bytes have positions of their own.
        let (offset, position) = (Some(record.offset), Some((at.offset, at.inner)));
        assert!(offset > last_record || position > last_position, "reading does not move forward at {at:?}");
        (last_record, last_position) = (offset, position);
    }
}

/// Makes the summary, checks the file and makes every table.
///
/// # Panics
/// When a diagnostic is outside the file, or a table has no columns.
pub(crate) fn tables(format: &'static Format, bytes: &[u8]) {
    let Some(recording) = open(format, bytes) else { return };
    recording.summary();
    let len = bytes.len() as u64;
    let mut sink = Diagnostics::default();
    recording.check(&mut sink);
    for found in sink.rows() {
        assert!(found.offset <= len, "{} at {} of {len} bytes", found.rule.code, found.offset);
    }
    all_tables(&recording);
}

fn all_tables(recording: &Arc<dyn Recording>) {
    let request = TableRequest { with_bytes: true, ..TableRequest::default() };
    for name in ["sources", "clocks", "records", "diagnostics"].iter().chain(recording.format().tables) {
        if let Some(batches) = recording.table(name, &Placement::alone(&**recording), &request) {
            for batch in batches {
                assert!(batch.num_columns() > 0, "{name} has no columns");
            }
        }
    }
}
