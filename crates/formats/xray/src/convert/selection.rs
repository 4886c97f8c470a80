//! A part of a log: threads, functions, a range of time.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::super::consts::Action;
use super::super::writer::{Beginning, Moment, Owner, Sink, Told, WriteError};
use super::cut::Cut;

/// What of logs is written; all where nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Ticks: calls that overlap this range are written whole, with those around them; events where they are in it.
    pub ticks: Option<Range<u64>>,
    /// Only threads of these ids.
    pub tids: Option<Vec<i32>>,
    /// Only functions of these ids, as unsigned.
    pub functions: Option<FxHashSet<u32>>,
}

impl Selection {
    /// Whether everything is written.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.ticks.is_none() && self.tids.is_none() && self.functions.is_none()
    }

    /// Whether a thread is.
    #[must_use]
    pub fn has_thread(&self, (_, tid): Owner) -> bool {
        self.tids.as_ref().is_none_or(|tids| tids.contains(&tid))
    }
}

/// Hands on what is selected.
#[derive(Debug)]
pub struct Selected<'a, S> {
    functions: Option<&'a FxHashSet<u32>>,
    cut: Option<Cut>,
    /// Whether the last call was left out, and its argument is to be.
    left_out: bool,
    sink: &'a mut S,
}

impl<'a, S: Sink> Selected<'a, S> {
    /// Before the first record.
    pub fn new(selection: &'a Selection, sink: &'a mut S) -> Self {
        let cut = selection.ticks.clone().map(Cut::new);
        Self { functions: selection.functions.as_ref(), cut, left_out: false, sink }
    }

    fn leaves_out(&mut self, told: &Told<'_>) -> bool {
        match (told, self.functions) {
            (Told::Call { function_id, .. }, Some(functions)) => {
                self.left_out = !functions.contains(function_id);
                self.left_out
            }
            (Told::Argument(_), _) => self.left_out,
            _ => false,
        }
    }
}

impl<S: Sink> Sink for Selected<'_, S> {
    fn begin(&mut self, beginning: &Beginning) {
        self.sink.begin(beginning);
    }

    fn end(&mut self, _even_empty: bool) -> Result<(), WriteError> {
        self.sink.end(false)
    }

    // Where records are left out, the sink sees by the times of the others where it needs the counter whole.
    fn new_cpu(&mut self, _at: Moment) {}

    fn wrap(&mut self, _tsc: u64) {}

    fn tell(&mut self, owner: Owner, at: Moment, told: Told<'_>) {
        if self.leaves_out(&told) {
            return;
        }
        let Some(cut) = &mut self.cut else { return self.sink.tell(owner, at, told) };
        let thread = cut.thread(owner);
        let sink = &mut *self.sink;
        let mut emit = |at: Moment, told: Told<'_>| sink.tell(owner, at, told);
        match told {
            Told::Call { action: action @ (Action::EXIT | Action::TAIL_EXIT), function_id } => {
                thread.left(at, action, function_id, &mut emit);
            }
            Told::Call { action, function_id } => thread.entered(at, action, function_id, &mut emit),
            Told::Argument(value) => thread.argument(at, value, &mut emit),
            Told::Event { .. } => thread.event(at, told, &mut emit),
        }
    }

    fn check(&mut self) -> Result<(), WriteError> {
        self.sink.check()
    }
}
