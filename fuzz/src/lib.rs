//! What every format promises for any bytes: no panic, no hang, memory bounded by the input, offsets inside the file.

use std::sync::Arc;

use perfuse_formats::{Format, Placement, Position, Recording, Source, TableRequest};
use perfuse_wire::Diagnostics;

/// Opens bytes as a format and uses all there is: summary, records, check, every table.
///
/// # Panics
/// When a promise is broken, which is what the fuzzer looks for.
pub fn exercise(format: &'static Format, bytes: &[u8]) {
    let len = bytes.len() as u64;
    // Unpacking is the business of `Source`, and a bomb would only measure the decompressor.
    let packed = bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    if packed {
        return;
    }
    let Ok(source) = Source::from_bytes("fuzz", bytes.to_vec()) else { return };
    let recording = match (format.open)(Arc::new(source)) {
        Ok(recording) => recording,
        Err(error) => {
            assert!(error.offset <= len, "error at {} of {len} bytes", error.offset);
            return;
        }
    };
    recording.summary();
    records(&*recording, len);
    diagnostics(&*recording, len);
    tables(&*recording);
}

fn records(recording: &dyn Recording, len: u64) {
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

fn diagnostics(recording: &dyn Recording, len: u64) {
    let mut sink = Diagnostics::default();
    recording.check(&mut sink);
    for found in sink.rows() {
        assert!(found.offset <= len, "{} at {} of {len} bytes", found.rule.code, found.offset);
    }
}

fn tables(recording: &dyn Recording) {
    let request = TableRequest { with_bytes: true, ..TableRequest::default() };
    for name in ["sources", "clocks", "records", "diagnostics"].iter().chain(recording.format().tables) {
        if let Some(batches) = recording.table(name, &Placement::alone(recording), &request) {
            for batch in batches {
                assert!(batch.num_columns() > 0, "{name} has no columns");
            }
        }
    }
}
