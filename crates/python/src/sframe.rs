//! What only SFrame has: addresses looked up, readelf's text, sections that can be changed and written.

use std::sync::{Arc, Mutex, MutexGuard};

use perfuse_formats::sframe::consts::Abi;
use perfuse_formats::sframe::readelf::{Dump, Style};
use perfuse_formats::sframe::records::FuncInfo;
use perfuse_formats::sframe::recovery::{Base, Context, Expression, Recover, Recovery};
use perfuse_formats::sframe::writer::{self, Contents, Described};
use perfuse_formats::sframe::{self, SFrame};
use perfuse_formats::{Recording, Source};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrow::ArrowStream;
use crate::errors::{export_error, io_error, unreadable};
use crate::recording::PyRecording;

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
            let piece = view.piece;
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
        let block =
            py.detach(|| self.dump.lock().map(|mut dump| dump.next()).map_err(crate::errors::table_error))?;
        Ok(block.map(|block| PyBytes::new(py, &block)))
    }
}

/// A rule: base, offset, whether memory is read there.
type Rule = (String, i64, bool);
/// A row: start offset; CFA, frame pointer, return address; whether that is signed. Without a CFA: the outermost frame.
type Row = (u32, Option<Rule>, Option<Rule>, Option<Rule>, bool);
type MisfitRow = (Option<u64>, Option<u32>, &'static str, bool);

/// A section that can be changed and written.
#[pyclass(frozen, module = "perfuse._core")]
pub struct SFrameSection {
    contents: Mutex<Contents>,
}

#[pymethods]
impl SFrameSection {
    #[new]
    fn new(version: u8, arch: &str) -> PyResult<Self> {
        let abi = Abi::ALL.into_iter().find(|abi| abi.arch() == Some(arch));
        let abi = abi.ok_or_else(|| PyValueError::new_err(format!("SFrame has no ABI for {arch}")))?;
        if !(1..=3).contains(&version) {
            return Err(PyValueError::new_err("SFrame has versions 1, 2 and 3"));
        }
        Ok(Self::of(Contents::new(version, abi)))
    }

    /// One for each piece of a file.
    #[staticmethod]
    fn all_of(py: Python<'_>, recording: &PyRecording) -> PyResult<Vec<Self>> {
        let file = sframe(recording)?;
        Ok(py.detach(|| file.views().map(|view| Self::of(Contents::of(view))).collect()))
    }

    /// One sorted section of several.
    #[staticmethod]
    fn merged(py: Python<'_>, sections: Vec<PyRef<'_, Self>>) -> PyResult<(Self, usize)> {
        let all = sections.iter().map(|section| Ok(section.lock()?.clone())).collect::<PyResult<Vec<_>>>()?;
        let merged = py.detach(|| writer::merge(all)).map_err(|error| export_error(py, error))?;
        Ok((Self::of(merged.contents), merged.duplicates))
    }

    #[getter]
    fn version(&self) -> PyResult<u8> {
        Ok(self.lock()?.version)
    }

    #[getter]
    fn arch(&self) -> PyResult<Option<&'static str>> {
        Ok(self.lock()?.abi.arch())
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.lock()?.functions.len())
    }

    /// Adds a function with its rows.
    #[pyo3(signature = (start, size, rows, repeat_bytes=0, signal=false, key_b=false))]
    fn add(
        &self,
        start: u64,
        size: u32,
        rows: Vec<Row>,
        repeat_bytes: u8,
        signal: bool,
        key_b: bool,
    ) -> PyResult<()> {
        let mut contents = self.lock()?;
        let (version, repeats) = (contents.version, repeat_bytes != 0);
        if signal && version < 3 {
            return Err(PyValueError::new_err(
                "only version 3 can say that a function is entered for a signal",
            ));
        }
        let furthest = rows.iter().map(|row| row.0).max().unwrap_or(0).max(if repeats {
            repeat_bytes.into()
        } else {
            size
        });
        let fre_type = if furthest < 1 << 8 { 0 } else { 2 - u8::from(furthest < 1 << 16) };
        let mut described = Described {
            start,
            size,
            info: FuncInfo::new(fre_type, repeats, key_b, signal),
            fde_type: 0,
            repeat_bytes,
            padding: 0,
            block: 0,
        };
        let rows: Vec<(u32, Recovery)> =
            rows.into_iter().map(|row| Ok((row.0, recovery(row)?))).collect::<PyResult<_>>()?;
        let context = contents.context(&described);
        let as_type = |fde_type| {
            let context = Context { fde_type, ..context };
            rows.iter()
                .map(|(start, recovery)| writer::row_of(*start, recovery, &context))
                .collect::<Result<Vec<_>, _>>()
        };
        let written = match as_type(0) {
            Err(_) if version >= 3 => {
                described.fde_type = 1;
                as_type(1)
            }
            by_position => by_position,
        };
        contents.push(described, written.map_err(PyValueError::new_err)?);
        Ok(())
    }

    /// The same in another version, and what does not fit: `(function, row, what, left out)`.
    fn convert(&self, py: Python<'_>, version: u8) -> PyResult<(Self, Vec<MisfitRow>)> {
        let contents = self.lock()?;
        let (converted, misfits) = py.detach(|| contents.convert(version));
        let rows = misfits.iter().map(|misfit| (misfit.function, misfit.row, misfit.what, misfit.left_out));
        Ok((Self::of(converted), rows.collect()))
    }

    /// The same with equal rows shared, and how many blocks that took away.
    fn optimised(&self, py: Python<'_>) -> PyResult<(Self, usize)> {
        let mut contents = self.lock()?.clone();
        let gone = py.detach(|| contents.share_rows());
        Ok((Self::of(contents), gone))
    }

    /// Bytes for an address; functions sorted first, unless they are to keep their order.
    #[pyo3(signature = (address, sort=true))]
    fn encode<'py>(&self, py: Python<'py>, address: u64, sort: bool) -> PyResult<Bound<'py, PyBytes>> {
        let mut contents = self.lock()?;
        if sort {
            contents.sort();
        }
        let bytes = py.detach(|| contents.encode(address)).map_err(|error| export_error(py, error))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

