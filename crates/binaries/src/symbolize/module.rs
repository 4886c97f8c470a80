//! Names the addresses of a file, kernel or vdso.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use perfuse_addresses::recorded_symbols::RecordedFile;

use super::dwarf::{Dwarf, DwarfFrame};
use super::elf_module::{CoveringSymbol, ElfModule};
use super::image::Image;
use super::kallsyms::Kallsyms;
use super::names::{NameCache, SymbolName};
use super::recorded_symbols::RecordedSymbols;
use super::split_dwarf::SplitFiles;

/// A file, kernel or vdso that code was mapped from, with the names of its addresses.
pub struct Module {
    name: String,
    symbols: SymbolSource,
    dwarf: OnceLock<Option<Result<Mutex<Dwarf>, String>>>,
    with_dwarf: bool,
    debug_files: Option<DebugFiles>,
    names: Mutex<NameCache>,
}

/// Files that a module's debug information refers to.
pub(crate) struct DebugFiles {
    /// The one that it shares with other modules.
    pub(crate) supplement: Option<Arc<Image>>,
    /// Finds those that have the rest of its units.
    pub(crate) split: Arc<dyn SplitFiles>,
}

/// The source of a module's names.
#[derive(Debug)]
pub(crate) enum SymbolSource {
    Elf(Box<ElfModule>),
    Kallsyms(Kallsyms),
    /// A list in the recording itself.
    Recorded(RecordedSymbols),
    /// None, with the reason.
    None(Arc<str>),
}

/// The functions at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The function and the calls inlined into it, the outermost first; empty where there is no name.
    pub frames: Vec<SymbolFrame>,
    /// Address in the module's own symbol table, as `nm` and `addr2line` have it.
    pub relative_address: Option<u64>,
    /// First address of the symbol, in the same terms.
    pub symbol_address: Option<u64>,
    /// Whether other functions of the file have the symbol's name, from which its source file distinguishes it.
    pub shares_name: bool,
    /// The reason why there are no frames.
    pub unnamed_because: Option<Arc<str>>,
}

impl Resolved {
    /// Nothing, for a reason.
    fn unnamed(reason: Arc<str>) -> Self {
        Self { unnamed_because: Some(reason), ..Self::default() }
    }
}

/// The machine code of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCode {
    /// Link-time address of its first byte.
    pub address: u64,
    /// Its code.
    pub bytes: Vec<u8>,
    /// ELF machine of its file.
    pub machine: u16,
}

/// A function at an address, and the position in its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolFrame {
    /// Demangled name.
    pub name: Arc<str>,
    /// Name in the file, where that differs.
    pub linkage_name: Option<Arc<str>>,
    /// Source file.
    pub path: Option<Arc<str>>,
    /// Line, from 1; of the call for all frames but the innermost.
    pub line: Option<u32>,
    /// Column, from 1.
    pub column: Option<u32>,
}

impl Module {
    pub(crate) fn new(
        name: &str,
        symbols: SymbolSource,
        with_dwarf: bool,
        debug_files: Option<DebugFiles>,
    ) -> Self {
        let names = Mutex::default();
        Self { name: name.to_owned(), symbols, dwarf: OnceLock::new(), with_dwarf, debug_files, names }
    }

    /// A module that names nothing.
    pub(crate) fn unknown(name: &str, reason: impl Into<Arc<str>>) -> Self {
        Self::new(name, SymbolSource::None(reason.into()), false, None)
    }

    /// A file whose functions the recording itself lists.
    #[must_use]
    pub fn recorded(file: RecordedFile) -> Self {
        let path = file.path.clone();
        Self::new(&path, SymbolSource::Recorded(RecordedSymbols::new(file)), false, None)
    }

    /// Whether its return addresses are those of the calls themselves, as in interpreted code.
    #[must_use]
    pub fn has_call_addresses(&self) -> bool {
        matches!(&self.symbols, SymbolSource::Recorded(recorded) if recorded.has_call_addresses())
    }

