//! Objects that look the same: of one type and size, with the same references at the same places.

use std::hash::{Hash, Hasher};

use rayon::prelude::*;
use rustc_hash::FxHasher;

use super::objects::Objects;
use super::references::References;

/// Objects that look the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicates {
    /// The one with the lowest address.
    pub first: u32,
    /// How many there are, with that one.
    pub num_objects: u64,
    /// Size of all but one.
    pub spare_bytes: u64,
}

/// Groups of two or more, the largest sum of spare sizes first. What an object holds beside references is not recorded:
/// those with fewer than `least_references` are left out, since little speaks for their being the same.
pub fn duplicates(objects: &Objects, references: &References, least_references: usize) -> Vec<Duplicates> {
    let looks = |object: u32| {
        (objects.class(object), objects.size(object), references.of(object), references.fields(object))
    };
    let digest = |object: u32| {
        let mut hasher = FxHasher::default();
        looks(object).hash(&mut hasher);
        hasher.finish()
    };
    let all = (0..objects.len() as u32).into_par_iter();
    let with_enough = all.filter(|&object| references.of(object).len() >= least_references);
    let mut order: Vec<_> = with_enough.map(|object| (digest(object), object)).collect();
    order.par_sort_unstable();
    let mut groups = Vec::new();
    for same_digest in order.chunk_by(|a, b| a.0 == b.0).filter(|chunk| chunk.len() > 1) {
        let mut members: Vec<_> = same_digest.iter().map(|(_, object)| *object).collect();
        members.sort_by(|&a, &b| looks(a).cmp(&looks(b)).then(a.cmp(&b)));
        for same in members.chunk_by(|&a, &b| looks(a) == looks(b)).filter(|same| same.len() > 1) {
            let num_objects = same.len() as u64;
            let spare_bytes = objects.size(same[0]).saturating_mul(num_objects - 1);
            groups.push(Duplicates { first: same[0], num_objects, spare_bytes });
        }
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(group.spare_bytes), group.first));
    groups
}
