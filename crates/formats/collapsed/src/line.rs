//! One line: where it ends, its stack and count, and what its first frames and the suffixes of frames mean.

use std::ops::Range;

use memchr::{memchr, memrchr};
use perfuse_recording::Sniff;
use perfuse_stopping::checkpoint;
use perfuse_wire::Rule;

use crate::{LARGE_COUNT, NO_COUNT};

/// Bytes that [`sniff`] looks at.
const SNIFFED_BYTES: usize = 1 << 16;

/// A line without its line break.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line<'a> {
    /// Nothing but white space.
    Blank,
    /// A line that starts with `#`: Austin writes its settings there.
    Comment(&'a [u8]),
    /// A stack with its count.
    Stack(StackLine<'a>),
    /// A line without a usable count: the rule that it breaks.
    Malformed(&'static Rule),
}

/// A stack with its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackLine<'a> {
    /// Frames from the outermost on, separated by `;`.
    pub frames: &'a [u8],
    /// Samples, or whatever the writer counts; a count with decimals is rounded.
    pub count: u64,
    /// Whether the count has decimals.
    pub is_rounded: bool,
}

impl<'a> Line<'a> {
    /// Parses a line without its line break.
    #[inline]
    #[must_use]
    pub fn parse(line: &'a [u8]) -> Self {
        let line = line.trim_ascii_end();
        match line.first() {
            None => return Self::Blank,
            Some(b'#') => return Self::Comment(line),
            Some(_) => {}
        }
        let Some((frames, number)) = memrchr(b' ', line).and_then(|space| line.split_at_checked(space))
        else {
            return Self::Malformed(&NO_COUNT);
        };
        match parse_count(number.trim_ascii_start()) {
            Ok((count, is_rounded)) => {
                Self::Stack(StackLine { frames: frames.trim_ascii_end(), count, is_rounded })
            }
            Err(rule) => Self::Malformed(rule),
        }
    }
}

impl StackLine<'_> {
    /// Whether the frames end in another number, as in the two-column files of difffolded.pl.
    #[must_use]
    pub fn has_second_count(&self) -> bool {
        let space = memrchr(b' ', self.frames);
        let last = space.and_then(|space| self.frames.get(space.saturating_add(1)..));
        last.is_some_and(|word| parse_count(word).is_ok())
    }
}

/// A count and whether it was rounded.
#[inline]
fn parse_count(text: &[u8]) -> Result<(u64, bool), &'static Rule> {
    let (whole, decimals) = match memchr(b'.', text) {
        Some(point) => (text.get(..point).unwrap_or_default(), text.get(point.saturating_add(1)..)),
        None => (text, None),
    };
    let decimals = decimals.unwrap_or_default();
    if whole.is_empty() || !whole.iter().chain(decimals).all(u8::is_ascii_digit) {
        return Err(&NO_COUNT);
    }
    let mut count: u64 = 0;
    for digit in whole {
        let value = u64::from(digit.wrapping_sub(b'0'));
        count = count.checked_mul(10).and_then(|tens| tens.checked_add(value)).ok_or(&LARGE_COUNT)?;
    }
    let rounds_up = decimals.first().is_some_and(|digit| *digit >= b'5');
    let count = count.checked_add(rounds_up.into()).ok_or(&LARGE_COUNT)?;
    Ok((count, decimals.iter().any(|digit| *digit != b'0')))
}

/// The line at an offset, without its line break; `None` at the end of the text.
#[inline]
#[must_use]
pub fn next(text: &[u8], offset: u64) -> Option<(u64, &[u8])> {
    let start = usize::try_from(offset).ok()?;
    let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
    let (skipped, rest) = match rest.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) if start == 0 => (3, rest),
        _ => (0, rest),
    };
    let end = line_end(rest).unwrap_or(rest.len());
    Some((offset.saturating_add(skipped), rest.get(..end)?))
}

/// Number of bytes that are searched at once.
const PIECE_BYTES: usize = 4 << 20;

/// Where the first line of a text ends, which may be as long as the file; `None` where it has no end.
pub fn line_end(text: &[u8]) -> Option<usize> {
    text.chunks(PIECE_BYTES).zip((0usize..).step_by(PIECE_BYTES)).find_map(|(piece, start)| {
        checkpoint();
        memchr(b'\n', piece).map(|at| start.saturating_add(at))
    })
}

/// Where the last line of a text starts.
pub fn last_line_start(text: &[u8]) -> usize {
    let pieces = text.rchunks(PIECE_BYTES);
    let mut left = text.len();
    for piece in pieces {
        checkpoint();
        left = left.saturating_sub(piece.len());
        if let Some(at) = memrchr(b'\n', piece) {
            return left.saturating_add(at).saturating_add(1);
        }
    }
    0
}

/// Whether a text is collapsed stacks: each complete line of its beginning is one, and one has several frames.
#[must_use]
pub fn sniff(head: &[u8]) -> Sniff {
    if head.starts_with(b"# austin:") {
        return Sniff::Certain;
    }
    let beginning = head.get(..SNIFFED_BYTES).unwrap_or(head);
    let is_binary = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
    if beginning.iter().any(is_binary) {
        return Sniff::No;
    }
    let complete = match memrchr(b'\n', beginning) {
        Some(last) => beginning.get(..last).unwrap_or_default(),
        None => beginning,
    };
    let mut has_caller = false;
    for line in complete.split(|byte| *byte == b'\n') {
        match Line::parse(line) {
            Line::Blank | Line::Comment(_) => {}
            Line::Stack(stack) => has_caller |= stack.frames.contains(&b';'),
            Line::Malformed(_) => return Sniff::No,
        }
    }
    if has_caller { Sniff::Likely } else { Sniff::No }
}

