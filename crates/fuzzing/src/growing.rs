//! A dump that arrives in pieces, as a program embeds it.

use perfuse_symbolizer::{GrowingDump, LATEST, SFrameTable};

/// Pushes bytes in pieces whose sizes the first bytes choose, and looks up addresses in all code; what was found in the whole is
/// found in pieces too.
///
/// # Panics
/// When a result is outside of what it is part of, or an undamaged dump is read differently in pieces.
pub(crate) fn in_pieces(bytes: &[u8]) {
    let sizes: Vec<usize> =
        bytes.iter().skip(16).step_by(7).take(5).map(|&size| usize::from(size) + 1).collect();
    let mut pieces = GrowingDump::new();
    let mut rest = bytes;
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(sizes.next().copied().unwrap_or(1).min(rest.len()));
        rest = after;
        if pieces.push(piece).is_err() {
            return;
        }
        look_up(&pieces, 2);
    }
    let is_whole = pieces.finish().is_ok();
    let mut whole = GrowingDump::new();
    assert_eq!(whole.push(bytes).is_ok() && whole.finish().is_ok(), is_whole);
    look_up(&pieces, usize::MAX);
    let (Some(one), Some(other)) = (pieces.facts(), whole.facts()) else { return };
    assert!(one.read_bytes <= bytes.len() as u64);
    if one.num_damaged == 0 && other.num_damaged == 0 {
        assert_eq!(one, other);
        assert!(pieces.code_objects().eq(whole.code_objects()));
    }
}

fn look_up(dump: &GrowingDump, limit: usize) {
    for code in dump.code_objects().take(limit) {
        for address in [code.start_address, code.start_address.wrapping_add(code.size_bytes.wrapping_sub(1))]
        {
            for at in [0, code.created, LATEST] {
                let Some(found) = dump.find(at, address) else { continue };
                assert!(found.code_offset < found.code.size_bytes);
                assert_eq!(found.frames.iter().filter(|frame| !frame.is_inlined).count(), 1);
            }
        }
    }
}

/// Looks up addresses in unwinding rows.
///
/// # Panics
/// When a row is outside of its function.
pub(crate) fn unwind(bytes: &[u8]) {
    let Ok(table) = SFrameTable::from_bytes(bytes.to_vec(), None) else { return };
    for pc in bytes.chunks(8).filter_map(|chunk| chunk.first_chunk::<4>()).take(64) {
        let pc = u64::from(u32::from_le_bytes(*pc));
        for pc in [pc, pc & 0xffff] {
            if let Some(row) = table.find(pc) {
                assert!(row.start_address <= pc && pc - row.start_address < row.size_bytes);
            }
        }
    }
}
