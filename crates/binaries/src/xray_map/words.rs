use object::{Endian, Endianness};

/// How a file writes addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    pub(super) endian: Endianness,
    /// 4 or 8.
    pub(super) size: u8,
}

impl Words {
    pub(super) fn bytes(self) -> usize {
        usize::from(self.size)
    }

    /// The field at an offset, as a number without sign.
    pub(super) fn read(self, bytes: &[u8], offset: usize) -> Option<u64> {
        let field = bytes.get(offset..)?;
        Some(match self.size {
            4 => self.endian.read_u32(*field.first_chunk()?).into(),
            _ => self.endian.read_u64(*field.first_chunk()?),
        })
    }

    /// The bits of a sum that an address has.
    pub(super) fn wrap(self, sum: u64) -> u64 {
        if self.size == 4 { sum & u64::from(u32::MAX) } else { sum }
    }
}
