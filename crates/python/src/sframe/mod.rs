//! What only SFrame has: addresses looked up, readelf's text, sections that can be changed and written.

mod section;

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use perfuse_binaries::eh_frame::Error as EhFrameError;
use perfuse_formats::sframe::readelf::{Dump, Style};
use perfuse_formats::sframe::{self, SFrame, writer};
use perfuse_formats::{Recording, Source};
use perfuse_profile::sframe::{
    FromEhFrameError, OmittedFunction, SectionCoverage, parse_registers, section_coverage,
    section_from_eh_frame, unwind_by_sframe,
};
use perfuse_writers::Error;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrow::ArrowStream;
use crate::call::call;
use crate::errors::{export_error, io_error, lacking, unreadable, value_error};
use crate::inputs::{Inputs, ReadInputs};
use crate::output::{Target, WaitingPython};
use crate::recording::PyRecording;

pub use section::SFrameSection;
use section::known_version;

/// Opens a bare section that is loaded to an address.
#[pyfunction]
pub fn sframe_at(py: Python<'_>, path: &str, data: Option<Vec<u8>>, address: u64) -> PyResult<PyRecording> {
    let source = call(py, || match data {
        Some(data) => Source::from_bytes(path, data),
        None => Source::open(path),
    })?;
    let source = source.map_err(|error| io_error(py, path, &error))?;
    let file = call(py, || SFrame::open_at(Arc::new(source), Some(address)))?;
    let file =
        file.map_err(|error| unreadable(py, path, &error, "an SFrame section begins with the magic 0xdee2"))?;
    PyRecording::whole(py, Arc::new(file))
}

/// Looks addresses up: an array of native 64-bit numbers.
#[pyfunction]
pub fn sframe_find(py: Python<'_>, recording: &PyRecording, addresses: &[u8]) -> PyResult<ArrowStream> {
    let file: &SFrame = recording.concrete()?;
    let addresses: Vec<u64> =
        addresses.chunks_exact(8).map(|bytes| bytes.try_into().map_or(0, u64::from_ne_bytes)).collect();
    let batches = recording.inputs.read(py, || sframe::look_up(file, &addresses))?;
    Ok(ArrowStream::new(perfuse_tables::unwind_lookups::SPEC.schema(), batches.into_iter()))
}

/// Facts of each piece: `section, member, offset, address, version, abi, flags, num_functions, num_rows, starts, because`.
#[pyfunction]
pub fn sframe_pieces<'py>(py: Python<'py>, recording: &PyRecording) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let file: &SFrame = recording.concrete()?;
    file.views()
        .map(|view| {
            let piece = view.unit;
            let section = file.sections().get(piece.section);
            dict!(py,
                section: piece.section, member: section.map_or("", |section| &section.member),
                offset: view.offset(piece.at), address: view.address.wrapping_add(piece.at as u64),
                version: piece.version(), abi: piece.abi().arch(), flags: piece.header.sfp_flags,
                num_functions: piece.header.sfh_num_fdes, num_rows: piece.header.sfh_num_fres,
                header_bytes: piece.entries.start - piece.at, entries_bytes: piece.entries.len(),
                rows_bytes: piece.rows.len(), size_bytes: piece.end.min(view.data.len()) - piece.at,
                starts: piece.starts.name(), because: piece.starts.reason(),
            )
        })
        .collect()
}

/// The text of a version of readelf, in blocks.
#[pyclass(frozen, module = "perfuse._core")]
pub struct SFrameText {
    dump: Mutex<Dump>,
    inputs: Inputs,
}

#[pymethods]
impl SFrameText {
    #[new]
    fn new(recording: &PyRecording, style: &str, section: usize) -> PyResult<Self> {
        let style = Style::named(style).ok_or_else(|| value_error(format!("no style {style}")))?;
        match Dump::of(recording.concrete::<SFrame>()?, style, section) {
            Ok(dump) => Ok(Self { dump: Mutex::new(dump), inputs: recording.inputs.clone() }),
            Err(refused) => {
                let hint =
                    refused.shown_by.map_or(String::new(), |style| format!("; --style {style} shows it"));
                Err(value_error(format!("that readelf shows nothing of it: {}{hint}", refused.message)))
            }
        }
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(block) = self.inputs.read(py, || self.block())? else { return Ok(None) };
        let bytes = PyBytes::new(py, &block);
        py.detach(|| self.reuse(block));
        Ok(Some(bytes))
    }

    /// Writes what is left of it.
    fn write(&self, py: Python<'_>, out: Target) -> PyResult<()> {
        let mut out = out.open()?;
        let mut waiting = WaitingPython::new(None, None);
        let written = self.inputs.read(py, || {
            while waiting.go_on(0)
                && let Some(block) = self.block()
            {
                out.write_all(&block)?;
                self.reuse(block);
            }
            Ok(())
        })?;
        waiting.settle(written.map_err(Error::Io))
    }
}

