//! Making batches in one thread while another works through them.

use std::sync::mpsc::{IntoIter, sync_channel};
use std::thread;

use arrow_array::RecordBatch;

use super::Batches;

/// Batches that wait; each has some ten thousand rows.
const WAITING: usize = 4;

/// The batches, made in a thread of their own. It ends with them, or once nobody takes them any more.
pub fn ahead(mut batches: Batches) -> IntoIter<RecordBatch> {
    let (send, made) = sync_channel(WAITING);
    thread::spawn(move || batches.try_for_each(|batch| send.send(batch)));
    made.into_iter()
}
