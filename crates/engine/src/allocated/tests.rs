//! AllocationSums, and objects followed over moves.

use arrow_array::RecordBatch;
use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_tables::access::{nullable, numbers, text};
use perfuse_tables::{allocations, object_moves, stacks, types};
use proptest::prelude::*;

use super::{AllocationGrouping, AllocationSums, TypeFunctions, TypedStacks, origins, samples};
use crate::calls::Selection;

/// Time, thread, type, address, size, stack.
type Row = (i64, u32, Option<u32>, u64, u64, Option<u32>);

fn allocated(rows: &[Row]) -> RecordBatch {
    let mut table = allocations::Builder::new();
    for (offset, &(ts_ns, thread, type_id, address, size, stack)) in (0..).zip(rows) {
        table.push(ts_ns, thread, type_id, address, size, stack, 0, offset);
    }
    table.finish()
}

fn moved(rows: &[(i64, u64, u64)]) -> RecordBatch {
    let mut table = object_moves::Builder::new();
    for &(ts_ns, old, new) in rows {
        table.push(ts_ns, old, new, 0, 0);
    }
    table.finish()
}

const ROWS: &[Row] = &[
    (10, 1, Some(7), 0x100, 24, Some(3)),
    (20, 1, Some(7), 0x200, 40, Some(3)),
    (30, 2, Some(7), 0x300, 16, Some(3)),
    (5, 1, None, 0x400, 16, Some(3)),
    (40, 1, Some(7), 0x100, 8, None),
];

#[test]
fn allocations_of_a_kind_add_up() {
    let sums =
        AllocationSums::of([allocated(&ROWS[..2]), allocated(&ROWS[2..])].into_iter(), &Selection::default());
    let sums = sums.expect("the columns are there");
    let found: Vec<_> = sums
        .all()
        .iter()
        .map(|sum| (sum.group.thread_id, sum.count, sum.bytes, sum.largest, sum.first_ns))
        .collect();
    assert_eq!(found, [(1, 2, 64, 40, 10), (2, 1, 16, 16, 30), (1, 1, 16, 16, 5), (1, 1, 8, 8, 40)]);
    assert_eq!(sums.batch(None).num_rows(), 4);
    for (by, bytes) in [
        (AllocationGrouping::Type, vec![88, 16]),
        (AllocationGrouping::Stack, vec![96, 8]),
        (AllocationGrouping::Thread, vec![88, 16]),
    ] {
        let batch = sums.batch(Some(by));
        assert_eq!(numbers::<UInt64Type>(&batch, "size_bytes").expect("a column").values().as_ref(), bytes);
    }
    let stacks = sums.batch(Some(AllocationGrouping::Stack));
    let types = numbers::<UInt32Type>(&stacks, "type_id").expect("a column");
    assert_eq!((nullable(types, 0), nullable(types, 1)), (Some(7), Some(7)));
    assert_eq!(numbers::<UInt64Type>(&stacks, "num_types").expect("a column").values().as_ref(), [2, 1]);
}

#[test]
fn only_what_is_selected_counts() {
    let selection = Selection { threads: Some(vec![1]), time_ns: Some(10..40) };
    let sums = AllocationSums::of([allocated(ROWS)].into_iter(), &selection).expect("the columns are there");
    assert_eq!(sums.all().iter().map(|sum| sum.bytes).collect::<Vec<_>>(), [64]);
}

