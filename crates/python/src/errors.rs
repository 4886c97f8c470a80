//! Errors of the core as exceptions of `perfuse.errors`, with offset, record and field as attributes; panics among them.

use std::any::Any;
use std::fmt::Display;
use std::io;
use std::sync::{Mutex, Once, PoisonError};

use perfuse_formats::TooLarge;
use perfuse_wire::ParseError;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A decoder's error as `perfuse.errors.UnreadableInput`.
pub fn unreadable(py: Python<'_>, path: &str, error: &ParseError, hint: &str) -> PyErr {
    let ParseError { offset, record_index, field, .. } = error;
    let attributes =
        dict!(py, path: path, offset: offset, record_index: record_index, field: field, hint: hint);
    exception(py, "UnreadableInput", &error.to_string(), attributes)
}

/// An error of the operating system as `perfuse.errors.UnreadableInput`.
pub fn io_error(py: Python<'_>, path: &str, error: &io::Error) -> PyErr {
    let hint = match error.kind() {
        _ if TooLarge::of(error).is_some() => Some("--max-unpacked SIZE (max_unpacked=) allows more"),
        io::ErrorKind::PermissionDenied => {
            Some("perf writes its files for their owner only: read them as that user, or chown them")
        }
        io::ErrorKind::StorageFull => Some("TMPDIR=DIRECTORY names another place for temporary files"),
        _ => None,
    };
    let message = format!("cannot read {path}: {}", reason(error));
    exception(py, "UnreadableInput", &message, dict!(py, path: path, hint: hint))
}

/// An error's text without the number ` (os error N)`, with which the standard library ends those of the system.
fn reason(error: impl Display) -> String {
    let text = error.to_string();
    text.split_once(" (os error ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
}

/// An error of the operating system, with its number, as Python's `OSError`.
pub fn os_error(error: io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => pyo3::exceptions::PyOSError::new_err((number, reason(error))),
        None => error.into(),
    }
}

/// A file that lacks a part that was asked for, as `perfuse.errors.UnreadableInput`.
pub fn lacking(py: Python<'_>, path: &str, what: impl Display, hint: &str) -> PyErr {
    exception(py, "UnreadableInput", &format!("{path}: {what}"), dict!(py, path: path, hint: hint))
}

/// Content that the target format cannot represent, as `perfuse.errors.ExportError`.
pub fn export_error(py: Python<'_>, error: impl Display) -> PyErr {
    exception(py, "ExportError", &reason(error), dict!(py))
}

/// More memory in use than the limit, as `perfuse.errors.OutOfMemory`.
pub fn memory_error(py: Python<'_>) -> PyErr {
    let limit = perfuse_stopping::memory::limit();
    let used = perfuse_stopping::memory::Usage::of_process().memory;
    exception(py, "OutOfMemory", "", dict!(py, limit_bytes: limit, used_bytes: used))
}

/// An argument that the core refuses, as Python's `ValueError`.
pub fn value_error(error: impl Display) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(error.to_string())
}

/// A table without the columns or types that it must have: a defect of the caller, not of a file.
pub fn table_error(error: impl Display) -> PyErr {
    pyo3::exceptions::PyRuntimeError::new_err(error.to_string())
}

/// Instantiates a class of `perfuse.errors`.
fn exception(py: Python<'_>, class: &str, message: &str, kwargs: PyResult<Bound<'_, PyDict>>) -> PyErr {
    match kwargs.and_then(|kwargs| instance(py, class, message, &kwargs)) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

fn instance<'py>(
    py: Python<'py>,
    class: &str,
    message: &str,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("perfuse.errors")?.getattr(class)?.call((message,), Some(kwargs))
}

/// Message and source location of a panic.
struct Panic {
    message: String,
    location: Option<String>,
}

/// The panics that have not been raised as exceptions yet, the last of them last: several threads may panic.
static PANICS: Mutex<Vec<Panic>> = Mutex::new(Vec::new());

/// Most panics that wait: nobody raises one of a thread whose result is not needed.
const MAX_PANICS: usize = 64;

/// Keeps message and location of each panic for its exception, instead of printing them; prints them too where
/// `RUST_BACKTRACE` is set.
pub fn record_panics() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let default_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if perfuse_stopping::is_contained() {
                return;
            }
            let location = info.location().map(|location| format!("{}:{}", location.file(), location.line()));
            let panic = Panic { message: payload_text(info.payload()), location };
            let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
            if panics.len() >= MAX_PANICS {
                panics.remove(0);
            }
            panics.push(panic);
            drop(panics);
            if std::env::var_os("RUST_BACKTRACE").is_some() {
                default_hook(info);
            }
        }));
    });
}

/// The message of a panic.
pub fn payload_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown panic").to_owned()
}

/// Message and location of the last panic that was not raised as an exception; each is returned once.
///
/// A panic in a thread of an Arrow library arrives as that library's exception.
#[pyfunction]
pub fn take_panic() -> Option<(String, Option<String>)> {
    let panic = PANICS.lock().unwrap_or_else(PoisonError::into_inner).pop();
    panic.map(|panic| (panic.message, panic.location))
}

/// Where a panic with this message occurred; each is returned once.
fn location_of(message: &str) -> Option<String> {
    let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = panics.iter().rposition(|panic| panic.message == message)?;
    panics.remove(at).location
}

/// `__new__` of pyo3's `PanicException`: returns a `perfuse.InternalError` in its place.
///
/// pyo3 catches the panic of every native call and instantiates `PanicException`, which is not an `Exception`. Where a
/// class returns an instance of another exception class, Python raises that one. Python 3.11 instantiates the class
/// again with that instance as its argument.
#[pyfunction]
pub fn internal_error<'py>(
    py: Python<'py>,
    class: &Bound<'py, PyAny>,
    message: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = class;
    if message.is_instance_of::<PyBaseException>() {
        return Ok(message.clone());
    }
    let kwargs = dict!(py, location: location_of(&message.to_string()))?;
    instance(py, "InternalError", &message.to_string(), &kwargs)
}
