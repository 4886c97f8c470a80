//! The symbols of an ELF file.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use object::read::elf::{ElfFile, FileHeader};
use object::{Endianness, File, Object, ObjectSection};
use rustc_hash::FxHashSet;

use super::address_space::AddressSpace;
use super::dwarf::has_dwarf;
use super::elf_symbols::{ElfSymbol, ElfSymbols, name_at, strings_range};
use super::image::Image;
use super::plt::{PltStubs, StubTarget};

/// A program, a library or a kernel module, with the file that has its symbols.
#[derive(Debug)]
pub(crate) struct ElfModule {
    pub(crate) image: Arc<Image>,
    pub(crate) space: AddressSpace,
    /// The separate debug file, where there is one.
    pub(crate) debug_image: Option<Arc<Image>>,
    /// One that has every function; or that of `.gnu_debugdata`, and the exported functions.
    tables: Vec<SymbolTable>,
    /// Whether there are symbols in `.gnu_debugdata` that cannot be read.
    is_mini_damaged: bool,
    plt: OnceLock<PltStubs>,
    /// Names of static functions that other functions have, too.
    shared_names: OnceLock<FxHashSet<Box<[u8]>>>,
}

/// A symbol table that is used.
#[derive(Debug)]
struct SymbolTable {
    symbols: ElfSymbols,
    image: Arc<Image>,
    strings: Range<usize>,
    /// A `.symtab`, which has every function; `.dynsym` has only those that other modules may call.
    is_complete: bool,
}

/// A symbol that covers an address.
#[derive(Debug)]
pub(crate) struct CoveringSymbol<'a> {
    pub(crate) address: u64,
    pub(crate) name: Cow<'a, [u8]>,
    /// Whether the table states its size, so that it certainly covers the address.
    pub(crate) is_sized: bool,
}

impl ElfModule {
    /// Whether its file or its debug file became shorter while it was read.
    pub(crate) fn is_cut(&self) -> bool {
        self.image.is_cut() || self.debug_image.as_ref().is_some_and(|image| image.is_cut())
    }

    /// Reads the symbols of an image, or of its debug file where it has been stripped.
    ///
    /// # Errors
    /// The reader's message for headers that are damaged.
    pub(crate) fn read(image: Arc<Image>, debug_image: Option<Arc<Image>>) -> object::Result<Self> {
        let space = match image.elf()? {
            File::Elf32(file) => AddressSpace::of(&file),
            File::Elf64(file) => AddressSpace::of(&file),
            _ => AddressSpace::Segments(Vec::new()),
        };
        let complete = |image: &Arc<Image>| SymbolTable::read(image, &space, TableKind::All);
        let mut tables: Vec<_> =
            complete(&image).or_else(|| complete(debug_image.as_ref()?)).into_iter().collect();
        let mut is_mini_damaged = false;
        if tables.is_empty() {
            let mini = image.mini_debug_info();
            is_mini_damaged = mini.is_err();
            tables.extend(mini.ok().flatten().and_then(|mini| complete(&Arc::new(mini))));
            tables.extend(SymbolTable::read(&image, &space, TableKind::Exported));
        }
        Ok(Self {
            image,
            space,
            debug_image,
            tables,
            is_mini_damaged,
            plt: OnceLock::new(),
            shared_names: OnceLock::new(),
        })
    }

    /// The function that covers an address, with its table: one of a known size, then the one that starts last.
    fn covering(&self, address: u64) -> Option<(&SymbolTable, &ElfSymbol)> {
        let found = self.tables.iter().rev().filter_map(|table| Some((table, table.symbols.find(address)?)));
        found.max_by_key(|(_, symbol)| (symbol.size != 0, symbol.address))
    }

