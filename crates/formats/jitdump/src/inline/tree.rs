//! Lines and inlined calls of a piece of code, in a form common to all dialects.

use perfuse_wire::ParseError;

use super::entries::{MAX_DEPTH, invalid};

/// The declaration of a function. Empty texts and 0 mean "not recorded".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeclaredFunction<'a> {
    /// Name.
    pub name: &'a [u8],
    /// Source file.
    pub path: &'a [u8],
    /// Line at which it starts, from 1.
    pub line: u32,
    /// Column at which it starts, from 1.
    pub column: u32,
}

/// A source line; it applies up to the offset of the next one and belongs to the deepest call there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceLine<'a> {
    /// Offset from the start of the code, in bytes.
    pub code_offset: u64,
    /// Source file.
    pub path: &'a [u8],
    /// Line, from 1; 0 for code that belongs to no line.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

/// A range of code of an inlined function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InlineCall<'a> {
    /// Offset from the start of the code, in bytes.
    pub start_offset: u64,
    /// Size of the range in bytes.
    pub size: u64,
    /// 0 for a call from the outer function.
    pub depth: u32,
    /// The inlined function.
    pub function: DeclaredFunction<'a>,
    /// File of the call: a file of the caller.
    pub call_path: &'a [u8],
    /// Line of the call, from 1; 0 if unknown.
    pub call_line: u32,
    /// Column of the call, from 1; 0 if unknown.
    pub call_column: u32,
}

impl InlineCall<'_> {
    /// Whether the range contains an offset.
    #[must_use]
    pub fn covers(&self, offset: u64) -> bool {
        offset.checked_sub(self.start_offset).is_some_and(|into| into < self.size)
    }
}

/// One level of the inline stack at an offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct InlineFrame<'a> {
    /// The function that contains the code; records often have no facts about that of the outermost frame.
    pub function: DeclaredFunction<'a>,
    /// Source file of the position.
    pub path: &'a [u8],
    /// Line of the position, from 1; 0 if unknown.
    pub line: u32,
    /// Column of the position, from 1; 0 if unknown.
    pub column: u32,
}

/// Lines and inlined calls of one piece of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlineTree<'a> {
    /// The function the code was compiled for.
    pub outer: DeclaredFunction<'a>,
    /// Lines in order of offset.
    pub lines: Vec<SourceLine<'a>>,
    /// Calls in order of start and depth, so that a caller precedes its callees.
    pub calls: Vec<InlineCall<'a>>,
}

impl<'a> InlineTree<'a> {
    /// Sorts lines and calls into the order of the fields' documentation.
    pub fn sort(&mut self) {
        self.lines.sort_by_key(|line| line.code_offset);
        self.calls.sort_by_key(|call| (call.start_offset, call.depth));
    }

    /// The line that applies at an offset.
    #[must_use]
    pub fn line_at(&self, offset: u64) -> Option<&SourceLine<'a>> {
        let after = self.lines.partition_point(|line| line.code_offset <= offset);
        self.lines.get(after.checked_sub(1)?)
    }

    /// The inline stack at an offset, innermost frame first. It always contains the outer function.
    #[must_use]
    pub fn frames_at(&self, offset: u64) -> Vec<InlineFrame<'a>> {
        let mut active: Vec<&InlineCall<'a>> = Vec::new();
        for call in self
            .calls
            .iter()
            .take_while(|call| call.start_offset <= offset)
            .filter(|call| call.covers(offset))
        {
            activate(&mut active, call);
        }
        stack_frames(self.outer, &active, self.line_at(offset))
    }

    /// Calls `visit` for every range of code with one inline stack, in order, with its start and its frames, outermost first.
    pub fn visit_ranges(&self, mut visit: impl FnMut(u64, &[InlineFrame<'a>])) {
        let ends = self.calls.iter().map(|call| call.start_offset.saturating_add(call.size));
        let mut starts: Vec<u64> = self.lines.iter().map(|line| line.code_offset).collect();
        starts.extend(self.calls.iter().map(|call| call.start_offset));
        starts.extend(ends.filter(|&end| end != u64::MAX));
        starts.sort_unstable();
        starts.dedup();
        let mut calls = self.calls.iter().peekable();
        let mut active: Vec<&InlineCall<'a>> = Vec::new();
        for start in starts {
            if let Some(ended) = active.iter().position(|call| !call.covers(start)) {
                active.truncate(ended);
            }
            while let Some(call) = calls.next_if(|call| call.start_offset <= start) {
                if call.covers(start) {
                    activate(&mut active, call);
                }
            }
            let mut stack = stack_frames(self.outer, &active, self.line_at(start));
            stack.reverse();
            visit(start, &stack);
        }
    }
}

/// Adds a call to the active ones and removes those at its depth and below. A call whose caller is missing becomes a call of
/// the nearest active one.
fn activate<'t, 'a>(active: &mut Vec<&'t InlineCall<'a>>, call: &'t InlineCall<'a>) {
    active.truncate(call.depth.min(MAX_DEPTH) as usize);
    active.push(call);
}

/// The inline stack of active calls, innermost frame first.
fn stack_frames<'a>(
    outer: DeclaredFunction<'a>,
    active: &[&InlineCall<'a>],
    line: Option<&SourceLine<'a>>,
) -> Vec<InlineFrame<'a>> {
    let mut position = line.copied().unwrap_or_default();
    let mut stack = Vec::with_capacity(active.len().saturating_add(1));
    for call in active.iter().rev() {
        stack.push(InlineFrame {
            function: call.function,
            path: position.path,
            line: position.line,
            column: position.column,
        });
        position = SourceLine {
            code_offset: 0,
            path: call.call_path,
            line: call.call_line,
            column: call.call_column,
        };
    }
    stack.push(InlineFrame {
        function: outer,
        path: position.path,
        line: position.line,
        column: position.column,
    });
    stack
}

