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
        // Calls within it that are outside of the selected time left theirs behind.
        self.0.drain(start..).filter(|&(of, _)| of == depth).map(|(_, value)| value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_its_own() {
        let mut arguments = Arguments::default();
        arguments.enter(0);
        arguments.push(0, 1);
        arguments.enter(1);
        arguments.push(1, 2);
        // That call is not told of; another takes its place.
        arguments.enter(1);
        arguments.push(1, 3);
        arguments.push(1, 4);
        assert_eq!(arguments.take(1), [3, 4]);
        arguments.enter(1);
        arguments.push(1, 5);
        assert_eq!(arguments.take(0), [1]);
        assert_eq!(arguments.take(0), []);
    }
}
