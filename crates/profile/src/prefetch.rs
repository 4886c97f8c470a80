//! Batches made in another thread than the one they are used in.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;

/// Batches that may wait: as many as a trace's decoder makes at a time.
const WAITING: usize = 8;

/// An iterator's batches, made a little ahead in a thread of its own, which ends with it.
pub struct ReadAhead {
    made: Option<Receiver<RecordBatch>>,
    thread: Option<JoinHandle<()>>,
}

impl ReadAhead {
    pub fn new(batches: impl Iterator<Item = RecordBatch> + Send + 'static) -> Self {
        let (make, made) = sync_channel(WAITING);
        let thread = std::thread::spawn(move || {
            // Nobody waits for the rest once the other end is gone.
            let _ = batches.map(|batch| make.send(batch)).take_while(Result::is_ok).count();
        });
        Self { made: Some(made), thread: Some(thread) }
    }
}

impl Iterator for ReadAhead {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let batch = self.made.as_ref()?.recv().ok();
        if batch.is_none()
            && let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
        {
            std::panic::resume_unwind(panic);
        }
        batch
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.made = None;
        // What it would have said, nobody wants to know any more.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
