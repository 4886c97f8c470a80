//! The only crate that names pyo3: it hands the core to Python.
//!
//! Volume leaves as Arrow through PyCapsules, inspection as plain values; work runs with the GIL released.

mod arrow;
mod errors;
mod fusion;
mod images;
mod jitdump;
mod perf_data;
mod recording;
mod registry;
mod sframe;
mod stacks;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    arrow::register(module)?;
    recording::register(module)?;
    jitdump::register(module)?;
    perf_data::register(module)?;
    fusion::register(module)?;
    images::register(module)?;
    sframe::register(module)?;
    stacks::register(module)?;
    registry::register(module)
}
