//! Batches of a table, decoded in advance in a background thread.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use perfuse_stopping::{Call, StopReason};
use perfuse_workers::num_threads;

/// Most batches that wait: as many as the decoder of a call trace makes at a time.
const MAX_WAITING: usize = 8;

/// An iterator over batches that another thread decodes in advance, from the first one that is taken. On one processor each
/// is decoded when it is taken.
pub struct Prefetch {
    /// The batches, before the thread is started; where there is none, all the time.
    waiting: Option<Box<dyn Iterator<Item = RecordBatch> + Send>>,
    batches: Option<Receiver<RecordBatch>>,
    thread: Option<JoinHandle<()>>,
    /// The work of the thread, a part of that of the consumer.
    call: Call,
}

impl Prefetch {
    /// Starts no thread yet, so that a stream that nobody reads has none.
    pub fn new(batches: impl Iterator<Item = RecordBatch> + Send + 'static) -> Self {
        Self { waiting: Some(Box::new(batches)), batches: None, thread: None, call: Call::default() }
    }

    /// Starts the thread now, for batches that are certainly read.
    #[must_use]
    pub fn begun(mut self) -> Self {
        self.begin();
        self
    }

    /// Starts the thread, unless it runs or there is one processor only.
    fn begin(&mut self) {
        if let Some(batches) = self.waiting.take_if(|_| num_threads() > 1) {
            self.start(batches);
        }
    }

    /// Starts a thread that makes the batches; it ends when this is dropped.
    fn start(&mut self, batches: Box<dyn Iterator<Item = RecordBatch> + Send>) {
        let (sender, receiver) = sync_channel(MAX_WAITING);
        self.batches = Some(receiver);
        self.call = Call::part_of_current();
        let call = self.call.clone();
        self.thread = Some(std::thread::spawn(move || {
            // Sending fails once the receiver is dropped.
            call.enter(|| batches.map(|batch| sender.send(batch)).take_while(Result::is_ok).for_each(drop));
        }));
    }
}

impl Iterator for Prefetch {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        self.begin();
        if let Some(batches) = &mut self.waiting {
            return batches.next();
        }
        let batch = self.batches.as_ref()?.recv().ok();
        if batch.is_none()
            && let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
        {
            std::panic::resume_unwind(panic);
        }
        batch
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        self.batches = None;
        if self.thread.is_some() {
            self.call.stop(StopReason::Interrupted);
        }
        // The result is not needed anymore, nor is a panic.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
