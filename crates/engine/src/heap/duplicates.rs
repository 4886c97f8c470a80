//! Duplicate objects: of one type and size, with the same references at the same offsets.

use std::hash::{Hash, Hasher};

use perfuse_workers::{in_call, install};
use rayon::prelude::*;
use rustc_hash::FxHasher;

use super::objects::HeapObjects;
use super::references::ObjectReferences;

/// A group of duplicate objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicates {
    /// The object with the lowest address.
    pub first: u32,
    /// Number of objects in the group.
    pub num_objects: u64,
    /// Size in bytes of all but one.
    pub spare_bytes: u64,
}

/// Groups of two or more, the largest `spare_bytes` first. The other contents of objects are not recorded, so those
/// with fewer than `least_references` references are left out.
pub fn duplicates(
    objects: &HeapObjects,
    references: &ObjectReferences,
    least_references: usize,
) -> Vec<Duplicates> {
    let contents = |object: u32| {
        (objects.class(object), objects.size(object), references.of(object), references.fields(object))
    };
    let digest = |object: u32| {
        perfuse_stopping::checkpoint();
        let mut hasher = FxHasher::default();
        contents(object).hash(&mut hasher);
        hasher.finish()
    };
    let order = install(|| {
        let all = (0..objects.len() as u32).into_par_iter();
        let with_enough = all.filter(|&object| references.of(object).len() >= least_references);
        let mut order: Vec<_> = with_enough.map(in_call(|object| (digest(object), object))).collect();
        order.par_sort_unstable();
        order
    });
    let mut groups = Vec::new();
    for same_digest in order.chunk_by(|a, b| a.0 == b.0).filter(|chunk| chunk.len() > 1) {
        let mut members: Vec<_> = same_digest.iter().map(|(_, object)| *object).collect();
        members.sort_by(|&a, &b| contents(a).cmp(&contents(b)).then(a.cmp(&b)));
        for same in members.chunk_by(|&a, &b| contents(a) == contents(b)).filter(|same| same.len() > 1) {
            let Some(&first) = same.first() else { continue };
            let num_objects = same.len() as u64;
            let spare_bytes = objects.size(first).saturating_mul(num_objects.saturating_sub(1));
            groups.push(Duplicates { first, num_objects, spare_bytes });
        }
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(group.spare_bytes), group.first));
    groups
}
