use std::ops::Range;

use super::container::{Container, Section};
use super::findings::{Findings, UNFIT_INDEX};
use super::map::{Function, Sled};

/// Functions as `xray_fn_idx` has them: id N is its Nth entry. `None` where it does not fit the map.
///
/// An entry has two words, and nothing tells which two: since LLVM 17 the distance from itself to the first sled and the
/// number of sleds, before that the addresses of the first sled and of the end of the last. All entries have to fit one way.
pub(super) fn functions(
    container: &Container<'_>,
    section: &Section<'_>,
    sleds: &[Sled],
    findings: &mut Findings,
) -> Option<Vec<Function>> {
    let index = Index { container, section };
    // The way that fits further is the likelier one.
    let absolute = |counted| index.ranges(Form::Absolute).map_err(|entry: usize| entry.max(counted));
    match index.ranges(Form::Counted).or_else(absolute) {
        Err(entry) => {
            let offset = section.file_offset.saturating_add((entry * index.entry_bytes()) as u64);
            findings.at(UNFIT_INDEX, offset, || {
                format!("entry {entry} of xray_fn_idx is of no sleds in the map; functions are numbered by their addresses")
            });
            None
        }
        Ok(ranges) => match misfit(&ranges, sleds) {
            None => Some(numbered(&ranges, sleds)),
            Some(misfit) => {
                findings.at(UNFIT_INDEX, section.file_offset, || {
                    format!("{misfit} in xray_fn_idx; functions are numbered by their addresses")
                });
                None
            }
        },
    }
}

#[derive(Clone, Copy)]
enum Form {
    Counted,
    Absolute,
}

struct Index<'a, 'data> {
    container: &'a Container<'data>,
    section: &'a Section<'data>,
}

impl Index<'_, '_> {
    fn entry_bytes(&self) -> usize {
        self.container.words.bytes() * 2
    }

    /// Sleds of each entry; or the entry that has none if read so.
    fn ranges(&self, form: Form) -> Result<Vec<Range<usize>>, usize> {
        let num_entries = self.section.bytes.len().div_ceil(self.entry_bytes());
        (0..num_entries).map(|entry| self.range(entry, form).ok_or(entry)).collect()
    }

    fn range(&self, entry: usize, form: Form) -> Option<Range<usize>> {
        let first_at = entry * self.entry_bytes();
        let second_at = first_at + self.container.words.bytes();
        let (first, second) = (self.word(first_at)?, self.word(second_at)?);
        match form {
            Form::Counted => {
                let begin = self.section.address.wrapping_add(first_at as u64).wrapping_add(first);
                let (start, left) = self.sled(self.container.words.wrap(begin))?;
                let count = usize::try_from(second).ok().filter(|count| (1..=left).contains(count))?;
                Some(start..start + count)
            }
            Form::Absolute => {
                let (start, left) = self.sled(first)?;
                let bytes = second.checked_sub(first).filter(|bytes| *bytes != 0)?;
                let size = self.container.entry_bytes() as u64;
                let count = usize::try_from(bytes / size).ok().filter(|count| *count <= left)?;
                bytes.is_multiple_of(size).then(|| start..start + count)
            }
        }
    }

    fn word(&self, at: usize) -> Option<u64> {
        match self.section.relocated.get(&(at as u64)) {
            Some(relocated) => relocated.map(|place| place.address),
            None => self.container.words.read(self.section.bytes, at),
        }
    }

    /// The sled whose entry is at an address, and how many there are from it to the end of its section.
    fn sled(&self, address: u64) -> Option<(usize, usize)> {
        let size = self.container.entry_bytes();
        let mut before = 0;
        for map in &self.container.maps {
            let here = map.bytes.len() / size;
            let within = address.checked_sub(map.address).and_then(|within| usize::try_from(within).ok());
            if let Some(within) = within.filter(|within| within.is_multiple_of(size) && within / size < here)
            {
                return Some((before + within / size, here - within / size));
            }
            before += here;
        }
        None
    }
}

/// What keeps an index from being one: every sled belongs to one function, and all sleds of an entry to the same.
fn misfit(ranges: &[Range<usize>], sleds: &[Sled]) -> Option<String> {
    let mut sorted: Vec<&Range<usize>> = ranges.iter().collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut end = 0;
    for range in sorted {
        if range.start < end {
            return Some(format!("sled {} is of two functions", range.start));
        }
        if range.start > end {
            return Some(format!("sled {end} is of no function"));
        }
        if sleds[range.clone()].windows(2).any(|pair| pair[0].function != pair[1].function) {
            return Some(format!("the function of sled {} has sleds of another function", range.start));
        }
        end = range.end;
    }
    (end < sleds.len()).then(|| format!("sled {end} is of no function"))
}

fn numbered(ranges: &[Range<usize>], sleds: &[Sled]) -> Vec<Function> {
    let function = |(range, id): (&Range<usize>, u32)| Function {
        id,
        place: sleds[range.start].function,
        sleds: range.clone(),
    };
    ranges.iter().zip(1..).map(function).collect()
}
