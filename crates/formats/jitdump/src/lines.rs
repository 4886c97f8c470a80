//! Debug entries into source lines: skew undone, corrupted names restored, rows in address order.

use perfuse_wire::Cursor;

use super::consts::REPEATED_NAME;
use super::layout::DebugEntry as Fixed;
use super::records::DebugInfo;

/// A source line of a piece of code; it holds up to the next row's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRow<'a> {
    /// Bytes from the start of the code.
    pub code_offset: u64,
    /// Line, from 1; 0 where the code belongs to no line.
    pub line: u32,
    /// Column or discriminator, as the producer means it.
    pub discrim: u32,
    /// Source file. Rows of one file share one slice.
    pub name: &'a [u8],
}

/// The code a debug record is about.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Address of the code.
    pub start: u64,
    /// Size of the code.
    pub size: u64,
    /// What the producer added to every entry's address.
    pub skew: u64,
    /// Whether names may have lost their first 16 bytes (V8).
    pub may_be_corrupt: bool,
    /// The function's file as its name tells it.
    pub path: Option<&'a [u8]>,
}

/// What was met on the way: facts for the checker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habits {
    /// Entries that were read.
    pub entries: u64,
    /// Entries that `nr_entry` promises and the bytes do not hold.
    pub missing: u64,
    /// Offset where the walk failed.
    pub failed_at: Option<u64>,
    /// Bytes behind the last entry.
    pub padding: u64,
    /// Names that had lost their first bytes and were restored.
    pub restored: u64,
    /// Names that had lost their first bytes and could not be.
    pub unrestored: u64,
    /// Whether the entries had to be walked at a constant stride.
    pub constant_stride: bool,
    /// Entries with the repeated-name marker.
    pub repeated: u64,
    /// Entries of line 0 inside the code.
    pub line_zero: u64,
    /// Whether the last entry is an end mark (address at the end, line 0, no file).
    pub terminator: bool,
    /// Whether entries are not in address order.
    pub unsorted: bool,
    /// Entries at the address of the one before.
    pub duplicates: u64,
    /// Entries before the code.
    pub before: u64,
    /// Entries at or past the end of the code, end marks aside.
    pub past: u64,
}

/// What a name loses when V8 writes it from freed memory.
const LOST_PREFIX: usize = 16;

/// Addresses this far outside the code are not believed to be entries'.
const SLACK: u64 = 0x1000;

/// Decodes the lines of one record into `rows` (cleared first), in address order.
pub fn decode<'a>(info: &DebugInfo<'a>, target: &Target<'a>, rows: &mut Vec<LineRow<'a>>) -> Habits {
    rows.clear();
    let mut habits = walk(info, target, rows);
    let broken = habits.missing > 0 || habits.padding > 7;
    if target.may_be_corrupt
        && broken
        && let Some(stride) = constant_stride(info, target)
    {
        rows.clear();
        habits = walk_at(info, target, stride, rows);
    } else if target.may_be_corrupt {
        restore(target, rows, &mut habits);
    }
    settle(target, rows, &mut habits);
    habits
}

fn row<'a>(fixed: Fixed, target: &Target<'_>, name: &'a [u8]) -> LineRow<'a> {
    let code_offset = fixed.code_addr.wrapping_sub(target.skew).wrapping_sub(target.start);
    LineRow { code_offset, line: fixed.line, discrim: fixed.discrim, name }
}

/// Whether an offset from the start of the code may be an entry's; offsets before the code have wrapped around.
fn believable(code_offset: u64, target: &Target<'_>) -> bool {
    code_offset.wrapping_add(SLACK) <= target.size.saturating_add(SLACK.wrapping_mul(2))
}

/// The walk of the specification: entry after entry, each as long as its string.
fn walk<'a>(info: &DebugInfo<'a>, target: &Target<'_>, rows: &mut Vec<LineRow<'a>>) -> Habits {
    let mut habits = Habits::default();
    let mut at = info.entries;
    let mut name: &[u8] = &[];
    let mut left = info.fixed.nr_entry;
    while left > 0 {
        let offset = at.offset();
        let Ok(fixed) = Fixed::read(&mut at) else { return failed(habits, left, offset) };
        // Most entries repeat the file of the one before: a comparison instead of a search.
        let rest = at.rest();
        let same = rest.get(name.len()) == Some(&0) && rest.starts_with(name) && !name.is_empty();
        if same {
            let _ = at.bytes((name.len() as u64).saturating_add(1), "name");
        } else {
            match at.c_string("name") {
                Ok(REPEATED_NAME) => habits.repeated = habits.repeated.saturating_add(1),
                Ok(fresh) => name = fresh,
                Err(_) => return failed(habits, left, offset),
            }
        }
        let next = row(fixed, target, name);
        if target.may_be_corrupt && !believable(next.code_offset, target) {
            return failed(habits, left, offset);
        }
        rows.push(next);
        habits.entries = habits.entries.saturating_add(1);
        left = left.saturating_sub(1);
    }
    habits.padding = at.remaining() as u64;
    habits
}

fn failed(mut habits: Habits, left: u64, offset: u64) -> Habits {
    habits.missing = left;
    habits.failed_at = Some(offset);
    habits
}

