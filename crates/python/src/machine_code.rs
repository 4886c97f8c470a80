//! Machine code: instructions, what they refer to, and the samples in them.

use perfuse_disassembly::{Architecture, Disassembler, Syntax};
use perfuse_engine::stacks::{CallTreeOptions, SelectedCode, StackTables, code_samples};
use perfuse_profile::CodeTarget;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::{ArrowStream, batches};
use crate::errors::{table_error, value_error};
use crate::inputs::ReadInputs;
use crate::profile::PyProfile;

/// Offset, size, text, flow, target, constant.
type InstructionRow = (usize, usize, String, &'static str, Option<u64>, Option<u64>);

/// The instructions of code that is, or was, at an address. `machine` is an ELF `e_machine`; `intel` selects that syntax for x86.
#[pyfunction]
pub fn disassemble(
    py: Python<'_>,
    code: &[u8],
    address: u64,
    machine: u16,
    intel: bool,
) -> Vec<InstructionRow> {
    let syntax = if intel { Syntax::Intel } else { Syntax::Att };
    py.detach(|| {
        let mut decoder = Disassembler::new(Architecture::of_elf_machine(machine), code, address, syntax);
        let (mut rows, mut text) = (Vec::new(), String::new());
        while let Some(one) = decoder.next(&mut text) {
            rows.push((one.offset, one.size, text.clone(), one.flow.name(), one.target, one.constant));
        }
        rows
    })
}

/// Name of the instruction set of an ELF `e_machine`; `bytes` where its code is listed as bytes.
#[pyfunction]
pub fn instruction_set(machine: u16) -> &'static str {
    Architecture::of_elf_machine(machine).name()
}

/// Rows of `code_objects`, `line_rows` or `inline_calls` of some code objects.
#[pyfunction]
pub fn code_rows(
    py: Python<'_>,
    profile: &PyProfile,
    table: &str,
    code_objects: Vec<u32>,
) -> PyResult<ArrowStream> {
    let spec = perfuse_tables::table(table).ok_or_else(|| PyValueError::new_err(table.to_owned()))?;
    let rows = profile.inputs.read(py, || profile.inner.code_rows(spec.name, code_objects))?;
    Ok(ArrowStream::new(spec.schema(), rows.map_err(table_error)?.into_iter()))
}

/// Code object or none, base, relative address, samples and weight there, samples and weight with it on the stack.
type PositionRow = (Option<u32>, u64, u64, u64, u64, u64, u64);
/// Code object or none, base, relative address, function and code object that were called, samples.
type CalleeRow = (Option<u32>, u64, u64, Option<u32>, Option<u32>, u64);

/// Samples by position in code objects and in `(mapping_id, start, end)` of files, the functions called from there, and number
/// and weight of the samples with any of the code on the stack.
#[pyfunction]
#[pyo3(name = "code_samples", signature = (tables, code_objects, ranges, *, starts=None, threads=None, processes=None, event=None, time_ns=None))]
#[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "one argument an option")]
pub fn py_code_samples(
    py: Python<'_>,
    tables: &Bound<'_, PyAny>,
    code_objects: Vec<u32>,
    ranges: Vec<(u32, u64, u64)>,
    starts: Option<Vec<u64>>,
    threads: Option<Vec<u32>>,
    processes: Option<Vec<u32>>,
    event: Option<String>,
    time_ns: Option<(i64, i64)>,
) -> PyResult<(Vec<PositionRow>, Vec<CalleeRow>, Vec<(Option<u32>, u64, u64)>)> {
    let table = |name: &str| batches(&tables.get_item(name)?);
    let tables = StackTables {
        samples: table("samples")?,
        stacks: table("stacks")?,
        frames: table("frames")?,
        threads: table("threads")?,
        ..StackTables::default()
    };
    let time_ns = time_ns.map(|(start, end)| start..end);
    let options = CallTreeOptions { threads, processes, event, time_ns, ..CallTreeOptions::default() };
    let code = SelectedCode { code_objects, ranges, starts: starts.unwrap_or_default() };
    let found = py.detach(|| code_samples(&tables, &options, &code));
    let found = found.map_err(value_error)?;
    let position = |(at, sum): (_, perfuse_engine::stacks::PositionSum)| {
        let perfuse_engine::stacks::CodePosition { code_object_id, base, relative_address } = at;
        let sums = (sum.self_samples, sum.self_weight, sum.total_samples, sum.total_weight);
        (code_object_id, base, relative_address, sums.0, sums.1, sums.2, sums.3)
    };
    let callee = |((at, function, code), samples): (perfuse_engine::stacks::Callee, u64)| {
        (at.code_object_id, at.base, at.relative_address, function, code, samples)
    };
    let totals = found.totals.into_iter().map(|(code, (samples, weight))| (code, samples, weight)).collect();
    let positions = found.positions.into_iter().map(position).collect();
    Ok((positions, found.callees.into_iter().map(callee).collect(), totals))
}

