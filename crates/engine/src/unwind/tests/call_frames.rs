//! Sections assembled here by hand, byte by byte.

use crate::unwind::cfi::{CfiIndex, CfiSection};
use crate::unwind::module::code_step;
use crate::unwind::{FrameOrigin, Machine, UnwindBase, UnwindRule};
use perfuse_tables::CodeUnwinding;

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

fn of<'a>(bytes: &'a [u8], header: Option<(&'a [u8], u64)>) -> CfiSection<'a> {
    let (text, big_endian, machine, origin) = (0, false, Machine::Amd64, FrameOrigin::EhFrame);
    CfiSection { bytes, address: 0x5000, header, text, is_eh: true, big_endian, machine, origin }
}

/// Code at 0x1000 with that `.eh_frame`.
fn of_code(eh_frame: &[u8], address: u64, is_own: bool) -> CodeUnwinding<'_> {
    CodeUnwinding { eh_frame, address, code_address: 0x1000, is_own, big_endian: false }
}

fn two_functions() -> Vec<u8> {
    let mut bytes = cie(b"zR", &[0x1b]);
    let first = bytes.len();
    // The field is eight bytes after the start of the entry.
    bytes.extend(fde(first, 0x1000 - (0x5000 + first as i32 + 8), 0x20, &WITH_FRAME_POINTER));
    let second = bytes.len();
    bytes.extend(fde(second, 0x1100 - (0x5000 + second as i32 + 8), 0x10, &[0x07, 16]));
    bytes
}

#[test]
fn rows_become_steps() {
    let bytes = two_functions();
    let section = of(&bytes, None);
    let step = |address| section.step(address, &CfiIndex::new());
    let first = step(0x1000).unwrap();
    assert_eq!(first.cfa, UnwindRule::Value(UnwindBase::Register(7), 8));
    assert_eq!(first.rules.to_vec(), [(16, UnwindRule::Memory(UnwindBase::Cfa, -8))]);
    let inside = step(0x1010).unwrap();
    assert_eq!(inside.cfa, UnwindRule::Value(UnwindBase::Register(6), 16));
    assert!(inside.rules.contains(&(6, UnwindRule::Memory(UnwindBase::Cfa, -16))));
    assert_eq!(step(0x1020), None, "after the function");
    assert!(step(0x1100).unwrap().is_outermost(16), "its return address is undefined");
}

#[test]
fn an_incomplete_or_cut_search_table_is_not_trusted() {
    let bytes = two_functions();
    let first = cie(b"zR", &[0x1b]).len() as i32;
    let mut header = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0];
    // Loaded at 0x6000; it contains the first function only.
    header.extend((0x1000i32 - 0x6000).to_le_bytes());
    header.extend((0x5000i32 + first - 0x6000).to_le_bytes());
    let section = of(&bytes, Some((&header, 0x6000)));
    assert!(section.step(0x1004, &CfiIndex::new()).is_some());
    assert!(section.step(0x1100, &CfiIndex::new()).is_some(), "found among all entries");
    for cut in 0..header.len() {
        let section = of(&bytes, Some((&header[..cut], 0x6000)));
        assert!(section.step(0x1004, &CfiIndex::new()).is_some(), "{cut} bytes of it");
    }
}

/// The entry that V8 writes has another address than the code, and an omitted pointer to an exception table.
#[test]
fn code_of_a_dump_is_unwound_by_offset() {
    let mut bytes = cie(b"zLR", &[0xff, 0x1b]);
    let at = bytes.len();
    bytes.extend(fde(at, 0, 0x20, &WITH_FRAME_POINTER));
    let code = |is_own| of_code(&bytes, 0x1020, is_own);
    let step = code_step(&code(true), 0x10, Machine::Amd64).unwrap();
    assert_eq!(
        (step.origin, step.cfa),
        (FrameOrigin::JitDump, UnwindRule::Value(UnwindBase::Register(6), 16))
    );
    assert_eq!(code_step(&code(true), 0x20, Machine::Amd64), None, "after the function");
    assert_eq!(code_step(&code(false), 0x10, Machine::Amd64), None, "it describes another address");
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
                let _ = section.step(address, &CfiIndex::new());
            }
            let _ = code_step(&of_code(&broken, u64::MAX, true), 4, Machine::Amd64);
        }
    }
}
