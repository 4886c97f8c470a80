//! Allocations: sums, and where objects were allocated.

use perfuse_profile::{AllocationGrouping, AllocationQuery};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrow::ArrowStream;
use crate::calls::selection;
use crate::choice::choice;
use crate::errors::table_error;
use crate::inputs::ReadInputs;
use crate::profile::PyProfile;

/// Sums of allocations by thread, type and stack, or `by` one of them, which is faster without `stacks`; of some threads
/// (`thread_id`) and a time range.
#[pyfunction]
#[pyo3(signature = (profile, *, by=None, stacks=true, threads=None, time_ns=None))]
pub fn allocation_sums(
    py: Python<'_>,
    profile: &PyProfile,
    by: Option<&str>,
    stacks: bool,
    threads: Option<Vec<u32>>,
    time_ns: Option<(i64, i64)>,
) -> PyResult<ArrowStream> {
    let by = by.map(|name| choice("by", name, &AllocationGrouping::ALL)).transpose()?;
    let query = AllocationQuery { selection: selection(threads, time_ns), by, with_stacks: stacks };
    let batch = profile.inputs.read(py, || profile.inner.allocation_sums(&query))?;
    batch.map(ArrowStream::of).map_err(table_error)
}

/// Allocations of the objects that were at some addresses at some times: a row each, null where not recorded. None where the
/// events of the profile are those of a range, and an object is not of one of them.
#[pyfunction]
pub fn object_origins(
    py: Python<'_>,
    profile: &PyProfile,
    addresses: Vec<u64>,
    times_ns: Vec<i64>,
) -> PyResult<Option<ArrowStream>> {
    if addresses.len() != times_ns.len() {
        return Err(PyValueError::new_err("an address has one time"));
    }
    let objects: Vec<_> = addresses.into_iter().zip(times_ns).collect();
    profile
        .inputs
        .read(py, || profile.inner.object_origins(&objects))?
        .map(|found| found.map(ArrowStream::of))
        .map_err(table_error)
}

/// Table `event_objects`, which ranges of time of a saved profile need.
#[pyfunction]
pub fn event_objects(py: Python<'_>, profile: &PyProfile) -> PyResult<ArrowStream> {
    let batch = profile.inputs.read(py, || profile.inner.event_objects())?;
    batch.map(ArrowStream::of).map_err(table_error)
}
