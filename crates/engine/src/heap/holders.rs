//! What holds the objects of some types: their paths from roots, grouped by the types on them.

use rustc_hash::FxHashMap;

use super::Heap;
use super::paths::HeapPaths;
use super::roots::RootIdentity;
use crate::NONE;

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

impl Heap {
    /// The objects of some types by the types on their shortest paths from roots, most retained bytes first.
    pub fn held_objects(&self, types: &[Option<u32>]) -> Vec<HeldObjects> {
        let is_class: Vec<bool> = self.objects.types().iter().map(|of| types.contains(of)).collect();
        let is_selected =
            |object: u32| is_class.get(self.objects.class(object) as usize).copied().unwrap_or_default();
        // By number of the walk, in which dominators precede what they dominate.
        let mut is_dominated: Vec<bool> = Vec::with_capacity(self.above.len());
        for &above in &self.above {
            let dominator = self.walk.object(above);
            let above_is = is_dominated.get(above as usize).copied().unwrap_or_default();
            is_dominated.push(above_is || (dominator != NONE && is_selected(dominator)));
        }
        let mut paths = TypePaths::new(self);
        let mut groups: FxHashMap<u32, usize> = FxHashMap::default();
        let mut found: Vec<HeldObjects> = Vec::new();
        for object in (0..self.objects.len() as u32).filter(|&object| is_selected(object)) {
            perfuse_stopping::checkpoint();
            let (path, start) = paths.number(object);
            let at = *groups.entry(path).or_insert_with(|| {
                let (num_objects, size_bytes, retained_bytes) = (0, 0, 0);
                found.push(HeldObjects {
                    types: paths.types(path),
                    start: Some(start).filter(|start| *start != NONE),
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

/// A step of a path: a type that follows other types, the root of the first, or the type of objects without a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    First(Option<RootIdentity>, Option<u32>),
    Next { before: u32, type_id: Option<u32> },
    Unreached(Option<u32>),
}

/// Numbers of shortest paths by their root and the types on them. Each object is visited once, so a long list takes
/// time by its length.
struct TypePaths<'a> {
    heap: &'a Heap,
    paths: &'a HeapPaths,
    roots: FxHashMap<u32, RootIdentity>,
    steps: Vec<Step>,
    numbers: FxHashMap<Step, u32>,
    /// Number of the path to each object, and the object at its start; [`NONE`] where they are not known yet.
    of: Vec<(u32, u32)>,
    /// Objects whose numbers follow from that of the next.
    pending: Vec<u32>,
}

impl<'a> TypePaths<'a> {
    fn new(heap: &'a Heap) -> Self {
        let mut roots = FxHashMap::default();
        for root in heap.roots.list() {
            roots.entry(root.object).or_insert_with(|| heap.roots.identity(root));
        }
        let of = vec![(NONE, NONE); heap.objects.len()];
        let (steps, numbers, pending) = (Vec::new(), FxHashMap::default(), Vec::new());
        Self { heap, paths: heap.paths(), roots, steps, numbers, of, pending }
    }

    /// The number of the path to an object, and the object at its start; [`NONE`] where none leads to it.
    fn number(&mut self, object: u32) -> (u32, u32) {
        if self.paths.distance(object).is_none() {
            return (self.interned(Step::Unreached(self.heap.objects.type_id(object))), NONE);
        }
        let mut path = (NONE, NONE);
        let mut at = Some(object);
        while let Some(on) = at {
            path = self.of.get(on as usize).copied().unwrap_or((NONE, NONE));
            if path.0 != NONE {
                break;
            }
            self.pending.push(on);
            at = self.paths.nearer(on);
        }
        while let Some(on) = self.pending.pop() {
            let type_id = self.heap.objects.type_id(on);
            let (before, start) = path;
            path = match self.steps.get(before as usize).copied() {
                None => (self.interned(Step::First(self.roots.get(&on).copied(), type_id)), on),
                Some(Step::First(_, of) | Step::Next { type_id: of, .. }) if of == type_id => path,
                Some(_) => (self.interned(Step::Next { before, type_id }), start),
            };
            if let Some(known) = self.of.get_mut(on as usize) {
                *known = path;
            }
        }
        path
    }

    fn interned(&mut self, step: Step) -> u32 {
        *self.numbers.entry(step).or_insert_with(|| {
            self.steps.push(step);
            self.steps.len().saturating_sub(1) as u32
        })
    }

    /// The types on a path.
    fn types(&self, number: u32) -> Vec<Option<u32>> {
        let mut types = Vec::new();
        let mut at = number;
        while let Some(&step) = self.steps.get(at as usize) {
            let (type_id, before) = match step {
                Step::Next { before, type_id } => (type_id, before),
                Step::First(_, type_id) | Step::Unreached(type_id) => (type_id, NONE),
            };
            types.push(type_id);
            at = before;
        }
        types.reverse();
        types
    }
}
