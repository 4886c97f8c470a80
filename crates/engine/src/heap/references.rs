//! What objects refer to, gathered by owner.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_array::types::UInt64Type;
use perfuse_tables::access::{nullable, numbers};

use super::objects::Objects;
use super::{Error, MOST, NONE};

/// References between the objects of a shot, in the order of their owners.
#[derive(Debug)]
pub struct References {
    /// Where those of each object begin; one more for the end.
    starts: Vec<u32>,
    targets: Vec<u32>,
    /// Where in their owner they lie; [`NONE`] where that is not known.
    fields: Vec<u32>,
    num_dangling: u64,
}

/// References as they come: all of an object are together, but for those that records of other objects come between.
#[derive(Default)]
struct Rows {
    owners: Vec<u32>,
    targets: Vec<u32>,
    fields: Vec<u32>,
}

impl References {
    /// Reads rows of `heap_references` of one shot. References of or to what is no object of it are counted and left out.
    pub fn read(batches: impl Iterator<Item = RecordBatch>, objects: &Objects) -> Result<Self, Error> {
        let mut rows = Rows::default();
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
        let Rows { mut targets, mut fields, .. } =
            if rows.owners.is_sorted() { rows } else { rows.by_owner(&starts) };
        targets.shrink_to_fit();
        fields.shrink_to_fit();
        Ok(Self { starts, targets, fields, num_dangling })
    }

    /// Objects an object refers to, each as often as it does.
    #[inline]
    pub fn of(&self, object: u32) -> &[u32] {
        &self.targets[self.places(object)]
    }

    /// Where in it the references lie.
    pub fn fields(&self, object: u32) -> &[u32] {
        &self.fields[self.places(object)]
    }

    fn places(&self, object: u32) -> Range<usize> {
        let Range { start, end } = self.range(object);
        start as usize..end as usize
    }

    /// Where those of an object lie among all.
    #[inline]
    pub fn range(&self, object: u32) -> Range<u32> {
        self.starts[object as usize]..self.starts[object as usize + 1]
    }

    /// The target of one among all.
    #[inline]
    pub fn target(&self, at: u32) -> u32 {
        self.targets[at as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Those that were left out.
    pub fn num_dangling(&self) -> u64 {
        self.num_dangling
    }
}

impl Rows {
    fn by_owner(self, starts: &[u32]) -> Self {
        let mut next = starts.to_vec();
        let mut sorted = Self { owners: Vec::new(), ..Self::default() };
        sorted.targets = vec![0; self.targets.len()];
        sorted.fields = vec![0; self.fields.len()];
        for (row, &owner) in self.owners.iter().enumerate() {
            let at = &mut next[owner as usize];
            sorted.targets[*at as usize] = self.targets[row];
            sorted.fields[*at as usize] = self.fields[row];
            *at += 1;
        }
        sorted
    }
}
