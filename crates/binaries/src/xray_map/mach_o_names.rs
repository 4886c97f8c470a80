use std::sync::Arc;

use object::{File, Object, ObjectSymbol, SymbolKind};
use rustc_hash::FxHashMap;

use super::map::Function;
use crate::symbolize::{NameCache, SymbolFrame, by_familiarity};

/// Names of functions in the symbol table of a Mach-O file.
pub(super) fn names(data: &[u8], functions: &[Function]) -> Vec<Option<SymbolFrame>> {
    let Ok(file) = File::parse(data) else { return vec![None; functions.len()] };
    let mut symbols: FxHashMap<u64, (bool, &[u8])> = FxHashMap::default();
    for symbol in file.symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
    {
        let Ok(name) = symbol.name_bytes() else { continue };
        // Compilers put a name of their own, `ltmp0`, at the start of each section; those of programs begin with `_`.
        let Some(name) = name.strip_prefix(b"_") else { continue };
        let found = (symbol.is_global(), name);
        let known = symbols.entry(symbol.address()).or_insert(found);
        if known.0.cmp(&found.0).then_with(|| by_familiarity(known.1, found.1)).is_lt() {
            *known = found;
        }
    }
    let mut cache = NameCache::default();
    let name = |function: &Function| {
        let (_, raw) = symbols.get(&function.place?.address)?;
        let name = cache.name(raw);
        let linkage_name: Option<Arc<str>> = name.linkage;
        Some(SymbolFrame { name: name.shown, linkage_name, path: None, line: None, column: None })
    };
    functions.iter().map(name).collect()
}
