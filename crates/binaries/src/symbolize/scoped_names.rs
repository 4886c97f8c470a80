//! Names of C++ functions that have none for the linker: those of lambdas, of classes in functions and in unnamed namespaces. Where such
//! a function is inlined, its name in DWARF is the last part alone, `operator()`, which many functions of a file have.

use gimli::{DebuggingInformationEntry, DwAt, DwLang, UnitOffset, UnitRef, constants};
use rustc_hash::FxHashMap;

use super::dwarf_sections::DwarfReader;
use super::names::demangle;

pub(super) type DebugEntry = DebuggingInformationEntry<DwarfReader>;

/// Limit on the references followed from a function to its declaration; real chains have two.
pub(super) const MAX_REFERENCES: usize = 8;
/// Limit on the scopes around a function.
const MAX_SCOPES: usize = 64;
/// Limit on functions that are in functions, as a lambda in a lambda is.
const MAX_NESTED: usize = 8;
/// Limit on a part of a name.
const MAX_PART_BYTES: usize = 4 << 10;
/// Limit on a name.
const MAX_NAME_BYTES: usize = 16 << 10;

/// What C++ declarations of a unit are in.
#[derive(Default)]
pub(super) struct ScopedNames {
    scopes: Vec<Scope>,
    /// Scope of each function that has a name and none for the linker, by its entry.
    of_function: FxHashMap<UnitOffset, usize>,
}

/// A namespace, class or function that contains others.
struct Scope {
    parent: Option<usize>,
    part: ScopePart,
}

/// What a scope adds to names.
#[derive(Clone, Copy)]
enum ScopePart {
    Named(DwarfReader),
    UnnamedNamespace,
    /// A class without a name, as that of a lambda, and its number among those of the scope.
    UnnamedType(u32),
    Function(UnitOffset),
}

/// Whether a function of this language may be in a scope that its name lacks.
pub(super) fn is_scoped(language: Option<DwLang>) -> bool {
    matches!(
        language,
        // Split units have it elsewhere.
        None | Some(
            constants::DW_LANG_C_plus_plus
                | constants::DW_LANG_C_plus_plus_03
                | constants::DW_LANG_C_plus_plus_11
                | constants::DW_LANG_C_plus_plus_14
                | constants::DW_LANG_C_plus_plus_17
                | constants::DW_LANG_C_plus_plus_20
        )
    )
}

impl ScopedNames {
    /// Reads the entries of a unit. Those of a damaged unit are read up to the damage.
    pub(super) fn of(unit: UnitRef<'_, DwarfReader>) -> Self {
        let mut found = Self::default();
        let mut open: Vec<(isize, usize)> = Vec::new();
        let mut unnamed: FxHashMap<Option<usize>, u32> = FxHashMap::default();
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            perfuse_stopping::checkpoint();
            let depth = entry.depth();
            while open.last().is_some_and(|(outer, _)| *outer >= depth) {
                open.pop();
            }
            let parent = open.last().map(|(_, scope)| *scope);
            let name = string(unit, entry, constants::DW_AT_name);
            // Some compilers name the class of a lambda.
            let own_name = name.filter(|name| !name.slice().starts_with(b"<lambda"));
            let part = match entry.tag() {
                constants::DW_TAG_subprogram => {
                    if let (Some(parent), Some(_)) = (parent, name)
                        && string(unit, entry, constants::DW_AT_linkage_name).is_none()
                    {
                        found.of_function.insert(entry.offset(), parent);
                    }
                    ScopePart::Function(entry.offset())
                }
                constants::DW_TAG_namespace => name.map_or(ScopePart::UnnamedNamespace, ScopePart::Named),
                constants::DW_TAG_class_type
                | constants::DW_TAG_structure_type
                | constants::DW_TAG_union_type => own_name.map_or_else(
                    || {
                        let number = unnamed.entry(parent).or_default();
                        *number = number.saturating_add(1);
                        ScopePart::UnnamedType(*number)
                    },
                    ScopePart::Named,
                ),
                _ => continue,
            };
            open.push((depth, found.scopes.len()));
            found.scopes.push(Scope { parent, part });
        }
        found
    }

    /// The whole name of the function that an entry refers to, an inlined call for example; `None` where it is the one that the linker
    /// has, or what DWARF states.
    pub(super) fn find(&self, unit: UnitRef<'_, DwarfReader>, entry: UnitOffset) -> Option<String> {
        let (name, is_linked) = self.whole(unit, entry, MAX_NESTED)?;
        (!is_linked && name.len() <= MAX_NAME_BYTES).then_some(name)
    }

    /// The whole name of a function, and whether the linker has it, with parameters then.
    fn whole(
        &self,
        unit: UnitRef<'_, DwarfReader>,
        mut at: UnitOffset,
        nested: usize,
    ) -> Option<(String, bool)> {
        for _ in 0..MAX_REFERENCES {
            let entry = unit.entry(at).ok()?;
            if let Some(name) = string(unit, &entry, constants::DW_AT_linkage_name) {
                let name = text(name)?;
                return Some((demangle(&name).unwrap_or(name), true));
            }
            if let Some(name) = string(unit, &entry, constants::DW_AT_name) {
                let name = text(name)?;
                let Some(&scope) = self.of_function.get(&at) else { return Some((name, false)) };
                let unnamed = if name.starts_with("operator()") { "lambda" } else { "unnamed type" };
                return Some((format!("{}::{name}", self.scope(unit, scope, unnamed, nested)?), false));
            }
            let origin = reference(&entry, constants::DW_AT_abstract_origin);
            at = origin.or_else(|| reference(&entry, constants::DW_AT_specification))?;
        }
        None
    }

    /// The name of a scope with those around it. `unnamed` is what it is called where it is a class without a name.
    fn scope(
        &self,
        unit: UnitRef<'_, DwarfReader>,
        innermost: usize,
        unnamed: &str,
        nested: usize,
    ) -> Option<String> {
        let mut parts = Vec::new();
        let mut next = Some(innermost);
        while let Some(scope) = next.and_then(|at| self.scopes.get(at)) {
            next = scope.parent;
            parts.push(match scope.part {
                ScopePart::Named(name) => text(name)?,
                ScopePart::UnnamedNamespace => "(anonymous namespace)".to_owned(),
                ScopePart::UnnamedType(number) => {
                    format!("{{{}#{number}}}", if parts.is_empty() { unnamed } else { "unnamed type" })
                }
                ScopePart::Function(entry) => {
                    let (name, is_linked) = self.whole(unit, entry, nested.checked_sub(1)?)?;
                    next = None;
                    if is_linked { name } else { format!("{name}()") }
                }
            });
            if parts.len() > MAX_SCOPES || parts.iter().map(String::len).sum::<usize>() > MAX_NAME_BYTES {
                return None;
            }
        }
        parts.reverse();
        Some(parts.join("::"))
    }
}

/// The entry of the same unit that an attribute refers to.
pub(super) fn reference(entry: &DebugEntry, name: DwAt) -> Option<UnitOffset> {
    match entry.attr_value(name)? {
        gimli::AttributeValue::UnitRef(offset) => Some(offset),
        _ => None,
    }
}

fn string(unit: UnitRef<'_, DwarfReader>, entry: &DebugEntry, name: DwAt) -> Option<DwarfReader> {
    unit.attr_string(entry.attr_value(name)?).ok()
}

fn text(name: DwarfReader) -> Option<String> {
    (name.len() <= MAX_PART_BYTES).then(|| String::from_utf8_lossy(name.slice()).into_owned())
}
