//! Paths of open calls, as a tree.

use rustc_hash::FxHashMap;

use crate::names::LogNames;
use crate::stacks::tree::NO_CALLER;

/// Stands for the path of no call.
pub(super) const NO_PATH: u32 = u32::MAX;

/// Stacks of paths that were looked up.
pub type KnownPaths = FxHashMap<u32, u32>;

/// An open call, with the one that it is in.
#[derive(Clone, Copy, Debug)]
struct OpenPath {
    caller: u32,
    function: u32,
    /// The path without calls of the runtime at its end.
    own: u32,
}

/// Paths by number.
#[derive(Debug, Default)]
pub(super) struct OpenPaths(Vec<OpenPath>);

impl OpenPaths {
    /// Adds a call within a path; returns its path.
    pub fn add(&mut self, caller: u32, function: u32, names: &LogNames) -> u32 {
        let path = self.0.len() as u32;
        let own = if names.is_runtime_call(function) { self.own(caller) } else { path };
        self.0.push(OpenPath { caller, function, own });
        path
    }

    /// A path without calls of the runtime at its end.
    pub fn own(&self, path: u32) -> u32 {
        self.0.get(path as usize).map_or(NO_PATH, |node| node.own)
    }

    /// The stack of a path.
    pub fn stack(&self, path: u32, known: &mut KnownPaths, on_top: &mut impl FnMut(u32, u32) -> u32) -> u32 {
        let (mut unknown, mut at) = (Vec::new(), path);
        let mut stack = loop {
            if let Some(stack) = known.get(&at) {
                break *stack;
            }
            let Some(node) = self.0.get(at as usize) else { break NO_CALLER };
            unknown.push((at, node.function));
            at = node.caller;
        };
        for (path, function) in unknown.into_iter().rev() {
            perfuse_stopping::checkpoint();
            stack = on_top(stack, function);
            known.insert(path, stack);
        }
        stack
    }
}
