//! What holds the objects of some types: their paths from roots, grouped by the types on them.

use rustc_hash::FxHashMap;

use super::roots::RootIdentity;
use super::{Heap, NONE};

/// Objects whose shortest paths from a root have the same types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldObjects {
    /// Types on the path, that of the objects last; consecutive objects of one type are one step.
    pub types: Vec<Option<u32>>,
    /// The object at the start of the path of the first of them; `None` where no path leads to them.
    pub start: Option<u32>,
    /// The first of them.
    pub example: u32,
    /// Number of the objects.
    pub num_objects: u64,
    /// Sum of their sizes.
    pub size_bytes: u64,
    /// What they retain, themselves included; what one that dominates others retains is counted once.
    pub retained_bytes: u64,
}

/// Kind, name, type and thread of a root; types on the path; whether there is a path.
type PathKey = (Option<RootIdentity>, Vec<Option<u32>>, bool);

impl Heap {
    /// The objects of some types by the types on their shortest paths from roots, most retained bytes first.
    pub fn held_objects(&self, types: &[Option<u32>]) -> Vec<HeldObjects> {
        let is_class: Vec<bool> = self.objects.types().iter().map(|of| types.contains(of)).collect();
        let is_selected =
            |object: u32| is_class.get(self.objects.class(object) as usize).copied().unwrap_or_default();
        let mut root_of = FxHashMap::default();
        for root in self.roots.list() {
            root_of.entry(root.object).or_insert_with(|| self.roots.identity(root));
        }
        // By number of the walk, in which dominators precede what they dominate.
        let mut is_dominated: Vec<bool> = Vec::with_capacity(self.above.len());
        for &above in &self.above {
            let dominator = self.walk.object(above);
            let above_is = is_dominated.get(above as usize).copied().unwrap_or_default();
            is_dominated.push(above_is || (dominator != NONE && is_selected(dominator)));
        }
        let paths = self.paths();
        let mut index: FxHashMap<PathKey, usize> = FxHashMap::default();
        let mut found: Vec<HeldObjects> = Vec::new();
        for object in (0..self.objects.len() as u32).filter(|&object| is_selected(object)) {
            let path = paths.to(object);
            let start = path.first().copied();
            let mut types: Vec<Option<u32>> = path.iter().map(|&on| self.objects.type_id(on)).collect();
            types.dedup();
            if types.is_empty() {
                types.push(self.objects.type_id(object));
            }
            let root = start.and_then(|start| root_of.get(&start).copied());
            let at = *index.entry((root, types.clone(), start.is_some())).or_insert_with(|| {
                let (num_objects, size_bytes, retained_bytes) = (0, 0, 0);
                found.push(HeldObjects {
                    types,
                    start,
                    example: object,
                    num_objects,
                    size_bytes,
                    retained_bytes,
                });
                found.len().saturating_sub(1)
            });
            let Some(group) = found.get_mut(at) else { continue };
            group.num_objects = group.num_objects.saturating_add(1);
            group.size_bytes = group.size_bytes.saturating_add(self.objects.size(object));
            if is_dominated.get(self.walk.number(object) as usize) != Some(&true) {
                group.retained_bytes = group.retained_bytes.saturating_add(self.retained(object).0);
            }
        }
        found.sort_by_key(|it| (std::cmp::Reverse((it.retained_bytes, it.num_objects)), it.example));
        found
    }
}
