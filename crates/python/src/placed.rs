//! A recording among others: its clock, its process, its keys.

use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_formats::{ClockMap, Placement, Recording, TableRequest};
use pyo3::prelude::*;

use crate::recording::PyRecording;

/// How a recording is put among the others.
#[pyclass(frozen, name = "Placed", module = "perfuse._core")]
pub struct PyPlaced {
    pub recording: Arc<dyn Recording>,
    pub clock: ClockMap,
    pub pid: Option<i32>,
    pub clock_kind: String,
    pub hz: Option<u64>,
    pub hz_source: String,
    pub stated_hz: Option<u64>,
    pub uncertainty_ns: Option<i64>,
    pub alignment: String,
}

#[pymethods]
impl PyPlaced {
    #[new]
    #[pyo3(signature = (
        recording, *, numerator, denominator, offset_ns, pid, clock_kind, hz, hz_source, stated_hz, uncertainty_ns,
        alignment
    ))]
    #[allow(clippy::too_many_arguments, reason = "one a column of table clocks")]
    fn new(
        recording: &PyRecording,
        numerator: u64,
        denominator: u64,
        offset_ns: i64,
        pid: Option<i32>,
        clock_kind: String,
        hz: Option<u64>,
        hz_source: String,
        stated_hz: Option<u64>,
        uncertainty_ns: Option<i64>,
        alignment: String,
    ) -> Self {
        let clock = ClockMap { numerator, denominator: denominator.max(1), offset_ns };
        let recording = Arc::clone(&recording.inner);
        Self { recording, clock, pid, clock_kind, hz, hz_source, stated_hz, uncertainty_ns, alignment }
    }
}

pub struct Placed {
    pub how: Py<PyPlaced>,
    pub placement: Placement,
}

impl Placed {
    pub fn recording(&self) -> &Arc<dyn Recording> {
        &self.how.get().recording
    }

    pub fn table(&self, name: &str, request: &TableRequest) -> Vec<RecordBatch> {
        self.recording().table(name, &self.placement, request).into_iter().flatten().collect()
    }
}

/// Recordings, each with its place, for rows that are made when they are pulled.
#[derive(Clone)]
pub struct Recordings(pub Vec<(Arc<dyn Recording>, Placement)>);

impl Recordings {
    /// Each by itself: addresses of one process mean nothing in another.
    pub fn each(self) -> impl Iterator<Item = Self> {
        self.0.into_iter().map(|one| Self(vec![one]))
    }

    /// What is wanted of a table, of one recording after the other.
    pub fn rows(
        self,
        name: &str,
        request: TableRequest,
    ) -> impl Iterator<Item = RecordBatch> + Send + 'static {
        let name = name.to_owned();
        self.0.into_iter().flat_map(move |(recording, placement)| {
            recording.table(&name, &placement, &request).into_iter().flatten()
        })
    }
}
