//! Symbols: frames of one function in one tier are the same symbol, and so are unnamed addresses of one module.

use std::hash::Hash;

use perfuse_binaries::symbolize::kernel_module;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::columns::{Keys, Texts, numbers, text, wide_numbers};
use super::{CodeOrigin, StackError, StackTables};
use crate::NONE;
use crate::calls::is_call;

/// A name in a call tree. Texts are numbers into the texts of its [`CallSymbols`]; `u32::MAX` stands for none.
#[derive(Clone, Copy, Debug)]
pub struct CallSymbol {
    pub(super) name: u32,
    /// Symbols of one function in several tiers share this; a dense number.
    pub(super) group: u32,
    pub(super) function_id: u32,
    pub(super) module: u32,
    pub(super) kind: u32,
    pub(super) tier: u32,
    pub(super) path: u32,
    pub(super) line: u32,
    /// Column of the declaration.
    pub(super) column: u32,
    /// Whether path and line are those of the declaration; else they are of a sample in the body.
    pub(super) is_declaration: bool,
    pub(super) unnamed_because: u32,
    pub(super) origin: CodeOrigin,
    /// Origin of the code that it is in, also of a function that was inlined there.
    pub(super) code_origin: CodeOrigin,
}

/// The symbols of a profile, and the symbol of each frame.
#[derive(Clone, Debug, Default)]
pub struct CallSymbols {
    pub(super) texts: Texts,
    pub(super) symbols: Vec<CallSymbol>,
    /// Symbol of each row of `frames`, then one more for samples without any frame.
    pub(super) of_frame: Vec<u32>,
    /// Whether each row of `frames` is on a stack: others are of branches, and of data that was accessed.
    pub(super) on_stacks: Vec<bool>,
    pub(super) frame_keys: Option<Keys>,
    /// Functions of call traces, each with its symbol.
    traced: Vec<(u32, u32)>,
}

/// Name of the symbol for samples without frames.
pub(super) const NO_STACK: &str = "[no stack]";

impl CallSymbols {
    pub(crate) fn of(tables: &StackTables, by_line: bool) -> Result<Self, StackError> {
        let mut texts = Texts::default();
        let functions = FunctionSymbols::of(tables, &mut texts)?;
        let codes = CodeRows::of(tables, &mut texts)?;
        let mapping_keys = Keys::of(&numbers(&tables.mappings, "mappings", "mapping_id")?);
        let mapping_paths = text(&tables.mappings, "mappings", "path", &mut texts)?;

        let frames = &tables.frames;
        let function_ids = numbers(frames, "frames", "function_id")?;
        let code_ids = numbers(frames, "frames", "code_object_id")?;
        let mapping_ids = numbers(frames, "frames", "mapping_id")?;
        let depths = numbers(frames, "frames", "inline_depth")?;
        let lines = numbers(frames, "frames", "line")?;
        let paths = text(frames, "frames", "path", &mut texts)?;
        let kinds = text(frames, "frames", "kind", &mut texts)?;
        let reasons = text(frames, "frames", "unnamed_because", &mut texts)?;
        let unwound_by = text(frames, "frames", "unwound_by", &mut texts)?;

        // Growing step by step costs a small profile more than all else here: each step is of other pages.
        let num = functions.rows.len().min(kinds.len());
        let mut build = SymbolBuilder {
            texts,
            by_key: FxHashMap::with_capacity_and_hasher(num, FxBuildHasher),
            groups: FxHashMap::with_capacity_and_hasher(num, FxBuildHasher),
            symbols: Vec::with_capacity(num),
        };
        let jit = build.texts.id("jit");
        let mut traced = Vec::new();
        let mut of_frame = Vec::with_capacity(kinds.len().saturating_add(1));
        for (row, &kind) in kinds.iter().enumerate() {
            let at = |column: &[u32]| column.get(row).copied().unwrap_or(NONE);
            let code = codes.keys.row(at(&code_ids));
            let tier = codes.tiers.get(code as usize).copied().unwrap_or(NONE);
            let code_kind = codes.kinds.get(code as usize).copied().unwrap_or(NONE);
            let mapping =
                mapping_paths.get(mapping_keys.row(at(&mapping_ids)) as usize).copied().unwrap_or(NONE);
            let frame = FrameClass { kind, tier, code_kind, inlined: at(&depths) > 0 };
            let function_id = at(&function_ids);
            let symbol = match functions.rows.get(functions.keys.row(function_id) as usize).copied() {
                None => build.unnamed(frame, mapping, at(&reasons)),
                Some(mut declared) => {
                    // The declaration is often not recorded; a line in the body is the next best.
                    let line = (at(&paths), at(&lines));
                    if by_line && line.0 != NONE {
                        (declared.path, declared.line, declared.column) = (line.0, line.1, NONE);
                    } else if by_line && kind == jit {
                        // Where it was in its code is not known; at its declaration it was not.
                        (declared.line, declared.column) = (NONE, NONE);
                    }
                    if declared.module == NONE {
                        declared.module = mapping;
                    }
                    build.named(frame, declared, function_id, line)
                }
            };
            of_frame.push(symbol);
            let text = |id| build.texts.get(id).unwrap_or_default();
            if is_call(text(kind), text(at(&unwound_by)), at(&code_ids) != NONE) {
                traced.push((function_id, symbol));
            }
        }
        let kind = build.texts.id("unknown");
        let nothing = build.texts.id("no address was recorded");
        of_frame.push(build.labelled(
            FrameClass { kind, tier: NONE, code_kind: NONE, inlined: false },
            NO_STACK,
            NONE,
            nothing,
        ));
        let frame_keys = Keys::of(&numbers(frames, "frames", "frame_id")?);
        let mut on_stacks = vec![false; kinds.len()];
        for key in numbers(&tables.stacks, "stacks", "frame_id")? {
            if let Some(on_stack) = on_stacks.get_mut(frame_keys.row(key) as usize) {
                *on_stack = true;
            }
        }
        let frame_keys = Some(frame_keys);
        Ok(Self { texts: build.texts, symbols: build.symbols, of_frame, on_stacks, frame_keys, traced })
    }

