//! What every dialect says, in one shape.

use perfuse_wire::ParseError;

use super::entries::{MAX_DEPTH, invalid};

/// A function as its source declares it. Empty text and 0 mean "not recorded".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Declaration<'a> {
    /// Name.
    pub name: &'a [u8],
    /// Source file.
    pub path: &'a [u8],
    /// Line it begins at, from 1.
    pub line: u32,
    /// Column it begins at, from 1.
    pub column: u32,
}

/// A source line; it holds up to the next one's offset, and lies inside the deepest call there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line<'a> {
    /// Bytes from the start of the code.
    pub code_offset: u64,
    /// Source file.
    pub path: &'a [u8],
    /// Line, from 1; 0 where the code belongs to none.
    pub line: u32,
    /// Column, from 1; 0 where unknown.
    pub column: u32,
}

/// A range of code that a function was inlined into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call<'a> {
    /// Bytes from the start of the code.
    pub start_offset: u64,
    /// Length of the range.
    pub size: u64,
    /// 0 for a call from the outer function.
    pub depth: u32,
    /// The function that was inlined.
    pub function: Declaration<'a>,
    /// File of the call, in the caller.
    pub call_path: &'a [u8],
    /// Line of the call, from 1; 0 where unknown.
    pub call_line: u32,
    /// Column of the call, from 1; 0 where unknown.
    pub call_column: u32,
}

impl Call<'_> {
    /// Whether the range covers an offset.
    #[must_use]
    pub fn covers(&self, offset: u64) -> bool {
        offset.checked_sub(self.start_offset).is_some_and(|into| into < self.size)
    }
}

/// One level of the inline stack at an offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// The function the code is in; for the outermost frame what the record says of it, often nothing.
    pub function: Declaration<'a>,
    /// Source file of this place.
    pub path: &'a [u8],
    /// Line of this place, from 1; 0 where unknown.
    pub line: u32,
    /// Column of this place, from 1; 0 where unknown.
    pub column: u32,
}

/// Lines and inlined calls of one piece of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlineTree<'a> {
    /// The function the code was compiled for.
    pub outer: Declaration<'a>,
    /// Lines, by offset.
    pub lines: Vec<Line<'a>>,
    /// Calls, by start and depth, so that a caller comes before what it calls.
    pub calls: Vec<Call<'a>>,
}

impl<'a> InlineTree<'a> {
    /// Brings lines and calls into the order the fields promise.
    pub fn sort(&mut self) {
        self.lines.sort_by_key(|line| line.code_offset);
        self.calls.sort_by_key(|call| (call.start_offset, call.depth));
    }

    /// The line that holds at an offset.
    #[must_use]
    pub fn line_at(&self, offset: u64) -> Option<&Line<'a>> {
        let after = self.lines.partition_point(|line| line.code_offset <= offset);
        self.lines.get(after.checked_sub(1)?)
    }

    /// The inline stack at an offset, innermost first. Never empty: the outer function is always there.
    #[must_use]
    pub fn frames_at(&self, offset: u64) -> Vec<Frame<'a>> {
        let mut active: Vec<&Call<'a>> = Vec::new();
        for call in self
            .calls
            .iter()
            .take_while(|call| call.start_offset <= offset)
            .filter(|call| call.covers(offset))
        {
            activate(&mut active, call);
        }
        frames(self.outer, &active, self.line_at(offset))
    }

    /// Visits every range of code with one inline stack, in order: its start and its frames, outermost first.
    pub fn ranges(&self, mut visit: impl FnMut(u64, &[Frame<'a>])) {
        let ends = self.calls.iter().map(|call| call.start_offset.saturating_add(call.size));
        let mut starts: Vec<u64> = self.lines.iter().map(|line| line.code_offset).collect();
        starts.extend(self.calls.iter().map(|call| call.start_offset));
        starts.extend(ends.filter(|&end| end != u64::MAX));
        starts.sort_unstable();
        starts.dedup();
        let mut calls = self.calls.iter().peekable();
        let mut active: Vec<&Call<'a>> = Vec::new();
        for start in starts {
            if let Some(over) = active.iter().position(|call| !call.covers(start)) {
                active.truncate(over);
            }
            while let Some(call) = calls.next_if(|call| call.start_offset <= start) {
                if call.covers(start) {
                    activate(&mut active, call);
                }
            }
            let mut stack = frames(self.outer, &active, self.line_at(start));
            stack.reverse();
            visit(start, &stack);
        }
    }
}

/// Puts a call at its depth; what was deeper is over. A call whose caller is missing counts as its nearest caller's.
fn activate<'t, 'a>(active: &mut Vec<&'t Call<'a>>, call: &'t Call<'a>) {
    active.truncate(call.depth.min(MAX_DEPTH) as usize);
    active.push(call);
}

fn frames<'a>(outer: Declaration<'a>, active: &[&Call<'a>], line: Option<&Line<'a>>) -> Vec<Frame<'a>> {
    let mut here = line.copied().unwrap_or_default();
    let mut stack = Vec::with_capacity(active.len().saturating_add(1));
    for call in active.iter().rev() {
        stack.push(Frame { function: call.function, path: here.path, line: here.line, column: here.column });
        here = Line { code_offset: 0, path: call.call_path, line: call.call_line, column: call.call_column };
    }
    stack.push(Frame { function: outer, path: here.path, line: here.line, column: here.column });
    stack
}

