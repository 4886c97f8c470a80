//! Sections that can be changed and written.

use std::sync::{Mutex, MutexGuard};

use perfuse_formats::sframe::SFrame;
use perfuse_formats::sframe::consts::Abi;
use perfuse_formats::sframe::recovery::{Base, Expression, Recover, Recovery};
use perfuse_formats::sframe::writer::{self, NewFunction, SectionContents, UnrepresentableItem};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::call::call;
use crate::errors::{export_error, value_error};
use crate::inputs::ReadInputs;
use crate::recording::PyRecording;

/// A rule: base, offset, whether memory is read there.
type RuleFields = (String, i64, bool);
/// A row: start offset; CFA, frame pointer, return address; whether that is signed. Without a CFA: the outermost frame.
type RowFields = (u32, Option<RuleFields>, Option<RuleFields>, Option<RuleFields>, bool);
pub(super) type UnsupportedRow = (Option<u64>, Option<u32>, &'static str, bool);

/// A section that can be changed and written.
#[pyclass(frozen, module = "perfuse._core")]
pub struct SFrameSection {
    contents: Mutex<SectionContents>,
}

#[pymethods]
impl SFrameSection {
    #[new]
    fn new(version: u8, arch: &str) -> PyResult<Self> {
        let abi = abi_of(arch)?;
        Ok(Self::of(SectionContents::new(known_version(version)?, abi)))
    }

    /// One for each piece of a file.
    #[staticmethod]
    fn all_of(py: Python<'_>, recording: &PyRecording) -> PyResult<Vec<Self>> {
        let file: &SFrame = recording.concrete()?;
        recording.inputs.read(py, || file.views().map(|view| Self::of(SectionContents::of(view))).collect())
    }

    /// One sorted section of several.
    #[staticmethod]
    fn merged(py: Python<'_>, sections: Vec<PyRef<'_, Self>>) -> PyResult<(Self, usize)> {
        let all = sections.iter().map(|section| Ok(section.lock()?.clone())).collect::<PyResult<Vec<_>>>()?;
        let merged = call(py, || writer::merge(all))?.map_err(|error| export_error(py, error))?;
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
        rows: Vec<RowFields>,
        repeat_bytes: u8,
        signal: bool,
        key_b: bool,
    ) -> PyResult<()> {
        let rows: Vec<(u32, Recovery)> =
            rows.into_iter().map(|row| Ok((row.0, recovery(row)?))).collect::<PyResult<_>>()?;
        let function = NewFunction { start, size, repeat_bytes, is_signal: signal, is_key_b: key_b };
        self.lock()?.add(function, &rows).map_err(|(_, why)| value_error(why.code()))
    }

    /// The same for a machine of the other byte order.
    fn for_arch(&self, py: Python<'_>, arch: &str) -> PyResult<Self> {
        let changed = self.lock()?.in_byte_order_of(abi_of(arch)?);
        Ok(Self::of(changed.map_err(|error| export_error(py, error))?))
    }

    /// The same in another version, and what does not fit: `(function, row, what, left out)`.
    #[pyo3(signature = (version, pcrel=None))]
    fn convert(
        &self,
        py: Python<'_>,
        version: u8,
        pcrel: Option<bool>,
    ) -> PyResult<(Self, Vec<UnsupportedRow>)> {
        let contents = self.lock()?;
        let (converted, unsupported) = call(py, || contents.convert(version, pcrel))?;
        Ok((Self::of(converted), unsupported.iter().map(unsupported_row).collect()))
    }

    /// The same with equal rows shared, and how many blocks that took away.
    fn optimised(&self, py: Python<'_>) -> PyResult<(Self, usize)> {
        let mut contents = self.lock()?.clone();
        let gone = call(py, || contents.share_rows())?;
        Ok((Self::of(contents), gone))
    }

    /// Bytes for an address; functions sorted first, unless they are to keep their order.
    #[pyo3(signature = (address, sort=true))]
    fn encode<'py>(&self, py: Python<'py>, address: u64, sort: bool) -> PyResult<Bound<'py, PyBytes>> {
        let mut contents = self.lock()?;
        if sort {
            contents.sort();
        }
        let bytes = call(py, || contents.encode(address))?.map_err(|error| export_error(py, error))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

pub(super) fn known_version(version: u8) -> PyResult<u8> {
    let known = (1..=3).contains(&version).then_some(version);
    known.ok_or_else(|| value_error("SFrame has versions 1, 2 and 3"))
}

fn abi_of(arch: &str) -> PyResult<Abi> {
    let abi = Abi::ALL.into_iter().find(|abi| abi.arch() == Some(arch));
    abi.ok_or_else(|| value_error(format!("SFrame has no ABI for {arch}")))
}

pub(super) fn unsupported_row(item: &UnrepresentableItem) -> UnsupportedRow {
    (item.function, item.row, item.what.code(), item.omitted)
}

impl SFrameSection {
    pub(super) fn of(contents: SectionContents) -> Self {
        Self { contents: Mutex::new(contents) }
    }

    pub(super) fn contents(&self) -> PyResult<SectionContents> {
        Ok(self.lock()?.clone())
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, SectionContents>> {
        self.contents.lock().map_err(crate::errors::table_error)
    }
}

fn recovery((_, cfa, fp, ra, ra_mangled): RowFields) -> PyResult<Recovery> {
    let Some(cfa) = cfa else { return Ok(Recovery::Outermost) };
    let rule =
        |rule: Option<RuleFields>| rule.map_or(Ok(Recover::Same), |rule| expression(rule).map(Recover::At));
    Ok(Recovery::Caller { cfa: expression(cfa)?, fp: rule(fp)?, ra: rule(ra)?, ra_mangled })
}

fn expression((base, offset, deref): RuleFields) -> PyResult<Expression> {
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
                return Err(value_error(format!("{other:?} is not sp, fp, cfa or a register such as r10")));
            }
        },
    };
    Ok(Expression { base, offset, deref })
}
