//! Saved profiles: their members, the tables and recordings in them, and what is written to them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_formats::saved::SavedProfile;
use perfuse_formats::saved::copies::{SavedCopy, read_copy, write_copy};
use perfuse_formats::saved::parquet_file::{ROW_GROUP_ROWS, write};
use perfuse_formats::{Recording, registry};
use perfuse_profile::TableStream;
use perfuse_profile::saved::{JoinedRows, SavedFacts, saved_table as saved_rows};
use perfuse_profile::saved_events::{RecordingFacts, SavedInput, write_call_events as write_calls};
use perfuse_tables::{RESOLVED_TABLES, TableSpec, border_events, slices};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::{ArrowStream, reader};
use crate::call::call;
use crate::clock::{ClockRow, clock_of, clock_row};
use crate::errors::{io_error, lacking, table_error};
use crate::inputs::{Inputs, ReadInputs};
use crate::output::Target;
use crate::profile::{PyDefinedLines, PyPlaced, PyProfile};
use crate::recording::PyRecording;

const AGAIN: &str = "copy the file again, or make it again with `perfuse pack`";

fn damaged(py: Python<'_>, recording: &PyRecording, what: impl std::fmt::Display) -> PyErr {
    lacking(py, &recording.inner.source().path, what, AGAIN)
}

/// Name and size of each member.
#[pyfunction]
pub fn saved_members(saved: &PyRecording) -> PyResult<Vec<(String, usize)>> {
    let members = saved.concrete::<SavedProfile>()?.members().iter();
    Ok(members.map(|member| (member.name.clone(), member.range.len())).collect())
}

/// The bytes of a member.
#[pyfunction]
pub fn saved_member<'py>(py: Python<'py>, saved: &PyRecording, name: &str) -> PyResult<Bound<'py, PyBytes>> {
    let profile: &SavedProfile = saved.concrete()?;
    let bytes = saved.inputs.read(py, || profile.bytes(name))?;
    let bytes = bytes.ok_or_else(|| damaged(py, saved, format!("{name} is missing or damaged")))?;
    Ok(PyBytes::new(py, bytes))
}

/// A common table of a saved profile; None where it has no rows of it. With `near`, a column of integers with a least and a
/// greatest value, parts of a large table without a value between them are neither read nor returned.
#[pyfunction]
#[pyo3(signature = (saved, name, near=None))]
pub fn saved_table(
    py: Python<'_>,
    saved: &PyRecording,
    name: &str,
    near: Option<(String, i64, i64)>,
) -> PyResult<Option<ArrowStream>> {
    let Some(spec) = perfuse_tables::table(name) else { return Ok(None) };
    let near = near.map(|(column, least, greatest)| (column, least..=greatest));
    let near = near.as_ref().map(|(column, values)| (column.as_str(), values));
    let rows = saved.inputs.read(py, || saved_rows(&saved.inner, spec.name, near))?;
    Ok(rows.map(|rows| ArrowStream::trying(spec.schema(), saved.inputs.batches(rows))))
}

/// A common table without rows; None for an unknown name.
#[pyfunction]
pub fn empty_table(name: &str) -> Option<ArrowStream> {
    perfuse_tables::table(name).map(|spec| ArrowStream::of(RecordBatch::new_empty(spec.schema())))
}

/// The recording in a member, which had `size` bytes; `code` are the numbers of the code objects whose bytes it has.
#[pyfunction]
#[pyo3(signature = (saved, member, path, size, code=None))]
pub fn saved_recording(
    py: Python<'_>,
    saved: &PyRecording,
    member: &str,
    path: &str,
    size: u64,
    code: Option<Vec<u32>>,
) -> PyResult<PyRecording> {
    let profile: &SavedProfile = saved.concrete()?;
    let limit = saved.inner.source().unpack_limit;
    let unpacked = saved.inputs.read(py, || {
        profile
            .bytes(member)
            .map(|packed| read_copy(packed, size, path, limit.of_packed(packed.len() as u64)))
    })?;
    let unpacked = unpacked.ok_or_else(|| damaged(py, saved, format!("{member} is missing or damaged")))?;
    let source = unpacked
        .map_err(|error| io_error(py, &format!("{member} of {}", saved.inner.source().path), &error))?;
    let opened = call(py, || registry::open(Arc::new(source)))?;
    let inner = opened.map_err(|error| damaged(py, saved, format!("{member}: {error}")))?;
    if inner.as_any().is::<SavedProfile>() {
        return Err(damaged(py, saved, format!("{member} is a saved profile")));
    }
    let code = code.map(|mut numbers| {
        numbers.sort_unstable();
        numbers
    });
    let inner: Arc<dyn Recording> = Arc::new(SavedCopy::new(inner, code));
    let inputs = Inputs::of([&inner]);
    Ok(PyRecording { inner, inputs })
}

