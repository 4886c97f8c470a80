//! What all dialects' decoders share: counted lists and the padding behind the last of them.

use perfuse_wire::{Cursor, ErrorKind, ParseError};

/// Writers align records to 8 bytes, or not at all.
const MAX_PADDING: usize = 7;

/// Calls nested deeper than this are not believed; compilers stop inlining long before.
pub const MAX_DEPTH: u32 = 512;

/// Reads `count` entries of `size` bytes each, after holding their number against the bytes there are.
pub fn list<'a, T>(
    at: &mut Cursor<'a>,
    count: u64,
    size: u64,
    field: &'static str,
    read: impl Fn(&mut Cursor<'a>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    let mut part = at.split(count.saturating_mul(size), field)?;
    let mut entries = Vec::with_capacity(count as usize);
    for _ in 0..count {
        entries.push(read(&mut part)?);
    }
    Ok(entries)
}

/// Reads `count` entries of at least `least` bytes each, whose size their strings make.
pub fn walk<'a, T>(
    at: &mut Cursor<'a>,
    count: u64,
    least: u64,
    field: &'static str,
    read: impl Fn(&mut Cursor<'a>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    let (need, have) = (count.saturating_mul(least), at.remaining() as u64);
    if need > have {
        return Err(ParseError::new(ErrorKind::Short { need, have }, at.offset(), field));
    }
    let mut entries = Vec::with_capacity(count as usize);
    for _ in 0..count {
        entries.push(read(at)?);
    }
    Ok(entries)
}

/// What is left is padding, or the record is of another dialect.
pub fn padding<'a>(at: &Cursor<'a>) -> Result<&'a [u8], ParseError> {
    let rest = at.rest();
    if rest.len() > MAX_PADDING {
        return Err(invalid(rest.len() as u64, "at most 7 bytes", at.offset(), "padding"));
    }
    Ok(rest)
}

/// An index that must be below `len`.
pub fn index(value: u32, len: u32, offset: u64, field: &'static str) -> Result<(), ParseError> {
    if value < len { Ok(()) } else { Err(invalid(value.into(), "an index into its list", offset, field)) }
}

/// Calls come in depth-first order: each at most one deeper than the one before, the first at depth 0.
pub fn depth(previous: Option<u32>, depth: u32, offset: u64) -> Result<(), ParseError> {
    let most = previous.map_or(0, |previous| previous.saturating_add(1)).min(MAX_DEPTH);
    if depth <= most {
        Ok(())
    } else {
        Err(invalid(depth.into(), "at most the previous depth + 1", offset, "depth"))
    }
}

pub fn invalid(value: u64, expected: &'static str, offset: u64, field: &'static str) -> ParseError {
    ParseError::new(ErrorKind::Invalid { value, expected }, offset, field)
}
