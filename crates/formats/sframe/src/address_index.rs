//! Index of the functions of a file by address.

use std::ops::Range;

use super::reader::UnitView;

/// Functions of all units by address. Functions of size 0 are left out; of functions with the same start the longest
/// is found.
#[derive(Debug, Default)]
pub struct FunctionAddressIndex {
    starts: Vec<u64>,
    entries: Vec<(u32, u32)>,
    ranges: AddressBuckets,
}

/// Divides the address range into equal buckets, about two per function, so that few starts remain to be searched.
#[derive(Debug, Default)]
struct AddressBuckets {
    first: u64,
    /// Number of low bits of an address that do not select a bucket.
    bits: u32,
    /// Number of starts before each bucket, and before the end of the last.
    starts_before: Vec<u32>,
}

impl AddressBuckets {
    /// Buckets for sorted starts.
    fn of(starts: &[u64]) -> Self {
        let (Some(first), Some(last)) = (starts.first().copied(), starts.last()) else {
            return Self::default();
        };
        let span = last.saturating_sub(first);
        let max_buckets = (starts.len() as u64).saturating_mul(2);
        let bits =
            span.checked_div(max_buckets).unwrap_or(0).checked_ilog2().map_or(0, |log| log.saturating_add(1));
        let mut starts_before =
            Vec::with_capacity(usize::try_from(span.wrapping_shr(bits)).unwrap_or(0).saturating_add(2));
        for (num, start) in (0u32..).zip(starts) {
            let range = start.wrapping_sub(first).wrapping_shr(bits);
            while starts_before.len() as u64 <= range {
                starts_before.push(num);
            }
        }
        starts_before.push(u32::try_from(starts.len()).unwrap_or(u32::MAX));
        Self { first, bits, starts_before }
    }

    /// Range of the starts in the bucket of an address.
    #[inline]
    fn bucket_range(&self, pc: u64) -> Option<Range<usize>> {
        let last = self.starts_before.len().checked_sub(2)?;
        let range = pc.checked_sub(self.first)?.wrapping_shr(self.bits);
        let range = usize::try_from(range).unwrap_or(usize::MAX).min(last);
        let from = *self.starts_before.get(range)?;
        let to = *self.starts_before.get(range.saturating_add(1))?;
        Some(from as usize..to as usize)
    }
}

impl FunctionAddressIndex {
    /// Builds the index.
    #[must_use]
    pub fn of<'a>(views: impl Iterator<Item = UnitView<'a>>) -> Self {
        let mut all = Vec::new();
        for (unit, view) in (0u32..).zip(views) {
            let functions = view.functions().filter(|function| function.size != 0);
            all.extend(functions.map(|function| (function.start, function.size, (unit, function.index))));
        }
        // Usually sorted already, which this sort detects in one pass.
        all.sort_by_key(|(start, size, _)| (*start, *size));
        let starts: Vec<u64> = all.iter().map(|(start, ..)| *start).collect();
        Self {
            ranges: AddressBuckets::of(&starts),
            starts,
            entries: all.iter().map(|(.., entry)| *entry).collect(),
        }
    }

    /// The last function that starts at or before an address: index of its unit, and its index in that unit.
    #[must_use]
    #[inline]
    pub fn at_or_before(&self, pc: u64) -> Option<(u32, u32)> {
        let bucket_range = self.ranges.bucket_range(pc)?;
        let in_bucket = self.starts.get(bucket_range.clone())?.partition_point(|start| *start <= pc);
        let starts_before = bucket_range.start.saturating_add(in_bucket);
        self.entries.get(starts_before.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_leave_out_no_start() {
        let scattered = (0..500u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30);
        let all = [
            vec![],
            vec![7],
            vec![0, u64::MAX],
            vec![5, 5, 5],
            (100..200).collect(),
            scattered.clone().chain([u64::MAX - 1]).collect(),
            scattered.chain(std::iter::repeat_n(1 << 20, 50)).collect(),
        ];
        for mut starts in all {
            starts.sort_unstable();
            let address_index = FunctionAddressIndex {
                ranges: AddressBuckets::of(&starts),
                entries: (0..).zip(0..).take(starts.len()).collect(),
                starts: starts.clone(),
            };
            assert!(address_index.ranges.starts_before.len() <= starts.len().saturating_mul(2) + 3);
            let near = starts.iter().flat_map(|start| [start.wrapping_sub(1), *start, start.wrapping_add(1)]);
            for pc in near.chain([0, 1, 1 << 20, u64::MAX]) {
                let starts_before = starts.iter().filter(|start| **start <= pc).count();
                let expected = starts_before.checked_sub(1).map(|at| (at as u32, at as u32));
                assert_eq!(address_index.at_or_before(pc), expected, "{pc:#x} among {starts:x?}");
            }
        }
    }
}
