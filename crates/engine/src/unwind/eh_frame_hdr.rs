use super::memory::number;

/// Version 1; the pointer to `.eh_frame` relative to itself; a four-byte count; a table of four-byte differences to the
/// header's own address. Every linker writes these.
const USUAL: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Looks an address up in the table of an `.eh_frame_hdr`, given with where it is loaded: the address of the entry of the
/// last function that starts at or before it. `None` also for a table of another kind.
pub(super) fn find(header: &[u8], loaded_at: u64, big_endian: bool, address: u64) -> Option<u64> {
    let rest = header.strip_prefix(&USUAL)?;
    let num_rows = usize::try_from(number(rest.get(4..8)?, big_endian)?).ok()?;
    let rows = rest.get(8..8usize.checked_add(num_rows.checked_mul(8)?)?)?.as_chunks::<8>().0;
    let place = |bytes: &[u8]| {
        let difference = number(bytes, big_endian).unwrap_or(0) as u32;
        loaded_at.wrapping_add_signed(difference.cast_signed().into())
    };
    let before = rows.partition_point(|row| place(&row[..4]) <= address);
    Some(place(&rows.get(before.checked_sub(1)?)?[4..]))
}
