//! Work done in advance in background threads: batches of a table, files named on a command line.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use perfuse_formats::{Recording, registry};
use perfuse_stopping::{Call, StopReason};
use perfuse_workers::{in_background, num_threads};

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

type Opening = JoinHandle<Option<Arc<dyn Recording>>>;

/// Files being opened, by path.
static OPENING: Mutex<Vec<(String, Opening)>> = Mutex::new(Vec::new());

/// Starts to open and read a file in a thread; [`take_opened`] with the same path waits for it.
pub fn begin_opening(path: String) {
    let name = path.clone();
    let opening = in_background(move || {
        let recording = registry::open(Arc::new(registry::read(&name).ok()?)).ok()?;
        prefetch_summary(&recording);
        Some(recording)
    });
    OPENING.lock().unwrap_or_else(PoisonError::into_inner).push((path, opening));
}

/// The recording that [`begin_opening`] opened; `None` where it was not called for the path or the file cannot be read.
#[must_use]
pub fn take_opened(path: &str) -> Option<Arc<dyn Recording>> {
    let mut all = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.iter().position(|(known, _)| known == path)?;
    let (_, opening) = all.swap_remove(at);
    drop(all);
    opening.join().ok()?
}

/// Forgets what [`begin_opening`] opened of a path, for a caller who opens it with other limits.
pub fn forget_opened(path: &str) {
    drop(take_opened(path));
}

/// Starts the pass over the record headers in a thread; callers that need its result wait for it.
pub fn prefetch_summary(recording: &Arc<dyn Recording>) {
    let recording = Arc::clone(recording);
    drop(in_background(move || drop(recording.summary())));
}
