//! The functions of an ELF symbol table.

use std::ops::Range;

use object::read::elf::{ElfFile, FileHeader, SectionHeader, Sym, SymbolTable};
use object::{Endianness, SymbolIndex as ElfIndex, elf};
use rustc_hash::{FxHashMap, FxHashSet};

use super::address_space::AddressSpace;
use super::symbol_index::{SymbolIndex, SymbolSpan, by_familiarity};

/// The functions of one symbol table, sorted by address.
#[derive(Debug, Default)]
pub(crate) struct ElfSymbols {
    index: SymbolIndex,
    symbols: Vec<ElfSymbol>,
}

/// A function: its address, and the offset of its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElfSymbol {
    pub(crate) address: u64,
    /// 0 where none is recorded.
    pub(crate) size: u64,
    /// End of its section, which a symbol without a size cannot pass.
    section_end: u64,
    /// Offset into the table's strings.
    pub(crate) name: u32,
    /// Which of several symbols at one address is preferred: the highest. The lowest bit is 0 for local ones.
    merit: u8,
}

impl ElfSymbols {
    /// Reads the functions of a table whose names are in `strings`.
    pub(crate) fn read<'data, Elf: FileHeader<Endian = Endianness>>(
        file: &ElfFile<'data, Elf>,
        table: &SymbolTable<'data, Elf>,
        space: &AddressSpace,
        strings: &[u8],
    ) -> Self {
        let sections = text_sections(file, space);
        let machine = file.elf_header().e_machine(file.endian());
        let read = FunctionReader { endian: file.endian(), machine, sections, strings };
        let mut symbols = Vec::with_capacity(table.len());
        symbols.extend(
            table.enumerate().filter_map(|(index, symbol)| read.function::<Elf>(table, index, symbol)),
        );
        symbols.sort_unstable_by(|left, right| {
            let order = (left.address, left.merit).cmp(&(right.address, right.merit));
            order.then_with(|| by_familiarity(name_at(strings, left.name), name_at(strings, right.name)))
        });
        Self { index: SymbolIndex::new(spans(&symbols)), symbols }
    }

    pub(crate) fn find(&self, address: u64) -> Option<&ElfSymbol> {
        self.symbols.get(self.index.find(address)? as usize)
    }

    /// First address after a function: by its size, else the next symbol or the end of its section.
    pub(crate) fn end(&self, of: &ElfSymbol) -> u64 {
        if of.size != 0 {
            return of.address.saturating_add(of.size).min(of.section_end);
        }
        let after = self.symbols.partition_point(|symbol| symbol.address <= of.address);
        self.symbols.get(after).map_or(of.section_end, |next| next.address.min(of.section_end))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Names of static functions that functions at other addresses have, too.
    pub(crate) fn shared_names<'a>(&self, strings: &'a [u8]) -> FxHashSet<&'a [u8]> {
        let mut addresses: FxHashMap<&[u8], u64> = FxHashMap::default();
        let mut shared = FxHashSet::default();
        for symbol in self.symbols.iter().filter(|symbol| symbol.is_local()) {
            perfuse_stopping::checkpoint();
            let name = name_at(strings, symbol.name);
            if *addresses.entry(name).or_insert(symbol.address) != symbol.address {
                shared.insert(name);
            }
        }
        for symbol in self.symbols.iter().filter(|symbol| !symbol.is_local()) {
            perfuse_stopping::checkpoint();
            // Names of C++ and Rust state what is static: these are of one function.
            let name = strings.get(symbol.name as usize..).unwrap_or_default();
            if name.starts_with(b"_Z") || name.starts_with(b"_R") {
                continue;
            }
            let name = name_at(strings, symbol.name);
            if addresses.get(name).is_some_and(|&other| other != symbol.address) {
                shared.insert(name);
            }
        }
        shared
    }
}

impl ElfSymbol {
    /// Whether it is visible only in the object file that defines it, as static functions are.
    fn is_local(&self) -> bool {
        self.merit & 1 == 0
    }
}

/// The bytes of a name in a string table.
pub(crate) fn name_at(strings: &[u8], offset: u32) -> &[u8] {
    let tail = strings.get(offset as usize..).unwrap_or_default();
    tail.get(..memchr::memchr(0, tail).unwrap_or(tail.len())).unwrap_or_default()
}

