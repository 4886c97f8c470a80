//! Files and Python objects that exporters of the core write to, and what Python gets meanwhile: signals and progress.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use arrow_schema::ArrowError;
use perfuse_writers::{Error, arrow_ipc, zstandard};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::reader;
use crate::call::{attached, call};
use crate::errors::{os_error, table_error, value_error};

/// A callback that is called with the name of the current step and the completed share, where there is one.
pub type Progress = Option<Py<PyAny>>;

/// An output as Python gives it: a file by its descriptor, or an object that has `write`.
#[derive(FromPyObject)]
pub enum Target {
    Descriptor(RawFd),
    Object(Py<PyAny>),
}

impl Target {
    /// Opens it for writing from any thread.
    pub fn open(self) -> io::Result<Output> {
        Ok(match self {
            Self::Descriptor(descriptor) => Output::File(duplicate(descriptor)?),
            Self::Object(object) => Output::Object(object),
        })
    }
}

/// A file, or a Python object that takes bytes from any thread.
pub enum Output {
    File(File),
    Object(Py<PyAny>),
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Object(object) => attached(|py| {
                let written = object.call_method1(py, "write", (PyBytes::new(py, bytes),))?;
                // Buffered objects take everything, and some return None.
                Ok(written.extract(py).unwrap_or(bytes.len()).min(bytes.len()))
            }),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The open file of a descriptor that Python owns.
pub fn duplicate(descriptor: RawFd) -> io::Result<File> {
    if descriptor < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the caller keeps the file open during the call, and the returned file is a duplicate.
    let file = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Ok(file.try_clone_to_owned()?.into())
}

/// Longest time between two checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// A Python thread that waits for the core: its signals are handled, and its progress callback is called.
pub struct WaitingPython {
    progress: Progress,
    /// Number of all events, where known.
    num_events: Option<u64>,
    last_check: Instant,
    raised: Option<PyErr>,
}

impl WaitingPython {
    /// At the start of the work.
    pub fn new(progress: Progress, num_events: Option<u64>) -> Self {
        Self { progress, num_events, last_check: Instant::now(), raised: None }
    }

    /// Whether to continue, after so many rows.
    pub fn go_on(&mut self, num_done: u64) -> bool {
        if self.last_check.elapsed() < SIGNAL_INTERVAL {
            return true;
        }
        self.last_check = Instant::now();
        let Self { progress, num_events, raised, .. } = self;
        *raised = attached(|py| {
            py.check_signals()?;
            if let Some(progress) = progress {
                let share = num_events.map_or(0.0, |all| num_done as f64 / all.max(1) as f64);
                let what = if num_events.is_some() { "writing" } else { "looking over" };
                progress.call1(py, (what, share.min(1.0)))?;
            }
            Ok(())
        })
        .err();
        raised.is_none()
    }

    /// The result of the work, or the exception that Python raised meanwhile.
    pub fn settle<T>(self, result: Result<T, Error>) -> PyResult<T> {
        match (self.raised, result) {
            (Some(raised), _) => Err(raised),
            (None, Ok(value)) => Ok(value),
            (None, Err(Error::Io(error))) => Err(os_error(error)),
            (None, Err(error)) => Err(table_error(error)),
        }
    }
}

/// Writes an Arrow stream as Arrow IPC: a file with a footer, or a stream.
#[pyfunction]
pub fn write_arrow(py: Python<'_>, out: Target, stream: &Bound<'_, PyAny>, as_stream: bool) -> PyResult<()> {
    let mut out = out.open()?;
    let batches = reader(stream)?;
    let form = if as_stream { arrow_ipc::Form::Stream } else { arrow_ipc::Form::File };
    // Batches may be computed by threads of the stream's owner that need the interpreter.
    call(py, || arrow_ipc::write(&mut out, batches, form))?.map_err(|error| match error {
        ArrowError::IoError(_, error) => os_error(error),
        error => value_error(error),
    })
}

/// Compresses an open file, from its current position on, with Zstandard.
#[pyfunction]
pub fn compress_zstd(py: Python<'_>, input: RawFd, out: Target) -> PyResult<()> {
    let (input, out) = (duplicate(input)?, out.open()?);
    call(py, || zstandard::compress(input, out))?.map_err(PyErr::from)
}
