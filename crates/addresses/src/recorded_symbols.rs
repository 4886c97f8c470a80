//! Functions of files as a recording itself lists them: recorders on phones note the names that their samples need.

/// A file that was mapped, with the functions that the recording notes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedFile {
    /// The path of its mappings.
    pub path: String,
    /// How addresses of its symbols are related to sampled ones.
    pub base: SymbolBase,
    /// Whether its frames are at their call and not after it, as those of interpreted code are.
    pub has_call_addresses: bool,
    /// Functions, in any order.
    pub symbols: Vec<RecordedSymbol>,
}

/// A function in a [`RecordedFile`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedSymbol {
    /// First address, in the terms of its file.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Name as its symbol table has it.
    pub name: String,
}

/// What the addresses of symbols are relative to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SymbolBase {
    /// Nothing: they are addresses in memory.
    #[default]
    Memory,
    /// The first byte of each mapping, which has this address.
    Mapping(u64),
    /// The first byte of the file, which has this address; it may be below 0, modulo 2^64.
    File(u64),
}

impl SymbolBase {
    /// A sampled address in the terms of the symbols, by the mapping that contains it.
    #[must_use]
    pub fn position(self, address: u64, mapping_start: u64, mapping_file_offset: u64) -> u64 {
        let into_mapping = address.wrapping_sub(mapping_start);
        match self {
            Self::Memory => address,
            Self::Mapping(base) => into_mapping.wrapping_add(base),
            Self::File(base) => into_mapping.wrapping_add(mapping_file_offset).wrapping_add(base),
        }
    }
}
