//! The calls that a thread has entered and not left.

use rustc_hash::FxHashMap;

/// Open calls, outermost first: the function of each, and what belongs to it.
#[derive(Debug)]
pub(super) struct EnteredCalls<T> {
    calls: Vec<(u32, T)>,
    /// The outermost ones, whose enters were lost.
    num_lost: usize,
    /// Number of open calls of each function, except lost ones; counted from the first leave that does not match a nearby call.
    open: Option<FxHashMap<u32, u32>>,
}

impl<T> Default for EnteredCalls<T> {
    fn default() -> Self {
        Self { calls: Vec::new(), num_lost: 0, open: None }
    }
}

impl<T: Copy> EnteredCalls<T> {
    /// Number of calls that are searched before functions are counted.
    const NEAR: usize = 64;

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub fn last(&self) -> Option<(u32, T)> {
        self.calls.last().copied()
    }

    /// The calls.
    pub fn calls_mut(&mut self) -> &mut [(u32, T)] {
        &mut self.calls
    }

    #[inline]
    pub fn push(&mut self, function: u32, value: T) {
        if let Some(open) = &mut self.open {
            let count = open.entry(function).or_default();
            *count = count.saturating_add(1);
        }
        self.calls.push((function, value));
    }

    /// Adds a call whose enter was lost; before all others.
    pub fn push_lost(&mut self, function: u32, value: T) {
        self.calls.push((function, value));
        self.num_lost = self.calls.len();
    }

    /// Ends the nearest open call of a function, and those within. Does nothing and returns false where none is open; a call whose
    /// enter was lost ends only when no other is open.
    #[inline]
    pub fn leave(&mut self, function: u32) -> bool {
        if self.calls.last().is_some_and(|(top, _)| *top == function) {
            self.pop();
            return true;
        }
        if !self.has_entered(function) {
            return false;
        }
        while let Some((ended, _)) = self.pop()
            && ended != function
        {}
        true
    }

    #[inline]
    fn pop(&mut self) -> Option<(u32, T)> {
        let ended = self.calls.pop()?;
        if self.calls.len() < self.num_lost {
            self.num_lost = self.calls.len();
        } else if let Some(open) = &mut self.open
            && let Some(count) = open.get_mut(&ended.0)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&ended.0);
            }
        }
        Some(ended)
    }

    /// Whether a call of a function is open whose enter was recorded.
    #[cold]
    fn has_entered(&mut self, function: u32) -> bool {
        let entered = self.calls.get(self.num_lost..).unwrap_or_default();
        if entered.iter().rev().take(Self::NEAR).any(|(other, _)| *other == function) {
            return true;
        }
        if entered.len() <= Self::NEAR {
            return false;
        }
        // Counted once, then updated: a scan of a deep stack for every leave without a call takes quadratic time.
        let open = self.open.get_or_insert_with(|| {
            let mut open = FxHashMap::default();
            for (function, _) in entered {
                let count: &mut u32 = open.entry(*function).or_default();
                *count = count.saturating_add(1);
            }
            open
        });
        open.contains_key(&function)
    }

    /// Removes all calls.
    pub fn clear(&mut self) {
        (self.num_lost, self.open) = (0, None);
        self.calls.clear();
    }

    /// Removes all calls; returns their functions, outermost first.
    pub fn take_functions(&mut self) -> impl Iterator<Item = u32> + use<T> {
        self.open = None;
        std::mem::take(&mut self.calls).into_iter().map(|(function, _)| function)
    }
}
