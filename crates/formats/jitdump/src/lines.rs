//! Decodes debug entries to source lines: subtracts skew, restores damaged names, sorts by address.

use perfuse_wire::Cursor;

use super::consts::REPEATED_NAME;
use super::layout::DebugEntry;
use super::records::DebugInfoRecord;

/// A source line of a piece of code; it applies up to the offset of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugLine<'a> {
    /// Offset from the start of the code, in bytes.
    pub code_offset: u64,
    /// Line, from 1; 0 for code that belongs to no line.
    pub line: u32,
    /// Column or discriminator, depending on the producer.
    pub discrim: u32,
    /// Source file. Lines of one file share one slice.
    pub name: &'a [u8],
}

/// The code that a debug record describes.
#[derive(Clone, Copy, Debug)]
pub struct DescribedCode<'a> {
    /// Start address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Number that the producer adds to the address of every entry.
    pub skew: u64,
    /// Whether the first 16 bytes of names may be overwritten (V8).
    pub may_be_corrupt: bool,
    /// Source file in the function's name.
    pub path: Option<&'a [u8]>,
}

/// Facts about the entries of a record, for the checker and the repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineFindings {
    /// Number of entries that were read.
    pub entries: u64,
    /// Number of entries in `nr_entry` that the bytes do not contain.
    pub missing: u64,
    /// Absolute offset of the first entry that could not be read.
    pub failed_at: Option<u64>,
    /// Number of bytes after the last entry.
    pub padding: u64,
    /// Number of damaged names that were restored.
    pub restored: u64,
    /// Number of damaged names that could not be restored.
    pub unrestored: u64,
    /// Whether entries were read at a constant distance.
    pub constant_stride: bool,
    /// Number of entries with the repeated-name marker.
    pub repeated: u64,
    /// Number of entries of line 0 inside the code.
    pub line_zero: u64,
    /// Whether an entry marks the end of the code (address at the end, line 0, no file).
    pub terminator: bool,
    /// Whether entries are not in address order.
    pub unsorted: bool,
    /// Number of entries at the address of the previous one.
    pub duplicates: u64,
    /// Number of entries before the code.
    pub before: u64,
    /// Number of entries at or past the end of the code, without end marks.
    pub past: u64,
}

/// Number of bytes of a name that V8 overwrites when it writes from freed memory.
const OVERWRITTEN_BYTES: usize = 16;

/// Largest distance of an entry's address from the code, in bytes, in files that may be damaged.
const MAX_DISTANCE: u64 = 0x1000;

/// Decodes the lines of a record into `rows`, in address order, after removing what `rows` contained.
pub fn decode<'a>(
    info: &DebugInfoRecord<'a>,
    target: &DescribedCode<'a>,
    rows: &mut Vec<DebugLine<'a>>,
) -> LineFindings {
    rows.clear();
    let mut findings = read_entries(info, target, rows);
    let is_damaged = findings.missing > 0 || findings.padding > 7;
    if target.may_be_corrupt
        && is_damaged
        && let Some(stride) = find_stride(info, target)
    {
        rows.clear();
        findings = read_at_stride(info, target, stride, rows);
    } else if target.may_be_corrupt {
        restore_names(target, rows, &mut findings);
    }
    normalize(target, rows, &mut findings);
    findings
}

