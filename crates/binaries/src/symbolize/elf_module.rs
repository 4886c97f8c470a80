//! The symbols of an ELF file.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use object::read::elf::{ElfFile, FileHeader};
use object::{Endianness, File, Object};

use super::address_space::AddressSpace;
use super::dwarf::has_dwarf;
use super::elf_symbols::{ElfSymbols, name_at, strings_range};
use super::image::Image;
use super::plt::{PltStubs, StubTarget};

/// A program, a library or a kernel module, with the file that has its symbols.
#[derive(Debug)]
pub(crate) struct ElfModule {
    pub(crate) image: Arc<Image>,
    pub(crate) space: AddressSpace,
    /// The separate debug file, where there is one.
    pub(crate) debug_image: Option<Arc<Image>>,
    symbols: SymbolTable,
    plt: OnceLock<PltStubs>,
}

/// The symbol table that is used.
#[derive(Debug)]
struct SymbolTable {
    symbols: ElfSymbols,
    image: Arc<Image>,
    strings: Range<usize>,
    /// `.symtab`, which has every function; `.dynsym` has only those that other modules may call.
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
        let complete = |image| SymbolTable::read(image, &space, TableKind::All);
        let symbols = complete(&image)
            .or_else(|| complete(debug_image.as_ref()?))
            .or_else(|| SymbolTable::read(&image, &space, TableKind::Exported))
            .unwrap_or_else(|| SymbolTable::none(&image));
        Ok(Self { image, space, debug_image, symbols, plt: OnceLock::new() })
    }

    /// The function at an address, or the stub that calls one.
    pub(crate) fn symbol(&self, address: u64) -> Option<CoveringSymbol<'_>> {
        self.function(address).or_else(|| self.stub(address))
    }

    fn function(&self, address: u64) -> Option<CoveringSymbol<'_>> {
        let table = &self.symbols;
        let found = table.symbols.find(address)?;
        let strings = table.image.get(table.strings.clone()).unwrap_or_default();
        let name = name_at(strings, found.name).into();
        Some(CoveringSymbol { address: found.address, name, is_sized: found.size != 0 })
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
                name_at(self.image.get(plt.strings.clone()).unwrap_or_default(), name).into()
            }
            StubTarget::Resolver(by) => self.function(by)?.name,
        };
        Some(CoveringSymbol { address, name: [&name, &b"@plt"[..]].concat().into(), is_sized: true })
    }

    /// The reason why [`Self::symbol`] finds nothing.
    pub(crate) fn why_no_symbol(&self) -> &'static str {
        if self.symbols.symbols.is_empty() {
            "the module has no symbol table"
        } else if self.symbols.is_complete {
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

    fn none(image: &Arc<Image>) -> Self {
        Self { symbols: ElfSymbols::default(), image: Arc::clone(image), strings: 0..0, is_complete: false }
    }
}
