//! The stack of a thread.

use perfuse_tables::{CallEvent, StartReason};
use rustc_hash::FxHashMap;

use super::events::Event;
use super::visitor::OpenCall;

/// A call whose entry was lost at the start of its thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct LostEntry {
    pub function_id: u32,
    /// Number of calls that were open at its exit, as far as they were entered: none of them has an exit of its own.
    height: usize,
    /// Number of exits before its own that are of no call.
    num_orphans: usize,
}

impl LostEntry {
    /// Whether calls were open at its exit.
    pub fn has_left_others(&self) -> bool {
        self.height > 0
    }
}

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
    /// Calls that were open at the start, innermost first, also those that ended.
    lost: Vec<LostEntry>,
    /// Those that exits of functions that are not open show, if the recording ended here: the deepest stacks last.
    pub found: Vec<LostEntry>,
    /// Number of exits so far that are of no call.
    num_orphans: usize,
}

impl<M> ThreadStack<M> {
    /// Without open calls; `lost` are those that were open before the first event, which the caller enters.
    pub fn new(first: (Event, Option<u32>), lost: Vec<LostEntry>) -> Self {
        let Event { ts_ns: last_ns, record_offset: last_offset, .. } = first.0;
        let (stack, found) = (Vec::new(), Vec::new());
        Self { first, stack, open: None, last_ns, last_offset, lost, found, num_orphans: 0 }
    }

    /// Whether an exit of a function of which no call was entered ends the innermost lost call, with all calls in it.
    pub fn ends_lost_call(&self, function_id: u32) -> bool {
        let num_open = self.stack.partition_point(|call| call.start_reason == StartReason::Lost);
        let next = self.lost.len().checked_sub(num_open).and_then(|ended| self.lost.get(ended));
        next.is_some_and(|next| next.function_id == function_id && next.num_orphans == self.num_orphans)
    }

    /// Stores an exit of a function of which no call is open.
    pub fn end_without_start(&mut self, Event { function_id, kind, .. }: Event) {
        let first = &self.first.0;
        // A call that ends by an exception has caught none: others that were left ended before it.
        let num_left = self.found.last().map_or(0, |last| last.height);
        let may_leave = kind != CallEvent::ExceptionExit || self.stack.len() == num_left;
        let is_of_lost = self.stack.first().is_none_or(|outermost| {
            let is_first = first.kind == CallEvent::Enter
                && (first.ts_ns, first.function_id) == (outermost.start_ns, outermost.function_id);
            may_leave && outermost.start_reason == StartReason::Entry && !is_first
        });
        if is_of_lost {
            let Self { num_orphans, .. } = *self;
            self.found.push(LostEntry { function_id, height: self.stack.len(), num_orphans });
        } else {
            self.num_orphans = self.num_orphans.saturating_add(1);
        }
    }

    /// A call has ended by an exit: those that ended without a start while it was open are of no call.
    #[inline(always)]
    pub fn keep_orphans(&mut self) {
        if !self.found.is_empty() {
            self.keep_orphans_found();
        }
    }

    #[cold]
    fn keep_orphans_found(&mut self) {
        while self.found.last().is_some_and(|last| last.height > self.stack.len()) {
            self.found.pop();
            self.num_orphans = self.num_orphans.saturating_add(1);
        }
    }

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
