//! Heap shots: what keeps objects alive, and where they were allocated.

use std::collections::HashMap;
use std::iter;

use arrow_array::RecordBatch;
use perfuse_engine::heap::{
    Error, FoldedHeap, Heap, HeapObjects, ObjectLifetimes, RetainedObjects, SnapshotSum, SnapshotSums,
    Snapshots, site_sums, sites, whereabouts,
};
use perfuse_formats::TableRequest;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::arrow::ArrowStream;
use crate::errors::table_error;
use crate::fusion::{Fusion, Recordings};
use crate::read_ahead::ReadAhead;

type Rows = Box<dyn Iterator<Item = Result<RecordBatch, Error>> + Send>;

/// Tables that are worked out of heap shots; one shot is looked at after the other, as rows are pulled.
pub fn table(recordings: Recordings, name: &'static str) -> Rows {
    Box::new(recordings.each().flat_map(move |recording| rows(recording, name).unwrap_or_else(failed)))
}

fn failed(error: Error) -> Rows {
    Box::new(iter::once(Err(error)))
}

fn rows(recording: Recordings, name: &str) -> Result<Rows, Error> {
    let shots = shots(&recording)?;
    if name == "heap_sites" {
        let lives = lives(&recording)?;
        return Ok(Box::new(sites(lives, shots, move |shot| of_shot(&recording, "heap_objects", shot))));
    }
    let ids: Vec<_> = shots.ids().collect();
    let heaps = ids.into_iter().map(move |shot| heap(&recording, shot).map(|heap| (shot, heap)));
    Ok(if name == "heap_classes" {
        Box::new(heaps.map(|read| read.map(|(shot, heap)| heap.class_rows(shot))))
    } else {
        Box::new(heaps.flat_map(|read| -> Rows {
            match read {
                Ok((shot, heap)) => {
                    let ranges = heap.object_ranges();
                    Box::new(ranges.map(move |range| Ok(heap.dominator_rows(shot, range))))
                }
                Err(error) => failed(error),
            }
        }))
    })
}

fn shots(recordings: &Recordings) -> Result<Snapshots, Error> {
    Snapshots::read(recordings.clone().rows("heap_snapshots", TableRequest::default()))
}

fn lives(recordings: &Recordings) -> Result<ObjectLifetimes, Error> {
    let rows = |name| ReadAhead::new(recordings.clone().rows(name, TableRequest::default()));
    ObjectLifetimes::read(rows("allocations"), rows("object_moves"))
}

/// Rows of a table that are of one heap shot, made ahead in another thread.
fn of_shot(recordings: &Recordings, name: &str, snapshot: u32) -> ReadAhead {
    let request = TableRequest { snapshot: Some(snapshot), ..TableRequest::default() };
    ReadAhead::new(recordings.clone().rows(name, request))
}

fn heap(recordings: &Recordings, snapshot: u32) -> Result<Heap, Error> {
    Heap::read(|table| of_shot(recordings, table, snapshot))
}

/// A heap shot, with who keeps whom alive.
#[pyclass(frozen, module = "perfuse._core")]
pub struct HeapShot {
    heap: Heap,
    snapshot: u32,
    /// That it is of.
    recording: Recordings,
    shots: Snapshots,
}

/// `(kind, name, slot_address, owner_type_id, owner_thread_id)` of a root.
type RootRow = (String, Option<String>, Option<u64>, Option<u32>, Option<u32>);

#[pymethods]
impl HeapShot {
    /// Reads the shot with that key.
    #[new]
    fn new(py: Python<'_>, fusion: &Fusion, snapshot: u32) -> PyResult<Self> {
        let read = || {
            for recording in fusion.recordings().each() {
                let shots = shots(&recording)?;
                if shots.done_ns(snapshot).is_some() {
                    let heap = heap(&recording, snapshot)?;
                    return Ok(Some(Self { heap, snapshot, recording, shots }));
                }
            }
            Ok(None)
        };
        let found = py.detach(read).map_err(|error: Error| table_error(error))?;
        found.ok_or_else(|| PyKeyError::new_err(format!("no heap shot {snapshot}")))
    }

    /// Key of the shot.
    #[getter]
    fn snapshot_id(&self) -> u32 {
        self.snapshot
    }

    /// Objects.
    #[getter]
    fn num_objects(&self) -> usize {
        self.heap.objects().len()
    }

    /// Their sizes.
    #[getter]
    fn size_bytes(&self) -> u64 {
        self.heap.objects().size_bytes()
    }