/// The length that all entries of a record share, where their names cannot be trusted to end at a NUL: V8 writes the
/// same name into each, so the entries lie at a constant distance, and padding is at most 7 bytes.
fn constant_stride(info: &DebugInfo<'_>, target: &Target<'_>) -> Option<usize> {
    let bytes = info.entries.rest();
    let count = usize::try_from(info.fixed.nr_entry).ok()?;
    (0..8).find_map(|padding| {
        let used = bytes.len().checked_sub(padding)?;
        let stride = used.checked_div(count)?;
        let exact = stride.checked_mul(count) == Some(used) && stride > Fixed::SIZE as usize;
        let fits = |entry: &[u8]| {
            let mut at = Cursor::new(entry, 0, info.entries.endian());
            let fixed = Fixed::read(&mut at);
            entry.last() == Some(&0)
                && fixed.is_ok_and(|fixed| believable(row(fixed, target, &[]).code_offset, target))
        };
        (exact && bytes.get(..used)?.chunks_exact(stride).all(fits)).then_some(stride)
    })
}

fn walk_at<'a>(
    info: &DebugInfo<'a>,
    target: &Target<'a>,
    stride: usize,
    rows: &mut Vec<LineRow<'a>>,
) -> Habits {
    let mut habits = Habits { constant_stride: true, ..Habits::default() };
    let bytes = info.entries.rest();
    let count = usize::try_from(info.fixed.nr_entry).unwrap_or(usize::MAX);
    for entry in bytes.chunks_exact(stride).take(count) {
        let mut at = Cursor::new(entry, 0, info.entries.endian());
        let Ok(fixed) = Fixed::read(&mut at) else { break };
        let name = at.rest().strip_suffix(&[0]).unwrap_or_default();
        rows.push(row(fixed, target, name));
    }
    habits.entries = rows.len() as u64;
    habits.padding = (bytes.len() as u64).saturating_sub((stride as u64).saturating_mul(habits.entries));
    restore(target, rows, &mut habits);
    habits
}

/// Gives names their first 16 bytes back, from the function's own file.
fn restore<'a>(target: &Target<'a>, rows: &mut [LineRow<'a>], habits: &mut Habits) {
    // The names of a record are mostly one name, over and over: what became of one becomes of its repetitions.
    let mut last: (&[u8], &[u8], Fate) = (&[], &[], Fate::Whole);
    for row in rows {
        if row.name != last.0 {
            let (name, fate) = restored(row.name, target.path);
            last = (row.name, name, fate);
        }
        row.name = last.1;
        match last.2 {
            Fate::Whole => {}
            Fate::Restored => habits.restored = habits.restored.saturating_add(1),
            Fate::Lost => habits.unrestored = habits.unrestored.saturating_add(1),
        }
    }
}

/// What became of a name.
#[derive(Clone, Copy)]
enum Fate {
    Whole,
    Restored,
    Lost,
}

fn restored<'a>(name: &'a [u8], path: Option<&'a [u8]>) -> (&'a [u8], Fate) {
    match path {
        Some(path) if name == path => (path, Fate::Whole),
        Some(path) if lost_its_start(name, path) => (path, Fate::Restored),
        _ if is_text(name) => (name, Fate::Whole),
        _ => (name.get(LOST_PREFIX..).unwrap_or_default(), Fate::Lost),
    }
}

/// Whether a name is a path without its start: what is left ends the path, or at least ends in the same file name (a
/// recording may have had the directories in its function names replaced).
fn lost_its_start(name: &[u8], path: &[u8]) -> bool {
    let left = name.get(LOST_PREFIX..).unwrap_or_default();
    if name.len() == path.len() && path.get(LOST_PREFIX..) == Some(left) {
        return true;
    }
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    !is_text(name)
        && !left.is_empty()
        && (path.ends_with(left) || (file.len() < path.len() && left.ends_with(file)))
}

fn is_text(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| !name.contains(|c: char| c.is_control()))
}

/// Drops end marks, moves what lies before the code to its start, and sorts.
fn settle(target: &Target<'_>, rows: &mut Vec<LineRow<'_>>, habits: &mut Habits) {
    let size = target.size;
    let mut previous = 0u64;
    let mut first = true;
    for row in rows.iter_mut() {
        if row.code_offset > u64::MAX.wrapping_div(2) {
            habits.before = habits.before.saturating_add(1);
            row.code_offset = 0;
        } else if row.code_offset >= size && size > 0 {
            if row.line == 0 && row.name.is_empty() {
                habits.terminator = true;
            } else {
                habits.past = habits.past.saturating_add(1);
            }
        } else if row.line == 0 {
            habits.line_zero = habits.line_zero.saturating_add(1);
        }
        if !first {
            habits.unsorted |= row.code_offset < previous;
            habits.duplicates = habits.duplicates.saturating_add(u64::from(row.code_offset == previous));
        }
        previous = row.code_offset;
        first = false;
    }
    if habits.unsorted {
        rows.sort_by_key(|row| row.code_offset);
    }
    if habits.terminator || habits.past > 0 {
        rows.retain(|row| row.code_offset < size);
    }
}
