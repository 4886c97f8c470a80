//! Detection of methods without code of their own, of which profiler 3.0 reports wrong addresses and sizes. It writes
//! the description of a method when its buffer is flushed, and by then the memory it reads may have been freed and
//! reused. Most often the size then is the upper half of a pointer.

use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::MethodRecord;

/// Size that the code of no method has.
const MAX_CODE_BYTES: u64 = 1 << 22;
/// Addresses that can contain code: neither the first page nor beyond 48 bits.
const PLAUSIBLE: std::ops::Range<u64> = 0x1000..1 << 48;
/// Upper halves of pointers into the heap, stacks and libraries of a 64-bit program; as a size, 4 KiB to 64 KiB.
const UPPER_HALVES: std::ops::Range<u64> = 0x1000..0x1_0000;
/// A region of memory of this size contains either code or none.
const REGION_BITS: u32 = 28;

/// Sets the size of methods without code to 0.
pub fn clear_invalid_sizes(methods: &mut [MethodRecord]) {
    for method in methods.iter_mut() {
        if !PLAUSIBLE.contains(&method.code) || method.size >= MAX_CODE_BYTES {
            method.size = 0;
        }
    }
    let halves: FxHashSet<u64> =
        methods.iter().map(|it| it.code >> 32).filter(|half| UPPER_HALVES.contains(half)).collect();
    // For each region: the number of methods in it, and the number of those whose size is the upper half of a
    // pointer.
    let mut regions = FxHashMap::<u64, (u64, u64)>::default();
    for method in methods.iter().filter(|it| it.size > 0) {
        let (all, num_invalid) = regions.entry(method.code >> REGION_BITS).or_default();
        *all = all.saturating_add(1);
        *num_invalid = num_invalid.saturating_add(u64::from(halves.contains(&method.size)));
    }
    for method in methods.iter_mut() {
        let (all, num_invalid) = regions.get(&(method.code >> REGION_BITS)).copied().unwrap_or_default();
        if halves.contains(&method.size) || num_invalid.saturating_mul(2) > all {
            method.size = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(code: &[(u64, u64)]) -> Vec<u64> {
        let method = |&(code, size): &(u64, u64)| MethodRecord {
            method: 0,
            code,
            size,
            name: "".into(),
            time: 0,
            thread: 0,
            buffer: 0,
            offset: 0,
        };
        let mut methods: Vec<_> = code.iter().map(method).collect();
        clear_invalid_sizes(&mut methods);
        methods.iter().map(|it| it.size).collect()
    }

    #[test]
    fn places_and_sizes_that_nothing_has_are_none() {
        let all_ones = u64::MAX;
        assert_eq!(
            sizes(&[(0x4000_1000, 40), (0, 40), (0x4000_2000, all_ones), (all_ones, 7)]),
            [40, 0, 0, 0]
        );
    }

    #[test]
    fn half_a_pointer_is_no_size_and_where_those_are_is_no_code() {
        let (heap, library) = (0x5563_c543_0000, 0x7f89_0c00_0000);
        let code = [
            (0x4000_1000, 250),
            (library, 42),
            (library + 0x100, 63),
            (library + 0xa57, 0x7f89),
            (heap, 0x5563),
            (heap + 16, 0x7f89),
            (heap + 32, 256),
            (0x4000_2000, 0x5563),
        ];
        assert_eq!(sizes(&code), [250, 42, 63, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn code_in_the_heap_is_code() {
        // An interpreter allocates its methods on the heap.
        let heap = 0x5563_c543_0000;
        assert_eq!(
            sizes(&[(heap, 69), (heap + 128, 20), (heap + 256, 0x5563), (heap + 384, 13)]),
            [69, 20, 0, 13]
        );
    }
}