    /// References from one to another.
    #[getter]
    fn num_references(&self) -> usize {
        self.heap.num_references()
    }

    /// References of or to what is no object of the shot.
    #[getter]
    fn num_dangling(&self) -> u64 {
        self.heap.num_dangling()
    }

    /// Records of objects that had one already.
    #[getter]
    fn num_repeated(&self) -> u64 {
        self.heap.objects().num_repeated()
    }

    /// Roots that keep an object alive.
    #[getter]
    fn num_roots(&self) -> usize {
        self.heap.roots().list().len()
    }

    /// Roots that do not.
    #[getter]
    fn num_weak_roots(&self) -> u64 {
        self.heap.roots().num_weak()
    }

    /// Roots of what is no object of the shot.
    #[getter]
    fn num_missed_roots(&self) -> u64 {
        self.heap.roots().num_missed()
    }

    /// Whether any roots were recorded.
    #[getter]
    fn has_roots(&self) -> bool {
        self.heap.has_roots()
    }

    /// Objects no root keeps alive, and their size in bytes; all where no roots were recorded.
    #[getter]
    fn unreachable(&self) -> (u32, u64) {
        self.heap.unreachable()
    }

    /// Rows of `heap_classes`.
    fn classes(&self, py: Python<'_>) -> ArrowStream {
        ArrowStream::of(py.detach(|| self.heap.class_rows(self.snapshot)))
    }

    /// The object at an address, a row.
    fn object(&self, address: u64) -> PyResult<ArrowStream> {
        Ok(ArrowStream::of(self.heap.object_row(self.find(address)?)))
    }

    /// Objects whose nearest dominator is that at an address; without one, those that have none. What retains most first.
    #[pyo3(signature = (address=None, limit=None))]
    fn below(&self, py: Python<'_>, address: Option<u64>, limit: Option<usize>) -> PyResult<ArrowStream> {
        let object = address.map(|address| self.find(address)).transpose()?;
        Ok(ArrowStream::of(py.detach(|| self.heap.below(object, limit))))
    }

    /// Objects no root keeps alive, without those another of them retains.
    #[pyo3(signature = (limit=None))]
    fn rest(&self, py: Python<'_>, limit: Option<usize>) -> ArrowStream {
        ArrowStream::of(py.detach(|| self.heap.rest(limit)))
    }

    /// The objects on a shortest way to one, from where it begins.
    fn path(&self, py: Python<'_>, address: u64) -> PyResult<ArrowStream> {
        let object = self.find(address)?;
        Ok(ArrowStream::of(py.detach(|| self.heap.path_rows(object))))
    }

    /// The root that tells most of those that keep an object alive themselves; None where no root does.
    fn root(&self, address: u64) -> PyResult<Option<RootRow>> {
        let (object, roots) = (self.find(address)?, self.heap.roots());
        let root = roots.list().iter().find(|root| root.object == object);
        Ok(root.map(|root| {
            let name = roots.name(root).map(str::to_owned);
            let owners = (root.owner_type_id, root.owner_thread_id);
            (roots.kind(root).to_owned(), name, root.slot_address, owners.0, owners.1)
        }))
    }

    /// Groups of objects that look the same.
    fn duplicates(&self, py: Python<'_>, least_references: usize) -> ArrowStream {
        ArrowStream::of(py.detach(|| self.heap.duplicate_rows(least_references)))
    }

    /// Where its objects were allocated, as far as that was recorded: sums by type and stack.
    fn sites(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        let sums = py.detach(|| {
            if !self.recording.fills("allocations") {
                return site_sums(iter::empty());
            }
            let objects = |snapshot| of_shot(&self.recording, "heap_objects", snapshot);
            site_sums(sites(lives(&self.recording)?, self.shots.clone().only(self.snapshot), objects))
        });
        Ok(ArrowStream::of(sums.map_err(table_error)?))
    }

    /// Where objects lie in the shot that were at an address at a time before it, `(ts_ns, address)`, in the order of time.
    /// None for those that nothing is known of, or that are no object of the shot.
    fn whereabouts(&self, py: Python<'_>, known: Vec<(i64, u64)>) -> PyResult<Vec<Option<u64>>> {
        let places =
            py.detach(|| Ok::<_, Error>(whereabouts(lives(&self.recording)?, &known, self.done_ns())));
        let is_there = |address: &u64| self.heap.objects().find(*address).is_some();
        Ok(places.map_err(table_error)?.into_iter().map(|place| place.filter(is_there)).collect())
    }

