//! Calls that read files, which may become shorter meanwhile: an exception instead of a wrong answer.

use perfuse_formats::CUT;
pub use perfuse_profile::Inputs;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;

use crate::errors::lacking;

/// What Python calls with inputs.
pub trait ReadInputs {
    /// Runs work that reads the inputs, without the interpreter's lock; `UnreadableInput` where one of them became shorter
    /// since it was opened.
    fn read<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T>;
}

impl ReadInputs for Inputs {
    fn read<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        let result = py.detach(work);
        self.cut().map_or(Ok(result), |path| Err(cut_error(py, path)))
    }
}

/// The exception for an input that became shorter while a stream read it; each is returned once. An error in a stream
/// reaches Python as an exception of the Arrow library that read it.
#[pyfunction]
pub fn take_cut(py: Python<'_>) -> Option<Py<PyBaseException>> {
    perfuse_profile::take_cut().map(|path| cut_error(py, &path).into_value(py))
}

fn cut_error(py: Python<'_>, path: &str) -> PyErr {
    lacking(py, path, CUT, "open it again when nothing writes to it, or read a copy")
}
