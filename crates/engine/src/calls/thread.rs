//! The stack of a thread.

use perfuse_tables::StartReason;
use rustc_hash::FxHashMap;

use super::events::Event;
use super::visitor::OpenCall;

/// The open calls of a thread.
#[derive(Debug)]
pub(super) struct ThreadStack<M> {
    /// Its first event, and the processor of that event.
    pub first: (Event, Option<u32>),
    pub stack: Vec<OpenCall<M>>,
    /// Number of open calls of each function; counted from the first exit that does not match a nearby call.
    pub open: Option<FxHashMap<u32, u32>>,
    pub last_ns: i64,
    pub last_offset: u64,
}

impl<M> ThreadStack<M> {
    #[inline(always)]
    pub fn push(&mut self, call: OpenCall<M>) {
        if let Some(open) = &mut self.open {
            let count = open.entry(call.function_id).or_default();
            *count = count.saturating_add(1);
        }
        self.stack.push(call);
    }

    /// Number of calls that are searched before functions are counted.
    const NEAR: usize = 64;

    /// Whether a call of the function is open that an exit may unwind to. Calls whose entry was lost are excluded: they were
    /// found by an exit that came when all calls within had ended.
    pub fn has_open(&mut self, function_id: u32) -> bool {
        let was_entered = |frame: &&OpenCall<M>| frame.start_reason == StartReason::Entry;
        let mut near = self.stack.iter().rev().take(Self::NEAR).take_while(was_entered);
        if near.any(|frame| frame.function_id == function_id) {
            return true;
        }
        if self.stack.len() <= Self::NEAR {
            return false;
        }
        // Counted once, then updated: a scan of a deep stack for every exit without a call takes quadratic time.
        let open = self.open.get_or_insert_with(|| {
            let mut open = FxHashMap::default();
            let entered = self.stack.iter().filter(was_entered);
            for frame in entered {
                let count: &mut u32 = open.entry(frame.function_id).or_default();
                *count = count.saturating_add(1);
            }
            open
        });
        open.contains_key(&function_id)
    }
}
