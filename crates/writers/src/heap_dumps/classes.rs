//! How HPROF represents the objects of each class: as instances with fields, or as arrays.

use std::collections::BTreeSet;

use super::HeapDump;

/// More fields than this make a class of arrays.
const MOST_FIELDS: usize = 1024;

/// Size of references, and of what precedes an object's fields, in bytes: in .NET as in Java two words.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Size of a reference.
    pub pointer_bytes: u32,
}

impl Words {
    /// Bytes before an object's fields.
    pub fn header(self) -> u32 {
        self.pointer_bytes * 2
    }

    /// Bytes before an array's elements, as readers of HPROF compute its size.
    pub fn array_header(self) -> u32 {
        (self.header() + 4).next_multiple_of(self.pointer_bytes)
    }
}

/// What is known of the objects of a class.
#[derive(Clone, Debug, Default)]
pub struct ClassLayout {
    size: Option<u64>,
    offsets: BTreeSet<u32>,
    /// Whether objects differ in size, or have references that are not fields of a class.
    pub is_array: bool,
}

impl ClassLayout {
    /// The layouts of all classes.
    pub fn all(dump: &HeapDump<'_>, words: Words) -> Vec<Self> {
        let is_array = |name: &str| name.ends_with(']') || name == "System.String";
        let mut layouts: Vec<_> =
            dump.class_names().map(|name| Self { is_array: is_array(name), ..Self::default() }).collect();
        let objects = dump.heap.objects();
        for object in 0..objects.len() as u32 {
            perfuse_stopping::checkpoint();
            if let Some(layout) = layouts.get_mut(objects.class(object) as usize)
                && !layout.is_array
            {
                let offsets = dump.heap.references_from(object).map(|(_, offset)| offset);
                layout.is_array = !layout.accept(objects.size(object), offsets, words);
            }
        }
        layouts
    }

    /// Whether an object can be an instance with fields, as all before it.
    fn accept(&mut self, size: u64, offsets: impl Iterator<Item = Option<u32>>, words: Words) -> bool {
        if *self.size.get_or_insert(size) != size {
            return false;
        }
        let mut next = words.header();
        for offset in offsets {
            let Some(offset) = offset.filter(|&offset| offset >= next) else { return false };
            let end = u64::from(offset) + u64::from(words.pointer_bytes);
            if !offset.is_multiple_of(words.pointer_bytes) || end > size {
                return false;
            }
            self.offsets.insert(offset);
            next = end as u32;
        }
        size <= u64::from(words.header()) + MOST_FIELDS as u64 * 8
    }

    /// Bytes of an instance's fields.
    pub fn fields_bytes(&self, words: Words) -> u32 {
        self.size.unwrap_or_default().saturating_sub(words.header().into()) as u32
    }

    /// Offsets and sizes of its fields in their order; references have none.
    pub fn fields(&self, words: Words) -> Vec<(u32, Option<u32>)> {
        let mut fields = Vec::new();
        let mut at = words.header();
        let end = at + self.fields_bytes(words);
        for offset in self.offsets.iter().copied().chain([end]) {
            while at < offset {
                let gap = offset - at;
                let size = [8, 4, 2, 1].into_iter().find(|size| *size <= gap).unwrap_or(1);
                fields.push((at, Some(size)));
                at += size;
            }
            if offset < end {
                fields.push((offset, None));
                at = offset + words.pointer_bytes;
            }
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Words = Words { pointer_bytes: 8 };

    #[test]
    fn fields_that_are_not_recorded_fill_the_object() {
        let mut layout = ClassLayout::default();
        assert!(layout.accept(48, [Some(24)].into_iter(), WORDS));
        assert!(layout.accept(48, [Some(24), Some(32)].into_iter(), WORDS));
        assert_eq!(layout.fields(WORDS), [(16, Some(8)), (24, None), (32, None), (40, Some(8))]);
        assert_eq!(layout.fields_bytes(WORDS), 32);
    }

    #[test]
    fn objects_that_have_no_fields_of_one_class_are_arrays() {
        let refused = [
            (40, vec![]),
            (48, vec![None]),
            (48, vec![Some(8)]),
            (48, vec![Some(20)]),
            (48, vec![Some(48)]),
            (48, vec![Some(24), Some(24)]),
        ];
        for (size, offsets) in refused {
            let mut layout = ClassLayout::default();
            assert!(layout.accept(48, [Some(24)].into_iter(), WORDS));
            assert!(!layout.accept(size, offsets.clone().into_iter(), WORDS), "{size} {offsets:?}");
        }
    }

    #[test]
    fn headers_are_those_of_readers() {
        assert_eq!((WORDS.header(), WORDS.array_header()), (16, 24));
        let narrow = Words { pointer_bytes: 4 };
        assert_eq!((narrow.header(), narrow.array_header()), (8, 12));
    }
}
