//! A small program put together byte by byte, so that each of its fields can be wrong.

/// Address of the code, whose functions are 0x20 bytes apart.
pub const TEXT: u64 = 0x1000;
/// Address of the map, in whose 32-byte entries addresses are relative.
pub const MAP: u64 = 0x2000;
/// Address of the index of functions.
pub const INDEX: u64 = 0x3000;

const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;

/// A section: name, type, flags, address and bytes.
pub struct Section {
    pub name: &'static str,
    pub kind: u32,
    pub flags: u64,
    pub address: u64,
    pub bytes: Vec<u8>,
}

/// An entry of the map with relative addresses.
pub fn entry(at: usize, sled: u64, function: u64, kind: u8, version: u8) -> [u8; 32] {
    let field = MAP + 32 * at as u64;
    let mut entry = [0; 32];
    entry[..8].copy_from_slice(&sled.wrapping_sub(field).to_le_bytes());
    entry[8..16].copy_from_slice(&function.wrapping_sub(field + 8).to_le_bytes());
    entry[16..19].copy_from_slice(&[kind, 1, version]);
    entry
}

/// The map of functions with an entry and an exit each.
pub fn map(num_functions: usize) -> Vec<u8> {
    let sleds = |function: usize| {
        let start = TEXT + 0x20 * function as u64;
        [entry(2 * function, start, start, 0, 2), entry(2 * function + 1, start + 0x10, start, 1, 2)]
    };
    (0..num_functions).flat_map(sleds).flatten().collect()
}

/// An index of functions: the first sled and the number of sleds of each.
pub fn index(functions: &[(u64, u64)]) -> Vec<u8> {
    let entry = |(at, &(first, count)): (usize, &(u64, u64))| {
        let begin = (MAP + 32 * first).wrapping_sub(INDEX + 16 * at as u64);
        [begin.to_le_bytes(), count.to_le_bytes()].concat()
    };
    functions.iter().enumerate().flat_map(entry).collect()
}

/// The sections of a program with these functions: code, map, index, symbols.
pub fn sections(num_functions: usize) -> Vec<Section> {
    let code = vec![0x90; 0x20 * num_functions];
    let functions: Vec<(u64, u64)> = (0..num_functions as u64).map(|function| (2 * function, 2)).collect();
    vec![
        Section { name: ".text", kind: 1, flags: 6, address: TEXT, bytes: code },
        Section { name: "xray_instr_map", kind: 1, flags: 2, address: MAP, bytes: map(num_functions) },
        Section { name: "xray_fn_idx", kind: 1, flags: 2, address: INDEX, bytes: index(&functions) },
    ]
}

/// The file with these sections: ELF of 64 bits, little-endian, for x86-64. Type 1 is not linked, 3 is.
pub fn elf(e_type: u16, sections: &[Section]) -> Vec<u8> {
    let mut file = vec![0; HEADER_BYTES];
    let mut names = vec![0];
    let mut headers = vec![0; SECTION_BYTES];
    let strings = Section { name: ".shstrtab", kind: 3, flags: 0, address: 0, bytes: Vec::new() };
    for section in sections.iter().chain([&strings]) {
        let name = names.len() as u32;
        names.extend(section.name.bytes().chain([0]));
        // The names are the last section.
        let bytes = if section.name == strings.name { &names } else { &section.bytes };
        headers.extend([name, section.kind].map(u32::to_le_bytes).concat());
        let places = [section.flags, section.address, file.len() as u64, bytes.len() as u64];
        headers.extend(places.map(u64::to_le_bytes).concat());
        headers.extend([[0u8; 8], 1u64.to_le_bytes(), [0; 8]].concat());
        file.extend(bytes);
    }
    let num_sections = sections.len() as u16 + 2;
    let headers_at = file.len() as u64;
    file.extend(headers);
    file[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file[16..20].copy_from_slice(&[e_type, 62].map(u16::to_le_bytes).concat());
    file[20..24].copy_from_slice(&1u32.to_le_bytes());
    file[40..48].copy_from_slice(&headers_at.to_le_bytes());
    let sizes = [HEADER_BYTES as u16, 0, 0, SECTION_BYTES as u16, num_sections, num_sections - 1];
    file[52..64].copy_from_slice(&sizes.map(u16::to_le_bytes).concat());
    file
}

/// Offset in the file of a section of the same name.
pub fn offset_of(sections: &[Section], name: &str) -> usize {
    let before = sections.iter().take_while(|section| section.name != name);
    HEADER_BYTES + before.map(|section| section.bytes.len()).sum::<usize>()
}
