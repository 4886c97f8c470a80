//! How much of a module's code a table has rows for, and which functions it has none for.

use object::{Object, ObjectSymbol, SymbolKind};
use rustc_hash::FxHashMap;

use super::section::EhFrame;
use super::table::{Function, Says, Unsayable, UnwindTable};
use crate::symbolize::demangled;

/// How much of a module's code has rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Each section of code.
    pub sections: Vec<Covered>,
    /// Functions by the symbol table, and by `.eh_frame` where that has others.
    pub num_functions: u64,
    /// Those without rows, by address.
    pub without: Vec<Without>,
}

/// A section of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covered {
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
pub struct Without {
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Its name, for people; none where no symbol has one.
    pub name: Option<String>,
    /// What `.eh_frame` has of it.
    pub eh_frame: Known,
}

/// What `.eh_frame` has of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing.
    Nothing,
    /// Rows that can be rows elsewhere too: index of the function in the table of `.eh_frame`.
    Rows(usize),
    /// A row that has no place elsewhere.
    Unsayable(Unsayable),
    /// An entry that cannot be read.
    Unread(String),
}

impl Coverage {
    /// Holds a table against the code of the file that its `.eh_frame` is from.
    #[must_use]
    pub fn of(file: &[u8], eh_frame: &EhFrame, table: &UnwindTable) -> Self {
        let ranges = |functions: &[Function]| Ranges::of(functions.iter().map(|f| (f.start, f.end())));
        let (covered, framed) = (ranges(&table.functions), ranges(&eh_frame.table.functions));
        let sections = eh_frame.code.iter().map(|code| Covered {
            name: code.name.clone(),
            start: code.start,
            size: code.end - code.start,
            covered_bytes: covered.within(code.start, code.end),
            eh_frame_bytes: framed.within(code.start, code.end),
        });
        let functions = functions(file, eh_frame);
        let unread: FxHashMap<u64, &str> = eh_frame
            .unread
            .iter()
            .filter_map(|unread| Some((unread.function?.0, unread.why.as_str())))
            .collect();
        let missing = functions.iter().filter(|function| covered.within(function.start, function.end()) == 0);
        let without = missing.map(|function| Without {
            start: function.start,
            size: function.size,
            name: function.name.map(|name| {
                let name = String::from_utf8_lossy(name);
                demangled(&name).unwrap_or_else(|| name.into_owned())
            }),
            eh_frame: known(&eh_frame.table, &unread, function),
        });
        Self {
            sections: sections.collect(),
            num_functions: functions.len() as u64,
            without: without.collect(),
        }
    }
}

struct Named<'a> {
    start: u64,
    size: u64,
    name: Option<&'a [u8]>,
}

impl Named<'_> {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

/// Functions of `.eh_frame`, and of the symbol table where no such function begins; by address, those of no size left out.
fn functions<'a>(file: &'a [u8], eh_frame: &EhFrame) -> Vec<Named<'a>> {
    let elf = object::File::parse(file).ok();
    let symbols: Vec<_> = elf.iter().flat_map(|elf| elf.symbols().chain(elf.dynamic_symbols())).collect();
    let mut by_address: FxHashMap<u64, Named<'a>> = FxHashMap::default();
    for symbol in symbols.iter().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
    {
        let base = match (&eh_frame.bases, symbol.section_index()) {
            (None, _) => Some(0),
            (Some(bases), Some(section)) => bases.base(section.0),
            (Some(_), None) => None,
        };
        let Some(start) = base.map(|base| base.wrapping_add(symbol.address())) else { continue };
        let name = symbol.name_bytes().ok().filter(|name| !name.is_empty());
        let named = by_address.entry(start).or_insert(Named { start, size: symbol.size(), name });
        named.size = named.size.max(symbol.size());
    }
    let framed = eh_frame.table.functions.iter().map(|function| (function.start, u64::from(function.size)));
    let unread = eh_frame.unread.iter().filter_map(|unread| unread.function);
    for (start, size) in framed.chain(unread) {
        by_address.entry(start).or_insert(Named { start, size, name: None }).size = size;
    }
    let mut all: Vec<_> = by_address.into_values().filter(|function| function.size != 0).collect();
    all.sort_by_key(|function| function.start);
    all
}

fn known(table: &UnwindTable, unread: &FxHashMap<u64, &str>, function: &Named<'_>) -> Known {
    let at = table.functions.partition_point(|known| known.start <= function.start).wrapping_sub(1);
    if let Some(found) = table.functions.get(at).filter(|found| function.start < found.end()) {
        let unsayable = table.rows(found).iter().find_map(|row| match row.says {
            Says::Unsayable(why) => Some(why),
            Says::Recovery(_) | Says::Stub(_) => None,
        });
        return unsayable.map_or(Known::Rows(at), Known::Unsayable);
    }
    unread.get(&function.start).map_or(Known::Nothing, |why| Known::Unread((*why).to_owned()))
}

/// Ranges that do not overlap, sorted.
struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    fn of(ranges: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut all: Vec<_> = ranges.filter(|(start, end)| start < end).collect();
        all.sort_unstable();
        all.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1;
            kept.1 = if touches { kept.1.max(next.1) } else { kept.1 };
            touches
        });
        Self(all)
    }

    /// Bytes of them in a range.
    fn within(&self, start: u64, end: u64) -> u64 {
        let first = self.0.partition_point(|range| range.1 <= start);
        let there = self.0[first..].iter().take_while(|range| range.0 < end);
        there.map(|range| range.1.min(end) - range.0.max(start)).sum()
    }
}