    /// The symbols, in the order their numbers count.
    #[must_use]
    pub fn all(&self) -> &[CallSymbol] {
        &self.symbols
    }

    /// Name of a symbol.
    #[must_use]
    pub fn name(&self, symbol: u32) -> &str {
        self.symbols.get(symbol as usize).and_then(|symbol| self.texts.get(symbol.name)).unwrap_or_default()
    }

    /// Functions of call traces, each with its symbol.
    pub(crate) fn traced(&self) -> &[(u32, u32)] {
        &self.traced
    }

    /// Origin of a symbol's code.
    #[must_use]
    pub fn origin(&self, symbol: u32) -> CodeOrigin {
        self.symbols.get(symbol as usize).map_or(CodeOrigin::Unknown, |symbol| symbol.origin)
    }

    /// Tier of a symbol's code; the kind of its frames where it has none.
    #[must_use]
    pub fn tier_or_kind(&self, symbol: u32) -> &str {
        let Some(symbol) = self.symbols.get(symbol as usize) else { return "unknown" };
        self.texts.get(symbol.tier).or(self.texts.get(symbol.kind)).unwrap_or("unknown")
    }

    /// Adds a symbol with another name, that of the next frame that a transformation adds; module and kind are those of
    /// the symbol `like`.
    pub(super) fn add(&mut self, name: &str, like: u32) {
        let Some(&like) = self.symbols.get(like as usize) else { return };
        let group =
            self.symbols.iter().map(|symbol| symbol.group).max().map_or(0, |last| last.saturating_add(1));
        let name = self.texts.id(name);
        self.of_frame.push(self.symbols.len() as u32);
        let symbol =
            CallSymbol { name, group, unnamed_because: NONE, tier: NONE, path: NONE, line: NONE, ..like };
        self.symbols.push(symbol);
    }

    /// Symbol of samples without a frame.
    pub(super) fn no_stack(&self) -> u32 {
        self.of_frame.last().copied().unwrap_or(NONE)
    }
}

/// A row of `functions`, with texts as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct SymbolDeclaration {
    name: u32,
    module: u32,
    path: u32,
    line: u32,
    column: u32,
    /// The address of a function of a program, where others of it have the same name and no known source file.
    address: Option<u64>,
}

