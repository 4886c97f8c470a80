//! Arguments of calls that are open.

/// The arguments of the open calls of a thread, each with the depth of its call.
#[derive(Clone, Debug, Default)]
pub struct Arguments(Vec<(u32, u64)>);

impl Arguments {
    /// A call begins: arguments of earlier calls at its depth are dropped.
    #[inline]
    pub fn enter(&mut self, depth: u32) {
        if !self.0.is_empty() {
            self.0.truncate(self.0.partition_point(|&(of, _)| of < depth));
        }
    }

    /// Adds an argument of the innermost call.
    pub fn push(&mut self, depth: u32, value: u64) {
        self.0.push((depth, value));
    }

    /// Removes and returns the arguments of the innermost call, which ends.
    #[inline]
    pub fn take(&mut self, depth: u32) -> Vec<u64> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let start = self.0.partition_point(|&(of, _)| of < depth);
        // Nested calls outside the selected time left their arguments here.
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
        // The call at depth 1 ends without `take`; another starts at its depth.
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
