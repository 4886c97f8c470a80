//! Roots: references from outside of the heap, which keep objects alive.

use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use perfuse_tables::access::{booleans, nullable, numbers, text};
use rustc_hash::FxHashMap;

use super::Error;
use super::objects::HeapObjects;

/// A root of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRoot {
    /// Object it keeps alive.
    pub object: u32,
    /// `static`, `stack`, `gc_handle` and so on: index in `words`.
    kind: u32,
    /// Name of the memory that contains it: index in `words`.
    name: Option<u32>,
    /// Its address.
    pub slot_address: Option<u64>,
    /// The type, for a static field.
    pub owner_type_id: Option<u32>,
    /// The thread, for a stack or a thread static.
    pub owner_thread_id: Option<u32>,
}

/// The roots of a snapshot, the most informative kinds first.
#[derive(Debug, Default)]
pub struct HeapRoots {
    list: Vec<SnapshotRoot>,
    weak: Vec<SnapshotRoot>,
    words: Vec<Box<str>>,
    num_weak: u64,
    num_missed: u64,
}

/// Kind, name, type and thread of a root, as numbers.
pub type RootIdentity = (u32, Option<u32>, Option<u32>, Option<u32>);

/// Order of kinds: those with a name in the source, then temporary ones, then those without information.
fn rank(kind: &str) -> u8 {
    match kind {
        "static" => 0,
        "thread_static" | "context_static" => 1,
        "gc_handle" => 2,
        "stack" => 4,
        "external" | "other" | "misc" | "unknown" => 5,
        _ => 3,
    }
}

impl HeapRoots {
    /// Reads rows of `heap_roots` of one snapshot. A root that points into an object keeps that object alive.
    pub fn read(batches: impl Iterator<Item = RecordBatch>, objects: &HeapObjects) -> Result<Self, Error> {
        let mut roots = Self::default();
        let mut number_of = FxHashMap::default();
        for batch in batches {
            let addresses = numbers::<UInt64Type>(&batch, "object_address")?.values();
            let slots = numbers::<UInt64Type>(&batch, "slot_address")?;
            let types = numbers::<UInt32Type>(&batch, "owner_type_id")?;
            let threads = numbers::<UInt32Type>(&batch, "owner_thread_id")?;
            let (kinds, names) = (text(&batch, "kind")?, text(&batch, "name")?);
            let weak = booleans(&batch, "weak")?;
            for (row, &address) in addresses.iter().enumerate() {
                let is_weak = weak.is_valid(row) && weak.value(row);
                roots.num_weak = roots.num_weak.saturating_add(is_weak.into());
                let Some(object) = objects.find(address).or_else(|| objects.around(address)) else {
                    roots.num_missed = roots.num_missed.saturating_add((!is_weak).into());
                    continue;
                };
                let mut word = |word: &str| match number_of.get(word) {
                    Some(&number) => number,
                    None => {
                        let number = roots.words.len() as u32;
                        roots.words.push(word.into());
                        number_of.insert(Box::<str>::from(word), number);
                        number
                    }
                };
                let root = SnapshotRoot {
                    object,
                    kind: word(kinds.get(row).unwrap_or("unknown")),
                    name: names.get(row).map(word),
                    slot_address: nullable(slots, row),
                    owner_type_id: nullable(types, row),
                    owner_thread_id: nullable(threads, row),
                };
                if is_weak { &mut roots.weak } else { &mut roots.list }.push(root);
            }
        }
        let ranks: Vec<_> = roots.words.iter().map(|word| rank(word)).collect();
        roots.list.sort_by_key(|root| (ranks.get(root.kind as usize), root.object));
        Ok(roots)
    }

    /// Kind of a root.
    pub fn kind(&self, root: &SnapshotRoot) -> &str {
        self.words.get(root.kind as usize).map_or("unknown", |word| word)
    }

    /// Kind, name, type and thread of a root, as numbers: roots of different places that are the same to a reader have the same.
    pub fn identity(&self, root: &SnapshotRoot) -> RootIdentity {
        (root.kind, root.name, root.owner_type_id, root.owner_thread_id)
    }

    /// One root of each identity, weak ones last.
    pub fn distinct(&self) -> Vec<&SnapshotRoot> {
        let mut seen = rustc_hash::FxHashSet::default();
        self.list.iter().chain(&self.weak).filter(|root| seen.insert(self.identity(root))).collect()
    }

    /// Name of the memory that contains it.
    pub fn name(&self, root: &SnapshotRoot) -> Option<&str> {
        self.words.get(root.name? as usize).map(|word| &**word)
    }

    /// All roots.
    pub fn list(&self) -> &[SnapshotRoot] {
        &self.list
    }

    /// Weak roots of objects, which do not keep them alive.
    pub fn weak(&self) -> &[SnapshotRoot] {
        &self.weak
    }

    /// The objects of the roots, each once.
    pub fn objects(&self) -> Vec<u32> {
        let mut seen = rustc_hash::FxHashSet::default();
        self.list.iter().map(|root| root.object).filter(|object| seen.insert(*object)).collect()
    }

    /// Number of weak roots, which do not keep an object alive.
    pub fn num_weak(&self) -> u64 {
        self.num_weak
    }

    /// Number of roots whose address is not in an object.
    pub fn num_missed(&self) -> u64 {
        self.num_missed
    }
}