/// The range of the file with a symbol table's strings.
pub(crate) fn strings_range<'data, Elf: FileHeader<Endian = Endianness>>(
    file: &ElfFile<'data, Elf>,
    table: &SymbolTable<'data, Elf>,
) -> Option<Range<usize>> {
    let section = file.elf_section_table().section(table.string_section()).ok()?;
    let (offset, size) = section.file_range(file.endian())?;
    let start = usize::try_from(offset).ok()?;
    Some(start..start.checked_add(usize::try_from(size).ok()?)?)
}

/// Address ranges of executable sections by section index.
fn text_sections<Elf: FileHeader<Endian = Endianness>>(
    file: &ElfFile<'_, Elf>,
    space: &AddressSpace,
) -> Vec<Option<TextSection>> {
    let endian = file.endian();
    let text = |(index, section): (usize, &Elf::SectionHeader)| {
        if section.sh_flags(endian).0 & elf::SHF_EXECINSTR.0 == 0 {
            return None;
        }
        let bias = space.section_start(index)?;
        let start = bias.checked_add(section.sh_addr(endian).into())?;
        Some(TextSection { bias, end: start.checked_add(section.sh_size(endian).into())? })
    };
    file.elf_section_table().iter().enumerate().map(text).collect()
}

/// An executable section.
#[derive(Clone, Copy)]
struct TextSection {
    /// Added to a symbol's value for its address.
    bias: u64,
    end: u64,
}

/// Decides which symbols are functions.
struct FunctionReader<'data> {
    endian: Endianness,
    machine: elf::Machine,
    sections: Vec<Option<TextSection>>,
    strings: &'data [u8],
}

impl FunctionReader<'_> {
    /// The symbol as a function: typed as one, or a label in hand-written assembly.
    fn function<'data, Elf: FileHeader<Endian = Endianness>>(
        &self,
        table: &SymbolTable<'data, Elf>,
        index: ElfIndex,
        symbol: &Elf::Sym,
    ) -> Option<ElfSymbol> {
        perfuse_stopping::checkpoint();
        let kind = symbol.st_type();
        let is_function = kind == elf::STT_FUNC || kind == elf::STT_GNU_IFUNC;
        let name = symbol.st_name(self.endian);
        if name == 0 || !(is_function || kind == elf::STT_NOTYPE) {
            return None;
        }
        let section = table.symbol_section(self.endian, symbol, index).ok()??;
        let section = self.sections.get(section.0).copied().flatten()?;
        let size: u64 = symbol.st_size(self.endian).into();
        if !is_function && (self.is_mapping_symbol(name) || symbol.st_visibility() != elf::STV_DEFAULT) {
            return None;
        }
        let mut address = Into::<u64>::into(symbol.st_value(self.endian)).checked_add(section.bias)?;
        if self.machine == elf::EM_ARM && is_function {
            // The lowest bit distinguishes Thumb code from Arm code.
            address &= !1;
        }
        let bind = symbol.st_bind();
        let merit = [size != 0, is_function, bind != elf::STB_WEAK, bind != elf::STB_LOCAL];
        let merit = merit.iter().fold(0, |merit, &better| merit << 1 | u8::from(better));
        (address < section.end).then_some(ElfSymbol { address, size, section_end: section.end, name, merit })
    }

    /// `$x`, `$d.12`, `$t`: where code and data alternate on Arm and RISC-V.
    fn is_mapping_symbol(&self, name: u32) -> bool {
        matches!(self.machine, elf::EM_ARM | elf::EM_AARCH64 | elf::EM_RISCV)
            && self.strings.get(name as usize) == Some(&b'$')
    }
}

/// The range that each symbol covers. Of overlapping ones the later start wins, then the later in the order. One without a
/// size extends to the next address that has a symbol; within a sized function, or at its start, it is only a label.
fn spans(symbols: &[ElfSymbol]) -> impl Iterator<Item = SymbolSpan> + '_ {
    let mut sized_end = 0;
    let mut next = 0;
    symbols.iter().enumerate().map(move |(index, symbol)| {
        perfuse_stopping::checkpoint();
        while symbols.get(next).is_some_and(|later| later.address <= symbol.address) {
            next = next.saturating_add(1);
        }
        let is_after_sized =
            || next.checked_sub(1).and_then(|last| symbols.get(last)).is_some_and(|last| last.size != 0);
        let end = if symbol.size != 0 {
            let end = symbol.address.saturating_add(symbol.size);
            sized_end = sized_end.max(end);
            end
        } else if symbol.address < sized_end || is_after_sized() {
            symbol.address
        } else {
            symbols.get(next).map_or(u64::MAX, |later| later.address).min(symbol.section_end)
        };
        let rank = index as u32;
        SymbolSpan { start: symbol.address, end, rank, symbol: rank }
    })
}
