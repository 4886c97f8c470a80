//! The zip file: its directory of members, checked before anything in them is read.
//!
//! Only what perfuse writes is accepted: members without compression, encryption and data descriptors, in the order of the
//! directory, without overlaps. Any unzip program reads such a file.

use std::collections::BTreeSet;
use std::ops::Range;

use perfuse_recording::Source;
use perfuse_wire::{ErrorKind, ParseError};

/// Name of the first member.
pub const MIMETYPE: &str = "mimetype";
/// Content of the first member.
pub const MIMETYPE_TEXT: &[u8] = b"application/vnd.perfuse.profile+zip";
/// Name of the description of all other members.
pub const MANIFEST: &str = "manifest.json";
/// Most members.
const MAX_MEMBERS: usize = 4096;

const LOCAL_MAGIC: u32 = 0x0403_4b50;
const DIRECTORY_MAGIC: u32 = 0x0201_4b50;
const END_MAGIC: u32 = 0x0605_4b50;
const LOCAL_BYTES: usize = 30;
const DIRECTORY_BYTES: usize = 46;
const END_BYTES: usize = 22;
/// Flag of names in UTF-8, the only one that may be set.
const UTF8_FLAG: u16 = 1 << 11;

/// A file in the zip file.
#[derive(Clone, Debug)]
pub struct Member {
    /// Path in the zip file.
    pub name: String,
    /// Its bytes.
    pub range: Range<usize>,
    /// Offset of its header.
    pub header_offset: usize,
    /// CRC-32 of its bytes.
    pub crc: u32,
}