/// Table `functions`.
struct FunctionSymbols {
    keys: Keys,
    rows: Vec<SymbolDeclaration>,
}

impl FunctionSymbols {
    fn of(tables: &StackTables, texts: &mut Texts) -> Result<Self, StackError> {
        let module_keys = Keys::of(&numbers(&tables.modules, "modules", "module_id")?);
        let module_names = text(&tables.modules, "modules", "name", texts)?;
        let table = &tables.functions;
        let names = text(table, "functions", "name", texts)?;
        let modules = numbers(table, "functions", "module_id")?;
        let paths = text(table, "functions", "path", texts)?;
        let lines = numbers(table, "functions", "line")?;
        let columns = numbers(table, "functions", "column")?;
        let module = |key| module_names.get(module_keys.row(key) as usize).copied().unwrap_or(NONE);
        let at = |column: &[u32], row: usize| column.get(row).copied().unwrap_or(NONE);
        let row = |row: usize| SymbolDeclaration {
            name: at(&names, row),
            module: module(at(&modules, row)),
            path: at(&paths, row),
            line: at(&lines, row),
            column: at(&columns, row),
            address: None,
        };
        let keys = Keys::of(&numbers(table, "functions", "function_id")?);
        let mut rows: Vec<_> = (0..names.len()).map(row).collect();
        let module_kinds = text(&tables.modules, "modules", "kind", texts)?;
        let kinds_of_files = ["native", "kernel"].map(|kind| texts.id(kind));
        let is_of_file = |module: u32| {
            let kind = module_kinds.get(module_keys.row(module) as usize);
            kind.is_some_and(|kind| kinds_of_files.contains(kind))
        };
        let of_file =
            |(&row, &module): (&SymbolDeclaration, &u32)| is_of_file(module).then_some((row, module));
        let declared: Vec<_> = rows.iter().zip(&modules).map(of_file).collect();
        if !repeated(declared.iter().flatten()).is_empty() {
            // Constructors and destructors are one function with several symbols, each with a name of its own. Functions with one
            // name of their symbols are several.
            let symbols = text(table, "functions", "linkage_name", &mut Texts::default())?;
            let declared: Vec<_> =
                declared.iter().zip(symbols).map(|(one, symbol)| one.map(|one| (one, symbol))).collect();
            let several = repeated(declared.iter().flatten());
            let addresses = wide_numbers(table, "functions", "native_id")?;
            for ((row, one), address) in rows.iter_mut().zip(&declared).zip(addresses) {
                if one.as_ref().is_some_and(|one| several.contains(one)) {
                    row.address = address;
                }
            }
        }
        Ok(Self { keys, rows })
    }
}

/// The values that occur more than once.
fn repeated<T: Copy + Eq + Hash>(values: impl Iterator<Item = T>) -> FxHashSet<T> {
    let mut seen = FxHashSet::default();
    values.filter(|&value| !seen.insert(value)).collect()
}

/// Table `code_objects`.
struct CodeRows {
    keys: Keys,
    kinds: Vec<u32>,
    tiers: Vec<u32>,
}

impl CodeRows {
    fn of(tables: &StackTables, texts: &mut Texts) -> Result<Self, StackError> {
        let table = &tables.code_objects;
        Ok(Self {
            keys: Keys::of(&numbers(table, "code_objects", "code_object_id")?),
            kinds: text(table, "code_objects", "kind", texts)?,
            tiers: text(table, "code_objects", "tier", texts)?,
        })
    }
}

/// The part of a frame that distinguishes symbols of one function.
#[derive(Clone, Copy)]
struct FrameClass {
    kind: u32,
    tier: u32,
    code_kind: u32,
    inlined: bool,
}

/// Whether a line of a file may be one of a function itself. Compiled Java code has the lines of the methods that were inlined
/// into it, but not their names; the name of a file of Java is that of its class.
pub(super) fn may_be_of(function: &str, path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let Some(class_of_file) = file.strip_suffix(".java") else { return true };
    let method = function.split('(').next().unwrap_or(function);
    let Some((class, _)) = method.rsplit_once('.') else { return true };
    let outer = class.split('$').next().unwrap_or(class);
    let (package, name) = outer.rsplit_once('.').unwrap_or(("", outer));
    let folder = path.strip_suffix(file).unwrap_or_default().trim_end_matches('/').replace('/', ".");
    name == class_of_file && (folder.is_empty() || folder.ends_with(package))
}