    /// The shot as stacks and samples, in tables by name; `types` are the names of its types.
    fn folded(&self, py: Python<'_>, types: HashMap<u32, String>) -> HashMap<&'static str, ArrowStream> {
        let FoldedHeap { functions, frames, stacks, samples } = py.detach(|| self.heap.folded(&types));
        let tables = [("functions", functions), ("frames", frames), ("stacks", stacks), ("samples", samples)];
        tables.into_iter().map(|(name, rows)| (name, ArrowStream::of(rows))).collect()
    }

    /// What came and what went since an earlier shot, by type: `(type_id, num_new, new_bytes, num_gone, gone_bytes)`.
    fn changes(&self, py: Python<'_>, earlier: u32) -> PyResult<Vec<ChangeRow>> {
        let changes = py.detach(|| {
            let (objects, kept) = self.since(earlier)?;
            Ok::<_, Error>(kept.changes(&objects, self.heap.objects()))
        });
        let row = |(of, it): (_, perfuse_engine::heap::ClassChange)| {
            (of, it.num_new, it.new_bytes, it.num_gone, it.gone_bytes)
        };
        Ok(changes.map_err(table_error)?.into_iter().map(row).collect())
    }

    /// The objects an earlier shot did not have, wherever they were then; what retains most first.
    #[pyo3(signature = (earlier, limit=None))]
    fn new_objects(&self, py: Python<'_>, earlier: u32, limit: Option<usize>) -> PyResult<ArrowStream> {
        let rows = py.detach(|| {
            let (_, kept) = self.since(earlier)?;
            Ok::<_, Error>(self.heap.new_rows(&kept, limit))
        });
        Ok(ArrowStream::of(rows.map_err(table_error)?))
    }
}

type ChangeRow = (Option<u32>, u64, u64, u64, u64);

impl HeapShot {
    fn find(&self, address: u64) -> PyResult<u32> {
        let found = self.heap.objects().find(address);
        found.ok_or_else(|| PyKeyError::new_err(format!("no object at {address:#x}")))
    }

    fn done_ns(&self) -> i64 {
        self.shots.done_ns(self.snapshot).unwrap_or(i64::MAX)
    }

    /// The objects of an earlier shot of the recording, and which of them are still there.
    fn since(&self, earlier: u32) -> Result<(HeapObjects, RetainedObjects), Error> {
        let objects = HeapObjects::read(of_shot(&self.recording, "heap_objects", earlier))?;
        let done_ns = self.shots.done_ns(earlier).unwrap_or(i64::MIN);
        let later = (self.heap.objects(), self.done_ns());
        let kept = RetainedObjects::new(lives(&self.recording)?, (&objects, done_ns), later);
        Ok((objects, kept))
    }
}

/// What the shots of some recordings hold. Each adds up what it can by itself; else its tables are made.
fn shot_sums(recordings: Recordings) -> Result<SnapshotSums, Error> {
    let mut all = SnapshotSums::default();
    for recording in recordings.each() {
        let Some(known) = recording.known_shot_sums() else {
            let rows = |table| ReadAhead::new(recording.clone().rows(table, TableRequest::default()));
            let SnapshotSums { classes, references } =
                SnapshotSums::read(rows("heap_objects"), rows("heap_references"))?;
            all.classes.extend(classes);
            all.references.extend(references);
            continue;
        };
        for sum in known {
            let (num_objects, size_bytes) = (sum.num_objects, sum.size_bytes);
            if num_objects > 0 {
                all.add(sum.snapshot_id, sum.type_id, SnapshotSum { num_objects, size_bytes });
            }
            all.add_references(sum.snapshot_id, sum.num_references);
        }
    }
    Ok(all)
}

/// `(snapshot_id, type_id, num_objects, size_bytes)`.
type SumRow = (u32, Option<u32>, u64, u64);
/// Those rows, and `(snapshot_id, num_references)`.
type SumRows = (Vec<SumRow>, Vec<(u32, u64)>);

/// What heap shots hold: rows of each shot and type, and of each shot `(snapshot_id, num_references)`.
#[pyfunction]
fn heap_sums(py: Python<'_>, fusion: &Fusion) -> PyResult<SumRows> {
    let sums = py.detach(|| shot_sums(fusion.recordings())).map_err(table_error)?;
    let row =
        |((shot, of), sum): ((u32, Option<u32>), SnapshotSum)| (shot, of, sum.num_objects, sum.size_bytes);
    Ok((sums.classes.into_iter().map(row).collect(), sums.references.into_iter().collect()))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<HeapShot>()?;
    module.add_function(wrap_pyfunction!(heap_sums, module)?)
}
