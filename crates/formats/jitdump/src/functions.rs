//! Functions and tiers of a dump. Each distinct name in the file is one function and is parsed once.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::inline::{DeclaredFunction, nonzero};
use super::names;

/// Stands for "no entry" in fields that contain the index of one.
pub const NO_INDEX: u32 = u32::MAX;

/// Function and tier of the name of a JIT_CODE_LOAD.
#[derive(Clone, Copy, Debug)]
pub struct InternedName {
    /// Index of the function.
    pub function: u32,
    /// Index of the tier, or `NO_INDEX`.
    pub tier: u32,
    /// Whether the code is a stub, thunk or builtin.
    pub stub: bool,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name as written in the file, with tier marks.
    pub linkage_name: Box<str>,
    /// Line at which it starts, from 1.
    pub line: Option<u32>,
    /// Column at which it starts, from 1.
    pub column: Option<u32>,
    /// Name to display.
    name: DerivedText,
    /// Source file.
    path: Option<DerivedText>,
}

/// A text derived from a linkage name: mostly a range of it, in bytes.
#[derive(Clone, Debug)]
enum DerivedText {
    Range(u32, u32),
    Owned(Box<str>),
}

impl Function {
    /// Parses a name; returns the function, its tier, and whether it is a stub.
    fn parse(linkage_name: Box<str>) -> (Self, Option<Box<str>>, bool) {
        let parsed = names::parse(&linkage_name);
        let name = DerivedText::of(&linkage_name, &parsed.function);
        let path = parsed.path.map(|path| DerivedText::of(&linkage_name, path));
        let (line, column, stub) = (parsed.line, parsed.column, parsed.stub);
        let tier = parsed.tier.map(Box::from);
        (Self { linkage_name, line, column, name, path }, tier, stub)
    }

    /// Name to display.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.text(&self.linkage_name)
    }

    /// Source file, where the name contains it or a debug record declares it.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        Some(self.path.as_ref()?.text(&self.linkage_name))
    }
}

impl DerivedText {
    fn of(whole: &str, part: &str) -> Self {
        let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        match start.checked_add(part.len()) {
            Some(end) if end <= whole.len() => Self::Range(start as u32, end as u32),
            _ => Self::Owned(part.into()),
        }
    }

    fn text<'a>(&'a self, whole: &'a str) -> &'a str {
        match self {
            Self::Range(start, end) => whole.get(*start as usize..*end as usize).unwrap_or(whole),
            Self::Owned(text) => text,
        }
    }
}

/// Largest number of tiers; runtimes have far fewer.
const MAX_TIERS: usize = 256;

/// Functions and tiers of a dump.
#[derive(Debug, Default)]
pub struct FunctionTable {
    /// By hash of the name.
    by_name: FxHashMap<u64, InternedName>,
    /// Index of each inlined function, by its declaration.
    declared: FxHashMap<Box<[u8]>, u32>,
    rows: Vec<Function>,
    tiers: Vec<Box<str>>,
}

impl FunctionTable {
    /// Reserves memory for so many more functions with names of their own.
    #[cfg(feature = "tables")]
    pub(crate) fn reserve(&mut self, num: usize) {
        self.rows.reserve_exact(num);
        self.by_name.reserve(num);
    }

    /// Function and tier of the name of a JIT_CODE_LOAD; adds them where they are new.
    pub fn intern(&mut self, raw: &[u8]) -> InternedName {
        let mut hasher = FxHasher::default();
        raw.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(known) =
            self.by_name.get(&hash).copied().filter(|known| self.has_linkage_name(known.function, raw))
        {
            return known;
        }
        let (row, tier, stub) = Function::parse(String::from_utf8_lossy(raw).into());
        let tier = tier.map_or(NO_INDEX, |tier| self.intern_tier(&tier));
        let name = InternedName { function: self.rows.len() as u32, tier, stub };
        self.rows.push(row);
        // Of two names with the same hash only the first is found again; the second becomes a new function each time.
        self.by_name.entry(hash).or_insert(name);
        name
    }

    fn has_linkage_name(&self, function: u32, raw: &[u8]) -> bool {
        let name = self.rows.get(function as usize).map(|row| &*row.linkage_name);
        name.is_some_and(|name| name.as_bytes() == raw || name == String::from_utf8_lossy(raw))
    }

    /// The index of an inlined function; adds it where its name, file, line and column are new.
    pub fn declare(&mut self, declaration: &DeclaredFunction<'_>) -> u32 {
        let key = declaration_key(declaration);
        if let Some(known) = self.declared.get(&*key) {
            return *known;
        }
        let (mut row, ..) = Function::parse(String::from_utf8_lossy(declaration.name).into());
        if !declaration.path.is_empty() {
            row.path = Some(DerivedText::Owned(String::from_utf8_lossy(declaration.path).into()));
        }
        row.line = nonzero(declaration.line).or(row.line);
        row.column = nonzero(declaration.column).or(row.column);
        let id = self.rows.len() as u32;
        self.rows.push(row);
        self.declared.insert(key.into(), id);
        id
    }

    /// The index that [`declare`](Self::declare) returned for this function.
    #[must_use]
    pub fn find_declared(&self, declaration: &DeclaredFunction<'_>) -> Option<u32> {
        self.declared.get(&*declaration_key(declaration)).copied()
    }

    /// The index of a tier; adds it where it is new. Beyond `MAX_TIERS`, new tiers get `NO_INDEX`.
    pub fn intern_tier(&mut self, tier: &str) -> u32 {
        if let Some(known) = self.tiers.iter().position(|known| &**known == tier) {
            return known as u32;
        }
        if self.tiers.len() >= MAX_TIERS {
            return NO_INDEX;
        }
        self.tiers.push(tier.into());
        (self.tiers.len() as u32).saturating_sub(1)
    }

    /// All functions, by index.
    #[must_use]
    pub fn rows(&self) -> &[Function] {
        &self.rows
    }

    /// The function with an index.
    #[must_use]
    pub fn get(&self, function: u32) -> Option<&Function> {
        self.rows.get(function as usize)
    }

    /// The name of the tier with an index.
    #[must_use]
    pub fn tier(&self, tier: u32) -> Option<&str> {
        self.tiers.get(tier as usize).map(|tier| &**tier)
    }
}

/// The key of a declaration. Names and paths contain no NUL, so NULs separate them.
fn declaration_key(declaration: &DeclaredFunction<'_>) -> Vec<u8> {
    let (line, column) = (declaration.line.to_le_bytes(), declaration.column.to_le_bytes());
    [declaration.name, &[0], declaration.path, &[0], &line, &column].concat()
}
