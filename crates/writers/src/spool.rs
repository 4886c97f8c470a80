//! Output buffers: one thread fills them while another writes them.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};

/// Size of one write, in bytes.
const CHUNK: usize = 1 << 20;

/// Number of full chunks that may wait for the writer thread.
const WAITING: usize = 4;

/// A buffer whose full chunks a second thread writes.
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
                // A surplus buffer is dropped.
                let _ = give_back.try_send(chunk);
            }
            out.flush()
        });
        Self { buffer: Vec::with_capacity(CHUNK * 2), full, empty, writer, failed: false }
    }

    /// The buffer to append to. Call [`Self::flush_if_full`] regularly.
    #[inline]
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Sends the buffer to the writer thread once it has a chunk's size.
    #[inline]
    pub fn flush_if_full(&mut self) {
        perfuse_stopping::checkpoint();
        if self.buffer.len() >= CHUNK {
            self.send_chunk();
        }
    }

    #[cold]
    fn send_chunk(&mut self) {
        let next = match self.empty.try_recv() {
            Ok(buffer) => buffer,
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Vec::with_capacity(CHUNK * 2),
        };
        let chunk = std::mem::replace(&mut self.buffer, next);
        self.failed |= self.full.send(chunk).is_err();
    }

    /// Whether writing failed; [`Self::finish`] returns the error.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Writes the remaining bytes.
    ///
    /// # Errors
    /// The error of the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.send_chunk();
        drop(self.full);
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread ended early")))
    }
}
