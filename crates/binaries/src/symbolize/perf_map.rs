//! `perf-PID.map` files.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::path::Path;

use memchr::memchr;
use perfuse_mapped::{is_own_or_of_root, open_regular, read_at_most};

use super::symbol_index::{SymbolIndex, SymbolSpan};

/// A `perf-PID.map` file: the functions that a JIT without a dump has compiled, one per line, `start size name` with the
/// numbers in hexadecimal.
#[derive(Debug, Default)]
pub struct PerfMap {
    text: Vec<u8>,
    index: SymbolIndex,
    lines: Vec<MapLine>,
    num_skipped: usize,
}

/// A function of a [`PerfMap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfMapEntry<'a> {
    /// First address.
    pub start_address: u64,
    /// Size of its code.
    pub size_bytes: u64,
    /// Name as the runtime wrote it.
    pub name: Cow<'a, str>,
}

/// A line of the map.
#[derive(Clone, Debug)]
struct MapLine {
    start: u64,
    size: u64,
    /// Range of the text.
    name: Range<usize>,
}

/// Larger maps are not read: that of a program with a million functions has 100 MB.
const MOST_BYTES: u64 = 1 << 30;

impl PerfMap {
    /// Reads a map file.
    ///
    /// # Errors
    /// Those of the operating system; for anything but a regular file, `InvalidInput`; `FileTooLarge` above 1 GiB.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::parse(read_at_most(&open_regular(path)?, MOST_BYTES)?))
    }

    /// Reads a map file in a directory that all users share: only one that belongs to the user of this process or to root, as
    /// perf does. Otherwise everybody on the machine could choose the names of other people's functions.
    ///
    /// # Errors
    /// As [`PerfMap::open`], and `PermissionDenied` for another owner.
    pub fn open_own(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        if !is_own_or_of_root(&file)? {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
        }
        Ok(Self::parse(read_at_most(&file, MOST_BYTES)?))
    }

    /// Parses the text of a map. Lines that cannot be parsed, such as a truncated last one, are skipped and counted. Where
    /// code was written over other code, the later line has the address.
    #[must_use]
    pub fn parse(text: Vec<u8>) -> Self {
        let mut map = Self { text, ..Self::default() };
        let mut rest = 0;
        while rest < map.text.len() {
            perfuse_stopping::checkpoint();
            let tail = map.text.get(rest..).unwrap_or_default();
            let len = memchr(b'\n', tail).unwrap_or(tail.len());
            let line = tail.get(..len).unwrap_or_default();
            match MapLine::parse(line, rest) {
                Some(line) => map.lines.push(line),
                None => {
                    map.num_skipped = map.num_skipped.saturating_add((!line.trim_ascii().is_empty()).into());
                }
            }
            rest = rest.saturating_add(len).saturating_add(1);
        }
        let mut spans: Vec<SymbolSpan> =
            map.lines.iter().zip(0..).map(|(line, number)| line.span(number)).collect();
        spans.sort_by_key(|span| span.start);
        map.index = SymbolIndex::new(spans);
        map
    }

    /// The function at an address.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<PerfMapEntry<'_>> {
        let line = self.lines.get(self.index.find(address)? as usize)?;
        let name = String::from_utf8_lossy(self.text.get(line.name.clone()).unwrap_or_default());
        Some(PerfMapEntry { start_address: line.start, size_bytes: line.size, name })
    }

    /// Number of functions in the map, overwritten ones included.
    #[must_use]
    pub fn num_entries(&self) -> usize {
        self.lines.len()
    }

    /// Number of lines that could not be parsed.
    #[must_use]
    pub fn num_skipped(&self) -> usize {
        self.num_skipped
    }
}

impl MapLine {
    /// Parses a line that starts at an offset of the text.
    fn parse(line: &[u8], offset: usize) -> Option<Self> {
        let line_end = offset.checked_add(line.len())?;
        let trailing = line.len().checked_sub(line.trim_ascii_end().len())?;
        let (start, rest) = split_at_space(line.trim_ascii())?;
        let (size, rest) = split_at_space(rest)?;
        let name = rest.trim_ascii_start();
        let (start, size) = (hexadecimal(start)?, hexadecimal(size)?);
        start.checked_add(size)?;
        let end = line_end.checked_sub(trailing)?;
        (!name.is_empty()).then_some(Self { start, size, name: end.checked_sub(name.len())?..end })
    }

    fn span(&self, number: u32) -> SymbolSpan {
        SymbolSpan {
            start: self.start,
            end: self.start.saturating_add(self.size),
            rank: number,
            symbol: number,
        }
    }
}

/// The bytes before and after the first space.
fn split_at_space(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr(b' ', text)?;
    Some((text.get(..at)?, text.get(at.checked_add(1)?..)?))
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    if digits.first() == Some(&b'+') {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::PerfMap;

    fn name(map: &PerfMap, address: u64) -> Option<String> {
        map.find(address).map(|entry| entry.name.into_owned())
    }

    #[test]
    fn later_lines_win_and_damaged_ones_are_skipped() {
        let map = PerfMap::parse(
            b"1000 100 first\r\n0x2000 0x10 with spaces in it\n1040 20 second\n+9 1 plus\nzz 1 x\n\nffffffffffffffff 2 wraps\n\
              3000 0 empty\n4000 8"
                .to_vec(),
        );
        assert_eq!((map.num_entries(), map.num_skipped()), (4, 4));
        assert_eq!(name(&map, 0x103f).as_deref(), Some("first"));
        assert_eq!(name(&map, 0x1040).as_deref(), Some("second"));
        assert_eq!(name(&map, 0x1060).as_deref(), Some("first"));
        assert_eq!(name(&map, 0x200f).as_deref(), Some("with spaces in it"));
        assert_eq!(name(&map, 0x3000), None);
        assert_eq!(name(&map, 0x1100), None);
    }

    #[test]
    fn an_entry_has_its_start_and_size() {
        let map = PerfMap::parse("7f00 20 \u{3b1}\n".into());
        let entry = map.find(0x7f10).expect("the function");
        assert_eq!((entry.start_address, entry.size_bytes, &*entry.name), (0x7f00, 0x20, "\u{3b1}"));
    }

    #[test]
    fn any_bytes_are_a_map() {
        let mut state = 1u32;
        for _ in 0..2000 {
            let text: Vec<u8> = (0..64)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    b"0f \n\rx\xff+"[(state >> 24) as usize % 8]
                })
                .collect();
            let map = PerfMap::parse(text);
            assert!(map.find(0xf).is_none_or(|entry| !entry.name.is_empty()));
        }
    }
}
