//! Sections assembled here by hand, byte by byte.

use crate::unwind::cfi::{Index, Section};
use crate::unwind::module::CodeFrames;
use crate::unwind::{Base, Machine, Origin, Rule};

/// A CIE of amd64 with that augmentation and its data, code alignment 1, data alignment -8, return address in column 16, and
/// `CFA = rsp + 8, ra at CFA - 8`.
fn cie(augmentation: &[u8], data: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0, 1];
    body.extend(augmentation);
    body.extend([0, 1, 0x78, 16, data.len() as u8]);
    body.extend(data);
    body.extend([0x0c, 7, 8, 0x90, 1]);
    entry(body)
}

fn entry(mut body: Vec<u8>) -> Vec<u8> {
    while !body.len().is_multiple_of(4) {
        body.push(0);
    }
    let mut whole = (body.len() as u32).to_le_bytes().to_vec();
    whole.extend(body);
    whole
}

/// An FDE at an offset of the section, for a function so far from its own field.
fn fde(at: usize, start_from_field: i32, size: u32, instructions: &[u8]) -> Vec<u8> {
    let mut body = (at as u32 + 4).to_le_bytes().to_vec();
    body.extend(start_from_field.to_le_bytes());
    body.extend(size.to_le_bytes());
    body.push(0);
    body.extend(instructions);
    entry(body)
}

/// `push rbp` at 0, `mov rbp, rsp` at 1.
const WITH_FRAME_POINTER: [u8; 10] = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0, 0];

fn of<'a>(bytes: &'a [u8], header: Option<(&'a [u8], u64)>) -> Section<'a> {
    let (text, big_endian, machine, origin) = (0, false, Machine::Amd64, Origin::EhFrame);
    Section { bytes, address: 0x5000, header, text, is_eh: true, big_endian, machine, origin }
}

fn two_functions() -> Vec<u8> {
    let mut bytes = cie(b"zR", &[0x1b]);
    let first = bytes.len();
    // The field lies eight bytes into the entry.
    bytes.extend(fde(first, 0x1000 - (0x5000 + first as i32 + 8), 0x20, &WITH_FRAME_POINTER));
    let second = bytes.len();
    bytes.extend(fde(second, 0x1100 - (0x5000 + second as i32 + 8), 0x10, &[0x07, 16]));
    bytes
}

#[test]
fn rows_become_steps() {
    let bytes = two_functions();
    let section = of(&bytes, None);
    let step = |address| section.step(address, &Index::new());
    let first = step(0x1000).unwrap();
    assert_eq!(first.cfa, Rule::Is(Base::Register(7), 8));
    assert_eq!(first.rules.to_vec(), [(16, Rule::At(Base::Cfa, -8))]);
    let inside = step(0x1010).unwrap();
    assert_eq!(inside.cfa, Rule::Is(Base::Register(6), 16));
    assert!(inside.rules.contains(&(6, Rule::At(Base::Cfa, -16))));
    assert_eq!(step(0x1020), None, "behind the function");
    assert!(step(0x1100).unwrap().is_outermost(16), "its return address is undefined");
}

#[test]
fn the_search_table_is_believed_as_far_as_it_is_right() {
    let bytes = two_functions();
    let first = cie(b"zR", &[0x1b]).len() as i32;
    let mut header = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0];
    // Loaded to 0x6000; it knows of the first function only.
    header.extend((0x1000i32 - 0x6000).to_le_bytes());
    header.extend((0x5000i32 + first - 0x6000).to_le_bytes());
    let section = of(&bytes, Some((&header, 0x6000)));
    assert!(section.step(0x1004, &Index::new()).is_some());
    assert!(section.step(0x1100, &Index::new()).is_some(), "found among all entries");
    for cut in 0..header.len() {
        let section = of(&bytes, Some((&header[..cut], 0x6000)));
        assert!(section.step(0x1004, &Index::new()).is_some(), "{cut} bytes of it");
    }
}

/// V8's entry is for a place where the code is not, and says of an exception table that there is none.
#[test]
fn code_of_a_dump_is_unwound_by_offset() {
    let mut bytes = cie(b"zLR", &[0xff, 0x1b]);
    let at = bytes.len();
    bytes.extend(fde(at, 0, 0x20, &WITH_FRAME_POINTER));
    let own = CodeFrames::new(&bytes, 0x1000, 0x1020, true, false);
    let step = own.step(0x10, Machine::Amd64).unwrap();
    assert_eq!((step.origin, step.cfa), (Origin::JitDump, Rule::Is(Base::Register(6), 16)));
    assert_eq!(own.step(0x20, Machine::Amd64), None, "behind the function");
    let shared = CodeFrames::new(&bytes, 0x1000, 0x1020, false, false);
    assert_eq!(shared.step(0x10, Machine::Amd64), None, "it is about another address");
}

#[test]
fn any_flipped_byte_is_survived() {
    let bytes = two_functions();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut broken = bytes.clone();
            broken[at] ^= 1 << bit;
            let section = of(&broken, None);
            for address in [0, 0x1000, 0x1010, 0x1105, u64::MAX] {
                let _ = section.step(address, &Index::new());
            }
            let _ = CodeFrames::new(&broken, 0x1000, u64::MAX, true, false).step(4, Machine::Amd64);
        }
    }
}
