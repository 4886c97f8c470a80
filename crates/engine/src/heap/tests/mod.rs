//! Heap snapshots made by hand, and laws that hold for any.

mod followed;
mod graphs;
mod laws;

use arrow_array::RecordBatch;
use perfuse_tables::{heap_objects, heap_references, heap_roots};
use rustc_hash::FxHashMap;

use super::Heap;

/// A heap snapshot: objects with type and size, references, 8 bytes each in their owner, and roots.
#[derive(Clone, Debug, Default)]
struct Made {
    objects: Vec<(u64, Option<u32>, u64)>,
    references: Vec<(u64, u64)>,
    roots: Vec<(u64, &'static str)>,
}

impl Made {
    fn heap(&self) -> Heap {
        let read = Heap::read(|table| {
            let batch = match table {
                "heap_objects" => self.objects(),
                "heap_references" => self.references(),
                _ => self.roots(),
            };
            std::iter::once(batch)
        });
        read.expect("tables of the declaration")
    }

    fn objects(&self) -> RecordBatch {
        let mut table = heap_objects::Builder::new();
        for (row, &(address, of, size)) in (0u64..).zip(&self.objects) {
            table.push(0, address, of, size, None, 0, row);
        }
        table.finish()
    }

    fn references(&self) -> RecordBatch {
        let mut table = heap_references::Builder::new();
        let mut fields = FxHashMap::default();
        for (row, &(owner, target)) in (0u64..).zip(&self.references) {
            let field = fields.entry(owner).or_insert(0);
            table.push(0, owner, target, Some(*field), 0, row);
            *field += 8;
        }
        table.finish()
    }

    fn roots(&self) -> RecordBatch {
        let mut table = heap_roots::Builder::new();
        for (row, &(object, kind)) in (0u64..).zip(&self.roots) {
            let weak = Some(kind == "weak");
            table.push(Some(0), None, object, kind, None, None, None, None, None, weak, 0, row);
        }
        table.finish()
    }
}

/// Objects of 16 bytes and one type, at 0x10, 0x20 and so on.
fn plain(num_objects: u64, references: &[(u64, u64)], roots: &[u64]) -> Made {
    Made {
        objects: (1..=num_objects).map(|at| (at * 16, Some(0), 16)).collect(),
        references: references.iter().map(|(owner, target)| (owner * 16, target * 16)).collect(),
        roots: roots.iter().map(|root| (root * 16, "static")).collect(),
    }
}

/// Retained bytes and dominator of the object at an address.
fn of(heap: &Heap, address: u64) -> (u64, Option<u64>) {
    let object = heap.objects().find(address).expect("an object there");
    (heap.retained(object).0, heap.dominator(object).map(|above| heap.objects().address(above)))
}
