//! The objects of a snapshot, numbered in the order of their addresses.

use arrow_array::RecordBatch;
use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_tables::access::{nullable, numbers};
use perfuse_workers::install;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::pages::AddressIndex;
use super::{Error, MOST};
use crate::NONE;

/// Every object once, with its size and type.
#[derive(Debug, Default)]
pub struct HeapObjects {
    addresses: Vec<u64>,
    sizes: Vec<u64>,
    classes: Vec<u32>,
    /// Types, by class number.
    types: Vec<Option<u32>>,
    /// Finds objects by address.
    index: AddressIndex,
    num_repeated: u64,
}

impl HeapObjects {
    /// Reads rows of `heap_objects` of one snapshot. Of several rows with one address, the first is used.
    pub fn read(batches: impl Iterator<Item = RecordBatch>) -> Result<Self, Error> {
        let mut all = Self::default();
        let mut class_of = FxHashMap::default();
        for batch in batches {
            let addresses = numbers::<UInt64Type>(&batch, "object_address")?;
            let sizes = numbers::<UInt64Type>(&batch, "size_bytes")?;
            let types = numbers::<UInt32Type>(&batch, "type_id")?;
            if all.addresses.len().saturating_add(batch.num_rows()) > MOST {
                return Err(Error::TooLarge);
            }
            all.addresses.extend_from_slice(addresses.values());
            all.sizes.extend_from_slice(sizes.values());
            for row in 0..batch.num_rows() {
                perfuse_stopping::checkpoint();
                let next = all.types.len() as u32;
                let of = nullable(types, row);
                let class = *class_of.entry(of).or_insert(next);
                if class == next {
                    all.types.push(of);
                }
                all.classes.push(class);
            }
        }
        if !all.addresses.is_sorted_by(|a, b| a < b) {
            all.sort();
        }
        all.addresses.shrink_to_fit();
        all.sizes.shrink_to_fit();
        all.classes.shrink_to_fit();
        all.index = AddressIndex::new(&all.addresses);
        Ok(all)
    }

    /// Sorts by address; of several objects at one address the first remains.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`order` contains the numbers of rows, and is not longer than before"
    )]
    fn sort(&mut self) {
        let mut order: Vec<_> = self.addresses.iter().copied().zip(0u32..).collect();
        install(|| order.par_sort_unstable());
        order.dedup_by_key(|(address, _)| *address);
        self.num_repeated = (self.addresses.len() - order.len()) as u64;
        self.sizes = order.iter().map(|&(_, row)| self.sizes[row as usize]).collect();
        self.classes = order.iter().map(|&(_, row)| self.classes[row as usize]).collect();
        self.addresses = order.into_iter().map(|(address, _)| address).collect();
    }

    /// Number of the object at an address.
    #[inline]
    pub fn find(&self, address: u64) -> Option<u32> {
        let piece = self.index.around(address);
        let found = self.addresses.get(piece.clone())?.iter().position(|it| *it == address)?;
        Some(piece.start.checked_add(found)? as u32)
    }

    /// Number of the object that contains an address.
    pub fn around(&self, address: u64) -> Option<u32> {
        let before = self.addresses.partition_point(|start| *start <= address).checked_sub(1)?;
        let (start, size) = (self.addresses.get(before)?, self.sizes.get(before)?);
        (address.checked_sub(*start)? < *size).then_some(before as u32)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Address of an object.
    #[inline]
    pub fn address(&self, object: u32) -> u64 {
        self.addresses.get(object as usize).copied().unwrap_or_default()
    }

    /// Its own size in bytes.
    #[inline]
    pub fn size(&self, object: u32) -> u64 {
        self.sizes.get(object as usize).copied().unwrap_or_default()
    }

    /// Number of its class: objects of one type, or of none, have the same.
    #[inline]
    pub fn class(&self, object: u32) -> u32 {
        self.classes.get(object as usize).copied().unwrap_or(NONE)
    }

    /// Its type; `None` where unknown.
    #[inline]
    pub fn type_id(&self, object: u32) -> Option<u32> {
        self.types.get(self.class(object) as usize).copied().flatten()
    }

    /// Types by the number of their class.
    pub fn types(&self) -> &[Option<u32>] {
        &self.types
    }

    /// Sum of their sizes.
    pub fn size_bytes(&self) -> u64 {
        self.sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size))
    }

    /// Number of rows whose address had another row before.
    pub fn num_repeated(&self) -> u64 {
        self.num_repeated
    }

    /// The objects of a type, or of none.
    pub fn of_type(&self, type_id: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        let class = self.types.iter().position(|of| *of == type_id).map_or(NONE, |class| class as u32);
        self.classes.iter().zip(0u32..).filter(move |(of, _)| **of == class).map(|(_, object)| object)
    }
}
