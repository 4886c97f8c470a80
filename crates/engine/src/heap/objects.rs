//! The objects of a shot, numbered in the order of their addresses.

use arrow_array::RecordBatch;
use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_tables::access::{nullable, numbers};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::pages::Pages;
use super::{Error, MOST, NONE};

/// Every object once, with what is known of it.
#[derive(Debug, Default)]
pub struct Objects {
    addresses: Vec<u64>,
    sizes: Vec<u64>,
    classes: Vec<u32>,
    /// Types, by the number of the class they make.
    types: Vec<Option<u32>>,
    /// Where the objects of each piece of memory are.
    pages: Pages,
    num_repeated: u64,
}

impl Objects {
    /// Reads rows of `heap_objects` of one shot. An address that is told again is one object: what came first holds.
    pub fn read(batches: impl Iterator<Item = RecordBatch>) -> Result<Self, Error> {
        let mut all = Self::default();
        let mut known = FxHashMap::default();
        for batch in batches {
            let addresses = numbers::<UInt64Type>(&batch, "object_address")?;
            let sizes = numbers::<UInt64Type>(&batch, "size_bytes")?;
            let types = numbers::<UInt32Type>(&batch, "type_id")?;
            if all.addresses.len() + batch.num_rows() > MOST {
                return Err(Error::TooLarge);
            }
            all.addresses.extend_from_slice(addresses.values());
            all.sizes.extend_from_slice(sizes.values());
            for row in 0..batch.num_rows() {
                let next = all.types.len() as u32;
                let of = nullable(types, row);
                let class = *known.entry(of).or_insert(next);
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
        all.pages = Pages::new(&all.addresses);
        Ok(all)
    }

    fn sort(&mut self) {
        let mut order: Vec<_> = self.addresses.iter().copied().zip(0u32..).collect();
        order.par_sort_unstable();
        order.dedup_by_key(|(address, _)| *address);
        self.num_repeated = (self.addresses.len() - order.len()) as u64;
        self.sizes = order.iter().map(|&(_, row)| self.sizes[row as usize]).collect();
        self.classes = order.iter().map(|&(_, row)| self.classes[row as usize]).collect();
        self.addresses = order.into_iter().map(|(address, _)| address).collect();
    }

    /// Number of the object at an address.
    #[inline]
    pub fn find(&self, address: u64) -> Option<u32> {
        let piece = self.pages.around(address);
        let found = self.addresses[piece.clone()].iter().position(|it| *it == address)?;
        Some((piece.start + found) as u32)
    }

    /// Number of the object that an address lies in.
    pub fn around(&self, address: u64) -> Option<u32> {
        let before = self.addresses.partition_point(|start| *start <= address).checked_sub(1)?;
        (address - self.addresses[before] < self.sizes[before]).then_some(before as u32)
    }

    /// How many there are.
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
        self.addresses[object as usize]
    }

    /// Its own size in bytes.
    #[inline]
    pub fn size(&self, object: u32) -> u64 {
        self.sizes[object as usize]
    }

    /// Number of its class: objects of one type, or of none, have the same.
    #[inline]
    pub fn class(&self, object: u32) -> u32 {
        self.classes[object as usize]
    }

    /// Its type; `None` where the file does not tell.
    #[inline]
    pub fn type_id(&self, object: u32) -> Option<u32> {
        self.types[self.class(object) as usize]
    }

    /// Types by the number of their class.
    pub fn types(&self) -> &[Option<u32>] {
        &self.types
    }

    /// Sum of their sizes.
    pub fn size_bytes(&self) -> u64 {
        self.sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size))
    }

    /// Rows whose object had one already.
    pub fn num_repeated(&self) -> u64 {
        self.num_repeated
    }

    /// The objects of a type, or of none.
    pub fn of_type(&self, type_id: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        let class = self.types.iter().position(|of| *of == type_id).map_or(NONE, |class| class as u32);
        self.classes.iter().zip(0u32..).filter(move |(of, _)| **of == class).map(|(_, object)| object)
    }
}