/// Builds a tree from ranges with their inline stacks, which dialects B and D contain.
pub(super) struct TreeBuilder<'a> {
    tree: InlineTree<'a>,
    /// Indices of the calls that have no end yet, by depth.
    open_calls: Vec<usize>,
    num_ranges: usize,
}

/// Largest average number of calls that a range may open, so that a small record cannot expand to a large tree.
const CALLS_PER_RANGE: usize = 16;

impl<'a> TreeBuilder<'a> {
    /// A tree without ranges.
    pub fn new(outer: DeclaredFunction<'a>) -> Self {
        Self { tree: InlineTree { outer, ..InlineTree::default() }, open_calls: Vec::new(), num_ranges: 0 }
    }

    /// Adds a range of code from `start` to the next range, with its stack, outermost frame first. Starts must not decrease.
    pub fn add_range(&mut self, start: u64, stack: &[InlineFrame<'a>]) -> Result<(), ParseError> {
        self.num_ranges = self.num_ranges.saturating_add(1);
        let Some(innermost) = stack.last() else {
            self.close(0, start);
            self.tree.lines.push(SourceLine { code_offset: start, ..SourceLine::default() });
            return Ok(());
        };
        let (path, line, column) = (innermost.path, innermost.line, innermost.column);
        self.tree.lines.push(SourceLine { code_offset: start, path, line, column });
        let calls =
            stack.iter().zip(stack.iter().skip(1)).zip(0u32..).map(|((caller, callee), depth)| InlineCall {
                start_offset: start,
                size: 0,
                depth,
                function: callee.function,
                call_path: caller.path,
                call_line: caller.line,
                call_column: caller.column,
            });
        let same = calls
            .clone()
            .zip(&self.open_calls)
            .take_while(|(call, open)| self.is_same_call(**open, call))
            .count();
        self.close(same, start);
        for call in calls.skip(same) {
            self.open_calls.push(self.tree.calls.len());
            self.tree.calls.push(call);
        }
        let budget = self.num_ranges.saturating_mul(CALLS_PER_RANGE).saturating_add(4096);
        if self.tree.calls.len() > budget {
            return Err(invalid(self.tree.calls.len() as u64, "fewer calls for so few ranges", 0, "calls"));
        }
        Ok(())
    }

    /// Whether an open call equals a call, its start and size aside.
    fn is_same_call(&self, open: usize, call: &InlineCall<'a>) -> bool {
        self.tree
            .calls
            .get(open)
            .is_some_and(|open| InlineCall { start_offset: open.start_offset, ..*call } == *open)
    }

    /// Ends the open calls from a depth on.
    fn close(&mut self, depth: usize, end: u64) {
        for open in self.open_calls.drain(depth.min(self.open_calls.len())..) {
            if let Some(call) = self.tree.calls.get_mut(open) {
                call.size = end.saturating_sub(call.start_offset);
            }
        }
    }

    /// Ends the last range at the end of the code and returns the tree.
    pub fn finish(mut self, code_size: u64) -> InlineTree<'a> {
        self.close(0, code_size);
        self.tree.calls.retain(|call| call.size > 0);
        self.tree
    }
}

/// `None` for 0, which means "not recorded".
#[must_use]
pub fn nonzero(value: u32) -> Option<u32> {
    (value != 0).then_some(value)
}