impl SFrameSection {
    fn of(contents: Contents) -> Self {
        Self { contents: Mutex::new(contents) }
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Contents>> {
        self.contents.lock().map_err(crate::errors::table_error)
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
    let bytes = writer::put_back(file.source(), section, data).map_err(|error| export_error(py, error))?;
    Ok(PyBytes::new(py, &bytes))
}

fn recovery((_, cfa, fp, ra, ra_mangled): Row) -> PyResult<Recovery> {
    let Some(cfa) = cfa else { return Ok(Recovery::Outermost) };
    let rule = |rule: Option<Rule>| rule.map_or(Ok(Recover::Same), |rule| expression(rule).map(Recover::At));
    Ok(Recovery::Caller { cfa: expression(cfa)?, fp: rule(fp)?, ra: rule(ra)?, ra_mangled })
}

fn expression((base, offset, deref): Rule) -> PyResult<Expression> {
    let base = match base.as_str() {
        "sp" => Base::Sp,
        "fp" => Base::Fp,
        "cfa" => Base::Cfa,
        other => match other
            .strip_prefix('r')
            .and_then(|number| number.parse().ok())
            .filter(|number| *number < 1 << 29)
        {
            Some(number) => Base::Register(number),
            None => {
                return Err(PyValueError::new_err(format!(
                    "{other:?} is not sp, fp, cfa or a register such as r10"
                )));
            }
        },
    };
    Ok(Expression { base, offset, deref })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SFrameText>()?;
    module.add_class::<SFrameSection>()?;
    module.add_function(wrap_pyfunction!(sframe_at, module)?)?;
    module.add_function(wrap_pyfunction!(sframe_find, module)?)?;
    module.add_function(wrap_pyfunction!(sframe_pieces, module)?)?;
    module.add_function(wrap_pyfunction!(sframe_put_back, module)?)
}
