//! What only SFrame has: addresses looked up, readelf's text, sections that can be changed and written.

mod coverage;
mod cross_check;
mod jit_code;
mod section;
mod synthesis;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use perfuse_formats::sframe::readelf::{Dump, Style};
use perfuse_formats::sframe::{self, SFrame, writer};
use perfuse_formats::{Recording, Source};
use perfuse_writers::Error;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrow::ArrowStream;
use crate::errors::{export_error, io_error, unreadable};
use crate::output::Target;
use crate::recording::PyRecording;
use crate::waiting::Waiting;

pub use cross_check::check;
use section::SFrameSection;

pub fn sframe(recording: &PyRecording) -> PyResult<&SFrame> {
    let sframe = recording.inner.as_any().downcast_ref::<SFrame>();
    sframe.ok_or_else(|| PyTypeError::new_err("not an SFrame file"))
}

/// Opens a bare section that is loaded to an address.
#[pyfunction]
fn sframe_at(py: Python<'_>, path: &str, data: Option<Vec<u8>>, address: u64) -> PyResult<PyRecording> {
    let source = py.detach(|| match data {
        Some(data) => Source::from_bytes(path, data),
        None => Source::open(path),
    });
    let source = source.map_err(|error| io_error(py, path, &error))?;
    let file = py.detach(|| SFrame::open_at(Arc::new(source), Some(address)));
    let file =
        file.map_err(|error| unreadable(py, path, &error, "an SFrame section begins with the magic 0xdee2"))?;
    Ok(PyRecording { inner: Arc::new(file) })
}

/// Looks addresses up: native 64-bit numbers, one behind the other.
#[pyfunction]
fn sframe_find(py: Python<'_>, recording: &PyRecording, addresses: &[u8]) -> PyResult<ArrowStream> {
    let file = sframe(recording)?;
    let addresses: Vec<u64> =
        addresses.chunks_exact(8).map(|bytes| bytes.try_into().map_or(0, u64::from_ne_bytes)).collect();
    let batches = py.detach(|| sframe::look_up(file, &addresses));
    Ok(ArrowStream::new(perfuse_tables::unwind_lookups::SPEC.schema(), batches.into_iter()))
}

/// Facts of each piece: `section, member, offset, address, version, abi, flags, num_functions, num_rows, starts, because`.
#[pyfunction]
fn sframe_pieces<'py>(py: Python<'py>, recording: &PyRecording) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let file = sframe(recording)?;
    file.views()
        .map(|view| {
            let piece = view.unit;
            let section = file.sections().get(piece.section);
            let row = PyDict::new(py);
            row.set_item("section", piece.section)?;
            row.set_item("member", section.map_or("", |section| &section.member))?;
            row.set_item("offset", view.offset(piece.at))?;
            row.set_item("address", view.address.wrapping_add(piece.at as u64))?;
            row.set_item("version", piece.version())?;
            row.set_item("abi", piece.abi().arch())?;
            row.set_item("flags", piece.header.sfp_flags)?;
            row.set_item("num_functions", piece.header.sfh_num_fdes)?;
            row.set_item("num_rows", piece.header.sfh_num_fres)?;
            row.set_item("header_bytes", piece.entries.start - piece.at)?;
            row.set_item("entries_bytes", piece.entries.len())?;
            row.set_item("rows_bytes", piece.rows.len())?;
            row.set_item("size_bytes", piece.end.min(view.data.len()) - piece.at)?;
            row.set_item("starts", piece.starts.name())?;
            row.set_item("because", piece.starts.reason())?;
            Ok(row)
        })
        .collect()
}

/// The text of a version of readelf, in blocks.
#[pyclass(frozen, module = "perfuse._core")]
pub struct SFrameText {
    dump: Mutex<Dump>,
}

#[pymethods]
impl SFrameText {
    #[new]
    fn new(recording: &PyRecording, style: &str) -> PyResult<Self> {
        let style = Style::named(style).ok_or_else(|| PyValueError::new_err(format!("no style {style}")))?;
        match Dump::of(sframe(recording)?, style) {
            Ok(dump) => Ok(Self { dump: Mutex::new(dump) }),
            Err(refused) => {
                let hint =
                    refused.shown_by.map_or(String::new(), |style| format!("; --style {style} shows it"));
                Err(PyValueError::new_err(format!(
                    "that readelf shows nothing of it: {}{hint}",
                    refused.message
                )))
            }
        }
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(block) = py.detach(|| self.block()) else { return Ok(None) };
        let bytes = PyBytes::new(py, &block);
        py.detach(|| self.reuse(block));
        Ok(Some(bytes))
    }

    /// Writes what is left of it.
    fn write(&self, py: Python<'_>, out: Target) -> PyResult<()> {
        let mut out = out.open()?;
        let mut waiting = Waiting::new(None, None);
        let written = py.detach(|| {
            while waiting.go_on(0)
                && let Some(block) = self.block()
            {
                out.write_all(&block)?;
                self.reuse(block);
            }
            Ok(())
        });
        waiting.settle(written.map_err(Error::Io))
    }
}

/// Neither is called with Python's lock held: who writes waits for that one while this is not locked.
impl SFrameText {
    fn block(&self) -> Option<Vec<u8>> {
        self.dump.lock().unwrap_or_else(PoisonError::into_inner).next()
    }

    fn reuse(&self, block: Vec<u8>) {
        self.dump.lock().unwrap_or_else(PoisonError::into_inner).reuse(block);
    }
}

/// A file with other bytes for one of its sections.
#[pyfunction]
fn sframe_put_back<'py>(
    py: Python<'py>,
    recording: &PyRecording,
    section: usize,
    data: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let file = sframe(recording)?;
    let section =
        file.sections().get(section).ok_or_else(|| PyValueError::new_err("there is no such section"))?;
    let bytes =
        writer::replace_section(file.source(), section, data).map_err(|error| export_error(py, error))?;
    Ok(PyBytes::new(py, &bytes))
}

/// The bytes of a program or library with a section: in the place of the one it has, where it fits there, else behind all else.
#[pyfunction]
fn sframe_into<'py>(
    py: Python<'py>,
    path: &str,
    section: &SFrameSection,
    sort: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let source = py.detach(|| Source::open(path)).map_err(|error| io_error(py, path, &error))?;
    let mut contents = section.contents()?;
    if sort {
        contents.sort();
    }
    let bytes = py.detach(|| writer::write_to_elf(Arc::new(source), &contents));
    Ok(PyBytes::new(py, &bytes.map_err(|error| export_error(py, error))?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SFrameText>()?;
    module.add_class::<SFrameSection>()?;
    module.add_function(wrap_pyfunction!(sframe_at, module)?)?;
    module.add_function(wrap_pyfunction!(sframe_find, module)?)?;
    module.add_function(wrap_pyfunction!(coverage::sframe_coverage, module)?)?;
    module.add_function(wrap_pyfunction!(synthesis::sframe_from_eh_frame, module)?)?;
    module.add_function(wrap_pyfunction!(sframe_pieces, module)?)?;
    module.add_function(wrap_pyfunction!(sframe_into, module)?)?;
    module.add_function(wrap_pyfunction!(sframe_put_back, module)?)
}
