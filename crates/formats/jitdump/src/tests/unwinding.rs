//! Unwinding information of code.

use super::assemble::{dump, load, record};

/// A JIT_CODE_UNWINDING_INFO with parts in this order.
fn unwinding(header_bytes: usize, parts: &[&[u8]]) -> Vec<u8> {
    let data = parts.concat();
    let sizes = [data.len() as u64, header_bytes as u64, 0];
    let body: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).chain(data).collect();
    record(4, 10, &body)
}

const RELATIVE_HEADER: [u8; 20] = [1, 0x1b, 3, 0x3b, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn code_has_the_preceding_record() {
    let dump = dump(&[
        load(5, 0x1000, 10, 0, "before"),
        unwinding(20, &[b"frames of one..", &RELATIVE_HEADER]),
        load(11, 0x2000, 13, 1, "own"),
        load(12, 0x3000, 8, 2, "after"),
        unwinding(20, &[&RELATIVE_HEADER]),
        load(13, 0x4000, 8, 3, "with nothing"),
    ]);
    assert_eq!(dump.unwinding(0), None);
    let own = dump.unwinding(1).unwrap();
    assert_eq!((own.eh_frame, own.address, own.is_own), (&b"frames of one.."[..], 0x2010, true));
    assert!(!dump.unwinding(2).unwrap().is_own, "it may describe a whole object file");
    assert_eq!(dump.unwinding(3), None, "a header alone contains no rules");
    assert_eq!(dump.unwinding(4), None);
}

/// LLVM ORC puts the header first, with the absolute address of `.eh_frame`.
#[test]
fn an_absolute_address_is_used() {
    let mut header = vec![1, 0x00, 0xff, 0xff];
    header.extend(0x7000_0000u64.to_le_bytes());
    let dump = dump(&[unwinding(12, &[&header, b"frames of all"]), load(11, 0x2000, 13, 1, "f")]);
    let found = dump.unwinding(0).unwrap();
    assert_eq!((found.eh_frame, found.address), (&b"frames of all"[..], 0x7000_0000));
}
