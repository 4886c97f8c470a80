//! Small graphs whose answers one can see.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};

use super::{Made, of, plain};

#[test]
fn what_two_keep_alive_neither_retains() {
    let heap = plain(4, &[(1, 3), (2, 3), (3, 4)], &[1, 2]).heap();
    assert_eq!(of(&heap, 0x10), (16, None));
    assert_eq!(of(&heap, 0x30), (32, None));
    assert_eq!(of(&heap, 0x40), (16, Some(0x30)));
    assert_eq!(heap.unreachable(), (0, 0));
}

#[test]
fn cycles_and_objects_that_refer_to_themselves() {
    let heap = plain(3, &[(1, 2), (2, 3), (3, 2), (3, 3), (1, 1)], &[1]).heap();
    assert_eq!([0x10, 0x20, 0x30].map(|at| of(&heap, at)), [(48, None), (32, Some(0x10)), (16, Some(0x20))]);
}

#[test]
fn references_are_found_from_both_ends() {
    let heap = plain(4, &[(1, 3), (2, 3), (2, 3), (3, 4), (4, 4)], &[1, 2]).heap();
    let to: Vec<_> = (0..4).map(|object| heap.references_to(object)).map(|them| owners(&them)).collect();
    assert_eq!(to, [vec![], vec![], vec![0, 1, 1], vec![2, 3]]);
    let from: Vec<_> =
        (0..4).map(|object| owners(&heap.references_from(object).collect::<Vec<_>>())).collect();
    assert_eq!(from, [vec![2], vec![2, 2], vec![3], vec![3]]);
    assert_eq!(heap.of_type(Some(0), Some(2)).num_rows(), 2);
    assert_eq!(heap.of_type(Some(9), None).num_rows(), 0);
}

fn owners(references: &[(u32, Option<u32>)]) -> Vec<u32> {
    references.iter().map(|(object, _)| *object).collect()
}

#[test]
fn garbage_has_a_tree_of_its_own() {
    // 3 and 4 are a cycle that refers to 5, to which nothing else does, and to 2, which is alive.
    let heap = plain(5, &[(1, 2), (3, 4), (4, 3), (4, 2), (4, 5)], &[1]).heap();
    assert_eq!(of(&heap, 0x20), (16, Some(0x10)));
    assert_eq!(heap.unreachable(), (3, 48));
    assert_eq!(of(&heap, 0x50).1, Some(0x40));
    let reachable: Vec<_> = (0..5).map(|object| heap.is_reachable(object)).collect();
    assert_eq!(reachable, [Some(true), Some(true), Some(false), Some(false), Some(false)]);
    assert_eq!(heap.rest(None).num_rows(), 1);
    assert_eq!(heap.paths().distance(2), None);
}

#[test]
fn without_roots_unreferenced_objects_replace_them() {
    let heap = plain(4, &[(2, 1), (3, 4), (4, 3)], &[]).heap();
    assert!(!heap.has_roots());
    assert_eq!(heap.is_reachable(0), None);
    assert_eq!(of(&heap, 0x20), (32, None));
    assert_eq!(of(&heap, 0x10), (16, Some(0x20)));
    // One of a cycle stands for it.
    let cycle = [of(&heap, 0x30), of(&heap, 0x40)];
    assert!(cycle.contains(&(32, None)), "{cycle:?}");
    assert_eq!(heap.paths().to(0), [1, 0]);
    let rows = heap.dominator_rows(7, 0..4);
    assert_eq!(rows["root_distance"].null_count(), 4);
    assert_eq!(rows["is_reachable"].null_count(), 4);
}

