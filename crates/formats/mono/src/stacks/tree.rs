use rustc_hash::FxHashMap;

/// A place in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Function, where it is known.
    pub function: Option<u32>,
    /// Address, where it was sampled.
    pub address: Option<u64>,
}

impl Frame {
    /// A call of a method.
    #[must_use]
    pub fn method(function: u32) -> Self {
        Self { function: Some(function), address: None }
    }
}

/// No caller.
const ROOT: u32 = u32::MAX;

/// Frames, and stacks as frames on top of others.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    frames: Vec<Frame>,
    frame_numbers: FxHashMap<Frame, u32>,
    /// Caller's stack and frame of each.
    stacks: Vec<(u32, u32)>,
    stack_numbers: FxHashMap<(u32, u32), u32>,
}

impl Tree {
    /// Whether nothing was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Distinct frames.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Stacks: caller's stack, where there is one, and frame. A caller stands before whom it calls.
    pub fn stacks(&self) -> impl Iterator<Item = (Option<u32>, u32)> {
        self.stacks.iter().map(|(caller, frame)| (Some(*caller).filter(|caller| *caller != ROOT), *frame))
    }

    /// Number of a stack, outermost frame first.
    pub fn add(&mut self, frames: &[Frame]) -> u32 {
        frames.iter().fold(ROOT, |caller, frame| {
            let frame = self.frame(*frame);
            self.stack(caller, frame)
        })
    }

    fn frame(&mut self, frame: Frame) -> u32 {
        *self.frame_numbers.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            (self.frames.len() as u32).wrapping_sub(1)
        })
    }

    fn stack(&mut self, caller: u32, frame: u32) -> u32 {
        *self.stack_numbers.entry((caller, frame)).or_insert_with(|| {
            self.stacks.push((caller, frame));
            (self.stacks.len() as u32).wrapping_sub(1)
        })
    }

    /// Number of a stack that was added.
    #[must_use]
    pub fn find(&self, frames: &[Frame]) -> Option<u32> {
        let found = frames.iter().try_fold(ROOT, |caller, frame| {
            let frame = self.frame_numbers.get(frame)?;
            self.stack_numbers.get(&(caller, *frame)).copied()
        });
        found.filter(|stack| *stack != ROOT)
    }

    /// Adds another's stacks; tells their numbers here by their numbers there.
    pub fn append(&mut self, other: &Self) -> Vec<u32> {
        let frames: Vec<_> = other.frames.iter().map(|frame| self.frame(*frame)).collect();
        let mut numbers: Vec<u32> = Vec::with_capacity(other.stacks.len());
        for (caller, frame) in &other.stacks {
            let caller = numbers.get(*caller as usize).copied().unwrap_or(ROOT);
            let frame = frames.get(*frame as usize).copied().unwrap_or(0);
            let number = self.stack(caller, frame);
            numbers.push(number);
        }
        numbers
    }
}
