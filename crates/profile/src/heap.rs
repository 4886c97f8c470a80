//! Heap snapshots: what keeps objects alive, and where they were allocated.

use std::iter;

use arrow_array::RecordBatch;
pub use perfuse_engine::heap::SnapshotSums;
use perfuse_engine::heap::{
    ClassChange, Error, Heap, HeapObjects, ObjectLifetimes, RetainedObjects, Snapshots, site_sums, sites,
    whereabouts,
};
use perfuse_formats::TableRequest;

use crate::prefetch::Prefetch;
use crate::profile::Profile;
use crate::recordings::RecordingSet;
use crate::table_stream::TableStream;

impl Profile {
    /// A table computed from heap snapshots, one snapshot at a time as rows are pulled.
    pub(crate) fn heap_table(&self, name: &'static str) -> TableStream {
        let each = self.recording_set().each();
        let recordings: Vec<_> = each.collect();
        Box::new(recordings.into_iter().flat_map(move |one| one.heap_rows(name).unwrap_or_else(failed)))
    }

    /// Sums of all heap snapshots. Tables are made only of recordings that cannot add up by themselves.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn snapshot_sums(&self) -> Result<SnapshotSums, Error> {
        let mut all = SnapshotSums::default();
        for recording in self.recording_set().each() {
            if let Some(recorded) = recording.snapshot_sums() {
                all.extend(recorded);
            } else {
                let rows = |table| Prefetch::new(recording.clone().rows(table, TableRequest::default()));
                all.extend(SnapshotSums::read(rows("heap_objects"), rows("heap_references"))?);
            }
        }
        Ok(all)
    }

    /// Reads a heap snapshot, by its key; `None` where no recording has it.
    ///
    /// # Errors
    /// When a recording's table is not as declared, or the snapshot is too large.
    pub fn heap_snapshot(&self, snapshot_id: u32) -> Result<Option<HeapSnapshot>, Error> {
        for recording in self.recording_set().each() {
            let snapshots = recording.snapshots()?;
            if snapshots.done_ns(snapshot_id).is_some() {
                let heap = recording.heap(snapshot_id)?;
                return Ok(Some(HeapSnapshot { heap, snapshot_id, recording, snapshots }));
            }
        }
        Ok(None)
    }
}

fn failed(error: Error) -> TableStream {
    Box::new(iter::once(Err(error.into())))
}

/// Of a set of one recording.
impl RecordingSet {
    fn heap_rows(self, name: &str) -> Result<TableStream, Error> {
        let snapshots = self.snapshots()?;
        if name == "heap_sites" {
            let lifetimes = self.lifetimes()?;
            let rows = sites(lifetimes, snapshots, move |id| self.snapshot_rows("heap_objects", id));
            return Ok(Box::new(rows.map(|batch| batch.map_err(Into::into))));
        }
        let ids: Vec<_> = snapshots.ids().collect();
        let heaps = ids.into_iter().map(move |id| self.heap(id).map(|heap| (id, heap)));
        Ok(if name == "heap_classes" {
            Box::new(heaps.map(|read| Ok(read.map(|(id, heap)| heap.class_rows(id))?)))
        } else {
            Box::new(heaps.flat_map(|read| -> TableStream {
                match read {
                    Ok((id, heap)) => {
                        let ranges = heap.object_ranges();
                        Box::new(ranges.map(move |range| Ok(heap.dominator_rows(id, range))))
                    }
                    Err(error) => failed(error),
                }
            }))
        })
    }

    fn snapshots(&self) -> Result<Snapshots, Error> {
        Snapshots::read(self.clone().rows("heap_snapshots", TableRequest::default()))
    }

    fn lifetimes(&self) -> Result<ObjectLifetimes, Error> {
        let rows = |name| Prefetch::new(self.clone().rows(name, TableRequest::default()));
        ObjectLifetimes::read(rows("allocations"), rows("object_moves"))
    }

    /// Rows of one heap snapshot.
    fn snapshot_rows(&self, name: &str, snapshot_id: u32) -> Prefetch {
        let request = TableRequest { snapshot: Some(snapshot_id), ..TableRequest::default() };
        Prefetch::new(self.clone().rows(name, request))
    }

    fn heap(&self, snapshot_id: u32) -> Result<Heap, Error> {
        Heap::read(|table| self.snapshot_rows(table, snapshot_id))
    }
}

/// A heap snapshot, with its dominator tree.
pub struct HeapSnapshot {
    heap: Heap,
    snapshot_id: u32,
    /// The recording it is of.
    recording: RecordingSet,
    /// All snapshots of the recording.
    snapshots: Snapshots,
}

impl HeapSnapshot {
    /// Its objects, references and roots.
    #[must_use]
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Its key.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.snapshot_id
    }

    /// Number of the object at an address.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<u32> {
        self.heap.objects().find(address)
    }

    /// Sums of its objects by type and the stack that allocated them, as far as allocations were recorded.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn site_sums(&self) -> Result<RecordBatch, Error> {
        if !self.recording.fills("allocations") {
            return site_sums(iter::empty());
        }
        let objects = |id| self.recording.snapshot_rows("heap_objects", id);
        site_sums(sites(self.recording.lifetimes()?, self.snapshots.clone().only(self.snapshot_id), objects))
    }

    /// Addresses in the snapshot of objects given by earlier addresses `(ts_ns, address)`, in time order; `None` for objects
    /// that were not recorded or are not in the snapshot.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn follow_objects(&self, earlier: &[(i64, u64)]) -> Result<Vec<Option<u64>>, Error> {
        let addresses = whereabouts(self.recording.lifetimes()?, earlier, self.done_ns());
        Ok(addresses.into_iter().map(|found| found.filter(|address| self.find(*address).is_some())).collect())
    }

    /// Objects created and freed since an earlier snapshot of the recording, by type.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn changes(&self, earlier: u32) -> Result<Vec<(Option<u32>, ClassChange)>, Error> {
        let (objects, retained) = self.since(earlier)?;
        Ok(retained.changes(&objects, self.heap.objects()).into_iter().collect())
    }

    /// Rows of the objects that an earlier snapshot of the recording does not contain, largest retained size first.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn new_objects(&self, earlier: u32, limit: Option<usize>) -> Result<RecordBatch, Error> {
        let (_, retained) = self.since(earlier)?;
        Ok(self.heap.new_rows(&retained, limit))
    }

    fn done_ns(&self) -> i64 {
        self.snapshots.done_ns(self.snapshot_id).unwrap_or(i64::MAX)
    }

    /// Objects of an earlier snapshot, and which of them are in this one.
    fn since(&self, earlier: u32) -> Result<(HeapObjects, RetainedObjects), Error> {
        let objects = HeapObjects::read(self.recording.snapshot_rows("heap_objects", earlier))?;
        let done_ns = self.snapshots.done_ns(earlier).unwrap_or(i64::MIN);
        let later = (self.heap.objects(), self.done_ns());
        let retained = RetainedObjects::new(self.recording.lifetimes()?, (&objects, done_ns), later);
        Ok((objects, retained))
    }
}
