//! Which part of a module's code an unwind table covers, and the functions it has no rows for.

use object::{Object, ObjectSymbol, SymbolKind};
use rustc_hash::FxHashMap;

use super::elf::EhFrame;
use super::table::{RowRule, Unrepresentable, UnwindFunction, UnwindTable};
use crate::symbolize::demangled;

/// Which part of a module's code has unwind rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Each section of code.
    pub sections: Vec<CodeSectionCoverage>,
    /// Number of functions in the symbol table, and of those that only `.eh_frame` has.
    pub num_functions: u64,
    /// Functions without rows, by address.
    pub uncovered: Vec<UncoveredFunction>,
}

/// A section of code, with the number of its bytes that have rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSectionCoverage {
    /// Its name.
    pub name: String,
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Bytes of functions in the table.
    pub covered_bytes: u64,
    /// Bytes of functions in `.eh_frame`.
    pub eh_frame_bytes: u64,
}

/// A function without rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncoveredFunction {
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Its demangled name; `None` where no symbol names it.
    pub name: Option<String>,
    /// What `.eh_frame` contains for it.
    pub eh_frame: EhFrameEntry,
}

/// What `.eh_frame` contains for a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EhFrameEntry {
    /// No entry.
    Missing,
    /// Rows that can be represented in other tables: index of the function in the table of `.eh_frame`.
    Rows(usize),
    /// A row that cannot be represented.
    Unrepresentable(Unrepresentable),
    /// An entry that cannot be read.
    Unreadable(String),
}

impl Coverage {
    /// Compares a table with the code of the file that `eh_frame` was read from.
    #[must_use]
    pub fn of(file: &[u8], eh_frame: &EhFrame, table: &UnwindTable) -> Self {
        let ranges =
            |functions: &[UnwindFunction]| DisjointRanges::new(functions.iter().map(|f| (f.start, f.end())));
        let (covered, framed) = (ranges(&table.functions), ranges(&eh_frame.table.functions));
        let sections = eh_frame.code.iter().map(|code| CodeSectionCoverage {
            name: code.name.clone(),
            start: code.start,
            size: code.end.saturating_sub(code.start),
            covered_bytes: covered.count_bytes(code.start, code.end),
            eh_frame_bytes: framed.count_bytes(code.start, code.end),
        });
        let functions = functions(file, eh_frame);
        let unread: FxHashMap<u64, &str> = eh_frame
            .unread
            .iter()
            .filter_map(|unread| Some((unread.function?.0, unread.why.as_str())))
            .collect();
        let missing =
            functions.iter().filter(|function| covered.count_bytes(function.start, function.end()) == 0);
        let uncovered = missing.map(|function| UncoveredFunction {
            start: function.start,
            size: function.size,
            name: function.name.map(|name| {
                let name = String::from_utf8_lossy(name);
                demangled(&name).unwrap_or_else(|| name.into_owned())
            }),
            eh_frame: find_entry(&eh_frame.table, &unread, function),
        });
        Self {
            sections: sections.collect(),
            num_functions: functions.len() as u64,
            uncovered: uncovered.collect(),
        }
    }
}

/// The range of a function, with the name of its symbol.
struct FunctionRange<'a> {
    start: u64,
    size: u64,
    name: Option<&'a [u8]>,
}

impl FunctionRange<'_> {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

/// The functions of `.eh_frame`, and those of the symbol table that begin at other addresses; sorted by address, without
/// those of size 0.
fn functions<'a>(file: &'a [u8], eh_frame: &EhFrame) -> Vec<FunctionRange<'a>> {
    let elf = object::File::parse(file).ok();
    let symbols: Vec<_> = elf.iter().flat_map(|elf| elf.symbols().chain(elf.dynamic_symbols())).collect();
    let mut by_address: FxHashMap<u64, FunctionRange<'a>> = FxHashMap::default();
    for symbol in symbols.iter().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
    {
        let base = match (&eh_frame.bases, symbol.section_index()) {
            (None, _) => Some(0),
            (Some(bases), Some(section)) => bases.base(section.0),
            (Some(_), None) => None,
        };
        let Some(start) = base.map(|base| base.wrapping_add(symbol.address())) else { continue };
        let name = symbol.name_bytes().ok().filter(|name| !name.is_empty());
        let named = by_address.entry(start).or_insert(FunctionRange { start, size: symbol.size(), name });
        named.size = named.size.max(symbol.size());
    }
    let framed = eh_frame.table.functions.iter().map(|function| (function.start, u64::from(function.size)));
    let unread = eh_frame.unread.iter().filter_map(|unread| unread.function);
    for (start, size) in framed.chain(unread) {
        by_address.entry(start).or_insert(FunctionRange { start, size, name: None }).size = size;
    }
    let mut all: Vec<_> = by_address.into_values().filter(|function| function.size != 0).collect();
    all.sort_by_key(|function| function.start);
    all
}

/// What the table of `.eh_frame`, or the list of its unreadable entries, contains for a function.
fn find_entry(
    table: &UnwindTable,
    unread: &FxHashMap<u64, &str>,
    function: &FunctionRange<'_>,
) -> EhFrameEntry {
    let at = table.functions.partition_point(|other| other.start <= function.start).wrapping_sub(1);
    if let Some(found) = table.functions.get(at).filter(|found| function.start < found.end()) {
        let unrepresentable = table.rows(found).iter().find_map(|row| match row.rule {
            RowRule::Unrepresentable(why) => Some(why),
            RowRule::Recovery(_) | RowRule::Plt(_) => None,
        });
        return unrepresentable.map_or(EhFrameEntry::Rows(at), EhFrameEntry::Unrepresentable);
    }
    unread
        .get(&function.start)
        .map_or(EhFrameEntry::Missing, |why| EhFrameEntry::Unreadable((*why).to_owned()))
}

/// Ranges that do not overlap, sorted.
struct DisjointRanges(Vec<(u64, u64)>);

impl DisjointRanges {
    /// Merges ranges that overlap or touch.
    fn new(ranges: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut all: Vec<_> = ranges.filter(|(start, end)| start < end).collect();
        all.sort_unstable();
        all.dedup_by(|next, last| {
            let touches = next.0 <= last.1;
            last.1 = if touches { last.1.max(next.1) } else { last.1 };
            touches
        });
        Self(all)
    }

    /// Number of their bytes that are in a range.
    fn count_bytes(&self, start: u64, end: u64) -> u64 {
        let first = self.0.partition_point(|range| range.1 <= start);
        let inside = self.0.iter().skip(first).take_while(|range| range.0 < end);
        // The ranges are disjoint, so the sum is at most `end - start`.
        inside.fold(0, |sum, range| sum.saturating_add(range.1.min(end).saturating_sub(range.0.max(start))))
    }
}