    /// Its recorded name: a path, or `[kernel.kallsyms]`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file its code is in, on this machine; `None` for a kernel and where nothing was found.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.symbols {
            SymbolSource::Elf(elf) => Some(&elf.image.path),
            SymbolSource::Kallsyms(_) | SymbolSource::Recorded(_) | SymbolSource::None(_) => None,
        }
    }

    /// The separate debug file that was used.
    #[must_use]
    pub fn debug_file(&self) -> Option<PathBuf> {
        match &self.symbols {
            SymbolSource::Elf(elf) => elf.debug_image.as_ref().map(|image| image.path.clone()),
            SymbolSource::Kallsyms(_) | SymbolSource::Recorded(_) | SymbolSource::None(_) => None,
        }
    }

    /// The reason why no address of this module can be named; `None` where its symbols were found.
    #[must_use]
    pub fn unnamed_because(&self) -> Option<Arc<str>> {
        match &self.symbols {
            SymbolSource::None(reason) => Some(Arc::clone(reason)),
            SymbolSource::Elf(_) | SymbolSource::Kallsyms(_) | SymbolSource::Recorded(_) => None,
        }
    }

    /// Its bytes and those of its debug file.
    pub fn images(&self) -> Option<(Arc<Image>, Option<Arc<Image>>)> {
        match &self.symbols {
            SymbolSource::Elf(elf) => Some((Arc::clone(&elf.image), elf.debug_image.clone())),
            SymbolSource::Kallsyms(_) | SymbolSource::Recorded(_) | SymbolSource::None(_) => None,
        }
    }

    /// The link-time address of a [`Module::position`].
    pub fn address(&self, position: u64) -> Option<u64> {
        match &self.symbols {
            SymbolSource::Elf(elf) => elf.space.address(position),
            SymbolSource::Kallsyms(_) | SymbolSource::Recorded(_) | SymbolSource::None(_) => None,
        }
    }

    /// The position of a sampled address, for [`Module::resolve`]: its offset in the file, by the mapping it was sampled in.
    /// For a kernel, which is not mapped from a file, the address itself.
    #[must_use]
    pub fn position(&self, address: u64, mapping_start: u64, mapping_file_offset: u64) -> u64 {
        let is_absolute = match &self.symbols {
            SymbolSource::Elf(elf) => elf.space.is_absolute(),
            SymbolSource::Kallsyms(kallsyms) => kallsyms.is_absolute(),
            SymbolSource::Recorded(recorded) => {
                return recorded.base().position(address, mapping_start, mapping_file_offset);
            }
            SymbolSource::None(_) => false,
        };
        if is_absolute {
            address
        } else {
            address.wrapping_sub(mapping_start).wrapping_add(mapping_file_offset)
        }
    }

    /// Names the code at an offset of the module's file ([`Module::position`]).
    ///
    /// A return address belongs to the instruction after the call: look up the byte before it.
    #[must_use]
    pub fn resolve(&self, position: u64) -> Resolved {
        self.resolve_many(&[position]).pop().unwrap_or_default()
    }

    /// [`Module::resolve`] for many offsets, in their order.
    #[must_use]
    pub fn resolve_many(&self, positions: &[u64]) -> Vec<Resolved> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.symbols {
            SymbolSource::Elf(elf) => {
                let dwarf = self.dwarf(elf).map(|dwarf| dwarf.lock().unwrap_or_else(PoisonError::into_inner));
                let resolve = |&position: &u64| resolve_elf(elf, dwarf.as_deref(), position, &mut names);
                let found = positions.iter().map(resolve).collect();
                match elf.is_cut() {
                    false => found,
                    true => {
                        let reason = names.text("the module's file became shorter while it was read");
                        vec![Resolved::unnamed(reason); positions.len()]
                    }
                }
            }
            SymbolSource::Kallsyms(kallsyms) => {
                positions.iter().map(|&position| resolve_kallsyms(kallsyms, position, &mut names)).collect()
            }
            SymbolSource::Recorded(recorded) => {
                positions.iter().map(|&position| resolve_recorded(recorded, position, &mut names)).collect()
            }
            SymbolSource::None(reason) => {
                vec![Resolved::unnamed(Arc::clone(reason)); positions.len()]
            }
        }
    }

    /// [`Module::resolve_many`] for link-time addresses.
    #[must_use]
    pub fn resolve_addresses(&self, addresses: &[u64]) -> Vec<Resolved> {
        let SymbolSource::Elf(elf) = &self.symbols else { return self.resolve_many(addresses) };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let dwarf = self.dwarf(elf).map(|dwarf| dwarf.lock().unwrap_or_else(PoisonError::into_inner));
        addresses.iter().map(|&address| resolve_address(elf, dwarf.as_deref(), address, &mut names)).collect()
    }

    /// The machine code of the function that contains a link-time address.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn function_code(&self, address: u64) -> Result<FunctionCode, Arc<str>> {
        let elf = match &self.symbols {
            SymbolSource::Elf(elf) => elf,
            SymbolSource::Kallsyms(_) => return Err("kallsyms has names of the kernel, and no code".into()),
            SymbolSource::Recorded(_) => {
                return Err("the recording has names of its functions, and no code".into());
            }
            SymbolSource::None(reason) => return Err(Arc::clone(reason)),
        };
        let range = elf.extent(address).ok_or_else(|| Arc::<str>::from(elf.why_no_symbol()))?;
        let (bytes, machine) =
            elf.bytes(range.clone()).ok_or_else(|| Arc::<str>::from("the file does not contain its code"))?;
        Ok(FunctionCode { address: range.start, bytes, machine })
    }

    /// The function that starts at each of these link-time addresses; `None` where no function is known to start there. Its
    /// position is that of its declaration, else of its first instruction.
    #[must_use]
    pub fn functions_at(&self, addresses: &[Option<u64>]) -> Vec<Option<SymbolFrame>> {
        let SymbolSource::Elf(elf) = &self.symbols else { return vec![None; addresses.len()] };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let dwarf = self.dwarf(elf).map(|dwarf| dwarf.lock().unwrap_or_else(PoisonError::into_inner));
        let function = |&address: &Option<u64>| function_at(elf, dwarf.as_deref(), address?, &mut names);
        addresses.iter().map(function).collect()
    }

    /// The address, for [`Module::functions_at`], of an offset in a section of a file that is not linked; `None` where the
    /// section has no code.
    #[must_use]
    pub fn section_address(&self, section: u32, offset: u64) -> Option<u64> {
        let SymbolSource::Elf(elf) = &self.symbols else { return None };
        elf.space.section_start(section as usize)?.checked_add(offset)
    }

    fn dwarf(&self, elf: &ElfModule) -> Option<&Mutex<Dwarf>> {
        let open = || {
            let files = self.debug_files.as_ref()?;
            let (program, supplement) = (&elf.image.path, files.supplement.as_ref());
            let dwarf = Dwarf::open(program, elf.dwarf_image()?, supplement, Arc::clone(&files.split));
            Some(dwarf.map(Mutex::new))
        };
        self.dwarf.get_or_init(|| self.with_dwarf.then(open).flatten()).as_ref()?.as_ref().ok()
    }

    /// The file whose debug information cannot be used, or not all of it, and the reason as a sentence, once an address was
    /// looked up.
    pub(crate) fn unusable_debug_info(&self) -> Option<(&Path, String)> {
        let SymbolSource::Elf(elf) = &self.symbols else { return None };
        let path = &elf.dwarf_image()?.path;
        let reason = match self.dwarf.get()?.as_ref()? {
            Ok(dwarf) => {
                let missing = dwarf.lock().unwrap_or_else(PoisonError::into_inner).missing()?;
                format!("is incomplete: {missing}")
            }
            Err(reason) => format!("is not used: {reason}"),
        };
        Some((path, format!("the debug information of {} {reason}", path.display())))
    }
}

