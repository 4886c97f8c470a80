//! Unwinding information of a code object, from its JIT_CODE_UNWINDING_INFO.

use perfuse_tables::CodeUnwinding;
use perfuse_wire::Endian;

use super::JitDump;
use super::index::Code;
use super::records::UnwindingInfo;

/// `.eh_frame_hdr` with an absolute pointer to `.eh_frame` (LLVM ORC): version, encoding, two more encodings, pointer.
const ABSOLUTE: [u8; 2] = [0x00, 0x04];

impl JitDump {
    /// Unwinding information of a code object, by its number in the index; `None` where the dump has none.
    #[must_use]
    pub fn unwinding(&self, id: u32) -> Option<CodeUnwinding<'_>> {
        let index = self.index();
        let code: &Code = index.codes.get(id as usize)?;
        let unwind = index.unwinds.get(code.unwind as usize)?;
        let record = index.record_at(&self.shared.source, unwind.offset, unwind.index)?;
        let (header, eh_frame) = UnwindingInfo::decode(record.cursor()).ok()?.parts();
        let absolute = match header {
            [1, encoding, _, _, rest @ ..] if ABSOLUTE.contains(encoding) => rest.first_chunk::<8>(),
            _ => None,
        };
        let address = match (absolute, index.endian) {
            (Some(bytes), Endian::Little) => u64::from_le_bytes(*bytes),
            (Some(bytes), Endian::Big) => u64::from_be_bytes(*bytes),
            // Writers count on the file that `perf inject` makes of it: the code, then at eight bytes `.eh_frame`.
            (None, _) => code.start.checked_add(code.size)?.checked_next_multiple_of(8)?,
        };
        Some(CodeUnwinding {
            eh_frame,
            address,
            code_address: code.start,
            is_own: unwind.code == id,
            big_endian: index.endian == Endian::Big,
        })
    }
}
