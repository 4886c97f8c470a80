//! Stacks as a tree: each is a frame on top of its caller's stack.

use rustc_hash::FxHashMap;

/// A frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// Function, if known.
    pub function: Option<u32>,
    /// Address, if sampled.
    pub address: Option<u64>,
    /// Whether it is known from enters and leaves.
    pub is_traced: bool,
}

impl StackFrame {
    /// The frame of a method.
    #[must_use]
    pub fn method(function: u32) -> Self {
        Self { function: Some(function), address: None, is_traced: false }
    }

    /// The frame of an open call.
    pub fn open_call(function: u32) -> Self {
        Self { is_traced: true, ..Self::method(function) }
    }
}

/// Stands for the caller of an outermost frame.
pub const NO_CALLER: u32 = u32::MAX;

/// Distinct frames, and stacks as a frame on top of the caller's stack.
#[derive(Clone, Debug, Default)]
pub struct StackTree {
    frames: Vec<StackFrame>,
    frame_numbers: FxHashMap<StackFrame, u32>,
    /// Caller's stack and frame of each stack.
    stacks: Vec<(u32, u32)>,
    stack_numbers: FxHashMap<(u32, u32), u32>,
}

impl StackTree {
    /// Whether the tree is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The distinct frames.
    #[must_use]
    pub fn frames(&self) -> &[StackFrame] {
        &self.frames
    }

    /// Caller's stack and frame of each stack. A caller precedes the stacks on top of it.
    pub fn stacks(&self) -> impl Iterator<Item = (Option<u32>, u32)> {
        self.stacks
            .iter()
            .map(|(caller, frame)| (Some(*caller).filter(|caller| *caller != NO_CALLER), *frame))
    }

    /// Adds a stack of frames, outermost first; returns its index, [`NO_CALLER`] for none.
    pub fn add(&mut self, frames: &[StackFrame]) -> u32 {
        frames.iter().fold(NO_CALLER, |caller, frame| {
            let frame = self.add_frame(*frame);
            self.add_stack(caller, frame)
        })
    }

    /// Adds a stack: an open call of a function, called by another stack. Returns its index.
    pub fn add_call(&mut self, caller: u32, function: u32) -> u32 {
        let frame = self.add_frame(StackFrame::open_call(function));
        self.add_stack(caller, frame)
    }

    /// Index of a known stack that [`add_call`](Self::add_call) added.
    #[must_use]
    pub fn find_call(&self, caller: u32, function: u32) -> u32 {
        let frame = self.frame_numbers.get(&StackFrame::open_call(function));
        let stack = frame.and_then(|frame| self.stack_numbers.get(&(caller, *frame)));
        stack.copied().unwrap_or(NO_CALLER)
    }

    /// Index of a frame, which is added if new.
    fn add_frame(&mut self, frame: StackFrame) -> u32 {
        *self.frame_numbers.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            (self.frames.len() as u32).wrapping_sub(1)
        })
    }

    /// Index of a stack, which is added if new.
    fn add_stack(&mut self, caller: u32, frame: u32) -> u32 {
        *self.stack_numbers.entry((caller, frame)).or_insert_with(|| {
            self.stacks.push((caller, frame));
            (self.stacks.len() as u32).wrapping_sub(1)
        })
    }

    /// Index of a known stack.
    #[must_use]
    pub fn find(&self, frames: &[StackFrame]) -> Option<u32> {
        let found = frames.iter().try_fold(NO_CALLER, |caller, frame| {
            let frame = self.frame_numbers.get(frame)?;
            self.stack_numbers.get(&(caller, *frame)).copied()
        });
        found.filter(|stack| *stack != NO_CALLER)
    }

    /// Adds the stacks of `other`; returns their new indices by their old ones.
    pub fn append(&mut self, other: &Self) -> Vec<u32> {
        let frames: Vec<_> = other.frames.iter().map(|frame| self.add_frame(*frame)).collect();
        let mut numbers: Vec<u32> = Vec::with_capacity(other.stacks.len());
        for (caller, frame) in &other.stacks {
            let caller = numbers.get(*caller as usize).copied().unwrap_or(NO_CALLER);
            let frame = frames.get(*frame as usize).copied().unwrap_or(0);
            let number = self.add_stack(caller, frame);
            numbers.push(number);
        }
        numbers
    }
}