fn resolve_elf(elf: &ElfModule, dwarf: Option<&Dwarf>, position: u64, names: &mut NameCache) -> Resolved {
    match elf.space.address(position) {
        Some(address) => resolve_address(elf, dwarf, address, names),
        None => Resolved::unnamed(names.text("the module's file has no code at this offset")),
    }
}

fn resolve_address(elf: &ElfModule, dwarf: Option<&Dwarf>, address: u64, names: &mut NameCache) -> Resolved {
    let symbol = elf.symbol(address);
    let mut found = FrameStack { frames: Vec::new(), names, nameless: None };
    if let Some(dwarf) = dwarf {
        dwarf.visit(address, |frame| found.push(frame));
    }
    let mut frames = found.finish(symbol.as_ref());
    frames.reverse();
    let unnamed_because = frames.is_empty().then(|| names.text(elf.why_no_symbol()));
    let has_path = frames.first().is_some_and(|outermost| outermost.path.is_some());
    let shares_name = has_path && symbol.as_ref().is_some_and(|symbol| elf.shares_name(&symbol.name));
    let symbol_address = symbol.map(|symbol| symbol.address);
    Resolved { frames, relative_address: Some(address), symbol_address, shares_name, unnamed_because }
}

fn function_at(
    elf: &ElfModule,
    dwarf: Option<&Dwarf>,
    address: u64,
    names: &mut NameCache,
) -> Option<SymbolFrame> {
    let symbol = elf.symbol(address).filter(|symbol| symbol.address == address);
    let declaration = dwarf.and_then(|dwarf| dwarf.declaration(address)).unwrap_or_default();
    let name = symbol.map(|symbol| symbol.name).or(declaration.name.map(Cow::Owned))?;
    let path = declaration.path.map(|path| names.text(&path));
    Some(SymbolFrame::new(names.name(&name), (path, declaration.line, declaration.column)))
}