#[test]
fn a_class_counts_what_its_objects_retain_once() {
    // A list of three nodes, each with something of another type.
    let made = Made {
        objects: (1..=6).map(|at| (at * 16, Some((at > 3).into()), 16 * at)).collect(),
        references: vec![(0x10, 0x20), (0x20, 0x30), (0x10, 0x40), (0x20, 0x50), (0x30, 0x60)],
        roots: vec![(0x10, "static")],
    };
    let rows = made.heap().class_rows(0);
    let column = |name: &str| rows[name].as_primitive::<UInt64Type>().values().to_vec();
    assert_eq!(rows["type_id"].as_primitive::<UInt32Type>().values()[..], [0, 1]);
    assert_eq!(column("num_objects"), [3, 3]);
    assert_eq!(column("size_bytes"), [96, 240]);
    assert_eq!(column("retained_bytes"), [336, 240]);
    assert_eq!(column("num_retained"), [6, 3]);
    assert_eq!(column("largest_address"), [0x10, 0x60]);
    assert_eq!(column("num_unreachable"), [0, 0]);
}

#[test]
fn records_that_do_not_fit_are_counted() {
    let made = Made {
        objects: vec![(0x40, None, 16), (0x10, Some(1), 24), (0x40, Some(2), 99)],
        references: vec![(0x10, 0x40), (0x10, 0x999), (0x77, 0x10), (0x40, 0x40)],
        roots: vec![(0x18, "stack"), (0x5000, "stack"), (0x40, "weak")],
    };
    let heap = made.heap();
    assert_eq!(heap.objects().num_repeated(), 1);
    assert_eq!(heap.num_dangling(), 2);
    // A root that points into an object keeps it; a weak one does not.
    assert_eq!((heap.roots().num_missed(), heap.roots().num_weak()), (1, 1));
    assert_eq!(of(&heap, 0x10), (40, None));
    assert_eq!(of(&heap, 0x40), (16, Some(0x10)));
}

#[test]
fn an_empty_snapshot() {
    let heap = Made::default().heap();
    assert_eq!((heap.objects().len(), heap.unreachable()), (0, (0, 0)));
    assert_eq!(heap.object_ranges().count(), 0);
    let rows = [heap.class_rows(0), heap.below(None, Some(3)), heap.rest(None), heap.duplicate_rows(0)];
    assert!(rows.iter().all(|batch| batch.num_rows() == 0));
    let only_roots = Made { roots: vec![(0x10, "static")], ..Made::default() };
    assert!(only_roots.heap().has_roots());
}

#[test]
fn the_most_specific_root_comes_first() {
    let mut made = plain(2, &[(1, 2)], &[]);
    made.roots =
        vec![(0x20, "unknown"), (0x20, "stack"), (0x20, "gc_handle"), (0x10, "stack"), (0x20, "static")];
    let heap = made.heap();
    let kinds: Vec<_> = heap.roots().list().iter().map(|root| heap.roots().kind(root)).collect();
    assert_eq!(kinds, ["static", "gc_handle", "stack", "stack", "unknown"]);
}

#[test]
fn a_path_has_offsets_of_references() {
    let heap = plain(4, &[(1, 4), (1, 2), (2, 3), (4, 3), (2, 3)], &[1]).heap();
    let rows = heap.path_rows(1);
    assert_eq!(rows["object_address"].as_primitive::<UInt64Type>().values()[..], [0x10, 0x20]);
    let fields = rows["field_offset"].as_primitive::<UInt32Type>();
    assert_eq!(fields.iter().collect::<Vec<_>>(), [None, Some(8)]);
}

#[test]
fn duplicates_have_the_same_references_at_the_same_places() {
    let mut made = plain(7, &[(1, 5), (2, 5), (3, 6), (4, 5), (7, 1), (7, 5)], &[7]);
    made.objects[3].1 = Some(9);
    let same = |least| {
        let rows = made.heap().duplicate_rows(least);
        let column = |name: &str| rows[name].as_primitive::<UInt64Type>().values().to_vec();
        let groups = column("object_address").into_iter().zip(column("num_objects"));
        groups.zip(column("spare_bytes")).collect::<Vec<_>>()
    };
    assert_eq!(same(1), [((0x10, 2), 16)]);
    // Nothing is known of what 5 and 6 hold.
    assert_eq!(same(0), [((0x10, 2), 16), ((0x50, 2), 16)]);
}