/// Moves rows whose offset is the last one of their code to the first one, which is the byte after the row before.
pub fn move_to_starts(rows: &mut [DebugLine<'_>]) {
    let (mut start, mut last) = (0, None);
    for row in rows {
        if let Some(last) = last.filter(|last| *last != row.code_offset) {
            start = u64::saturating_add(last, 1);
        }
        last = Some(std::mem::replace(&mut row.code_offset, start));
    }
}

/// The line of an entry.
fn line<'a>(fixed: DebugEntry, target: &DescribedCode<'_>, name: &'a [u8]) -> DebugLine<'a> {
    let code_offset = fixed.code_addr.wrapping_sub(target.skew).wrapping_sub(target.start);
    DebugLine { code_offset, line: fixed.line, discrim: fixed.discrim, name }
}

/// Whether an entry may have this offset from the start of the code; offsets before the code have wrapped around.
fn is_near_code(code_offset: u64, target: &DescribedCode<'_>) -> bool {
    code_offset.wrapping_add(MAX_DISTANCE) <= target.size.saturating_add(MAX_DISTANCE.wrapping_mul(2))
}

/// Reads entries as the specification defines them: in sequence, each as long as its string.
fn read_entries<'a>(
    info: &DebugInfoRecord<'a>,
    target: &DescribedCode<'_>,
    rows: &mut Vec<DebugLine<'a>>,
) -> LineFindings {
    let mut findings = LineFindings::default();
    let mut at = info.entries;
    let mut name: &[u8] = &[];
    let mut left = info.fixed.nr_entry;
    while left > 0 {
        let offset = at.offset();
        let Ok(fixed) = DebugEntry::read(&mut at) else { return with_failure(findings, left, offset) };
        // Most entries repeat the file of the previous one: a comparison is faster than the search for the NUL.
        let rest = at.rest();
        let same = rest.get(name.len()) == Some(&0) && rest.starts_with(name) && !name.is_empty();
        if same {
            let _ = at.bytes((name.len() as u64).saturating_add(1), "name");
        } else {
            match at.c_string("name") {
                Ok(REPEATED_NAME) => findings.repeated = findings.repeated.saturating_add(1),
                Ok(fresh) => name = fresh,
                Err(_) => return with_failure(findings, left, offset),
            }
        }
        let next = line(fixed, target, name);
        if target.may_be_corrupt && !is_near_code(next.code_offset, target) {
            return with_failure(findings, left, offset);
        }
        rows.push(next);
        findings.entries = findings.entries.saturating_add(1);
        left = left.saturating_sub(1);
    }
    findings.padding = at.remaining() as u64;
    findings
}

/// Findings with the offset of the first entry that could not be read and the number of entries from there on.
fn with_failure(mut findings: LineFindings, left: u64, offset: u64) -> LineFindings {
    findings.missing = left;
    findings.failed_at = Some(offset);
    findings
}

/// The size of the entries of a record whose damaged names may contain NULs. V8 writes the same name into each entry, so
/// that all entries have the same size, and padding is at most 7 bytes.
fn find_stride(info: &DebugInfoRecord<'_>, target: &DescribedCode<'_>) -> Option<usize> {
    let bytes = info.entries.rest();
    let count = usize::try_from(info.fixed.nr_entry).ok()?;
    (0..8).find_map(|padding| {
        let used = bytes.len().checked_sub(padding)?;
        let stride = used.checked_div(count)?;
        let exact = stride.checked_mul(count) == Some(used) && stride > DebugEntry::SIZE as usize;
        let is_entry = |entry: &[u8]| {
            let mut at = Cursor::new(entry, 0, info.entries.endian());
            let fixed = DebugEntry::read(&mut at);
            entry.last() == Some(&0)
                && fixed.is_ok_and(|fixed| is_near_code(line(fixed, target, &[]).code_offset, target))
        };
        (exact && bytes.get(..used)?.chunks_exact(stride).all(is_entry)).then_some(stride)
    })
}

/// Reads entries of a constant size.
fn read_at_stride<'a>(
    info: &DebugInfoRecord<'a>,
    target: &DescribedCode<'a>,
    stride: usize,
    rows: &mut Vec<DebugLine<'a>>,
) -> LineFindings {
    let mut findings = LineFindings { constant_stride: true, ..LineFindings::default() };
    let bytes = info.entries.rest();
    let count = usize::try_from(info.fixed.nr_entry).unwrap_or(usize::MAX);
    for entry in bytes.chunks_exact(stride).take(count) {
        let mut at = Cursor::new(entry, 0, info.entries.endian());
        let Ok(fixed) = DebugEntry::read(&mut at) else { break };
        let name = at.rest().strip_suffix(&[0]).unwrap_or_default();
        rows.push(line(fixed, target, name));
    }
    findings.entries = rows.len() as u64;
    findings.padding = (bytes.len() as u64).saturating_sub((stride as u64).saturating_mul(findings.entries));
    restore_names(target, rows, &mut findings);
    findings
}

