//! An open dump: its bytes, its index, and the unwinding information of a piece of code.

use std::sync::{Arc, OnceLock};

use perfuse_recording::{PassPages, Source};
use perfuse_tables::CodeUnwinding;
use perfuse_wire::{Endian, ParseError};

use super::build_index::IndexBuilder;
use super::consts::JITDUMP_FLAGS_ARCH_TIMESTAMP;
use super::index::{DumpIndex, LoadedCode};
use super::reader::{self, FileStart, Reader};
use super::records::UnwindingInfoRecord;

/// An open dump.
#[derive(Debug)]
pub struct JitDump {
    contents: Arc<DumpContents>,
}

/// Bytes and index of a dump: what its tables keep alive.
#[derive(Debug)]
pub struct DumpContents {
    /// The bytes.
    pub source: Arc<Source>,
    start: FileStart,
    index: OnceLock<DumpIndex>,
}

impl DumpContents {
    /// The index of the dump; the first call reads the whole file.
    #[must_use]
    pub fn index(&self) -> &DumpIndex {
        self.index.get_or_init(|| build_index(&self.source, self.start))
    }
}

/// Reads all records of a file and builds its index.
fn build_index(source: &Arc<Source>, start: FileStart) -> DumpIndex {
    let mut builder = IndexBuilder::new(start);
    let mut pages = PassPages::default();
    let mut reader = Reader::new(source, start.endian, start.first_record, 0);
    let mut is_reserved = false;
    while let Some(step) = reader.next() {
        builder.add(&step, reader.index());
        is_reserved = is_reserved || builder.reserve_for(source.len());
        pages.release_before(source, reader.offset());
    }
    pages.release_rest(source);
    builder.finish(source, &source.path)
}

/// Encodings of an absolute pointer to `.eh_frame` in `.eh_frame_hdr` (LLVM ORC). The header is: version, encoding, two more
/// encodings, pointer.
const ABSOLUTE_ENCODINGS: [u8; 2] = [0x00, 0x04];

impl JitDump {
    /// Reads the header.
    ///
    /// # Errors
    /// When the file does not begin with a JITDUMP header.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        let start = reader::read_start(&source)?;
        Ok(Self { contents: Arc::new(DumpContents { source, start, index: OnceLock::new() }) })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &Arc<Source> {
        &self.contents.source
    }

    /// The index of the dump; the first call reads the whole file.
    #[must_use]
    pub fn index(&self) -> &DumpIndex {
        self.contents.index()
    }

    /// A shared handle to bytes and index, for tables that outlive this value.
    #[must_use]
    pub fn share(&self) -> Arc<DumpContents> {
        Arc::clone(&self.contents)
    }

    /// The header, and where records begin.
    #[must_use]
    pub fn start(&self) -> FileStart {
        self.contents.start
    }

    /// Whether time stamps are the architecture's counter: the header's flag, unless reserved flags are set too.
    #[must_use]
    pub fn has_arch_timestamps(&self) -> bool {
        self.contents.start.header.flags == JITDUMP_FLAGS_ARCH_TIMESTAMP
    }

    /// The unwinding information of the code with this index in [`DumpIndex::codes`]; `None` where the dump has none.
    #[must_use]
    pub fn unwinding(&self, code_index: u32) -> Option<CodeUnwinding<'_>> {
        let index = self.index();
        let code: &LoadedCode = index.codes.get(code_index as usize)?;
        let unwind = index.unwind_records.get(code.unwind as usize)?;
        let record = index.record_at(&self.contents.source, unwind.offset, unwind.index)?;
        let (header, eh_frame) = UnwindingInfoRecord::decode(record.cursor()).ok()?.parts();
        let absolute = match header {
            [1, encoding, _, _, rest @ ..] if ABSOLUTE_ENCODINGS.contains(encoding) => {
                rest.first_chunk::<8>()
            }
            _ => None,
        };
        let address = match (absolute, index.endian) {
            (Some(bytes), Endian::Little) => u64::from_le_bytes(*bytes),
            (Some(bytes), Endian::Big) => u64::from_be_bytes(*bytes),
            // Writers assume the layout of the ELF file that `perf inject` makes of it: the code, then, aligned to eight
            // bytes, `.eh_frame`.
            (None, _) => code.start.checked_add(code.size)?.checked_next_multiple_of(8)?,
        };
        Some(CodeUnwinding {
            eh_frame,
            address,
            code_address: code.start,
            is_own: unwind.code == code_index,
            big_endian: index.endian == Endian::Big,
        })
    }
}
