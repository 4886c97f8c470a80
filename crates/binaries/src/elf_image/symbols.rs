use object::elf::{STB_LOCAL, STT_FUNC};

use super::Error;
use super::container::SectionIndex;
use super::section::{Encoding, Section};
use super::strings::StringTable;

/// The symbol table and its strings. Symbols are local: code of several tiers shares a name.
#[derive(Debug)]
pub(super) struct Symbols {
    pub table: Section,
    pub strings: StringTable,
}

impl Symbols {
    pub fn new(encoding: Encoding) -> Self {
        let mut table = Section::new(encoding);
        table.bytes.resize(len_symbol(encoding), 0);
        Self { table, strings: StringTable::new(".strtab") }
    }

    pub fn add(&mut self, name: &str, address: u64, size: u64, section: SectionIndex) -> Result<(), Error> {
        let name = self.strings.intern(name)?;
        let info = STB_LOCAL.0 << 4 | STT_FUNC.0;
        let table = &mut self.table;
        table.u32(name);
        if table.encoding.is_64 {
            table.append(&[info, 0]);
            table.u16(section as u16);
            table.u64(address);
            table.u64(size);
        } else {
            table.word(address);
            table.word(size);
            table.append(&[info, 0]);
            table.u16(section as u16);
        }
        Ok(())
    }
}

pub(super) fn len_symbol(encoding: Encoding) -> usize {
    if encoding.is_64 { 24 } else { 16 }
}
