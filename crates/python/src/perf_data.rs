//! What only perf.data has.

use perfuse_formats::perf_data::PerfData;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::recording::PyRecording;

/// Facts that joining needs and the tables do not hold; see `perfuse.formats.perf_data.PerfFacts`.
#[pyfunction]
fn perf_facts<'py>(py: Python<'py>, recording: &PyRecording) -> PyResult<Bound<'py, PyDict>> {
    let perf = recording.inner.as_any().downcast_ref::<PerfData>();
    let perf = perf.ok_or_else(|| PyTypeError::new_err("not a perf.data"))?;
    let markers = py.detach(|| perf.jit_markers());
    let markers: Vec<_> =
        markers.iter().map(|m| (m.pid, m.tid, m.ts, m.path.clone(), m.record_offset)).collect();
    let facts = PyDict::new(py);
    facts.set_item("command_line", perf.command_line())?;
    facts.set_item("hostname", perf.hostname())?;
    facts.set_item("os_release", perf.os_release())?;
    facts.set_item("cpu", perf.cpu_description())?;
    facts.set_item("markers", markers)?;
    facts.set_item("pids", perf.sampled_pids())?;
    facts.set_item("time_conv", perf.time_conv().map(|c| (c.time_shift, c.time_mult, c.time_zero)))?;
    facts.set_item("num_user_stacks", perf.num_user_stacks())?;
    Ok(facts)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(perf_facts, module)?)
}
