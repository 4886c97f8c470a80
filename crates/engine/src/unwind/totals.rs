use super::step::Origin;
use super::walk::{Frame, Stop};

/// How unwinding went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Stacks that were unwound.
    pub num_stacks: u64,
    /// Frames, by [`Origin`].
    pub frames: [u64; Origin::ALL.len()],
    /// Stacks, by why they end where they do: [`Stop`].
    pub stops: [u64; Stop::ALL.len()],
    /// Size of the largest copy of a stack that a stack was cut at.
    pub cut_bytes: u64,
}

impl Totals {
    pub(super) fn add(&mut self, frames: &[Frame], stop: Stop, stack_bytes: usize) {
        self.num_stacks += 1;
        for frame in frames {
            self.frames[frame.origin as usize] += 1;
        }
        self.stops[stop as usize] += 1;
        if stop == Stop::Cut {
            self.cut_bytes = self.cut_bytes.max(stack_bytes as u64);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.num_stacks += other.num_stacks;
        self.frames.iter_mut().zip(other.frames).for_each(|(mine, other)| *mine += other);
        self.stops.iter_mut().zip(other.stops).for_each(|(mine, other)| *mine += other);
        self.cut_bytes = self.cut_bytes.max(other.cut_bytes);
    }
}
