//! How to unwind through a piece of code.

use perfuse_wire::Endian;

use super::JitDump;
use super::index::Code;
use super::records::UnwindingInfo;

/// What a JIT_CODE_UNWINDING_INFO says of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwinding<'a> {
    /// `.eh_frame`.
    pub eh_frame: &'a [u8],
    /// Address that its relative pointers take it to have.
    pub address: u64,
    /// Whether it is of this code alone; else of all code of an object file, by address.
    pub is_own: bool,
}

/// `.eh_frame_hdr` with an absolute pointer to `.eh_frame` (LLVM ORC): version, encoding, two more encodings, pointer.
const ABSOLUTE: [u8; 2] = [0x00, 0x04];

impl JitDump {
    /// What the dump says of unwinding through a piece of code; `None` where nothing.
    #[must_use]
    pub fn unwinding(&self, id: u32) -> Option<Unwinding<'_>> {
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
        Some(Unwinding { eh_frame, address, is_own: unwind.code == id })
    }
}
