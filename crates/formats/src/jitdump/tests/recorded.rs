use super::*;
use crate::jitdump::lines;
use crate::jitdump::producer::Producer;

#[test]
fn the_pass_tells_records_producer_and_skew() {
    let dump = open(MCJIT.to_vec()).unwrap();
    let counts = dump.summary().counts;
    assert_eq!(counts, [("JIT_CODE_DEBUG_INFO".to_owned(), 3), ("JIT_CODE_LOAD".to_owned(), 3)]);
    assert_eq!((dump.index().producer, dump.index().skew), (Producer::Llvm, 0x40));
    assert_eq!(codes(&dump), ["JD024", "JD052", "JD059"]);
}

#[test]
fn lines_begin_where_their_code_does() {
    let dump = open(MCJIT.to_vec()).unwrap();
    let index = dump.index();
    let first_rows: Vec<_> = index
        .codes
        .iter()
        .map(|code| {
            let (_, info) = index.debug_info(dump.source(), code).unwrap();
            let mut rows = Vec::new();
            lines::decode(&info, &index.target(code), &mut rows);
            (code.size, rows[0].code_offset, rows[0].line)
        })
        .collect();
    assert_eq!(first_rows, [(67, 0, 4), (60, 0, 5), (100, 0, 6)]);
    assert_eq!(num_rows(&dump, "line_rows"), 30);
}

#[test]
fn code_that_other_code_is_laid_over_retires() {
    let mut bytes = MCJIT.to_vec();
    let loads: Vec<_> =
        open(bytes.clone()).unwrap().index().codes.iter().map(|code| code.offset as usize).collect();
    // code_addr is the 32nd byte of a load: the third function takes the place of the first.
    let address: Vec<u8> = bytes[loads[0] + 32..loads[0] + 40].to_vec();
    bytes[loads[2] + 32..loads[2] + 40].copy_from_slice(&address);
    let dump = open(bytes).unwrap();
    let codes = &dump.index().codes;
    assert_eq!(codes[0].retired, codes[2].timestamp);
    assert_eq!(
        codes[1].retired, codes[2].timestamp,
        "100 bytes from the first address on reach the second function"
    );
    assert_eq!(codes[2].retired, u64::MAX);
}