/// First row and the row after the last one.
type Rows = (u64, u64);

/// What a saved profile states about its tables: rows of frames, stacks, samples, functions and modules that the join made, and
/// rows of functions and modules that maps named, of each recording, and the number of rows of samples that are of calls.
type FactsRow = (Option<[Rows; 5]>, Vec<(Rows, Rows)>, u64);

fn range((start, end): Rows) -> Range<u64> {
    start..end
}

fn facts_of((joined, named, traced_samples): FactsRow, partial: Vec<String>) -> SavedFacts {
    SavedFacts {
        joined: joined.map(|rows| JoinedRows { rows: rows.map(range) }),
        named: named.into_iter().map(|(functions, modules)| (range(functions), range(modules))).collect(),
        partial,
        traced_samples,
    }
}

/// Of a recording: format, tables with rows of it, numbers of its keys, span, clock, process.
type RecordingRow = (String, Vec<String>, HashMap<String, u64>, Option<(u64, u64)>, ClockRow, Option<i32>);

fn known_of((format, tables, keys, span, clock, pid): RecordingRow) -> PyResult<RecordingFacts> {
    Ok(RecordingFacts { format, tables, keys, span, clock: clock_of(&clock)?, pid })
}

/// A recording of a saved profile: its copy, or what is known of it without that.
fn saved_input(one: &Bound<'_, PyAny>) -> PyResult<SavedInput> {
    match one.cast::<PyPlaced>() {
        Ok(copy) => Ok(SavedInput::Copy(copy.get().0.clone())),
        Err(_) => known_of(one.extract()?).map(SavedInput::Facts),
    }
}

/// The profile of the recordings of a saved profile, with tables of which it has only some rows (`partial`). Where only some
/// recordings are copies, it is for what is about these.
#[pyfunction]
pub fn saved_profile(
    py: Python<'_>,
    saved: &PyRecording,
    recordings: Vec<Bound<'_, PyAny>>,
    facts: FactsRow,
    partial: Vec<String>,
) -> PyResult<PyProfile> {
    let known = recordings.iter().map(saved_input).collect::<PyResult<Vec<_>>>()?;
    let facts = facts_of(facts, partial);
    let open = || perfuse_profile::Profile::of_some_copies(&saved.inner, known, &facts);
    let (inner, damage) = saved.inputs.read(py, open)?.map_err(|error| damaged(py, saved, error))?;
    let inputs = Inputs::of(inner.recordings().chain([&saved.inner])).with_damage(damage);
    Ok(PyProfile { inner: Arc::new(inner), inputs })
}

/// The profile of the tables of a saved profile alone, with the samples of some times: for what needs no others.
#[pyfunction]
#[pyo3(signature = (saved, sampled_ns=None))]
pub fn saved_tables_profile(
    py: Python<'_>,
    saved: &PyRecording,
    sampled_ns: Option<(i64, i64)>,
) -> PyResult<PyProfile> {
    let times = sampled_ns.map(|(least, greatest)| least..=greatest);
    let opened = saved.inputs.read(py, || perfuse_profile::Profile::of_saved_tables(&saved.inner, times))?;
    let inner = Arc::new(opened.map_err(|error| damaged(py, saved, error))?);
    let inputs = Inputs::of([&saved.inner]);
    Ok(PyProfile { inner, inputs })
}

/// What is to be stated about the tables of a profile when it is saved.
#[pyfunction]
pub fn saved_facts(py: Python<'_>, profile: &PyProfile) -> PyResult<FactsRow> {
    let facts = profile.inputs.read(py, || profile.inner.saved_facts())?.map_err(table_error)?;
    let rows = |range: Range<u64>| (range.start, range.end);
    let joined = facts.joined.map(|joined| joined.rows.map(rows));
    Ok((
        joined,
        facts.named.into_iter().map(|(functions, modules)| (rows(functions), rows(modules))).collect(),
        facts.traced_samples,
    ))
}

type PlacementRow = (ClockRow, Option<i32>, Option<PyDefinedLines>, BTreeMap<i32, u32>);

/// Clock and process of each recording of a profile, lines of its functions, and which of the processes with a pid are its own.
#[pyfunction]
pub fn placements(profile: &PyProfile) -> Vec<PlacementRow> {
    let placed = profile.inner.placements().zip(profile.inner.definitions());
    placed
        .map(|((clock, pid, nth_of_pid), definitions)| {
            let definitions = definitions.map(|lines| PyDefinedLines(Arc::clone(lines)));
            (clock_row(*clock), pid, definitions, nth_of_pid.clone())
        })
        .collect()
}