#[test]
fn as_samples_they_weigh_bytes_and_objects_for_each_thread_stack_and_type() {
    let sums = AllocationSums::of([allocated(ROWS)].into_iter(), &Selection::default())
        .expect("the columns are there");
    let mut named = types::Builder::new();
    named.push(7, None, "Node", Some(1), 0, 0);
    // The same type of another domain: only its key differs.
    named.push(8, None, "Node", Some(1), 0, 0);
    let types = TypeFunctions::of(&[named.finish()], 50).expect("the columns are there");
    let names = text(&types.functions, "name").expect("a column");
    assert_eq!((names.get(0), names.get(1)), (Some("(unknown type)"), Some("Node")));
    assert_eq!(types.frames(60).num_rows(), 2);
    let mut recorded = stacks::Builder::new();
    recorded.push(2, None, 0, 0);
    recorded.push(3, Some(2), 1, 1);
    let recorded = recorded.finish();
    let typed = TypedStacks::of(&sums, &types, std::slice::from_ref(&recorded), 60, 90);
    let typed = typed.expect("the columns are there");
    let column = |name| numbers::<UInt32Type>(&typed.stacks, name).expect("a column");
    assert_eq!(column("frame_id").values().as_ref(), [61, 60, 61]);
    assert_eq!(column("depth").values().as_ref(), [2, 2, 0]);
    assert_eq!(
        (0..3).map(|row| nullable(column("parent_stack_id"), row)).collect::<Vec<_>>(),
        [Some(3), Some(3), None]
    );
    // Of the rows of table `stacks`, which follow others.
    let saved =
        TypedStacks::of_rows(&[recorded, typed.stacks.clone()], 60, 90).expect("the columns are there");
    assert_eq!(
        (&saved.stacks, samples(&sums, &types, &saved, 100)),
        (&typed.stacks, samples(&sums, &types, &typed, 100))
    );
    assert!(TypedStacks::of_rows(std::slice::from_ref(&typed.stacks), 61, 90).is_err());
    let batch = samples(&sums, &types, &typed, 100);
    let weights = numbers::<UInt64Type>(&batch, "weight").expect("a column").values();
    assert_eq!(weights.as_ref(), [16, 1, 64, 2, 16, 1, 8, 1]);
    let stacks = numbers::<UInt32Type>(&batch, "stack_id").expect("a column").values();
    assert_eq!(stacks.as_ref(), [91, 91, 90, 90, 90, 90, 92, 92]);
    let events = text(&batch, "event").expect("a column");
    assert_eq!((events.get(0), events.get(1)), (Some("allocated-bytes"), Some("allocations")));
    assert_eq!(numbers::<UInt64Type>(&batch, "sample_id").expect("a column").value(5), 105);
}

#[test]
fn an_object_is_the_one_that_was_there_then() {
    let all = allocated(&[
        (10, 1, Some(1), 0x100, 24, None),
        (40, 1, Some(2), 0x100, 24, None),
        (10, 1, Some(3), 0x200, 24, None),
    ]);
    // The first one goes to the old generation, and is moved again when that is compacted.
    let moves = moved(&[(30, 0x100, 0x800), (50, 0x800, 0x900), (50, 0x100, 0x800)]);
    let asked = [
        (0x100, 9),
        (0x100, 10),
        (0x100, 29),
        (0x100, 35),
        (0x100, 45),
        (0x800, 30),
        (0x800, 60),
        (0x900, 50),
        (0x300, 99),
    ];
    let found = origins(&asked, |_| std::iter::once(moves.clone()), |_| std::iter::once(all.clone()));
    let types: Vec<_> =
        found.expect("the columns are there").iter().map(|it| it.and_then(|it| it.type_id)).collect();
    assert_eq!(types, [None, Some(1), Some(1), None, Some(2), Some(1), Some(2), Some(1), None]);
}

#[test]
fn moves_in_a_circle_end() {
    let moves = moved(&[(30, 0x100, 0x200), (30, 0x200, 0x100)]);
    let found = origins(&[(0x100, 30)], |_| std::iter::once(moves.clone()), |_| std::iter::empty());
    assert_eq!(found, Ok(vec![None]));
}

proptest! {
    /// Objects of a range are those that a saved table of all objects has.
    #[test]
    fn an_object_is_the_same_whichever_others_are_requested(
        allocations in prop::collection::vec((0i64..60, 0u64..9), 0..20),
        moves in prop::collection::vec((0i64..60, 0u64..9, 0u64..9), 0..60),
        objects in prop::collection::vec((0u64..9, 0i64..60), 1..12),
    ) {
        let rows: Vec<Row> = allocations.iter().zip(0..).map(|(&(time, at), id)| (time, 1, Some(id), at, 8, None)).collect();
        let (all, moves) = (allocated(&rows), moved(&moves));
        let found = |objects: &[(u64, i64)]| {
            origins(objects, |_| std::iter::once(moves.clone()), |_| std::iter::once(all.clone()))
        };
        let together = found(&objects).expect("the columns are there");
        let alone: Vec<_> = objects.iter().map(|one| found(&[*one]).expect("the columns are there")[0]).collect();
        prop_assert_eq!(together, alone);
    }
}
