//! Statistics of runs under permutations, for `perfuse.analysis.run_changes`.

use perfuse_engine::permutation::{Assignments, Row};
use pyo3::prelude::*;

use crate::call::call;

/// Squared statistics of rows `(centred, within, df)`: `(observed by row, largest by assignment)`.
///
/// `chunks` has a mask of the second side for each assignment, by chunk of `chunk_runs` runs.
#[pyfunction]
pub fn largest_statistics(
    py: Python<'_>,
    rows: Vec<(Vec<f64>, f64, f64)>,
    chunks: Vec<Vec<u16>>,
    chunk_runs: usize,
    runs_factor: f64,
) -> PyResult<(Vec<f64>, Vec<f64>)> {
    let rows: Vec<Row> = rows.into_iter().map(|(centred, within, df)| Row { centred, within, df }).collect();
    let assignments = Assignments { chunks, chunk_runs, runs_factor };
    call(py, || perfuse_engine::permutation::largest_statistics(&rows, &assignments))
}