/// Code object or none, name or none, offset in it, file or none.
type TargetRow = Option<(Option<u32>, Option<String>, u64, Option<String>)>;

/// What addresses of a process referred to at a time.
#[pyfunction]
pub fn code_targets(
    py: Python<'_>,
    profile: &PyProfile,
    process_id: u32,
    at_ns: i64,
    addresses: Vec<u64>,
) -> PyResult<Vec<TargetRow>> {
    let targets = profile.inputs.read(py, || profile.inner.code_targets(process_id, at_ns, &addresses))?;
    Ok(target_rows(targets.map_err(table_error)?))
}

/// The same for several processes and times: `(process_id, ts_ns, address)`.
#[pyfunction]
pub fn code_targets_at(
    py: Python<'_>,
    profile: &PyProfile,
    queries: Vec<(u32, i64, u64)>,
) -> PyResult<Vec<TargetRow>> {
    let targets = profile.inputs.read(py, || profile.inner.code_targets_at(&queries))?;
    Ok(target_rows(targets.map_err(table_error)?))
}

fn target_rows(targets: Vec<Option<CodeTarget>>) -> Vec<TargetRow> {
    let row = |target| match target {
        CodeTarget::Code(id, offset) => (Some(id), None, offset, None),
        CodeTarget::Native(name, offset, file) => (None, Some(name.to_string()), offset, Some(file)),
    };
    targets.into_iter().map(|target| target.map(row)).collect()
}

/// Name, source file, line, column.
type SymbolRow = (String, Option<String>, Option<u32>, Option<u32>);

/// A program or library that code was mapped from.
#[pyclass(frozen, module = "perfuse._core")]
pub struct NativeModule(std::sync::Arc<perfuse_binaries::symbolize::Module>);

#[pymethods]
impl NativeModule {
    #[new]
    fn new(py: Python<'_>, profile: &PyProfile, path: &str, build_id: Option<&str>) -> PyResult<Self> {
        Ok(Self(profile.inputs.read(py, || profile.inner.module(path, build_id))?))
    }

    /// The file on this machine.
    #[getter]
    fn file(&self) -> Option<String> {
        Some(self.0.file()?.to_string_lossy().into_owned())
    }

    /// The separate file with its symbols and lines.
    #[getter]
    fn debug_file(&self) -> Option<String> {
        Some(self.0.debug_file()?.to_string_lossy().into_owned())
    }

    /// First address, code and ELF machine of the function that contains an address of the file.
    fn function_code<'py>(&self, py: Python<'py>, address: u64) -> PyResult<(u64, Bound<'py, PyBytes>, u16)> {
        let code = py.detach(|| self.0.function_code(address));
        let code = code.map_err(value_error)?;
        Ok((code.address, PyBytes::new(py, &code.bytes), code.machine))
    }

    /// For each address of the file: the function and the calls inlined there, the outermost first, and the address of the symbol.
    fn frames(&self, py: Python<'_>, addresses: Vec<u64>) -> Vec<(Vec<SymbolRow>, Option<u64>)> {
        let text = |text: std::sync::Arc<str>| text.to_string();
        let frame = |frame: perfuse_binaries::symbolize::SymbolFrame| {
            (text(frame.name), frame.path.map(text), frame.line, frame.column)
        };
        let resolved = py.detach(|| self.0.resolve_addresses(&addresses));
        resolved
            .into_iter()
            .map(|one| (one.frames.into_iter().map(frame).collect(), one.symbol_address))
            .collect()
    }
}