/// Neither is called while the GIL is held: a writer waits for the GIL while it does not hold this lock.
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
pub fn sframe_put_back<'py>(
    py: Python<'py>,
    recording: &PyRecording,
    section: usize,
    data: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let file: &SFrame = recording.concrete()?;
    let section = file.sections().get(section).ok_or_else(|| value_error("there is no such section"))?;
    let bytes =
        writer::replace_section(file.source(), section, data).map_err(|error| export_error(py, error))?;
    Ok(PyBytes::new(py, &bytes))
}

/// The bytes of a program or library with a section: in place of the existing one, where it fits, else after everything else.
#[pyfunction]
pub fn sframe_into<'py>(
    py: Python<'py>,
    path: &str,
    section: &SFrameSection,
    sort: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let source = open_source(py, path)?;
    let mut contents = section.contents()?;
    if sort {
        contents.sort();
    }
    let bytes = Inputs::from(&source).read(py, || writer::write_to_elf(Arc::clone(&source), &contents))?;
    Ok(PyBytes::new(py, &bytes.map_err(|error| export_error(py, error))?))
}

fn open_source(py: Python<'_>, path: &str) -> PyResult<Arc<Source>> {
    call(py, || Source::open(path))?.map(Arc::new).map_err(|error| io_error(py, path, &error))
}

/// `(function, row, code of the reason, whether the function is omitted, detail)`.
type OmittedRow = (Option<u64>, Option<u32>, &'static str, bool, String);

/// A section made from a program's `.eh_frame` or from a JITDUMP's unwinding records, and what cannot be represented in it.
#[pyfunction]
pub fn sframe_from_eh_frame(
    py: Python<'_>,
    path: &str,
    version: u8,
) -> PyResult<(SFrameSection, Vec<OmittedRow>)> {
    let version = known_version(version)?;
    let source = open_source(py, path)?;
    let made = Inputs::from(&source).read(py, || section_from_eh_frame(&source, version))?;
    let (contents, omitted) = made.map_err(|error| match error {
        FromEhFrameError::Dump(error) => unreadable(py, path, &error, "a JITDUMP begins with JiTD"),
        FromEhFrameError::EhFrame(error) => {
            let hint = match error {
                EhFrameError::NotElf(_) => "give a program, a library or an object file",
                EhFrameError::Machine => "SFrame is defined for x86_64, aarch64 and s390x",
                EhFrameError::NoSection => "compile with -fasynchronous-unwind-tables",
            };
            lacking(py, path, error, hint)
        }
    })?;
    let row = |it: OmittedFunction| (it.start, it.row, it.reason, it.is_omitted, it.detail);
    Ok((SFrameSection::of(contents), omitted.into_iter().map(row).collect()))
}

/// `(pc, stack pointer)` of each frame, innermost first, and why there are no more.
type UnwoundStack = (Vec<(u64, u64)>, &'static str);

/// Unwinds a stack: registers are named `pc`, `sp`, `fp`, `ra`, or `r` and a DWARF number; `stack` begins at the stack
/// pointer.
#[pyfunction]
pub fn sframe_unwind(
    py: Python<'_>,
    recording: &PyRecording,
    registers: HashMap<String, u64>,
    stack: &[u8],
    bias: u64,
) -> PyResult<UnwoundStack> {
    let file: &SFrame = recording.concrete()?;
    let values = registers.iter().map(|(name, value)| (name.as_str(), *value));
    let registers = parse_registers(file, values).map_err(value_error)?;
    let (frames, stop) = recording.inputs.read(py, || unwind_by_sframe(file, &registers, stack, bias))?;
    Ok((frames.iter().map(|frame| (frame.pc, frame.sp)).collect(), stop.name()))
}

/// Coverage of each section that has an `.eh_frame` beside it, in dictionaries: how much code is covered, which functions are
/// not, and how far rows agree with `.eh_frame`.
#[pyfunction]
pub fn sframe_coverage<'py>(py: Python<'py>, recording: &PyRecording) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let file: &SFrame = recording.concrete()?;
    let sections = recording.inputs.read(py, || section_coverage(file))?;
    sections.iter().map(|section| coverage_dict(py, section)).collect()
}

fn coverage_dict<'py>(py: Python<'py>, section: &SectionCoverage) -> PyResult<Bound<'py, PyDict>> {
    let (coverage, checked) = (&section.coverage, &section.cross_check);
    let code =
        coverage.sections.iter().map(|it| (&it.name, it.start, it.size, it.covered_bytes, it.eh_frame_bytes));
    let without =
        section.uncovered.iter().map(|it| (it.start, it.size, it.name.as_deref(), it.reason, &it.detail));
    dict!(py,
        section: section.section, eh_frame_bytes: section.eh_frame_bytes,
        eh_frame_functions: section.num_eh_frame_functions, num_functions: coverage.num_functions,
        compared_functions: checked.num_functions, compared_stretches: checked.num_stretches,
        compared_bytes: checked.num_bytes, unmatched_bytes: checked.num_bytes_alone,
        num_disagreements: checked.disagreements.len(), is_complete: checked.is_complete,
        code: code.collect::<Vec<_>>(), without: without.collect::<Vec<_>>(),
    )
}