    /// The function at an address, or the stub that calls one.
    pub(crate) fn symbol(&self, address: u64) -> Option<CoveringSymbol<'_>> {
        self.function(address).or_else(|| self.stub(address))
    }

    fn function(&self, address: u64) -> Option<CoveringSymbol<'_>> {
        let (table, found) = self.covering(address)?;
        let strings = table.image.get(table.strings.clone()).unwrap_or_default();
        let name = name_at(strings, found.name).into();
        Some(CoveringSymbol { address: found.address, name, is_sized: found.size != 0 })
    }

    /// Whether several functions have a name, as static functions of several sources do.
    pub(crate) fn shares_name(&self, name: &[u8]) -> bool {
        let all = || {
            let of_table = |table: &SymbolTable| {
                let strings = table.image.get(table.strings.clone()).unwrap_or_default();
                table.symbols.shared_names(strings).into_iter().map(Box::from).collect::<Vec<_>>()
            };
            self.tables.iter().flat_map(of_table).collect()
        };
        self.shared_names.get_or_init(all).contains(name)
    }

    fn stub(&self, address: u64) -> Option<CoveringSymbol<'_>> {
        let plt = self.plt.get_or_init(|| match self.image.elf() {
            Ok(File::Elf32(file)) => PltStubs::read(&file),
            Ok(File::Elf64(file)) => PltStubs::read(&file),
            _ => PltStubs::default(),
        });
        let (address, target) = plt.find(address)?;
        let name = match target {
            StubTarget::Dynamic(name) => {
                let name = name_at(self.image.get(plt.strings.clone()).unwrap_or_default(), name);
                [name, b"@plt"].concat()
            }
            StubTarget::Resolver(by) => [&*self.function(by)?.name, b"@plt"].concat(),
            StubTarget::Loader => b".plt".to_vec(),
        };
        Some(CoveringSymbol { address, name: name.into(), is_sized: true })
    }

    /// First address of the function or stub at an address, and the first one after it.
    pub(crate) fn extent(&self, address: u64) -> Option<Range<u64>> {
        if let Some((table, found)) = self.covering(address) {
            return Some(found.address..table.symbols.end(found));
        }
        let stub = self.stub(address)?.address;
        Some(stub..self.plt.get()?.end(address)?)
    }

    /// The bytes of a range of addresses, and the ELF machine; `None` where the file does not contain all of them.
    pub(crate) fn bytes(&self, range: Range<u64>) -> Option<(Vec<u8>, u16)> {
        if !matches!(self.space, AddressSpace::Segments(_)) {
            return None;
        }
        let elf = self.image.elf().ok()?;
        let len = range.end.checked_sub(range.start)?;
        let find = |section: object::Section<'_, '_>| {
            section.data_range(range.start, len).ok().flatten().map(<[u8]>::to_vec)
        };
        let bytes = elf.sections().find_map(find)?;
        let machine = match &elf {
            File::Elf32(file) => file.elf_header().e_machine(file.endian()),
            File::Elf64(file) => file.elf_header().e_machine(file.endian()),
            _ => return None,
        };
        Some((bytes, machine.0))
    }

    /// The reason why [`Self::symbol`] finds nothing.
    pub(crate) fn why_no_symbol(&self) -> &'static str {
        if self.is_mini_damaged {
            "the module's file has only its exported symbols: its section .gnu_debugdata cannot be unpacked"
        } else if self.tables.is_empty() {
            "the module has no symbol table"
        } else if self.tables.iter().any(|table| table.is_complete) {
            "no symbol covers this address"
        } else {
            "no symbol covers this address; the module's file has only its exported symbols"
        }
    }

    /// The file that has the DWARF, where one has.
    pub(crate) fn dwarf_image(&self) -> Option<&Arc<Image>> {
        let mut images = std::iter::once(&self.image).chain(&self.debug_image);
        images.find(|image| image.elf().is_ok_and(|elf| has_dwarf(&elf)))
    }
}

/// Whether an image lacks its full symbol table or, where requested, DWARF: then a debug file is searched.
pub(crate) fn is_stripped(elf: &File<'_>, with_dwarf: bool) -> bool {
    elf.symbol_table().is_none() || (with_dwarf && !has_dwarf(elf))
}

/// Which symbol table of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TableKind {
    /// `.symtab`.
    All,
    /// `.dynsym`.
    Exported,
}

impl SymbolTable {
    fn read(image: &Arc<Image>, space: &AddressSpace, table: TableKind) -> Option<Self> {
        match image.elf().ok()? {
            File::Elf32(file) => Self::read_kind(&file, image, space, table),
            File::Elf64(file) => Self::read_kind(&file, image, space, table),
            _ => None,
        }
    }

    fn read_kind<'data, Elf: FileHeader<Endian = Endianness>>(
        file: &ElfFile<'data, Elf>,
        image: &Arc<Image>,
        space: &AddressSpace,
        which: TableKind,
    ) -> Option<Self> {
        let table = match which {
            TableKind::All => file.elf_symbol_table(),
            TableKind::Exported => file.elf_dynamic_symbol_table(),
        };
        let strings = strings_range(file, table)?;
        let symbols = ElfSymbols::read(file, table, space, image.get(strings.clone())?);
        (!symbols.is_empty()).then(|| Self {
            symbols,
            image: Arc::clone(image),
            strings,
            is_complete: which == TableKind::All,
        })
    }
}
