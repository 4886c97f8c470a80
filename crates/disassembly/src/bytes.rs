//! A listing of bytes, for code of an instruction set without a decoder.

use std::fmt::Write;

use crate::{Flow, Instruction};

/// Bytes of a line.
const LINE_BYTES: usize = 8;

/// Lists code as bytes.
pub(crate) struct ByteLister<'a> {
    code: &'a [u8],
    offset: usize,
}

impl<'a> ByteLister<'a> {
    pub(crate) fn new(code: &'a [u8]) -> Self {
        Self { code, offset: 0 }
    }

    pub(crate) fn next(&mut self, text: &mut String) -> Option<Instruction> {
        let rest = self.code.get(self.offset..)?;
        let line = rest.get(..rest.len().min(LINE_BYTES)).filter(|line| !line.is_empty())?;
        write_bytes(line, text);
        let offset = self.offset;
        self.offset = offset.saturating_add(line.len());
        Some(Instruction { offset, size: line.len(), flow: Flow::Bad, target: None, constant: None })
    }
}

/// Writes bytes as `.byte 0x1, 0x2`.
pub(crate) fn write_bytes(bytes: &[u8], text: &mut String) {
    let mut separator = ".byte ";
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}0x{byte:x}");
        separator = ", ";
    }
}