/// Whether a file begins as a saved profile.
#[must_use]
pub fn begins(head: &[u8]) -> bool {
    let name = head.get(LOCAL_BYTES..);
    head.starts_with(&LOCAL_MAGIC.to_le_bytes())
        && name.and_then(|name| name.strip_prefix(MIMETYPE.as_bytes())).is_some_and(|text| {
            let len = text.len().min(MIMETYPE_TEXT.len());
            len >= 20 && text.get(..len) == MIMETYPE_TEXT.get(..len)
        })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn invalid(offset: usize, field: &'static str, value: u64, expected: &'static str) -> ParseError {
    ParseError::new(ErrorKind::Invalid { value, expected }, offset as u64, field)
}

fn short(bytes: &[u8], offset: usize, need: usize, field: &'static str) -> ParseError {
    let have = bytes.len().saturating_sub(offset) as u64;
    let offset = offset.min(bytes.len()) as u64;
    ParseError::new(ErrorKind::Short { need: need as u64, have }, offset, field)
}

/// Reads the directory.
///
/// # Errors
/// Where the file is cut, or is not such a zip file.
pub fn members(source: &Source) -> Result<Vec<Member>, ParseError> {
    let bytes: &[u8] = source;
    let end = bytes.len().checked_sub(END_BYTES).ok_or_else(|| short(bytes, 0, END_BYTES, "end"))?;
    // perfuse writes no comment, so the end record is at the end of the file.
    match u32_at(bytes, end) {
        Some(END_MAGIC) => {}
        found => return Err(invalid(end, "end", found.unwrap_or(0).into(), "the end of a zip directory")),
    }
    let (count, directory_bytes) =
        (u16_at(bytes, end.saturating_add(10)), u32_at(bytes, end.saturating_add(12)));
    let (count, directory_bytes) = (count.unwrap_or(0) as usize, directory_bytes.unwrap_or(0) as usize);
    let directory = u32_at(bytes, end.saturating_add(16)).unwrap_or(0) as usize;
    if count > MAX_MEMBERS {
        return Err(invalid(end, "num_members", count as u64, "at most 4096 members"));
    }
    let is_one_file = [4usize, 6].into_iter().all(|at| u16_at(bytes, end.saturating_add(at)) == Some(0))
        && u16_at(bytes, end.saturating_add(8)).map(usize::from) == Some(count)
        && u16_at(bytes, end.saturating_add(20)) == Some(0);
    if !is_one_file || directory.checked_add(directory_bytes) != Some(end) {
        return Err(invalid(end, "end", directory as u64, "a directory that ends here"));
    }
    let mut all: Vec<Member> = Vec::new();
    let mut names = BTreeSet::new();
    let (mut at, mut next_header) = (directory, 0usize);
    for _ in 0..count {
        let (member, following) = directory_entry(bytes, at, end)?;
        if member.header_offset != next_header || member.range.end > directory {
            let offset = member.header_offset as u64;
            return Err(invalid(at, "header_offset", offset, "members one after the other"));
        }
        next_header = member.range.end;
        if !names.insert(member.name.clone()) {
            return Err(invalid(at, "name", 0, "a name that no other member has"));
        }
        at = following;
        all.push(member);
    }
    if at != end || next_header != directory {
        return Err(invalid(at, "directory", at as u64, "a directory of all bytes of the file"));
    }
    let first = all.first().filter(|first| first.name == MIMETYPE);
    if first.and_then(|first| bytes.get(first.range.clone())) != Some(MIMETYPE_TEXT) {
        return Err(invalid(0, "mimetype", 0, "application/vnd.perfuse.profile+zip"));
    }
    Ok(all)
}

/// Reads an entry of the directory and compares it with the header of its member. Also returns the offset of the next entry.
fn directory_entry(bytes: &[u8], at: usize, end: usize) -> Result<(Member, usize), ParseError> {
    let name_at = at.saturating_add(DIRECTORY_BYTES);
    if name_at > end || u32_at(bytes, at) != Some(DIRECTORY_MAGIC) {
        return Err(invalid(
            at,
            "directory",
            u32_at(bytes, at).unwrap_or(0).into(),
            "an entry of the zip directory",
        ));
    }
    let half = |offset: usize| u16_at(bytes, at.saturating_add(offset)).unwrap_or(0);
    let word = |offset: usize| u32_at(bytes, at.saturating_add(offset)).unwrap_or(0);
    let (flags, method, crc, packed, size) = (half(8), half(10), word(16), word(20), word(24));
    let (name_bytes, extra, comment, header) = (half(28) as usize, half(30), half(32), word(42) as usize);
    if flags & !UTF8_FLAG != 0 || method != 0 || packed != size || half(34) != 0 {
        return Err(invalid(at, "method", method.into(), "a member without compression and encryption"));
    }
    if extra != 0 || comment != 0 {
        return Err(invalid(at, "extra", extra.into(), "no extra fields and no comments"));
    }
    let following = name_at.saturating_add(name_bytes);
    let name = bytes.get(name_at..following.min(end)).filter(|name| name.len() == name_bytes);
    let name = name.filter(|name| is_safe(name)).and_then(|name| std::str::from_utf8(name).ok());
    let name =
        name.ok_or_else(|| invalid(at, "name", 0, "a relative path of letters, digits and . _ - /"))?;
    let local = bytes.get(header..header.saturating_add(LOCAL_BYTES));
    let local = local.ok_or_else(|| short(bytes, header, LOCAL_BYTES, "member"))?;
    let agrees = u32_at(local, 0) == Some(LOCAL_MAGIC)
        && u16_at(local, 6) == Some(flags)
        && u16_at(local, 8) == Some(0)
        && u32_at(local, 14) == Some(crc)
        && u32_at(local, 18) == Some(size)
        && u32_at(local, 22) == Some(size)
        && u16_at(local, 26).map(usize::from) == Some(name_bytes)
        && u16_at(local, 28) == Some(0);
    let start = header.saturating_add(LOCAL_BYTES).saturating_add(name_bytes);
    let local_name = bytes.get(header.saturating_add(LOCAL_BYTES)..start);
    if !agrees || local_name != Some(name.as_bytes()) {
        return Err(invalid(header, "member", 0, "the same facts as in the directory"));
    }
    let range = start..start.saturating_add(size as usize);
    if range.end > bytes.len() {
        return Err(short(bytes, start, size as usize, "member"));
    }
    Ok((Member { name: name.to_owned(), range, header_offset: header, crc }, following))
}

/// Whether a name leads nowhere but into the zip file.
fn is_safe(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-/+@,=".contains(byte);
    !name.is_empty()
        && name.iter().all(is_plain)
        && name.split(|byte| *byte == b'/').all(|part| !part.is_empty() && part != b"." && part != b"..")
}
