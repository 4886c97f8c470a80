//! Arguments of calls that are open.

/// The arguments of the open calls of a thread, each with the depth of its call.
#[derive(Clone, Debug, Default)]
pub struct Arguments(Vec<(u32, u64)>);

impl Arguments {
    /// A call begins: what calls at its depth had is of no use any more.
    #[inline]
    pub fn enter(&mut self, depth: u32) {
        if !self.0.is_empty() {
            self.0.truncate(self.0.partition_point(|&(of, _)| of < depth));
        }
    }

    /// Another argument of the innermost call.
    pub fn push(&mut self, depth: u32, value: u64) {
        self.0.push((depth, value));
    }

    /// Those of the innermost call, which ends.
    #[inline]
    pub fn take(&mut self, depth: u32) -> Vec<u64> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let start = self.0.partition_point(|&(of, _)| of < depth);
        self.0.drain(start..).map(|(_, value)| value).collect()
    }
}
