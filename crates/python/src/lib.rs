//! The only crate that names pyo3: it hands the core to Python.
//!
//! Volume leaves as Arrow through PyCapsules, inspection as plain values; work runs with the GIL released.

mod allocated;
mod arrow;
mod calls;
mod early;
mod errors;
mod findings;
mod fusion;
mod heap;
mod images;
mod jitdump;
mod joining;
mod mono_logs;
mod naming;
mod output;
mod profile_output;
mod read_ahead;
mod recording;
mod registry;
mod selected;
mod sframe;
mod sframe_unwind;
mod sleds;
mod stacks;
mod trace_output;
mod unwinding;
mod waiting;
mod xray_logs;

use pyo3::prelude::*;

/// Record batches are made in one thread and dropped in another: the system's allocator gives their pages back each time, and
/// half of a decode's time is spent on getting them again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    allocated::register(module)?;
    arrow::register(module)?;
    recording::register(module)?;
    early::register(module)?;
    jitdump::register(module)?;
    findings::register(module)?;
    fusion::register(module)?;
    images::register(module)?;
    selected::register(module)?;
    sframe::register(module)?;
    sframe_unwind::register(module)?;
    sleds::register(module)?;
    stacks::register(module)?;
    xray_logs::register(module)?;
    mono_logs::register(module)?;
    calls::register(module)?;
    heap::register(module)?;
    trace_output::register(module)?;
    profile_output::register(module)?;
    registry::register(module)
}