/// Makes a tree of ranges with their inline stacks: the shape dialects B and D have in the file.
pub(super) struct Assembler<'a> {
    tree: InlineTree<'a>,
    open: Vec<usize>,
    ranges: usize,
}

/// Calls a range may open on average; more is an attempt to make much of little.
const CALLS_PER_RANGE: usize = 16;

impl<'a> Assembler<'a> {
    pub fn new(outer: Declaration<'a>) -> Self {
        Self { tree: InlineTree { outer, ..InlineTree::default() }, open: Vec::new(), ranges: 0 }
    }

    /// The code from `start` on has this stack, outermost frame first. Starts must not fall.
    pub fn range(&mut self, start: u64, stack: &[Frame<'a>]) -> Result<(), ParseError> {
        self.ranges = self.ranges.saturating_add(1);
        let Some(innermost) = stack.last() else {
            self.close(0, start);
            self.tree.lines.push(Line { code_offset: start, ..Line::default() });
            return Ok(());
        };
        let (path, line, column) = (innermost.path, innermost.line, innermost.column);
        self.tree.lines.push(Line { code_offset: start, path, line, column });
        let wanted =
            stack.iter().zip(stack.iter().skip(1)).zip(0u32..).map(|((caller, callee), depth)| Call {
                start_offset: start,
                size: 0,
                depth,
                function: callee.function,
                call_path: caller.path,
                call_line: caller.line,
                call_column: caller.column,
            });
        let same = wanted.clone().zip(&self.open).take_while(|(call, open)| self.is(**open, call)).count();
        self.close(same, start);
        for call in wanted.skip(same) {
            self.open.push(self.tree.calls.len());
            self.tree.calls.push(call);
        }
        let budget = self.ranges.saturating_mul(CALLS_PER_RANGE).saturating_add(4096);
        if self.tree.calls.len() > budget {
            return Err(invalid(self.tree.calls.len() as u64, "fewer calls for so few ranges", 0, "calls"));
        }
        Ok(())
    }

    fn is(&self, open: usize, call: &Call<'a>) -> bool {
        self.tree
            .calls
            .get(open)
            .is_some_and(|open| Call { start_offset: open.start_offset, ..*call } == *open)
    }

    fn close(&mut self, keep: usize, end: u64) {
        for open in self.open.drain(keep.min(self.open.len())..) {
            if let Some(call) = self.tree.calls.get_mut(open) {
                call.size = end.saturating_sub(call.start_offset);
            }
        }
    }

    /// The last range ends with the code.
    pub fn finish(mut self, code_size: u64) -> InlineTree<'a> {
        self.close(0, code_size);
        self.tree.calls.retain(|call| call.size > 0);
        self.tree
    }
}
