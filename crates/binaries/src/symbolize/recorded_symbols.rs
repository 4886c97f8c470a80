//! Functions of a file, as a recording lists them.

use perfuse_addresses::recorded_symbols::{RecordedFile, RecordedSymbol, SymbolBase};

use super::symbol_index::{SymbolIndex, SymbolSpan};

/// The functions of a [`RecordedFile`] by address.
#[derive(Debug)]
pub(crate) struct RecordedSymbols {
    file: RecordedFile,
    index: SymbolIndex,
}

impl RecordedSymbols {
    pub(crate) fn new(mut file: RecordedFile) -> Self {
        file.symbols.sort_by_key(|symbol| symbol.start);
        let span = |(symbol, number): (&RecordedSymbol, u32)| SymbolSpan {
            start: symbol.start,
            end: symbol.start.saturating_add(symbol.size),
            // The latest start counts, as in simpleperf.
            rank: number,
            symbol: number,
        };
        let index = SymbolIndex::new(file.symbols.iter().zip(0..).map(span));
        Self { file, index }
    }

    pub(crate) fn base(&self) -> SymbolBase {
        self.file.base
    }

    pub(crate) fn has_call_addresses(&self) -> bool {
        self.file.has_call_addresses
    }

    pub(crate) fn find(&self, position: u64) -> Option<&RecordedSymbol> {
        self.file.symbols.get(self.index.find(position)? as usize)
    }
}
