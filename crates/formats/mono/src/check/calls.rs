//! Matches method enters with leaves.

use rustc_hash::FxHashMap;

use crate::records::EventBody;

/// Maximum depth at which a left method is searched: deeper than exceptions unwind.
const MAX_DEPTH: usize = 4096;

/// The open calls of each thread.
#[derive(Debug, Default)]
pub struct OpenCalls {
    /// Method and offset of the enter event of each open call, outermost first.
    open: FxHashMap<u64, Vec<(u64, u64)>>,
}

impl OpenCalls {
    /// Opens a call.
    pub fn enter(&mut self, thread: u64, body: &EventBody<'_>, offset: u64) {
        if let EventBody::Call { method } = body {
            self.open.entry(thread).or_default().push((*method, offset));
        }
    }

    /// Closes a call and every call nested in it; returns `false` if the method is not open.
    pub fn leave(&mut self, thread: u64, method: u64) -> bool {
        let Some(stack) = self.open.get_mut(&thread) else { return false };
        let position = stack.iter().rev().take(MAX_DEPTH).position(|(entered, _)| *entered == method);
        let Some(num_inner) = position else { return false };
        stack.truncate(stack.len().saturating_sub(num_inner).saturating_sub(1));
        true
    }

    /// Threads with open calls: the number of calls, and the offset of the outermost one's enter event.
    pub fn into_open(self) -> Vec<(u64, usize, u64)> {
        let open = self.open.into_iter().filter_map(|(thread, stack)| {
            let (_, offset) = stack.first()?;
            Some((thread, stack.len(), *offset))
        });
        let mut open: Vec<_> = open.collect();
        open.sort_unstable_by_key(|(_, _, offset)| *offset);
        open
    }
}
