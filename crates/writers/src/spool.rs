//! Bytes on their way out: one thread fills buffers while another writes them.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};

/// Bytes that are written at a time.
const CHUNK: usize = 1 << 20;

/// Chunks that wait to be written.
const WAITING: usize = 4;

/// A buffer that is written out behind the back of who fills it.
#[derive(Debug)]
pub struct Spool {
    buffer: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    empty: Receiver<Vec<u8>>,
    writer: JoinHandle<io::Result<()>>,
    failed: bool,
}

impl Spool {
    /// A spool to a file, pipe or anything else that takes bytes.
    pub fn new(mut out: impl Write + Send + 'static) -> Self {
        let (full, to_write) = sync_channel::<Vec<u8>>(WAITING);
        let (give_back, empty) = sync_channel::<Vec<u8>>(WAITING + 1);
        let writer = thread::spawn(move || {
            for mut chunk in to_write {
                out.write_all(&chunk)?;
                chunk.clear();
                // One buffer too many is one that need not be kept.
                let _ = give_back.try_send(chunk);
            }
            out.flush()
        });
        Self { buffer: Vec::with_capacity(CHUNK * 2), full, empty, writer, failed: false }
    }

    /// Where the next bytes go. [`Self::turn`] is to be called now and then.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Hands on what is in the buffer, once it is enough.
    #[inline]
    pub fn turn(&mut self) {
        if self.buffer.len() >= CHUNK {
            self.hand_on();
        }
    }

    #[cold]
    fn hand_on(&mut self) {
        let next = match self.empty.try_recv() {
            Ok(buffer) => buffer,
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Vec::with_capacity(CHUNK * 2),
        };
        let chunk = std::mem::replace(&mut self.buffer, next);
        self.failed |= self.full.send(chunk).is_err();
    }

    /// Whether writing failed, so that there is no use in going on; [`Self::finish`] says why.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// What the output said.
    pub fn finish(mut self) -> io::Result<()> {
        self.hand_on();
        drop(self.full);
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread ended early")))
    }
}