fn resolve_kallsyms(kallsyms: &Kallsyms, position: u64, names: &mut NameCache) -> Resolved {
    let relative_address = Some(position);
    match kallsyms.find(position) {
        Some((start, name)) => {
            let frames = vec![SymbolFrame::new(names.name(name), PathLineColumn::default())];
            Resolved { frames, relative_address, symbol_address: Some(start), ..Resolved::default() }
        }
        None => {
            let unnamed_because = Some(names.text("no kernel symbol covers this address"));
            Resolved { relative_address, unnamed_because, ..Resolved::default() }
        }
    }
}

fn resolve_recorded(recorded: &RecordedSymbols, position: u64, names: &mut NameCache) -> Resolved {
    let relative_address = Some(position);
    match recorded.find(position) {
        Some(symbol) => {
            let name = names.name(symbol.name.as_bytes());
            let frames = vec![SymbolFrame::new(name, PathLineColumn::default())];
            Resolved { frames, relative_address, symbol_address: Some(symbol.start), ..Resolved::default() }
        }
        None => {
            let unnamed_because = Some(names.text("the recording lists no symbol at this address"));
            Resolved { relative_address, unnamed_because, ..Resolved::default() }
        }
    }
}

/// Frames at one address, from the innermost outwards.
struct FrameStack<'a> {
    frames: Vec<SymbolFrame>,
    names: &'a mut NameCache,
    /// Position in the latest frame, where that had no name.
    nameless: Option<PathLineColumn>,
}

/// Path, line and column.
type PathLineColumn = (Option<Arc<str>>, Option<u32>, Option<u32>);

impl FrameStack<'_> {
    fn push(&mut self, frame: DwarfFrame<'_>) {
        let path = frame.path.map(|path| self.names.text(path));
        let position = (path, frame.line, frame.column);
        match frame.name.filter(|name| !name.is_empty()) {
            Some(raw) => {
                let name = self.names.name(raw);
                self.frames.push(SymbolFrame::new(name, position));
                self.nameless = None;
            }
            // An inlined call without a name is skipped; the function itself has the name of its symbol.
            None => self.nameless = Some(position),
        }
    }

    fn finish(mut self, symbol: Option<&CoveringSymbol<'_>>) -> Vec<SymbolFrame> {
        let Some(symbol) = symbol else { return self.frames };
        let name = self.names.name(&symbol.name);
        match (self.nameless, self.frames.last_mut()) {
            // DWARF often has less: no class and parameters, no `.cold` and `.part.0`. Symbols agree with perf.
            (None, Some(function)) if symbol.is_sized => {
                (function.name, function.linkage_name) = (name.shown, name.linkage);
            }
            (None, Some(_)) => {}
            (position, _) => self.frames.push(SymbolFrame::new(name, position.unwrap_or_default())),
        }
        self.frames
    }
}

impl SymbolFrame {
    fn new(name: SymbolName, (path, line, column): PathLineColumn) -> Self {
        Self { name: name.shown, linkage_name: name.linkage, path, line, column }
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.unnamed_because();
        out.debug_struct("Module")
            .field("name", &self.name)
            .field("unnamed_because", &reason)
            .finish_non_exhaustive()
    }
}
