//! Where exporters of the core write to.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::RawFd;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::images::duplicate;

/// Where bytes go: a file by its descriptor, or a Python object that has `write`.
#[derive(FromPyObject)]
pub enum Target {
    Descriptor(RawFd),
    Object(Py<PyAny>),
}

impl Target {
    /// Opens it, to be written to from any thread.
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
            Self::Object(object) => Python::attach(|py| {
                let written = object.call_method1(py, "write", (PyBytes::new(py, bytes),))?;
                // Buffered objects take everything, and some do not say so.
                Ok(written.extract(py).unwrap_or(bytes.len()).min(bytes.len()))
            }),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