/// Restores the first 16 bytes of names from the path in the function's name.
fn restore_names<'a>(target: &DescribedCode<'a>, rows: &mut [DebugLine<'a>], findings: &mut LineFindings) {
    // Most names of a record are equal: the result for one is used for its repetitions.
    let mut last: (&[u8], &[u8], NameState) = (&[], &[], NameState::Intact);
    for row in rows {
        if row.name != last.0 {
            let (name, state) = restore_name(row.name, target.path);
            last = (row.name, name, state);
        }
        row.name = last.1;
        match last.2 {
            NameState::Intact => {}
            NameState::Restored => findings.restored = findings.restored.saturating_add(1),
            NameState::Lost => findings.unrestored = findings.unrestored.saturating_add(1),
        }
    }
}

/// Condition of a name.
#[derive(Clone, Copy)]
enum NameState {
    Intact,
    Restored,
    Lost,
}

/// A name, restored from a path where it is damaged and matches it.
fn restore_name<'a>(name: &'a [u8], path: Option<&'a [u8]>) -> (&'a [u8], NameState) {
    match path {
        Some(path) if name == path => (path, NameState::Intact),
        Some(path) if is_damaged_copy(name, path) => (path, NameState::Restored),
        _ if is_text(name) => (name, NameState::Intact),
        _ => {
            let left = name.get(OVERWRITTEN_BYTES..).unwrap_or_default();
            // A name that would be damaged again is not one.
            let is_stable = is_text(left) && path.is_none_or(|path| !is_damaged_copy(left, path));
            (if is_stable { left } else { &[] }, NameState::Lost)
        }
    }
}

/// Whether a name is a path with damaged first bytes: its other bytes are the end of the path, or end in the same file name
/// (the directories in function names may have been replaced after recording).
fn is_damaged_copy(name: &[u8], path: &[u8]) -> bool {
    let left = name.get(OVERWRITTEN_BYTES..).unwrap_or_default();
    if name.len() == path.len() && path.get(OVERWRITTEN_BYTES..) == Some(left) {
        return true;
    }
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    !is_text(name)
        && !left.is_empty()
        && (path.ends_with(left) || (file.len() < path.len() && left.ends_with(file)))
}

/// Whether bytes are UTF-8 without control characters.
fn is_text(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| !name.contains(|c: char| c.is_control()))
}

/// Removes end marks, moves lines before the code to its start, and sorts.
fn normalize(target: &DescribedCode<'_>, rows: &mut Vec<DebugLine<'_>>, findings: &mut LineFindings) {
    let size = target.size;
    let mut previous = 0u64;
    let mut first = true;
    for row in rows.iter_mut() {
        if row.code_offset > u64::MAX.wrapping_div(2) {
            findings.before = findings.before.saturating_add(1);
            row.code_offset = 0;
        } else if row.code_offset >= size && size > 0 {
            if row.line == 0 && row.name.is_empty() {
                findings.terminator = true;
            } else {
                findings.past = findings.past.saturating_add(1);
            }
        } else if row.line == 0 {
            findings.line_zero = findings.line_zero.saturating_add(1);
        }
        if !first {
            findings.unsorted |= row.code_offset < previous;
            findings.duplicates = findings.duplicates.saturating_add(u64::from(row.code_offset == previous));
        }
        previous = row.code_offset;
        first = false;
    }
    if findings.unsorted {
        rows.sort_by_key(|row| row.code_offset);
    }
    if findings.terminator || findings.past > 0 {
        rows.retain(|row| row.code_offset < size);
    }
}
