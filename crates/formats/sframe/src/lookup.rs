//! From an address to its function and row.

use std::ops::Range;

use super::SFrame;
use super::records::Function;
use super::recovery::{Meaningless, Recovery};
use super::row::Row;

/// Functions of all pieces, by address. Those of no size are left out; of those with one start the longest is found.
#[derive(Debug, Default)]
pub struct Lookup {
    starts: Vec<u64>,
    places: Vec<(u32, u32)>,
    ranges: Ranges,
}

/// Cuts addresses into ranges of one size, about two a function, so that few starts are left to search.
#[derive(Debug, Default)]
struct Ranges {
    first: u64,
    /// Bits of an address that are below the number of its range.
    bits: u32,
    /// Starts before each range, and before the end of the last.
    before: Vec<u32>,
}

impl Ranges {
    fn of(starts: &[u64]) -> Self {
        let (Some(first), Some(last)) = (starts.first().copied(), starts.last()) else {
            return Self::default();
        };
        let span = last.saturating_sub(first);
        let most = (starts.len() as u64).saturating_mul(2);
        let bits = span.checked_div(most).unwrap_or(0).checked_ilog2().map_or(0, |log| log.saturating_add(1));
        let mut before =
            Vec::with_capacity(usize::try_from(span.wrapping_shr(bits)).unwrap_or(0).saturating_add(2));
        for (num, start) in (0u32..).zip(starts) {
            let range = start.wrapping_sub(first).wrapping_shr(bits);
            while before.len() as u64 <= range {
                before.push(num);
            }
        }
        before.push(u32::try_from(starts.len()).unwrap_or(u32::MAX));
        Self { first, bits, before }
    }

    /// The starts among which the first behind an address is, or the end of which is that.
    #[inline]
    fn around(&self, pc: u64) -> Option<Range<usize>> {
        let last = self.before.len().checked_sub(2)?;
        let range = pc.checked_sub(self.first)?.wrapping_shr(self.bits);
        let range = usize::try_from(range).unwrap_or(usize::MAX).min(last);
        let from = *self.before.get(range)?;
        let to = *self.before.get(range.saturating_add(1))?;
        Some(from as usize..to as usize)
    }
}

/// Addresses that are looked up together.
const TOGETHER: usize = 32;

/// What is known of an address.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Number of the piece.
    pub piece: usize,
    /// The function.
    pub function: Function,
    /// Its row; `None` where it has none that holds there.
    pub row: Option<Row<'a>>,
    /// What the row says.
    pub recovery: Option<Result<Recovery, Meaningless>>,
}

impl Lookup {
    /// Sorts the functions of a file.
    #[must_use]
    pub fn of(file: &SFrame) -> Self {
        let mut all = Vec::new();
        for (piece, view) in (0u32..).zip(file.views()) {
            let functions = view.functions().filter(|function| function.size != 0);
            all.extend(functions.map(|function| (function.start, function.size, (piece, function.index))));
        }
        // Sections are sorted as a rule, and then this is one look at each.
        all.sort_by_key(|(start, size, _)| (*start, *size));
        let starts: Vec<u64> = all.iter().map(|(start, ..)| *start).collect();
        Self { ranges: Ranges::of(&starts), starts, places: all.iter().map(|(.., place)| *place).collect() }
    }

    /// The last function that starts at or before an address: number of its piece, and its index there.
    #[must_use]
    #[inline]
    fn at_or_before(&self, pc: u64) -> Option<(u32, u32)> {
        let around = self.ranges.around(pc)?;
        let among = self.starts.get(around.clone())?.partition_point(|start| *start <= pc);
        let before = around.start.saturating_add(among);
        self.places.get(before.checked_sub(1)?).copied()
    }
}

impl SFrame {
    /// The function an address is in, and its row there.
    #[must_use]
    pub fn find(&self, pc: u64) -> Option<Found<'_>> {
        let place = self.lookup().at_or_before(pc)?;
        self.found(pc, self.function_at(pc, place)?)
    }

    /// Finds many addresses, in their order: what one of them waits for in memory is asked for with that of others.
    pub fn find_all<'a>(&'a self, addresses: &[u64], mut each: impl FnMut(u64, Option<Found<'a>>)) {
        for some in addresses.chunks(TOGETHER) {
            let mut places = [None; TOGETHER];
            for (place, pc) in places.iter_mut().zip(some) {
                *place = self.lookup().at_or_before(*pc);
            }
            let mut functions = [None; TOGETHER];
            for ((function, place), pc) in functions.iter_mut().zip(places).zip(some) {
                *function = place.and_then(|place| self.function_at(*pc, place));
                // Looked at, so that it is there when the row is searched.
                let row = function.and_then(|(piece, function)| self.first_byte(piece, &function));
                std::hint::black_box(row);
            }
            for (function, pc) in functions.into_iter().zip(some) {
                each(*pc, function.and_then(|function| self.found(*pc, function)));
            }
        }
    }

    /// The function of a place, with the number of its piece, if an address is in it.
    #[inline]
    fn function_at(&self, pc: u64, (number, index): (u32, u32)) -> Option<(usize, Function)> {
        let piece = self.pieces().get(number as usize)?;
        let function = self.view(piece).function(index).filter(|function| pc < function.end())?;
        Some((number as usize, function))
    }

    fn first_byte(&self, number: usize, function: &Function) -> Option<u8> {
        self.view(self.pieces().get(number)?).data.get(function.rows_at?).copied()
    }

    #[inline]
    fn found(&self, pc: u64, (number, function): (usize, Function)) -> Option<Found<'_>> {
        let piece = self.pieces().get(number)?;
        let row = function.row_offset(pc.wrapping_sub(function.start));
        let row = row.and_then(|offset| self.row_at(number, &function, offset));
        let recovery = row.map(|row| piece.context(&function).meaning(&row));
        Some(Found { piece: number, function, row, recovery })
    }

    /// The last row of a function that starts at or before an offset.
    fn row_at(&self, number: usize, function: &Function, offset: u64) -> Option<Row<'_>> {
        let view = self.view(self.pieces().get(number)?);
        let begins_before = |at: &usize| {
            let row = view.row_behind(function, *at);
            row.is_some_and(|row| u64::from(row.start) <= offset)
        };
        let strides = self.survey().strides(number, function);
        let skipped = strides.partition_point(begins_before);
        let rows = self.survey().rows_from_stride(number, view, function, skipped);
        rows.map_while(Result::ok).take_while(|row| u64::from(row.start) <= offset).last()
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
            let lookup = Lookup {
                ranges: Ranges::of(&starts),
                places: (0..).zip(0..).take(starts.len()).collect(),
                starts: starts.clone(),
            };
            assert!(lookup.ranges.before.len() <= starts.len().saturating_mul(2) + 3);
            let near = starts.iter().flat_map(|start| [start.wrapping_sub(1), *start, start.wrapping_add(1)]);
            for pc in near.chain([0, 1, 1 << 20, u64::MAX]) {
                let before = starts.iter().filter(|start| **start <= pc).count();
                let expected = before.checked_sub(1).map(|at| (at as u32, at as u32));
                assert_eq!(lookup.at_or_before(pc), expected, "{pc:#x} among {starts:x?}");
            }
        }
    }
}
