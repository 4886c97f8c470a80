//! Tests of heap snapshots: the assignment of roots, and requests for a single snapshot.

use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_recording::{Placement, Recording, TableRequest};
use perfuse_tables::access::{nullable, numbers};

use crate::recording::MonoLog;
use crate::tests::assemble::*;

/// Snapshot and object of each row.
fn rows(log: &MonoLog, table: &str, snapshot: Option<u32>, first: u32) -> Vec<(Option<u32>, u64)> {
    let mut placement = Placement::alone(log);
    placement.first.snapshot = first;
    let request = TableRequest { snapshot, ..TableRequest::default() };
    let object = if table == "heap_references" { "target_address" } else { "object_address" };
    let batches = log.table(table, &placement, &request).unwrap();
    let rows = batches.flat_map(|batch| {
        let (snapshots, objects) = (numbers::<UInt32Type>(&batch, "snapshot_id").unwrap(), object);
        let objects = numbers::<UInt64Type>(&batch, objects).unwrap();
        (0..batch.num_rows()).map(|row| (nullable(snapshots, row), objects.value(row))).collect::<Vec<_>>()
    });
    rows.collect()
}

fn collection() -> Vec<u8> {
    event(0x11, &[&[0, 1]])
}

/// A root of object 0x8000 + 8 * `at`.
fn root(at: u8) -> Vec<u8> {
    vec![0x36, 1, 1, at, 3, 0]
}

/// A heapshot of an object that refers to itself.
fn snapshot(at: u8) -> Vec<u8> {
    [event(0x06, &[]), vec![0x26, at, 0, 16, 1, 8, at], event(0x16, &[])].concat()
}

fn old_log() -> MonoLog {
    let first = [collection(), root(1), collection(), root(2), root(3), snapshot(2), collection(), root(4)];
    let other = buffer_of(THREAD + 8, TIME, &[collection(), root(5)]);
    let second = buffer(&[root(6), snapshot(6), root(7)]);
    open([old_header(5), buffer(&first), other, second].concat())
}

#[test]
fn roots_precede_their_snapshot() {
    let roots = rows(&old_log(), "heap_roots", None, 0);
    let at = |object: u64| 0x8000 + 8 * object;
    // 1 is of a collection without a heapshot, 5 of another thread, and no heapshot follows 7.
    let expected = [
        (None, at(1)),
        (Some(0), at(2)),
        (Some(0), at(3)),
        (Some(1), at(4)),
        (None, at(5)),
        (Some(1), at(6)),
        (None, at(7)),
    ];
    assert_eq!(roots, expected);
}

#[test]
fn a_single_snapshot_is_requested() {
    let log = old_log();
    for table in ["heap_objects", "heap_references", "heap_roots"] {
        let all = rows(&log, table, None, 10);
        for snapshot in [10, 11] {
            let own: Vec<_> = all.iter().copied().filter(|(of, _)| *of == Some(snapshot)).collect();
            assert!(!own.is_empty());
            assert_eq!(rows(&log, table, Some(snapshot), 10), own, "{table}");
        }
        // Snapshots of recordings before and after this one.
        assert_eq!(
            [3, 12].map(|snapshot| rows(&log, table, Some(snapshot), 10)),
            [vec![], vec![]],
            "{table}"
        );
    }
}
