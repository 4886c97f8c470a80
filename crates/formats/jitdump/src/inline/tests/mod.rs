//! Tests of extension records. Inputs are built byte by byte, without the layouts under test.

mod conversion;
mod laws;
mod layouts;
mod refusals;

use perfuse_wire::Endian;

/// Bytes in a byte order.
pub struct Bytes(pub Vec<u8>, pub Endian);

impl Bytes {
    pub fn new(endian: Endian) -> Self {
        Self(Vec::new(), endian)
    }

    pub fn u32(mut self, values: &[u32]) -> Self {
        for value in values {
            match self.1 {
                Endian::Little => self.0.extend(value.to_le_bytes()),
                Endian::Big => self.0.extend(value.to_be_bytes()),
            }
        }
        self
    }

    pub fn u64(mut self, values: &[u64]) -> Self {
        for value in values {
            match self.1 {
                Endian::Little => self.0.extend(value.to_le_bytes()),
                Endian::Big => self.0.extend(value.to_be_bytes()),
            }
        }
        self
    }

    pub fn text(mut self, text: &str) -> Self {
        self.0.extend(text.as_bytes());
        self
    }
}

pub const BOTH: [Endian; 2] = [Endian::Little, Endian::Big];

const NONE: u32 = u32::MAX;

/// `outer` in a.js calls `mid` at 11:3, which calls `leaf` (b.js) at 21:5; the code of leaf has two ranges.
///
/// ```text
/// 0x00 outer 10:1 | 0x10 mid 20:1 | 0x18 leaf 30:1 | 0x20 mid 22:1 | 0x28 leaf 31:2 | 0x30 outer 12:1 | 0x40 end
/// ```
pub fn dialect_a(endian: Endian) -> Vec<u8> {
    Bytes::new(endian)
        .u32(&[2, 12, 3, 16, 3, 2, 3, 6])
        .text("a.js\0b.js\0\0\0")
        .text("outer\0mid\0leaf\0\0")
        .u32(&[0, 0, 9, 0, 0]) // outer a.js 9:1
        .u32(&[1, 0, 19, 4, 0]) // mid a.js 19:5
        .u32(&[2, 1, 29, 0, 1]) // leaf b.js 29:1
        .u32(&[0, 1, 1, 11, 2]) // mid, called at 11:3
        .u32(&[1, 2, 2, 21, 4]) // leaf, called at 21:5, two ranges
        .u32(&[0x10, 0x20])
        .u32(&[0x18, 8])
        .u32(&[0x28, 8])
        .u32(&[0, 0, 10, 0])
        .u32(&[0x10, 0, 20, 0])
        .u32(&[0x18, 1, 30, 0])
        .u32(&[0x20, 0, 22, 0])
        .u32(&[0x28, 1, 31, 1])
        .u32(&[0x30, 0, 12, 0])
        .0
}

/// The same as dialect B, at 0x7000; the two ranges of leaf are two positions of one call.
pub fn dialect_b(endian: Endian) -> Vec<u8> {
    Bytes::new(endian)
        .u64(&[0x7000, 6, 8, 5])
        .u32(&[0, 0, 0x10, 2, 0x18, 4, 0x20, 5, 0x28, 7, 0x30, 1])
        .u32(&[NONE, 0, 3, 9, 1, 10, 1]) // 0: outer 10:1
        .u32(&[NONE, 0, 3, 9, 1, 12, 1]) // 1: outer 12:1
        .u32(&[6, 1, 3, 19, 5, 20, 1]) // 2: mid 20:1
        .u32(&[6, 1, 3, 19, 5, 21, 5]) // 3: mid at its call of leaf
        .u32(&[3, 2, 4, 29, 1, 30, 1]) // 4: leaf 30:1
        .u32(&[6, 1, 3, 19, 5, 22, 1]) // 5: mid 22:1
        .u32(&[NONE, 0, 3, 9, 1, 11, 3]) // 6: outer at its call of mid
        .u32(&[3, 2, 4, 29, 1, 31, 2]) // 7: leaf 31:2
        .text("outer\0mid\0leaf\0a.js\0b.js\0")
        .0
}

/// The calls as dialect C, at 0x7000.
pub fn dialect_c(endian: Endian) -> Vec<u8> {
    Bytes::new(endian)
        .u64(&[0x7000, 3])
        .u64(&[0x7010, 0x7030])
        .u32(&[0, 11, 3, 0])
        .text("mid\0a.js\0")
        .u64(&[0x7018, 0x7020])
        .u32(&[0, 21, 5, 1])
        .text("leaf\0a.js\0")
        .u64(&[0x7028, 0x7030])
        .u32(&[0, 21, 5, 1])
        .text("leaf\0a.js\0")
        .0
}

/// The stack at 0x7018 as dialect D, innermost frame first.
pub fn dialect_d(endian: Endian) -> Vec<u8> {
    Bytes::new(endian)
        .u64(&[0x7018, 3])
        .u32(&[30, 1])
        .text("leaf\0b.js\0")
        .u32(&[21, 5])
        .text("mid\0a.js\0")
        .u32(&[11, 3])
        .text("outer\0a.js\0")
        .0
}

pub fn tier(endian: Endian) -> Vec<u8> {
    Bytes::new(endian).u32(&[0x5046_5452, 1]).u64(&[0x7000]).u32(&[3]).text("Baseline\0").0
}

pub fn embedded(endian: Endian) -> Vec<u8> {
    Bytes::new(endian).u32(&[0x5046_5346, 1]).u64(&[6]).text("a.ir\0").text("v0 = 1").0
}
