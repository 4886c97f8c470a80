//! Writes the selected records as text or JSON.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;

use perfuse_stopping::part;
use perfuse_wire::RecordView;

use super::{RecordCursor, RecordStyle, append_hex, append_json, append_text};
use crate::Recording;

/// Bytes that are written at a time.
const BLOCK_BYTES: usize = 1 << 18;

/// The form of a list of records.
#[derive(Clone, Copy, Debug)]
pub enum RecordForm {
    /// A line with a JSON object per record.
    Json,
    /// Lines of text.
    Text {
        /// Width and colour.
        style: RecordStyle,
        /// Whether the bytes of each record follow it.
        with_bytes: bool,
    },
}

/// Records that are decoded before they are formatted together.
const BATCH_RECORDS: u64 = 1 << 10;

/// Batches that wait to be formatted.
const MAX_WAITING: usize = 4;

/// Writes the records that a cursor selects, at most `limit`, and returns their number. Another thread decodes them in advance.
/// `go_on` is called after every block with the number of records so far; `false` ends the writing.
///
/// # Errors
/// Those of the output.
pub fn write_records(
    recording: &dyn Recording,
    cursor: &mut RecordCursor,
    limit: u64,
    form: RecordForm,
    out: &mut dyn Write,
    mut go_on: impl FnMut(u64) -> bool,
) -> io::Result<u64> {
    let mut block = Vec::with_capacity(BLOCK_BYTES.saturating_add(1 << 14));
    let mut num = 0u64;
    let mut write = |records: Vec<RecordView<'_>>| -> io::Result<bool> {
        num = num.saturating_add(records.len() as u64);
        for record in records {
            form.append(&mut block, &record, recording);
            if block.len() >= BLOCK_BYTES {
                out.write_all(&block)?;
                block.clear();
            }
        }
        Ok(go_on(num))
    };
    let mut left = limit;
    let mut take = || -> Vec<RecordView<'_>> {
        let num = left.min(BATCH_RECORDS);
        let batch: Vec<_> = (0..num).map_while(|_| cursor.next(recording)).collect();
        left = left.saturating_sub(batch.len() as u64);
        batch
    };
    let first = take();
    let is_all = (first.len() as u64) < BATCH_RECORDS;
    if write(first)? && !is_all {
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(MAX_WAITING);
            // Sending fails once the receiver is dropped.
            let taking = scope.spawn(part(move || {
                let batches = std::iter::from_fn(|| Some(take()).filter(|batch| !batch.is_empty()));
                let _ = batches.map(|batch| sender.send(batch)).take_while(Result::is_ok).count();
            }));
            let mut written = Ok(());
            for batch in receiver {
                match write(batch) {
                    Ok(true) => {}
                    ended => {
                        written = ended.map(drop);
                        break;
                    }
                }
            }
            taking.join().unwrap_or_else(|panic| resume_unwind(panic));
            written
        })?;
    }
    out.write_all(&block)?;
    Ok(num)
}

impl RecordForm {
    fn append(self, out: &mut Vec<u8>, record: &RecordView<'_>, recording: &dyn Recording) {
        match self {
            Self::Json => append_json(out, record),
            Self::Text { style, with_bytes } => {
                append_text(out, record, style);
                if with_bytes {
                    let bytes = recording.source().get_range(record.offset, record.size);
                    append_hex(out, bytes, record.offset, style);
                }
            }
        }
    }
}
