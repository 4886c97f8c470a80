//! Rust's errors as `perfuse.errors` classes, with their place as attributes.

use std::io;

use perfuse_wire::ParseError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A decoder's refusal as `perfuse.errors.UnreadableInput`.
pub fn unreadable(py: Python<'_>, path: &str, error: &ParseError, hint: &str) -> PyErr {
    let attributes = || -> PyResult<Bound<'_, PyDict>> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("path", path)?;
        kwargs.set_item("offset", error.offset)?;
        kwargs.set_item("record_index", error.record_index)?;
        kwargs.set_item("field", error.field)?;
        kwargs.set_item("hint", hint)?;
        Ok(kwargs)
    };
    match attributes() {
        Ok(kwargs) => raise(py, "UnreadableInput", &error.to_string(), &kwargs),
        Err(error) => error,
    }
}

/// What the operating system said, as `perfuse.errors.UnreadableInput`.
pub fn io_error(py: Python<'_>, path: &str, error: &io::Error) -> PyErr {
    let kwargs = PyDict::new(py);
    match kwargs.set_item("path", path) {
        Ok(()) => raise(py, "UnreadableInput", &format!("cannot read {path}: {error}"), &kwargs),
        Err(error) => error,
    }
}

/// A file that has not what was wanted of it, as `perfuse.errors.UnreadableInput`.
pub fn lacking(py: Python<'_>, path: &str, what: impl std::fmt::Display, hint: &str) -> PyErr {
    let kwargs = PyDict::new(py);
    match kwargs.set_item("path", path).and_then(|()| kwargs.set_item("hint", hint)) {
        Ok(()) => raise(py, "UnreadableInput", &format!("{path}: {what}"), &kwargs),
        Err(error) => error,
    }
}

/// Something that cannot be written as asked, as `perfuse.errors.ExportError`.
pub fn export_error(py: Python<'_>, error: impl std::fmt::Display) -> PyErr {
    raise(py, "ExportError", &error.to_string(), &PyDict::new(py))
}

/// A table that is not what it should be: a fault of ours, not of the file.
pub fn table_error(error: impl std::fmt::Display) -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err(error.to_string())
}

fn raise(py: Python<'_>, class: &str, message: &str, kwargs: &Bound<'_, PyDict>) -> PyErr {
    let class = py.import("perfuse.errors").and_then(|module| module.getattr(class));
    match class.and_then(|class| class.call((message,), Some(kwargs))) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}
