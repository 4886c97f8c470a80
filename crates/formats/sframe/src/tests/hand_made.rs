//! Sections assembled byte by byte, without the layouts and the writer under test.

/// Version 2 for amd64: functions that all share the same rows `sp+8`, each of 3 bytes.
pub fn version2(num_functions: u32, num_rows: u32) -> Vec<u8> {
    let mut bytes = vec![0xe2, 0xde, 2, 1, 3, 0, 0xf8, 0];
    for field in [num_functions, num_functions * num_rows, num_rows * 6, 0, num_functions * 20] {
        bytes.extend(field.to_le_bytes());
    }
    for index in 0..num_functions {
        for field in [0x1000 + index * 16, 16, 0, num_rows] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend([2, 0, 0, 0]);
    }
    for row in 0..num_rows {
        bytes.extend(row.to_le_bytes());
        bytes.extend([0x03, 8]);
    }
    bytes
}

/// Version 3 for amd64 with a DEFAULT, a FLEX, a signal and a PCMASK function.
pub fn version3() -> Vec<u8> {
    let attributes_and_rows: [&[u8]; 4] = [
        // 2 rows: sp+8; sp+16 with the frame pointer at cfa-16
        &[2, 0, 0, 0, 0, 0, 0x03, 8, 1, 0x05, 16, 0xf0],
        // FLEX, 2 rows: r10+0; (fp-8) with a fixed return address and the frame pointer at (fp+0)
        &[2, 0, 0, 1, 0, 0, 0x05, 10 << 3 | 1, 0, 4, 0x0a, 6 << 3 | 3, 0xf8, 0, 6 << 3 | 3, 0],
        // a signal frame, 1 row: the outermost frame
        &[1, 0, 0x80, 0, 0, 0, 0x00],
        // repeats every 16 bytes, 2 rows: sp+8, sp+16
        &[2, 0, 0x10, 0, 16, 0, 0x03, 8, 11, 0x03, 16],
    ];
    let rows_bytes: usize = attributes_and_rows.iter().map(|block| block.len()).sum();
    let mut bytes = vec![0xe2, 0xde, 3, 5, 3, 0, 0xf8, 0];
    for field in [4, 7, rows_bytes as u32, 0, 4 * 16] {
        bytes.extend(field.to_le_bytes());
    }
    let mut offset = 0u32;
    for (index, block) in (0u64..).zip(attributes_and_rows) {
        let field = 28 + index * 16;
        bytes.extend((0x1000 + index * 0x40).wrapping_sub(field).to_le_bytes());
        bytes.extend(0x30u32.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        offset += block.len() as u32;
    }
    attributes_and_rows.iter().for_each(|block| bytes.extend(*block));
    bytes
}

/// A shared object with only a PT_GNU_SFRAME segment, loaded to 0x2000.
pub fn elf(section: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    for field in [0u64, 64, 0] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(0u32.to_le_bytes());
    for field in [64u16, 56, 1, 64, 0, 0] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(0x6474_e554u32.to_le_bytes());
    bytes.extend(4u32.to_le_bytes());
    // The segment is longer than the section, as GNU ld makes it.
    let size = section.len() as u64 + 16;
    for field in [120u64, 0x2000, 0x2000, size, size, 8] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(section);
    bytes.resize(bytes.len() + 16, 0);
    bytes
}
