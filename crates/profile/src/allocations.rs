//! What was allocated: sums of table `allocations`, and which object was where.

use arrow_array::RecordBatch;
use perfuse_engine::allocated::{
    AllocationGroup, AllocationGrouping, AllocationSums, GroupSum, origin_rows, origins, samples,
};
use perfuse_engine::calls::Selection;
use perfuse_formats::{AllocationSum, TableRequest};
use perfuse_tables::access::ColumnError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrow::ArrowStream;
use crate::calls::{chosen, selection};
use crate::errors::table_error;
use crate::fusion::Fusion;
use crate::read_ahead::ReadAhead;

impl Fusion {
    /// Whether any recording has rows for a table.
    pub fn fills(&self, table: &str) -> bool {
        self.placed.iter().any(|placed| placed.recording().fills(table))
    }

    /// Allocations decoded in another thread while they are added up in this one.
    fn allocations(&self, with_stacks: bool) -> ReadAhead {
        let request = TableRequest { no_allocation_stacks: !with_stacks, ..TableRequest::default() };
        ReadAhead::new(self.recordings().rows("allocations", request))
    }

    /// All allocations, added up by thread and type, where every recording knows that without another pass.
    fn known_sums(&self) -> Option<AllocationSums> {
        let placed = self.placed.iter().filter(|placed| placed.recording().fills("allocations"));
        let sums = placed.map(|placed| placed.recording().allocation_sums(&placed.placement));
        let sums = sums.collect::<Option<Vec<_>>>()?;
        Some(AllocationSums::default().with(sums.into_iter().flatten().map(engine_sum)))
    }

    /// All allocations, added up.
    fn allocated(&self) -> Result<&AllocationSums, ColumnError> {
        let sums =
            self.allocated.get_or_init(|| AllocationSums::of(self.allocations(true), &Selection::default()));
        sums.as_ref().map_err(|error| *error)
    }

    /// Allocations as rows of `samples`, behind all others.
    pub fn allocated_samples(
        &self,
        selected: Option<&Selection>,
    ) -> Result<Option<RecordBatch>, ColumnError> {
        if !self.fills("allocations") {
            return Ok(None);
        }
        let traced = self.traced()?.map_or(0, |traced| traced.samples.num_rows() as u64);
        let first = self.after.sample + traced;
        Ok(Some(match selected {
            None => samples(self.allocated()?, first),
            Some(selection) => samples(&AllocationSums::of(self.allocations(true), selection)?, first),
        }))
    }
}

fn engine_sum(sum: AllocationSum) -> GroupSum {
    let AllocationSum { thread_id, type_id, count, bytes, largest, first_ns, source_id, record_offset } = sum;
    let group = AllocationGroup { thread_id, type_id, stack_id: None };
    GroupSum { group, count, bytes, largest, first_ns, source_id, record_offset }
}

/// Allocations added up by thread, type and stack, or `by` one of them, which is quicker without `stacks`; of some threads (`thread_id`) and a time.
#[pyfunction]
#[pyo3(signature = (fusion, *, by=None, stacks=true, threads=None, time_ns=None))]
fn allocation_sums(
    py: Python<'_>,
    fusion: &Fusion,
    by: Option<&str>,
    stacks: bool,
    threads: Option<Vec<u32>>,
    time_ns: Option<(i64, i64)>,
) -> PyResult<ArrowStream> {
    let by = by.map(|name| chosen("by", name, &AllocationGrouping::ALL)).transpose()?;
    let batch = py.detach(|| {
        let is_whole = threads.is_none() && time_ns.is_none();
        if is_whole && (stacks || fusion.allocated.get().is_some()) {
            return Ok(fusion.allocated()?.batch(by));
        }
        if is_whole && let Some(sums) = fusion.known_sums() {
            return Ok(sums.batch(by));
        }
        let selection = selection(threads, time_ns);
        AllocationSums::of(fusion.allocations(stacks), &selection).map(|sums| sums.batch(by))
    });
    batch.map(ArrowStream::of).map_err(table_error)
}

/// Where the objects were allocated that were at some addresses at some times: a row for each, null where that was not
/// recorded.
#[pyfunction]
fn object_origins(
    py: Python<'_>,
    fusion: &Fusion,
    addresses: Vec<u64>,
    times_ns: Vec<i64>,
) -> PyResult<ArrowStream> {
    if addresses.len() != times_ns.len() {
        return Err(PyValueError::new_err("an address has one time"));
    }
    let asked: Vec<_> = addresses.into_iter().zip(times_ns).collect();
    let found = py.detach(|| {
        let rows = |table, addresses: &[u64]| {
            let objects = Some(addresses.into());
            let request = TableRequest { no_allocation_stacks: true, objects, ..TableRequest::default() };
            ReadAhead::new(fusion.recordings().rows(table, request))
        };
        origins(
            &asked,
            |addresses| rows("object_moves", addresses),
            |addresses| rows("allocations", addresses),
        )
    });
    Ok(ArrowStream::of(origin_rows(&found.map_err(table_error)?)))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(allocation_sums, module)?)?;
    module.add_function(wrap_pyfunction!(object_origins, module)?)
}