/// The code that a frame's suffix states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// `_[k]`: the kernel's code.
    Kernel,
    /// `_[j]` and `_[1]`: compiled by a JIT compiler.
    Jit,
    /// `_[i]`: inlined into its caller by a JIT compiler.
    Inlined,
    /// `_[0]`: interpreted.
    Interpreted,
    /// No suffix: not stated.
    Unknown,
}

impl FrameKind {
    /// The value of column `frames.kind`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Jit | Self::Inlined => "jit",
            Self::Interpreted | Self::Unknown => "unknown",
        }
    }
}

/// A frame's name and the kind that its suffix states.
#[inline]
#[must_use]
pub fn split_suffix(frame: &[u8]) -> (&[u8], FrameKind) {
    let kind = match frame.last_chunk::<4>() {
        Some(b"_[k]") => FrameKind::Kernel,
        Some(b"_[j]" | b"_[1]") => FrameKind::Jit,
        Some(b"_[i]") => FrameKind::Inlined,
        Some(b"_[0]") => FrameKind::Interpreted,
        _ => return (frame, FrameKind::Unknown),
    };
    (frame.get(..frame.len().saturating_sub(4)).unwrap_or_default(), kind)
}

/// A process or thread that a line's first frames name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ThreadRoot {
    /// Process id.
    pub pid: Option<i32>,
    /// The process's command.
    pub process_name: Option<String>,
    /// Thread id.
    pub tid: Option<u64>,
    /// The thread's name.
    pub thread_name: Option<String>,
}

impl ThreadRoot {
    /// The process and thread that the first frames of a stack name, and the position of the frame after them.
    ///
    /// - stackcollapse-perf.pl `--tid`: `comm-pid/tid`, with `?` for an unknown pid
    /// - async-profiler `threads`: `[name tid=123]`
    /// - py-spy: `process 123:"command"`, then or alone `thread (0x7F00)` or `thread (123): name`
    /// - Austin: `P123;T123` or `P123;T0:123`; in earlier versions `Process 123;Thread 123`
    #[must_use]
    pub fn of(frames: &[u8]) -> (Self, usize) {
        let mut texts = frames_from(frames, 0).map(|range| {
            let text = frames.get(range.clone()).and_then(|text| std::str::from_utf8(text).ok());
            (text.unwrap_or_default(), range.end.saturating_add(1))
        });
        let Some((first, after_first)) = texts.next() else { return (Self::default(), 0) };
        let (second, after_second) = texts.next().unwrap_or_default();
        if let (Some(pid), Some(tid)) = (austin_id(first, 'P', "Process "), austin_id(second, 'T', "Thread "))
            && let Ok(pid) = i32::try_from(pid)
        {
            return (Self { pid: Some(pid), tid: Some(tid), ..Self::default() }, after_second);
        }
        if let Some((pid, command)) = first.strip_prefix("process ").and_then(|rest| rest.split_once(':'))
            && let Ok(pid) = pid.parse()
        {
            let process_name = Some(command.trim_matches('"').to_owned());
            let process = Self { pid: Some(pid), process_name, ..Self::default() };
            return match named_thread(second) {
                Some((tid, thread_name)) => (Self { tid: Some(tid), thread_name, ..process }, after_second),
                None => (process, after_first),
            };
        }
        if let Some((tid, thread_name)) = named_thread(first) {
            return (Self { tid: Some(tid), thread_name, ..Self::default() }, after_first);
        }
        match task(first) {
            Some((pid, tid, name)) => {
                (Self { pid, process_name: None, tid: Some(tid), thread_name: Some(name) }, after_first)
            }
            None => (Self::default(), 0),
        }
    }
}

/// The id of a frame such as `P123`, `T0:123` or `Thread 123`. Austin 3 puts the interpreter's number before the thread id.
fn austin_id(frame: &str, letter: char, word: &str) -> Option<u64> {
    let id = frame.strip_prefix(word).or_else(|| frame.strip_prefix(letter))?;
    parse_id(id.split_once(':').map_or(id, |(_, id)| id))
}

/// Id and name of `thread (0x7F00)`, `thread (123): name` and `[name tid=123]`.
fn named_thread(frame: &str) -> Option<(u64, Option<String>)> {
    if let Some(rest) = frame.strip_prefix("thread (") {
        let (id, name) = rest.split_once(')')?;
        return Some((parse_id(id)?, name.strip_prefix(": ").map(str::to_owned)));
    }
    let (name, id) = frame.strip_prefix('[')?.strip_suffix(']')?.rsplit_once(" tid=")?;
    Some((parse_id(id)?, Some(name.to_owned())))
}

/// Pid, tid and name of `comm-pid/tid`.
fn task(frame: &str) -> Option<(Option<i32>, u64, String)> {
    let (name, ids) = frame.rsplit_once('-')?;
    let (pid, tid) = ids.split_once('/')?;
    let pid = if pid == "?" { None } else { Some(pid.parse().ok()?) };
    Some((pid, parse_id(tid)?, name.to_owned()))
}

fn parse_id(text: &str) -> Option<u64> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match hex {
        Some(hex) if is_number(hex) => u64::from_str_radix(hex, 16).ok(),
        Some(_) => None,
        None => text.parse().ok().filter(|_| is_number(text)),
    }
}

/// The frames of a stack from a position on, outermost first, each with its range in `frames`.
pub fn frames_from(frames: &[u8], start: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = Some(start);
    std::iter::from_fn(move || {
        let start = next?;
        let rest = frames.get(start..)?;
        let end = memchr(b';', rest).map(|len| start.saturating_add(len));
        next = end.map(|end| end.saturating_add(1));
        Some(start..end.unwrap_or(frames.len()))
    })
}
