//! Bodies that decoders must reject.

use perfuse_wire::Endian;

use super::{Bytes, NONE, dialect_a, dialect_b, dialect_c, dialect_d};
use crate::inline::{MAX_DEPTH, debug_info2, embedded, frames, inline_info1, inline_info2, tier};

const LE: Endian = Endian::Little;

fn patched(mut body: Vec<u8>, at: usize, value: u32) -> Vec<u8> {
    body[at..at + 4].copy_from_slice(&value.to_le_bytes());
    body
}

#[test]
fn counts_larger_than_the_body_are_rejected_before_allocation() {
    for at in (0..32).step_by(4) {
        let error = debug_info2::decode(&patched(dialect_a(LE), at, u32::MAX), 0x100, LE).unwrap_err();
        assert!((0x100..0x100 + 400).contains(&error.offset), "{error}");
    }
    for at in (8..32).step_by(4) {
        assert!(frames::decode(&patched(dialect_b(LE), at, u32::MAX), 0, LE).is_err(), "count at {at}");
    }
    assert!(inline_info1::decode(&patched(dialect_c(LE), 12, u32::MAX), 0, LE).is_err());
    assert!(inline_info2::decode(&patched(dialect_d(LE), 8, 0x10_0000), 0, LE).is_err());
}

#[test]
fn indices_outside_of_lists_are_errors_of_their_field() {
    let functions = 32 + 12 + 16;
    let field = |at, value| debug_info2::decode(&patched(dialect_a(LE), at, value), 0, LE).unwrap_err().field;
    assert_eq!(field(functions, 3), "function_name_index");
    assert_eq!(field(functions + 4, 2), "file_index");
    assert_eq!(field(functions + 60 + 8, 3), "function_index");
    assert_eq!(field(functions + 60 + 4, 2), "range_count");
    let positions = 32 + 6 * 8;
    let field = |at, value| frames::decode(&patched(dialect_b(LE), at, value), 0, LE).unwrap_err().field;
    assert_eq!(field(36, 8), "source_position");
    assert_eq!(field(positions, 8), "caller_index");
    assert_eq!(field(positions, u32::MAX - 1), "caller_index");
    assert_eq!(field(positions + 4, 5), "function_name");
    assert_eq!(field(positions + 8, 5), "file");
}

#[test]
fn a_cycle_of_callers_is_rejected() {
    let positions = 32 + 6 * 8;
    let itself = patched(dialect_b(LE), positions, 0);
    assert_eq!(frames::decode(&itself, 0, LE).unwrap_err().field, "caller_index");
    let each_other = patched(patched(dialect_b(LE), positions, 1), positions + 28, 0);
    assert_eq!(frames::decode(&each_other, 0, LE).unwrap_err().field, "caller_index");
}

/// Positions, each called from the previous one.
fn chain(len: u32) -> Vec<u8> {
    let head = Bytes::new(LE).u64(&[0x7000, 1, u64::from(len), 1]).u32(&[0, len - 1]);
    (0..len).fold(head, |bytes, n| bytes.u32(&[n.wrapping_sub(1), 0, 0, 0, 0, 1, 1])).text("f\0").0
}

#[test]
fn chains_of_callers_have_a_largest_depth() {
    assert!(frames::decode(&chain(MAX_DEPTH), 0, LE).is_ok());
    assert_eq!(frames::decode(&chain(MAX_DEPTH + 1), 0, LE).unwrap_err().field, "caller_index");
    assert!(frames::decode(&chain(100_000), 0, LE).is_err());
}

#[test]
fn depths_increase_by_one_at_most() {
    let calls = 32 + 12 + 16 + 60;
    assert_eq!(debug_info2::decode(&patched(dialect_a(LE), calls, 1), 0, LE).unwrap_err().field, "depth");
    assert_eq!(
        debug_info2::decode(&patched(dialect_a(LE), calls + 20, 2), 0, LE).unwrap_err().field,
        "depth"
    );
    assert_eq!(inline_info1::decode(&patched(dialect_c(LE), 16 + 28, 1), 0, LE).unwrap_err().field, "depth");
}

#[test]
fn a_small_record_does_not_expand_to_many_calls() {
    // Two deep chains alternate, so that every range would open hundreds of calls.
    let (depth, turns) = (500u32, 20_000u32);
    let head = Bytes::new(LE).u64(&[0x7000, u64::from(turns), u64::from(depth) * 2, 1]);
    let offsets =
        (0..turns).fold(head, |bytes, n| bytes.u32(&[n, if n % 2 == 0 { depth - 1 } else { 2 * depth - 1 }]));
    let positions = (0..2 * depth).fold(offsets, |bytes, n| {
        let caller = if n % depth == 0 { NONE } else { n - 1 };
        bytes.u32(&[caller, 0, 0, n, 0, n, 0])
    });
    let body = positions.text("f\0").0;
    let record = frames::decode(&body, 0, LE).unwrap();
    assert_eq!(record.tree(u64::MAX).unwrap_err().field, "calls");
}

#[test]
fn foreign_payloads_and_later_versions_are_rejected() {
    assert_eq!(tier::decode(&patched(super::tier(LE), 0, 1), 0, LE).unwrap_err().field, "magic");
    assert_eq!(tier::decode(&patched(super::tier(LE), 4, 2), 0, LE).unwrap_err().field, "version");
    assert_eq!(embedded::decode(&patched(super::embedded(LE), 0, 1), 0, LE).unwrap_err().field, "magic");
    assert_eq!(embedded::decode(&patched(super::embedded(LE), 4, 2), 0, LE).unwrap_err().field, "version");
    assert_eq!(embedded::decode(&patched(super::embedded(LE), 8, 7), 0, LE).unwrap_err().field, "text");
}

#[test]
fn no_truncation_reads_past_its_end() {
    for (name, body) in
        [("a", dialect_a(LE)), ("b", dialect_b(LE)), ("c", dialect_c(LE)), ("d", dialect_d(LE))]
    {
        for len in 0..body.len() {
            let cut = &body[..len];
            let offsets = [
                debug_info2::decode(cut, 0, LE).map_err(|e| e.offset).err(),
                frames::decode(cut, 0, LE).map_err(|e| e.offset).err(),
                inline_info1::decode(cut, 0, LE).map_err(|e| e.offset).err(),
                inline_info2::decode(cut, 0, LE).map_err(|e| e.offset).err(),
            ];
            assert!(offsets.into_iter().flatten().all(|offset| offset <= len as u64), "{name} cut to {len}");
        }
    }
    assert!((0..super::tier(LE).len()).all(|len| tier::decode(&super::tier(LE)[..len], 0, LE).is_err()));
    assert!(
        (0..super::embedded(LE).len())
            .all(|len| embedded::decode(&super::embedded(LE)[..len], 0, LE).is_err())
    );
}