/// Function (or label), kind, tier and code kind, inlined, reason.
type SymbolKey = (u32, u32, u32, u32, bool, u32);

/// Collects symbols, each once.
struct SymbolBuilder {
    texts: Texts,
    by_key: FxHashMap<SymbolKey, u32>,
    groups: FxHashMap<(SymbolDeclaration, bool), u32>,
    symbols: Vec<CallSymbol>,
}

impl SymbolBuilder {
    fn named(
        &mut self,
        frame: FrameClass,
        function: SymbolDeclaration,
        function_id: u32,
        body: (u32, u32),
    ) -> u32 {
        if self.texts.get(function.name).is_none_or(str::is_empty) {
            let (module, reason) = (function.module, self.texts.id("the name is empty"));
            return self.unnamed(frame, module, reason);
        }
        let is_declaration = function.path != NONE;
        let (path, line) = if is_declaration {
            (function.path, function.line)
        } else {
            let path = self.texts.get(body.0).unwrap_or_default();
            let is_own = self.texts.get(function.name).is_none_or(|name| may_be_of(name, path));
            if is_own { body } else { (NONE, NONE) }
        };
        let column = function.column;
        let symbol =
            CallSymbol { function_id, path, line, column, is_declaration, ..self.blank(frame, true) };
        self.symbol(frame, function, symbol)
    }

    fn unnamed(&mut self, frame: FrameClass, mapping: u32, reason: u32) -> u32 {
        let label = match self.texts.get(frame.kind) {
            Some("kernel") => {
                let module = self.texts.get(mapping).and_then(kernel_module);
                format!("[unknown] {}", module.as_deref().unwrap_or("kernel"))
            }
            Some("hypervisor") => "[unknown] hypervisor".to_owned(),
            Some("jit") => "[unknown] jit".to_owned(),
            _ => match self.texts.get(mapping) {
                Some(path) => format!("[unknown] {}", path.rsplit('/').next().unwrap_or(path)),
                None => "[unknown]".to_owned(),
            },
        };
        self.labelled(frame, &label, mapping, reason)
    }

    fn labelled(&mut self, frame: FrameClass, label: &str, module: u32, reason: u32) -> u32 {
        let name = self.texts.id(label);
        let function =
            SymbolDeclaration { name, module, path: NONE, line: NONE, column: NONE, address: None };
        self.symbol(frame, function, CallSymbol { unnamed_because: reason, ..self.blank(frame, false) })
    }

    fn blank(&self, frame: FrameClass, named: bool) -> CallSymbol {
        let text = |id| self.texts.get(id);
        let (kind, code_kind) =
            (text(frame.kind).unwrap_or_default(), text(frame.code_kind).unwrap_or_default());
        CallSymbol {
            name: NONE,
            group: NONE,
            function_id: NONE,
            module: NONE,
            kind: frame.kind,
            tier: frame.tier,
            path: NONE,
            line: NONE,
            column: NONE,
            is_declaration: false,
            unnamed_because: NONE,
            origin: CodeOrigin::of(kind, code_kind, text(frame.tier), frame.inlined, named),
            code_origin: CodeOrigin::of(kind, code_kind, text(frame.tier), false, named),
        }
    }

    fn symbol(&mut self, frame: FrameClass, function: SymbolDeclaration, symbol: CallSymbol) -> u32 {
        let next_group = self.groups.len() as u32;
        let named = symbol.function_id != NONE;
        let group = *self.groups.entry((function, named)).or_insert(next_group);
        let next = self.symbols.len() as u32;
        let key = (group, frame.kind, frame.tier, frame.code_kind, frame.inlined, symbol.unnamed_because);
        let number = *self.by_key.entry(key).or_insert(next);
        match self.symbols.get_mut(number as usize) {
            Some(known) if known.path == NONE => (known.path, known.line) = (symbol.path, symbol.line),
            Some(_) => {}
            None => self.symbols.push(CallSymbol {
                name: function.name,
                module: function.module,
                group,
                ..symbol
            }),
        }
        number
    }
}
