//! The skew of debug entries: some producers add the size of an ELF header to every address.

use perfuse_wire::machine_pointer_bytes;

use super::consts::{ELF32_HEADER_SKEW, ELF64_HEADER_SKEW};
use super::functions::NO_INDEX;
use super::index::DumpIndex;
use super::producer::Producer;

/// Number of debug records that the skew is determined from.
pub const RECORDS_OF_SKEW: usize = 256;

/// What debug records show about the skew: the producer adds it if the first entry of no record is at a smaller offset in its
/// code (V8's damaged records may have unreadable later entries), and either the producer is known for it, or entries are
/// past the end of their code, or the first entries of most records are at exactly that offset.
#[derive(Clone, Copy, Debug)]
pub struct SkewEvidence {
    /// The size of an ELF header.
    header_bytes: u64,
    /// Number of records whose first entry may be skewed.
    records: u32,
    /// Number of those whose first entry is at the start of the code, if it is skewed.
    exact: u32,
    /// Whether the producer is known, or entries are past the end of their code.
    is_certain: bool,
    /// Whether a first entry is not skewed.
    is_contradicted: bool,
}

impl SkewEvidence {
    /// No evidence but the producer and the machine.
    pub fn new(index: &DumpIndex, path: &str) -> Self {
        let is_32_bit = machine_pointer_bytes(index.header.elf_mach) == Some(4);
        Self {
            header_bytes: if is_32_bit { ELF32_HEADER_SKEW } else { ELF64_HEADER_SKEW },
            records: 0,
            exact: 0,
            is_certain: matches!(index.producer, Producer::V8 | Producer::Dart)
                || path.contains("llvm-IR-jit-"),
            is_contradicted: false,
        }
    }

    /// Adds the entries of a record: offsets from the start of their code, and lines. Records whose first entry is outside of
    /// the code show nothing.
    pub fn add(&mut self, code_bytes: u64, entries: impl IntoIterator<Item = (u64, u32)>) {
        let mut entries = entries.into_iter();
        let Some((first, _)) = entries.next() else { return };
        self.is_contradicted |= first < self.header_bytes;
        if first > code_bytes.saturating_add(self.header_bytes) {
            return;
        }
        self.records = self.records.saturating_add(1);
        self.exact = self.exact.saturating_add(u32::from(first == self.header_bytes));
        let is_past =
            |(offset, line): (u64, u32)| offset > code_bytes && offset <= i64::MAX as u64 && line > 0;
        self.is_certain = self.is_certain || entries.any(is_past);
    }

    /// Whether no further record can change the result.
    pub fn is_contradicted(&self) -> bool {
        self.is_contradicted
    }

    /// The skew; 0 for none.
    pub fn skew(&self) -> u64 {
        let is_skewed = self.is_certain || self.exact.saturating_mul(2) >= self.records;
        if self.records > 0 && !self.is_contradicted && is_skewed { self.header_bytes } else { 0 }
    }
}

/// The skew of a dump's debug entries, 0 for none, and whether further records cannot change it.
pub fn of_dump(index: &DumpIndex, data: &[u8], path: &str) -> (u64, bool) {
    let mut evidence = SkewEvidence::new(index, path);
    let mut num_records = 0usize;
    for code in
        index.codes.iter().filter(|code| code.debug != NO_INDEX && code.size > 0).take(RECORDS_OF_SKEW)
    {
        num_records = num_records.saturating_add(1);
        let Some((_, info)) = index.debug_info(data, code) else { continue };
        let entries = info.iter_entries().map_while(Result::ok);
        evidence.add(
            code.size,
            entries.map(|entry| (entry.fixed.code_addr.wrapping_sub(code.start), entry.fixed.line)),
        );
        if evidence.is_contradicted() {
            return (0, true);
        }
    }
    (evidence.skew(), num_records == RECORDS_OF_SKEW)
}
