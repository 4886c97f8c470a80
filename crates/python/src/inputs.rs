//! Calls that read files, which may become shorter meanwhile: an exception instead of a wrong answer.

use perfuse_formats::CUT;
pub use perfuse_profile::Inputs;
use perfuse_profile::Unreadable;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;

use crate::call::call;
use crate::errors::lacking;

/// What Python calls with inputs.
pub trait ReadInputs {
    /// Runs work that reads the inputs, without the interpreter's lock; `UnreadableInput` where one of them became shorter
    /// since it was opened.
    fn read<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T>;

    /// `UnreadableInput` where one of the inputs became shorter since it was opened.
    fn check(&self, py: Python<'_>) -> PyResult<()>;
}

impl ReadInputs for Inputs {
    fn read<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        let result = call(py, work)?;
        self.check(py).map(|()| result)
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if let Some(path) = py.detach(|| self.cut()) {
            return Err(cut_error(py, path));
        }
        let damaged = |found: &Unreadable| Err(damage_error(py, found));
        self.damaged().map_or(Ok(()), damaged)
    }
}

/// The exception for an input that could not be read to its end while a stream read it; each is returned once. An error in
/// a stream reaches Python as an exception of the Arrow library that read it.
#[pyfunction]
pub fn take_unreadable(py: Python<'_>) -> Option<Py<PyBaseException>> {
    let Unreadable { path, reason } = perfuse_profile::take_unreadable()?;
    let error =
        if reason == CUT { cut_error(py, &path) } else { damage_error(py, &Unreadable { path, reason }) };
    Some(error.into_value(py))
}

fn damage_error(py: Python<'_>, Unreadable { path, reason }: &Unreadable) -> PyErr {
    lacking(py, path, reason, "the file is damaged: take another copy, or save the recording again")
}

fn cut_error(py: Python<'_>, path: &str) -> PyErr {
    lacking(py, path, CUT, "open it again when nothing writes to it, or read a copy")
}
