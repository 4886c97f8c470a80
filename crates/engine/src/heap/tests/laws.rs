//! Dominators checked against their definition: the objects that become unreachable without an object.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{Made, plain};
use crate::heap::Heap;

/// Objects that can be reached, without going over one.
fn reached(made: &Made, starts: &[u64], without: Option<u64>) -> BTreeSet<u64> {
    let mut seen: BTreeSet<_> = starts.iter().copied().filter(|at| Some(*at) != without).collect();
    let mut open: Vec<_> = seen.iter().copied().collect();
    while let Some(at) = open.pop() {
        for &(owner, target) in &made.references {
            if owner == at && Some(target) != without && seen.insert(target) {
                open.push(target);
            }
        }
    }
    seen
}

/// What each object retains is exactly what cannot be reached without it, and its dominator is the nearest that retains it.
fn holds(made: &Made, heap: &Heap, starts: &[u64], all: &BTreeSet<u64>) {
    let size = |set: &BTreeSet<u64>| -> u64 {
        made.objects.iter().filter(|object| set.contains(&object.0)).map(|object| object.2).sum()
    };
    let kept: Vec<(u64, BTreeSet<u64>)> =
        all.iter().map(|&at| (at, all - &reached(made, starts, Some(at)))).collect();
    for (at, retained) in &kept {
        let object = heap.objects().find(*at).expect("an object there");
        assert_eq!(heap.retained(object), (size(retained), retained.len() as u32), "{at:#x} of {made:?}");
        let over = kept.iter().filter(|(other, retained)| other != at && retained.contains(at));
        let nearest = over.min_by_key(|(_, retained)| retained.len()).map(|(other, _)| *other);
        assert_eq!(
            heap.dominator(object).map(|above| heap.objects().address(above)),
            nearest,
            "{at:#x} of {made:?}"
        );
    }
}

fn graphs() -> impl Strategy<Value = Made> {
    (1u64..24).prop_flat_map(|num| {
        let references = prop::collection::vec((1..=num, 1..=num), 0..60);
        let roots = prop::collection::vec(1..=num, 0..4);
        (Just(num), references, roots).prop_map(|(num, references, roots)| {
            let mut made = plain(num, &references, &roots);
            for (at, object) in made.objects.iter_mut().enumerate() {
                object.2 = 8 + at as u64;
            }
            made
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_roots_keep_alive(made in graphs()) {
        let heap = made.heap();
        let starts: Vec<_> = made.roots.iter().map(|root| root.0).collect();
        let alive = reached(&made, &starts, None);
        if heap.has_roots() {
            for object in 0..heap.objects().len() as u32 {
                prop_assert_eq!(heap.is_reachable(object), Some(alive.contains(&heap.objects().address(object))));
                let way = heap.paths().to(object);
                prop_assert_eq!(!way.is_empty(), alive.contains(&heap.objects().address(object)));
            }
        }
        holds(&made, &heap, &starts, &alive);
    }

    #[test]
    fn what_is_left(made in graphs()) {
        let heap = made.heap();
        let starts: Vec<_> = made.roots.iter().map(|root| root.0).collect();
        let alive = reached(&made, &starts, None);
        let rest: BTreeSet<_> = made.objects.iter().map(|object| object.0).filter(|at| !alive.contains(at)).collect();
        let garbage = Made {
            references: made.references.iter().copied().filter(|(owner, _)| rest.contains(owner)).collect(),
            objects: made.objects.iter().copied().filter(|object| rest.contains(&object.0)).collect(),
            roots: Vec::new(),
        };
        let entries: Vec<_> = heap.walk.entries.iter().map(|object| heap.objects().address(*object)).collect();
        // They reach all of the rest, and none of them another.
        prop_assert_eq!(&reached(&garbage, &entries, None) & &rest, rest.clone());
        for entry in &entries {
            let others: Vec<_> = entries.iter().copied().filter(|other| other != entry).collect();
            prop_assert!(!reached(&garbage, &others, None).contains(entry));
        }
        holds(&garbage, &heap, &entries, &rest);
        let (count, bytes) = heap.unreachable();
        prop_assert_eq!(count as usize, rest.len());
        prop_assert_eq!(bytes, garbage.objects.iter().map(|object| object.2).sum::<u64>());
    }
}
