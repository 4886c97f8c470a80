//! What keeps objects alive that no object has to refer to.

use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use perfuse_tables::access::{booleans, nullable, numbers, text};
use rustc_hash::FxHashMap;

use super::Error;
use super::objects::Objects;

/// A root of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Object it keeps alive.
    pub object: u32,
    /// `static`, `stack`, `gc_handle` and so on: a place among the words.
    kind: u32,
    /// What the memory it lies in is called.
    name: Option<u32>,
    /// Where it lies.
    pub slot_address: Option<u64>,
    /// Type whose static field it is.
    pub owner_type_id: Option<u32>,
    /// Thread whose stack or thread static it is.
    pub owner_thread_id: Option<u32>,
}

/// The roots of a shot, those first that tell most.
#[derive(Debug, Default)]
pub struct Roots {
    list: Vec<Root>,
    words: Vec<Box<str>>,
    num_weak: u64,
    num_missed: u64,
}

/// Kinds a programmer can look for in the source, then those that pass by themselves, then those that say little.
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

impl Roots {
    /// Reads rows of `heap_roots` of one shot. One that points into an object keeps that.
    pub fn read(batches: impl Iterator<Item = RecordBatch>, objects: &Objects) -> Result<Self, Error> {
        let mut roots = Self::default();
        let mut known = FxHashMap::default();
        for batch in batches {
            let addresses = numbers::<UInt64Type>(&batch, "object_address")?.values();
            let slots = numbers::<UInt64Type>(&batch, "slot_address")?;
            let types = numbers::<UInt32Type>(&batch, "owner_type_id")?;
            let threads = numbers::<UInt32Type>(&batch, "owner_thread_id")?;
            let (kinds, names) = (text(&batch, "kind")?, text(&batch, "name")?);
            let weak = booleans(&batch, "weak")?;
            for (row, &address) in addresses.iter().enumerate() {
                if weak.is_valid(row) && weak.value(row) {
                    roots.num_weak += 1;
                    continue;
                }
                let Some(object) = objects.find(address).or_else(|| objects.around(address)) else {
                    roots.num_missed += 1;
                    continue;
                };
                let mut word = |word: &str| match known.get(word) {
                    Some(&number) => number,
                    None => {
                        let number = roots.words.len() as u32;
                        roots.words.push(word.into());
                        known.insert(Box::<str>::from(word), number);
                        number
                    }
                };
                let root = Root {
                    object,
                    kind: word(kinds.get(row).unwrap_or("unknown")),
                    name: names.get(row).map(word),
                    slot_address: nullable(slots, row),
                    owner_type_id: nullable(types, row),
                    owner_thread_id: nullable(threads, row),
                };
                roots.list.push(root);
            }
        }
        let ranks: Vec<_> = roots.words.iter().map(|word| rank(word)).collect();
        roots.list.sort_by_key(|root| (ranks[root.kind as usize], root.object));
        Ok(roots)
    }

    /// What kind a root is of.
    pub fn kind(&self, root: &Root) -> &str {
        &self.words[root.kind as usize]
    }

    /// What the memory it lies in is called.
    pub fn name(&self, root: &Root) -> Option<&str> {
        root.name.map(|name| &*self.words[name as usize])
    }

    /// All of them.
    pub fn list(&self) -> &[Root] {
        &self.list
    }

    /// The objects they keep alive, each once.
    pub fn objects(&self) -> Vec<u32> {
        let mut seen = rustc_hash::FxHashSet::default();
        self.list.iter().map(|root| root.object).filter(|object| seen.insert(*object)).collect()
    }

    /// Those that keep no object alive after all.
    pub fn num_weak(&self) -> u64 {
        self.num_weak
    }

    /// Those of what is no object of the shot.
    pub fn num_missed(&self) -> u64 {
        self.num_missed
    }
}
