//! Addresses of objects in later heap snapshots.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_tables::{allocations, heap_snapshots, object_moves};

use super::{Made, plain};
use crate::heap::{ClassChange, ObjectLifetimes, RetainedObjects, Snapshots, sites, whereabouts};

fn lives(made: &[(i64, u64, u32)], moved: &[(i64, u64, u64)]) -> ObjectLifetimes {
    let mut table = allocations::Builder::new();
    for (stack, &(ts_ns, address, of)) in (0u32..).zip(made) {
        table.push(ts_ns, 5, Some(of), address, 16, Some(stack), 0, 0);
    }
    let mut moves = object_moves::Builder::new();
    for &(ts_ns, from, to) in moved {
        moves.push(ts_ns, from, to, 0, 0);
    }
    ObjectLifetimes::read([table.finish()].into_iter(), [moves.finish()].into_iter())
        .expect("tables of the declaration")
}

fn snapshots(rows: &[(u32, i64, Option<i64>)]) -> Snapshots {
    let mut table = heap_snapshots::Builder::new();
    for &(id, begun, done) in rows {
        table.push(id, begun, done, 0, 0);
    }
    Snapshots::read([table.finish()].into_iter()).expect("a table of the declaration")
}

fn stacks(rows: &RecordBatch) -> Vec<(u64, u32, u32)> {
    let addresses = rows["object_address"].as_primitive::<UInt64Type>().values();
    let stacks = rows["stack_id"].as_primitive::<UInt32Type>().values();
    let moves = rows["num_moves"].as_primitive::<UInt32Type>().values();
    (0..rows.num_rows()).map(|row| (addresses[row], stacks[row], moves[row])).collect()
}

#[test]
fn objects_have_the_site_they_were_allocated_at() {
    let lives = lives(
        // Out of order, as buffers of threads are; 0x10 is used again after what was there has moved on.
        &[(30, 0x10, 0), (10, 0x10, 0), (10, 0x20, 0), (10, 0x30, 7)],
        &[(20, 0x10, 0x40), (25, 0x40, 0x50), (60, 0x10, 0x90)],
    );
    let snapshots = snapshots(&[(4, 40, Some(50)), (5, 70, None)]);
    let later = Made { objects: vec![(0x90, Some(0), 16), (0x10, Some(0), 16)], ..Made::default() };
    let rows = |snapshot| {
        std::iter::once(if snapshot == 4 { plain(5, &[], &[]).objects() } else { later.objects() })
    };
    let rows: Vec<_> = sites(lives, snapshots, rows).map(|batch| batch.expect("declared")).collect();
    // At 0x30 there is something of another type than what was allocated there, at 0x40 nothing that is known.
    assert_eq!(stacks(&rows[0]), [(0x10, 0, 0), (0x20, 2, 0), (0x50, 1, 2)]);
    assert_eq!(stacks(&rows[1]), [(0x90, 0, 1)]);
}

#[test]
fn a_moved_object_is_recognized() {
    let earlier = plain(4, &[], &[]).heap();
    let mut later = plain(6, &[], &[]);
    later.objects[3].2 = 24;
    later.objects[4].2 = 32;
    let later = later.heap();
    // 1 moves to 5, where it takes more room, and something new comes to 1; 2 stays; 3 is gone, what is there was allocated since; 4 has grown, so it is
    // a different object; 6 came from an address that the earlier snapshot does not contain.
    let lives = lives(&[(5, 0x999, 0), (15, 0x10, 0), (16, 0x30, 0)], &[(12, 0x10, 0x50), (14, 0x800, 0x60)]);
    let kept = RetainedObjects::new(lives, (earlier.objects(), 10), (later.objects(), 20));
    let change = ClassChange { num_new: 4, new_bytes: 72, num_gone: 2, gone_bytes: 32 };
    assert_eq!(kept.changes(earlier.objects(), later.objects()), [(Some(0), change)]);
    let new = later.new_rows(&kept, None);
    let mut addresses = new["object_address"].as_primitive::<UInt64Type>().values().to_vec();
    addresses.sort_unstable();
    assert_eq!(addresses, [0x10, 0x30, 0x40, 0x60]);
}

#[test]
fn an_object_is_found_again() {
    let lives =
        lives(&[(5, 0x10, 0), (30, 0x20, 0)], &[(10, 0x10, 0x20), (20, 0x20, 0x30), (25, 0x70, 0x80)]);
    // The one allocated at 5, asked for before and after it has moved; one that was there before anything was recorded, and one
    // that stays; what came to 0x20 later; and what was at 0x10 when nothing was there any more.
    let known = [(6, 0x10), (7, 0x70), (7, 0x60), (12, 0x20), (15, 0x10), (31, 0x20)];
    let found = whereabouts(lives, &known, 40);
    assert_eq!(found, [Some(0x30), Some(0x80), Some(0x60), Some(0x30), None, Some(0x20)]);
}
