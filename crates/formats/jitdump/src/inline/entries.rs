//! Counted lists, bounds checks and padding of extension records, used by the decoders of all dialects.

use perfuse_wire::{Cursor, ErrorKind, ParseError, Value};

/// Largest padding: writers align records to 8 bytes, or not at all.
const MAX_PADDING: usize = 7;

/// Largest nesting depth of calls that is accepted; compilers stop inlining at far smaller depths.
pub const MAX_DEPTH: u32 = 512;

/// Reads `count` entries of `size` bytes each. Compares their size with the bytes left before it allocates.
pub fn read_list<'a, T>(
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

/// Reads `count` entries of at least `least` bytes each; their strings determine the size of each.
pub fn read_entries<'a, T>(
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

/// Returns the bytes left as padding. More than 7 are an error: the record is of another dialect.
pub fn read_padding<'a>(at: &Cursor<'a>) -> Result<&'a [u8], ParseError> {
    let rest = at.rest();
    if rest.len() > MAX_PADDING {
        return Err(invalid(rest.len() as u64, "at most 7 bytes", at.offset(), "padding"));
    }
    Ok(rest)
}

/// Checks that an index is below `len`.
pub fn check_index(value: u32, len: u32, offset: u64, field: &'static str) -> Result<(), ParseError> {
    if value < len { Ok(()) } else { Err(invalid(value.into(), "an index into its list", offset, field)) }
}

/// Checks the depth-first order of calls: each is at most one deeper than the previous one, the first has depth 0.
pub fn check_depth(previous: Option<u32>, depth: u32, offset: u64) -> Result<(), ParseError> {
    let most = previous.map_or(0, |previous| previous.saturating_add(1)).min(MAX_DEPTH);
    if depth <= most {
        Ok(())
    } else {
        Err(invalid(depth.into(), "at most the previous depth + 1", offset, "depth"))
    }
}

/// An error for a value that the layout does not allow.
pub fn invalid(value: u64, expected: &'static str, offset: u64, field: &'static str) -> ParseError {
    ParseError::new(ErrorKind::Invalid { value, expected }, offset, field)
}

/// `padding` as a field, unless it is empty.
pub fn padding_field(padding: &[u8]) -> Option<(&'static str, Value<'_>)> {
    (!padding.is_empty()).then_some(("padding", Value::Bytes(padding)))
}