#[test]
fn a_chain_as_deep_as_memory_is_no_stack() {
    let num = 200_000;
    let links: Vec<_> = (1..num).map(|at| (at, at + 1)).chain((1..num).map(|at| (num, at))).collect();
    let heap = plain(num, &links, &[1]).heap();
    assert_eq!(of(&heap, 16), (num * 16, None));
    assert_eq!(of(&heap, num * 16), (16, Some((num - 1) * 16)));
    assert_eq!(heap.paths().distance(num as u32 - 1), Some(num as u32 - 1));
    assert_eq!(heap.class_rows(0).num_rows(), 1);
}

#[test]
fn a_snapshot_as_stacks() {
    // A list of three nodes, the last with a text; an object that two of them refer to; a text nothing keeps alive.
    let made = Made {
        objects: [0, 0, 0, 1, 2, 1].iter().zip(1..).map(|(of, at)| (at * 16, Some(*of), 16)).collect(),
        references: vec![(0x10, 0x20), (0x20, 0x30), (0x30, 0x40), (0x10, 0x50), (0x30, 0x50)],
        roots: vec![(0x10, "gc_handle"), (0x30, "stack")],
    };
    let types = [(0, "Node".to_owned()), (1, "Text".to_owned())].into();
    let folded = made.heap().folded(&types);
    let names = perfuse_tables::access::text(&folded.functions, "name").expect("declared");
    let frames = folded.stacks["frame_id"].as_primitive::<UInt32Type>();
    let parents = folded.stacks["parent_stack_id"].as_primitive::<UInt32Type>();
    let weights = folded.samples["weight"].as_primitive::<UInt64Type>();
    let stacks = folded.samples["stack_id"].as_primitive::<UInt32Type>();
    let mut rows: Vec<_> = (0..folded.samples.num_rows())
        .map(|row| {
            let mut at = Some(stacks.value(row) as usize);
            let mut way = Vec::new();
            while let Some(stack) = at {
                way.push(names.get(frames.value(stack) as usize).unwrap_or_default());
                at = parents.is_valid(stack).then(|| parents.value(stack) as usize);
            }
            way.reverse();
            (way.join(" "), weights.value(row))
        })
        .collect();
    rows.sort();
    let expected = [
        ("[gc handle] Node", 32),
        ("[kept by no root] Text", 16),
        ("[several ways] [never described]", 16),
        ("[stack] Node", 16),
        ("[stack] Node Text", 16),
    ];
    assert_eq!(rows, expected.map(|(way, bytes)| (way.to_owned(), bytes)));
}

#[test]
fn objects_are_held_by_the_types_on_their_paths() {
    // Two lists of type 0 from roots of two kinds; each second link has an object of type 1; one of type 1 is garbage.
    let made = Made {
        objects: (1..=8).map(|at| (at * 16, Some((at > 5).into()), 16)).collect(),
        references: vec![(0x10, 0x20), (0x20, 0x30), (0x40, 0x50), (0x20, 0x60), (0x50, 0x70)],
        roots: vec![(0x10, "static"), (0x40, "stack")],
    };
    let heap = made.heap();
    let rows = |types: &[Option<u32>]| {
        let held = heap.held_objects(types).into_iter();
        held.map(|it| (it.types, it.start, it.num_objects, it.retained_bytes)).collect::<Vec<_>>()
    };
    let (list, of_list) = (vec![Some(0)], vec![Some(0), Some(1)]);
    assert_eq!(rows(&[Some(0)]), [(list.clone(), Some(0), 3, 64), (list, Some(3), 2, 48)]);
    let garbage = (vec![Some(1)], None, 1, 16);
    assert_eq!(rows(&[Some(1)]), [(of_list.clone(), Some(0), 1, 16), (of_list, Some(3), 1, 16), garbage]);
}

#[test]
fn a_long_list_is_held_by_one_path() {
    const LENGTH: u32 = 300_000;
    let links: Vec<_> = (1..u64::from(LENGTH)).map(|at| (at, at + 1)).collect();
    let heap = plain(LENGTH.into(), &links, &[1]).heap();
    let held = heap.held_objects(&[Some(0)]);
    let rows: Vec<_> = held.iter().map(|it| (it.types.len(), it.num_objects, it.retained_bytes)).collect();
    assert_eq!(rows, [(1, LENGTH.into(), 16 * u64::from(LENGTH))]);
}
