//! Buffers for the bytes of sections, in the byte order and class of the image.

use super::image::Error;

/// Byte order and class of the image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    pub big_endian: bool,
    pub is_64: bool,
}

impl Encoding {
    pub fn address_bytes(self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }
}

/// The bytes of one section, gathered in the image's byte order and class.
#[derive(Debug)]
pub(super) struct SectionBuffer {
    pub bytes: Vec<u8>,
    pub encoding: Encoding,
}

impl SectionBuffer {
    pub fn new(encoding: Encoding) -> Self {
        Self { bytes: Vec::new(), encoding }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes.extend(if self.encoding.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes.extend(if self.encoding.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes.extend(if self.encoding.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
    }

    /// An address, offset or size: 4 bytes or 8, by class. The regions keep the addresses of a 32-bit image below 4 GiB.
    pub fn word(&mut self, value: u64) {
        if self.encoding.is_64 { self.u64(value) } else { self.u32(value as u32) }
    }

    pub fn uleb(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub fn sleb(&mut self, mut value: i64) {
        loop {
            let byte = value as u8 & 0x7f;
            value >>= 7;
            if (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0) {
                return self.bytes.push(byte);
            }
            self.bytes.push(byte | 0x80);
        }
    }

    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Its length, as the 32-bit DWARF format and section headers count it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] past 4 GiB.
    pub fn offset(&self, name: &'static str) -> Result<u32, Error> {
        u32::try_from(self.bytes.len()).map_err(|_| Error::TooLarge(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_encoded_as_gimli_reads_them() {
        for value in [0, 1, 63, 64, 127, 128, 0x3fff, 0x4000, u64::MAX] {
            let mut section = SectionBuffer::new(Encoding { big_endian: false, is_64: true });
            section.uleb(value);
            section.sleb(value as i64);
            section.sleb((value as i64).wrapping_neg());
            let mut reader = gimli::EndianSlice::new(&section.bytes, gimli::LittleEndian);
            use gimli::Reader;
            assert_eq!(reader.read_uleb128(), Ok(value));
            assert_eq!(reader.read_sleb128(), Ok(value as i64));
            assert_eq!(reader.read_sleb128(), Ok((value as i64).wrapping_neg()));
            assert!(reader.is_empty());
        }
    }
}
