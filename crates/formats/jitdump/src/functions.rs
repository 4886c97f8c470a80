//! Functions of a dump: each name as written is one, and is taken apart once.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::index::NONE;
use super::inline::{Declaration, known};
use super::names;

/// What a name as written stands for.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Index of the function.
    pub function: u32,
    /// Index of the tier, or `NONE`.
    pub tier: u32,
    /// Whether it is a stub, thunk or builtin.
    pub stub: bool,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name as written, tier marks and all.
    pub linkage_name: Box<str>,
    /// Line it starts at.
    pub line: Option<u32>,
    /// Column it starts at.
    pub column: Option<u32>,
    /// Name for people.
    name: Part,
    /// Source file, where the name tells it.
    path: Option<Part>,
}

/// A text made from the name as written: mostly a piece of it.
#[derive(Clone, Debug)]
enum Part {
    Span(u32, u32),
    Own(Box<str>),
}

impl Function {
    fn new(linkage_name: Box<str>) -> (Self, Option<Box<str>>, bool) {
        let parsed = names::parse(&linkage_name);
        let name = Part::of(&linkage_name, &parsed.function);
        let path = parsed.path.map(|path| Part::of(&linkage_name, path));
        let (line, column, stub) = (parsed.line, parsed.column, parsed.stub);
        let tier = parsed.tier.map(Box::from);
        (Self { linkage_name, line, column, name, path }, tier, stub)
    }

    /// Name for people.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.text(&self.linkage_name)
    }

    /// Source file, where the name tells it.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        Some(self.path.as_ref()?.text(&self.linkage_name))
    }
}

impl Part {
    fn of(whole: &str, part: &str) -> Self {
        let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        match start.checked_add(part.len()) {
            Some(end) if end <= whole.len() => Self::Span(start as u32, end as u32),
            _ => Self::Own(part.into()),
        }
    }

    fn text<'a>(&'a self, whole: &'a str) -> &'a str {
        match self {
            Self::Span(start, end) => whole.get(*start as usize..*end as usize).unwrap_or(whole),
            Self::Own(text) => text,
        }
    }
}

/// No runtime has nearly as many tiers.
const MAX_TIERS: usize = 256;

/// Functions and tiers of a dump.
#[derive(Debug, Default)]
pub struct Functions {
    /// By hash of the name.
    known: FxHashMap<u64, Named>,
    declared: FxHashMap<Box<[u8]>, u32>,
    rows: Vec<Function>,
    tiers: Vec<Box<str>>,
}

impl Functions {
    /// What a name as written stands for.
    pub fn intern(&mut self, raw: &[u8]) -> Named {
        let mut hasher = FxHasher::default();
        raw.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(known) =
            self.known.get(&hash).copied().filter(|known| self.is_written(known.function, raw))
        {
            return known;
        }
        let (row, tier, stub) = Function::new(String::from_utf8_lossy(raw).into());
        let tier = tier.map_or(NONE, |tier| self.tier_id(&tier));
        let named = Named { function: self.rows.len() as u32, tier, stub };
        self.rows.push(row);
        // Of two names with one hash the first is found again, the other is a function each time.
        self.known.entry(hash).or_insert(named);
        named
    }

    fn is_written(&self, function: u32, raw: &[u8]) -> bool {
        let name = self.rows.get(function as usize).map(|row| &*row.linkage_name);
        name.is_some_and(|name| name.as_bytes() == raw || name == String::from_utf8_lossy(raw))
    }

    /// The function a debug record says was inlined: one for each name, file and place.
    pub fn declare(&mut self, declaration: &Declaration<'_>) -> u32 {
        let key = key(declaration);
        if let Some(known) = self.declared.get(&*key) {
            return *known;
        }
        let (mut row, ..) = Function::new(String::from_utf8_lossy(declaration.name).into());
        if !declaration.path.is_empty() {
            row.path = Some(Part::Own(String::from_utf8_lossy(declaration.path).into()));
        }
        row.line = known(declaration.line).or(row.line);
        row.column = known(declaration.column).or(row.column);
        let id = self.rows.len() as u32;
        self.rows.push(row);
        self.declared.insert(key.into(), id);
        id
    }

    /// The index [`declare`](Self::declare) gave.
    #[must_use]
    pub fn declared(&self, declaration: &Declaration<'_>) -> Option<u32> {
        self.declared.get(&*key(declaration)).copied()
    }

    /// The index of a tier. A file with more than a few hundred is up to no good, and gets none for the rest.
    pub fn tier_id(&mut self, tier: &str) -> u32 {
        if let Some(known) = self.tiers.iter().position(|known| &**known == tier) {
            return known as u32;
        }
        if self.tiers.len() >= MAX_TIERS {
            return NONE;
        }
        self.tiers.push(tier.into());
        (self.tiers.len() as u32).saturating_sub(1)
    }

    /// All, by index.
    #[must_use]
    pub fn rows(&self) -> &[Function] {
        &self.rows
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, function: u32) -> Option<&Function> {
        self.rows.get(function as usize)
    }

    /// A tier's name.
    #[must_use]
    pub fn tier(&self, tier: u32) -> Option<&str> {
        self.tiers.get(tier as usize).map(|tier| &**tier)
    }
}

/// Names hold no NUL, so that the parts of a key cannot run together.
fn key(declaration: &Declaration<'_>) -> Vec<u8> {
    let (line, column) = (declaration.line.to_le_bytes(), declaration.column.to_le_bytes());
    [declaration.name, &[0], declaration.path, &[0], &line, &column].concat()
}