/// Writes a table as Parquet. Returns its number of rows.
#[pyfunction]
#[pyo3(signature = (out, table, stream, group_rows=None))]
pub fn write_table(
    py: Python<'_>,
    out: Target,
    table: &str,
    stream: &Bound<'_, PyAny>,
    group_rows: Option<usize>,
) -> PyResult<u64> {
    let resolved = RESOLVED_TABLES.into_iter().find(|spec| spec.name == table);
    let spec = perfuse_tables::table(table).or(resolved);
    let spec = spec.ok_or_else(|| PyValueError::new_err(table.to_owned()))?;
    let batches = reader(stream)?;
    let out = out.open()?;
    let group_rows = group_rows.unwrap_or(ROW_GROUP_ROWS);
    let written = call(py, || write(spec, spec.schema(), group_rows, batches, out))?;
    written.map_err(table_error)
}

/// Writes table `call_events` as Parquet. Returns its number of rows, and table `border_events`; None where it is of no use.
#[pyfunction]
#[pyo3(signature = (out, stream, group_rows=None))]
pub fn write_call_events(
    py: Python<'_>,
    out: Target,
    stream: &Bound<'_, PyAny>,
    group_rows: Option<usize>,
) -> PyResult<(u64, Option<ArrowStream>)> {
    let (batches, out) = (reader(stream)?, out.open()?);
    let written = call(py, || write_calls(batches, group_rows.unwrap_or(ROW_GROUP_ROWS), out))?;
    let (num_rows, borders) = written.map_err(table_error)?;
    let schema = border_events::SPEC.schema();
    Ok((num_rows, borders.map(|batches| ArrowStream::new(schema, batches.into_iter()))))
}

/// The profile of the events of a range of time, of tables alone; None where the file has not the tables for it.
#[pyfunction]
pub fn saved_range(
    py: Python<'_>,
    saved: &PyRecording,
    time_ns: (i64, i64),
    recordings: Vec<RecordingRow>,
    facts: FactsRow,
    partial: Vec<String>,
) -> PyResult<Option<PyProfile>> {
    let known = recordings.into_iter().map(known_of).collect::<PyResult<Vec<_>>>()?;
    let facts = facts_of(facts, partial);
    let open = || perfuse_profile::Profile::of_saved_range(&saved.inner, time_ns.0..time_ns.1, known, &facts);
    let opened = saved.inputs.read(py, open)?.map_err(|error| damaged(py, saved, error))?;
    let inputs = Inputs::of([&saved.inner]);
    Ok(opened.map(|(inner, damage)| PyProfile { inner: Arc::new(inner), inputs: inputs.with_damage(damage) }))
}

/// Table `slices` of a profile that `saved_range` returned, with all slices that start in its range; None where the file does not
/// state what calls of a range need.
#[pyfunction]
pub fn slices_of_range(py: Python<'_>, profile: &PyProfile) -> PyResult<Option<ArrowStream>> {
    let batches = profile.inputs.read(py, || profile.inner.slices_of_range())?.map_err(table_error)?;
    let stream = |batches| ArrowStream::trying(slices::SPEC.schema(), profile.inputs.batches(batches));
    Ok(batches.map(|batches| -> TableStream { Box::new(batches.map(Ok)) }).map(stream))
}

/// Sums over all calls and all allocations, with the names of their tables, to be saved with a profile.
#[pyfunction]
pub fn resolved_sums(
    py: Python<'_>,
    profile: &PyProfile,
    calls: bool,
    allocations: bool,
) -> PyResult<Vec<(&'static str, ArrowStream)>> {
    let tables = profile.inputs.read(py, || profile.inner.resolved_sums(calls, allocations))?;
    let stream = |(spec, rows): (&'static TableSpec, _)| (spec.name, ArrowStream::of(rows));
    Ok(tables.map_err(table_error)?.into_iter().map(stream).collect())
}

/// Writes a compressed copy of a recording. With `code`, only the machine code of these code objects (numbers within the
/// recording) is in it, and no copies of stacks.
#[pyfunction]
#[pyo3(signature = (recording, out, code=None))]
pub fn write_copy_of(
    py: Python<'_>,
    recording: &PyRecording,
    out: Target,
    code: Option<(bool, Vec<u32>)>,
) -> PyResult<()> {
    let out = out.open()?;
    let inner = &recording.inner;
    let written = recording.inputs.read(py, || {
        let blank = code.map_or_else(Vec::new, |(keep_all, mut numbers)| {
            numbers.sort_unstable();
            inner.omissible_bytes(&|number| keep_all || numbers.binary_search(&number).is_ok())
        });
        write_copy(inner.source(), &blank, out)
    })?;
    Ok(written?)
}
