//! Functions of a dump: names taken apart once, code of several tiers sharing one function.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::index::NONE;
use super::names::{self, Name};

/// What a name as written stands for.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Index of the name.
    pub name: u32,
    /// Index of the function.
    pub function: u32,
    /// Index of the tier, or `NONE`.
    pub tier: u32,
    /// Whether it is a stub, thunk or builtin.
    pub stub: bool,
}

/// A function.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// Index of the first name it was loaded under.
    pub linkage_name: u32,
    /// Line it starts at.
    pub line: Option<u32>,
    /// Column it starts at.
    pub column: Option<u32>,
    /// Where in that name the plain name lies.
    name: (u32, u32),
    /// Where in that name the file lies.
    path: Option<(u32, u32)>,
}

/// Names, functions and tiers of a dump.
#[derive(Debug, Default)]
pub struct Functions {
    known: FxHashMap<Box<[u8]>, Named>,
    by_identity: FxHashMap<u64, u32>,
    names: Vec<Box<str>>,
    rows: Vec<Function>,
    tiers: Vec<Box<str>>,
}

impl Functions {
    /// What a name as written stands for.
    pub fn intern(&mut self, raw: &[u8]) -> Named {
        if let Some(known) = self.known.get(raw) {
            return *known;
        }
        let text = String::from_utf8_lossy(raw);
        let parsed = names::parse(&text);
        let tier = parsed.tier.map_or(NONE, |tier| self.tier_id(tier));
        let name = self.names.len() as u32;
        let function = self.function(&parsed, &text, name);
        let named = Named { name, function, tier, stub: parsed.stub };
        self.names.push(text.into_owned().into_boxed_str());
        self.known.insert(raw.into(), named);
        named
    }

    fn function(&mut self, parsed: &Name<'_>, text: &str, linkage_name: u32) -> u32 {
        let mut hasher = FxHasher::default();
        (parsed.function, parsed.path, parsed.line, parsed.column).hash(&mut hasher);
        let identity = hasher.finish();
        let known = self.by_identity.get(&identity).copied();
        if let Some(known) = known.filter(|known| self.is(*known, parsed)) {
            return known;
        }
        let id = self.rows.len() as u32;
        self.rows.push(Function {
            linkage_name,
            line: parsed.line,
            column: parsed.column,
            name: span(text, parsed.function),
            path: parsed.path.map(|path| span(text, path)),
        });
        self.by_identity.insert(identity, id);
        id
    }

    fn is(&self, function: u32, parsed: &Name<'_>) -> bool {
        self.rows.get(function as usize).is_some_and(|row| {
            self.name(row) == parsed.function
                && self.path(function) == parsed.path
                && (row.line, row.column) == (parsed.line, parsed.column)
        })
    }

    fn tier_id(&mut self, tier: &str) -> u32 {
        if let Some(known) = self.tiers.iter().position(|known| &**known == tier) {
            return known as u32;
        }
        self.tiers.push(tier.into());
        (self.tiers.len() as u32).saturating_sub(1)
    }

    /// All functions, by index.
    #[must_use]
    pub fn rows(&self) -> &[Function] {
        &self.rows
    }

    /// A tier's name.
    #[must_use]
    pub fn tier(&self, tier: u32) -> Option<&str> {
        self.tiers.get(tier as usize).map(|tier| &**tier)
    }

    /// A name as written.
    #[must_use]
    pub fn linkage_name(&self, name: u32) -> &str {
        self.names.get(name as usize).map_or("", |name| &**name)
    }

    /// A function's name for people.
    #[must_use]
    pub fn name(&self, function: &Function) -> &str {
        if function.name.0 == NONE {
            return names::ANONYMOUS;
        }
        let whole = self.linkage_name(function.linkage_name);
        whole.get(function.name.0 as usize..function.name.1 as usize).unwrap_or(whole)
    }

    /// The file a function's name tells.
    #[must_use]
    pub fn path(&self, function: u32) -> Option<&str> {
        let function = self.rows.get(function as usize)?;
        let (start, end) = function.path?;
        self.linkage_name(function.linkage_name).get(start as usize..end as usize)
    }
}

/// Where a part lies in the text it was cut from; `NONE` for a part that is not from there.
fn span(text: &str, part: &str) -> (u32, u32) {
    let start = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    match start.checked_add(part.len()) {
        Some(end) if end <= text.len() => (start as u32, end as u32),
        _ => (NONE, NONE),
    }
}
