//! Heap snapshots: those of Mono logs, and graphs that the bytes state.

use std::collections::BTreeSet;

use arrow_array::types::UInt32Type;
use perfuse_engine::heap::{Heap, HeapObjects};
use perfuse_formats::TableRequest;
use perfuse_profile::{HeapSnapshot, Profile};
use perfuse_tables::access::numbers;
use perfuse_tables::{heap_objects, heap_references, heap_roots};

use crate::profiles::profile_of;

/// Larger graphs take too long where each object is left out in turn.
const MOST_COMPARED: usize = 24;

/// Analyses every heap snapshot of a log.
///
/// # Panics
/// When a snapshot contradicts itself.
pub(crate) fn of_log(bytes: &[u8]) {
    let Some(profile) = profile_of(&[bytes]) else { return };
    for name in ["heap_classes", "heap_dominators", "heap_sites"] {
        let Ok(Some(batches)) = profile.table(name, false) else { continue };
        batches
            .map_while(Result::ok)
            .for_each(|batch| assert!(batch.num_columns() > 0, "{name} has no columns"));
    }
    let mut earlier = None;
    for id in snapshot_ids(&profile) {
        let Ok(Some(snapshot)) = profile.heap_snapshot(id) else { continue };
        check_sums(snapshot.heap());
        let _ = snapshot.site_sums();
        if let Some(earlier) = earlier.replace(id) {
            check_changes(&snapshot, earlier);
        }
    }
}

fn snapshot_ids(profile: &Profile) -> Vec<u32> {
    let mut ids = Vec::new();
    for batch in profile.collect("heap_snapshots", &TableRequest::default()) {
        ids.extend(numbers::<UInt32Type>(&batch, "snapshot_id").expect("the column is declared").values());
    }
    ids
}

/// What was created since an earlier snapshot is listed and in its sums.
fn check_changes(snapshot: &HeapSnapshot, earlier: u32) {
    let (Ok(changes), Ok(objects)) = (snapshot.changes(earlier), snapshot.new_objects(earlier, None)) else {
        return;
    };
    let created: u64 = changes.iter().map(|(_, change)| change.num_new).sum();
    assert_eq!(created, objects.num_rows() as u64, "objects that are new, and their sums");
    let _ = snapshot.follow_objects(&[(0, 0), (i64::MAX, u64::MAX)]);
}

/// A heap with at most 24 objects, which the bytes state: their number, then pairs of an owner and a target; an owner that
/// is not an object makes its target a root.
///
/// # Panics
/// When sizes, dominators or paths are not those of their definitions.
pub(crate) fn of_graph(bytes: &[u8]) {
    let Some((&num_objects, pairs)) = bytes.split_first() else { return };
    let num_objects = num_objects % MOST_COMPARED as u8 + 1;
    let (pairs, _) = pairs.as_chunks::<2>();
    let address = |number: u8| u64::from(number % num_objects + 1) * 16;
    let (mut objects, mut references, mut roots) =
        (heap_objects::Builder::new(), heap_references::Builder::new(), heap_roots::Builder::new());
    for number in 0..num_objects {
        let (kind, size) = (u32::from(number) % 5, 8 + u64::from(number));
        objects.push(0, address(number), Some(kind), size, None, 0, u64::from(number));
    }
    for (row, &[owner, target]) in (0u64..).zip(pairs) {
        if owner >= 128 {
            let kind = if owner >= 250 { "weak" } else { "static" };
            let weak = Some(owner >= 250);
            roots.push(Some(0), None, address(target), kind, None, None, None, None, None, weak, 0, row);
        } else {
            references.push(0, address(owner), address(target), Some(row * 8), 0, row);
        }
    }
    let (objects, references, roots) = (objects.finish(), references.finish(), roots.finish());
    let heap = Heap::read(|table| {
        std::iter::once(match table {
            "heap_objects" => objects.clone(),
            "heap_references" => references.clone(),
            _ => roots.clone(),
        })
    });
    check_sums(&heap.expect("tables of the declaration"));
}

/// Compares what objects retain with what cannot be reached without each, and runs what reads a heap.
fn check_sums(heap: &Heap) {
    let objects = heap.objects();
    let all = 0..objects.len() as u32;
    assert_eq!(heap.class_rows(0).num_columns(), perfuse_tables::heap_classes::SPEC.schema().fields().len());
    assert_eq!(heap.object_ranges().map(|range| range.len()).sum::<usize>(), objects.len());
    for range in heap.object_ranges() {
        heap.dominator_rows(0, range);
    }
    heap.below(None, Some(10));
    heap.rest(Some(10));
    heap.duplicate_rows(1);
    heap.held_objects(&[None, Some(0)]);
    heap.folded(&Default::default());
    for object in all.clone().take(MOST_COMPARED) {
        heap.path_rows(object);
        heap.below(Some(object), None);
        assert!(heap.retained(object).0 >= objects.size(object), "an object retains itself");
    }
    if objects.len() <= MOST_COMPARED && heap.has_roots() {
        let starts: BTreeSet<u32> = heap.roots().objects().into_iter().collect();
        let alive = reached(heap, &starts, None);
        for object in all {
            let is_alive = alive.contains(&object);
            assert_eq!(heap.is_reachable(object), Some(is_alive), "object {object} can be reached");
            assert_eq!(heap.paths().to(object).is_empty(), !is_alive, "object {object} has a path");
        }
        check_retained(heap, objects, &starts, &alive);
    }
}

fn check_retained(heap: &Heap, objects: &HeapObjects, starts: &BTreeSet<u32>, alive: &BTreeSet<u32>) {
    let kept: Vec<(u32, BTreeSet<u32>)> =
        alive.iter().map(|&object| (object, alive - &reached(heap, starts, Some(object)))).collect();
    for (object, retained) in &kept {
        let bytes = retained.iter().fold(0u64, |sum, one| sum.saturating_add(objects.size(*one)));
        assert_eq!(heap.retained(*object), (bytes, retained.len() as u32), "what object {object} retains");
        let over = kept.iter().filter(|(other, of)| other != object && of.contains(object));
        let nearest = over.min_by_key(|(_, of)| of.len()).map(|(other, _)| *other);
        assert_eq!(heap.dominator(*object), nearest, "the dominator of object {object}");
    }
}

/// Objects that can be reached, also without going over one.
fn reached(heap: &Heap, starts: &BTreeSet<u32>, without: Option<u32>) -> BTreeSet<u32> {
    let mut seen: BTreeSet<u32> = starts.iter().copied().filter(|start| Some(*start) != without).collect();
    let mut open: Vec<u32> = seen.iter().copied().collect();
    while let Some(object) = open.pop() {
        for (target, _) in heap.references_from(object) {
            if Some(target) != without && seen.insert(target) {
                open.push(target);
            }
        }
    }
    seen
}
