//! Python bindings of the core; the only crate that names pyo3.
//!
//! Tables are passed as Arrow streams through PyCapsules, single values as plain Python objects; work runs with the GIL
//! released.

mod allocations;
mod arrow;
mod calls;
mod errors;
mod findings;
mod heap;
mod images;
mod jitdump;
mod mono_logs;
mod output;
mod profile;
mod profile_output;
mod recording;
mod registry;
mod selected_rows;
mod sframe;
mod stacks;
mod trace_output;
mod xray_logs;
mod xray_map;

use pyo3::prelude::*;

/// Record batches are made in one thread and dropped in another. The system's allocator returns their pages each time, and
/// half of the time of a decode would be spent on getting them again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(module)?;
    allocations::register(module)?;
    arrow::register(module)?;
    recording::register(module)?;
    jitdump::register(module)?;
    findings::register(module)?;
    profile::register(module)?;
    images::register(module)?;
    selected_rows::register(module)?;
    sframe::register(module)?;
    xray_map::register(module)?;
    stacks::register(module)?;
    xray_logs::register(module)?;
    mono_logs::register(module)?;
    calls::register(module)?;
    heap::register(module)?;
    trace_output::register(module)?;
    profile_output::register(module)?;
    registry::register(module)
}
