//! References between objects, by owner.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_array::types::UInt64Type;
use perfuse_tables::access::{nullable, numbers};

use super::objects::HeapObjects;
use super::{Error, MOST};
use crate::NONE;

/// References between the objects of a snapshot, in the order of their owners.
#[derive(Debug)]
pub struct ObjectReferences {
    /// Index of the first reference of each object; one more for the end.
    starts: Vec<u32>,
    targets: Vec<u32>,
    /// Their offsets in the owner; [`NONE`] where unknown.
    fields: Vec<u32>,
    num_dangling: u64,
}

/// References in the order of the file: those of an object usually follow each other.
#[derive(Default)]
struct ReferenceRows {
    owners: Vec<u32>,
    targets: Vec<u32>,
    fields: Vec<u32>,
}

impl ObjectReferences {
    /// Reads rows of `heap_references` of one snapshot. References from or to addresses that are not objects of it are counted and
    /// left out.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "owners are numbers of objects, `starts` has one more, and there are no more than `MOST` references"
    )]
    pub fn read(batches: impl Iterator<Item = RecordBatch>, objects: &HeapObjects) -> Result<Self, Error> {
        let mut rows = ReferenceRows::default();
        let mut num_dangling = 0;
        let mut last = (0, None);
        for batch in batches {
            let owners = numbers::<UInt64Type>(&batch, "owner_address")?.values();
            let targets = numbers::<UInt64Type>(&batch, "target_address")?.values();
            let fields = numbers::<UInt64Type>(&batch, "field_offset")?;
            if rows.owners.len() + batch.num_rows() > MOST {
                return Err(Error::TooLarge);
            }
            for (row, (&owner, &target)) in owners.iter().zip(targets).enumerate() {
                perfuse_stopping::checkpoint();
                if last.0 != owner || last.1.is_none() {
                    last = (owner, objects.find(owner));
                }
                let (Some(owner), Some(target)) = (last.1, objects.find(target)) else {
                    num_dangling += 1;
                    continue;
                };
                rows.owners.push(owner);
                rows.targets.push(target);
                let field = nullable(fields, row).and_then(|field| u32::try_from(field).ok());
                rows.fields.push(field.unwrap_or(NONE));
            }
        }
        let mut starts = vec![0u32; objects.len() + 1];
        for &owner in &rows.owners {
            starts[owner as usize + 1] += 1;
        }
        for object in 0..objects.len() {
            starts[object + 1] += starts[object];
        }
        let ReferenceRows { mut targets, mut fields, .. } =
            if rows.owners.is_sorted() { rows } else { rows.by_owner(&starts) };
        targets.shrink_to_fit();
        fields.shrink_to_fit();
        Ok(Self { starts, targets, fields, num_dangling })
    }

    /// The objects that an object refers to, once for each reference.
    #[inline]
    pub fn of(&self, object: u32) -> &[u32] {
        self.targets.get(self.index_range(object)).unwrap_or_default()
    }

    /// The offsets of its references.
    pub fn fields(&self, object: u32) -> &[u32] {
        self.fields.get(self.index_range(object)).unwrap_or_default()
    }

    fn index_range(&self, object: u32) -> Range<usize> {
        let Range { start, end } = self.range(object);
        start as usize..end as usize
    }

    /// The indices of the references of an object.
    #[inline]
    pub fn range(&self, object: u32) -> Range<u32> {
        match self.starts.get(object as usize..).and_then(<[u32]>::first_chunk) {
            Some(&[start, end]) => start..end,
            None => 0..0,
        }
    }

    /// The target of a reference.
    #[inline]
    pub fn target(&self, at: u32) -> u32 {
        self.targets.get(at as usize).copied().unwrap_or(NONE)
    }

    /// The references to an object: owners, and offsets in these, by owner. Looks at all references.
    pub fn to(&self, object: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let found = (0u32..).zip(&self.targets).filter(move |(_, target)| **target == object);
        found.map(|(at, _)| {
            // The owner is the last object whose references start at or before this one.
            let owner = self.starts.partition_point(|&start| start <= at).saturating_sub(1) as u32;
            (owner, self.fields.get(at as usize).copied().unwrap_or(NONE))
        })
    }

    /// Number of references.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Number of references that were left out.
    pub fn num_dangling(&self) -> u64 {
        self.num_dangling
    }
}

impl ReferenceRows {
    /// The rows sorted by owner; `starts` are the ranges of owners.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`next` counts within the ranges of owners, whose sum is the number of rows"
    )]
    fn by_owner(self, starts: &[u32]) -> Self {
        let mut next = starts.to_vec();
        let mut sorted = Self { owners: Vec::new(), ..Self::default() };
        sorted.targets = vec![0; self.targets.len()];
        sorted.fields = vec![0; self.fields.len()];
        for (row, &owner) in self.owners.iter().enumerate() {
            perfuse_stopping::checkpoint();
            let at = &mut next[owner as usize];
            sorted.targets[*at as usize] = self.targets[row];
            sorted.fields[*at as usize] = self.fields[row];
            *at += 1;
        }
        sorted
    }
}
