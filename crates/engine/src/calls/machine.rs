//! The stack of each thread, and who is told of it.
//!
//! An exit closes the nearest open call of its function; calls above it were left without one (an exception, `longjmp`)
//! and end there too, as unwound. An exit of a function that is not open, on an empty stack, is that of a call whose
//! entry was lost at the start: it was around everything before it, which is only known behind, so a second pass starts
//! with those calls open.

use std::ops::Range;

use arrow_array::RecordBatch;
use perfuse_tables::access::ColumnError;
use perfuse_tables::{CallEvent, EndReason, StartReason};
use rustc_hash::FxHashMap;

use super::events::{Event, Events};

/// Which calls are looked at. Those that reach over an end of the time range are cut there.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Keys of threads, sorted; all where none.
    pub threads: Option<Vec<u32>>,
    /// Time on the profile's clock.
    pub time_ns: Option<Range<i64>>,
}

/// A call begins.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Thread.
    pub thread_id: u32,
    /// Function.
    pub function_id: u32,
    /// When; for a lost start, when the recording of the thread begins.
    pub start_ns: i64,
    /// How that is known.
    pub start_reason: StartReason,
    /// Processor.
    pub cpu: Option<u32>,
    /// Number of calls around it.
    pub depth: u32,
    /// File it is from.
    pub source_id: u32,
    /// Offset of its record; of the first record of the thread for a lost start.
    pub record_offset: u64,
}

/// An open call, with what a visitor keeps for it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<M> {
    /// How it began.
    pub entry: Entry,
    /// What [`Visitor::enter`] returned.
    pub mark: M,
    children_ns: i64,
}

/// A call ends.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    /// When.
    pub end_ns: i64,
    /// How.
    pub reason: EndReason,
    /// Time since the start, within the selection.
    pub duration_ns: i64,
    /// Part of it that is in no call within it.
    pub self_ns: i64,
    /// Offset of the record that ended it.
    pub record_offset: u64,
}

/// Is told of calls, in time order for each thread.
pub trait Visitor {
    /// What is kept for an open call, and seen by the calls within it.
    type Mark: Copy;

    /// A call begins, within `parent`.
    fn enter(&mut self, entry: &Entry, parent: Option<&Frame<Self::Mark>>) -> Self::Mark;

    /// A call ends, within `parent`.
    fn leave(&mut self, call: &Frame<Self::Mark>, leave: &Leave, parent: Option<&Frame<Self::Mark>>);

    /// The call entered last has an argument.
    fn argument(&mut self, _call: &Frame<Self::Mark>, _value: u64) {}

    /// A call ends that is not open, in the middle of others: nothing is known of its start.
    fn orphan(&mut self, _event: &Event) {}
}

/// Calls whose entries were lost at the start, by thread: as their exits came, so innermost first.
#[derive(Clone, Debug, Default)]
pub struct Lost(FxHashMap<u32, Vec<u32>>);

impl Lost {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

/// The stacks of all threads.
#[derive(Debug)]
pub struct Calls<V: Visitor> {
    visitor: V,
    selection: Selection,
    threads: Vec<Option<Thread<V::Mark>>>,
    lost: Lost,
    orphans: Lost,
}

#[derive(Debug)]
struct Thread<M> {
    stack: Vec<Frame<M>>,
    /// How often each function is in the stack; only kept from the first exit on that does not fit.
    open: Option<FxHashMap<u32, u32>>,
    last_ns: i64,
    last_offset: u64,
}

/// Tells a visitor of all calls. Where entries were lost at the start there are two passes, each with a visitor of its own.
///
/// # Errors
/// [`ColumnError`] when the batches are not of `call_events`.
pub fn visit<V: Visitor, B: Iterator<Item = RecordBatch>>(
    events: impl Fn() -> B,
    selection: &Selection,
    visitor: impl Fn() -> V,
) -> Result<V, ColumnError> {
    let mut calls = Calls::new(visitor(), selection.clone(), Lost::default());
    events().try_for_each(|batch| calls.push(&batch))?;
    let (first, lost) = calls.finish();
    if lost.is_empty() {
        return Ok(first);
    }
    drop(first);
    let mut calls = Calls::new(visitor(), selection.clone(), lost);
    events().try_for_each(|batch| calls.push(&batch))?;
    Ok(calls.finish().0)
}

impl<V: Visitor> Calls<V> {
    /// No events yet; calls in `lost` are open from the start.
    pub fn new(visitor: V, selection: Selection, lost: Lost) -> Self {
        Self { visitor, selection, threads: Vec::new(), lost, orphans: Lost::default() }
    }

    /// Who is told.
    pub fn visitor(&mut self) -> &mut V {
        &mut self.visitor
    }

    /// Takes a batch of `call_events`.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), ColumnError> {
        let events = Events::new(batch)?;
        let mut row = 0;
        while row < events.len() {
            let thread_id = events.get(row).thread_id;
            if self.selection.threads.as_ref().is_some_and(|ids| ids.binary_search(&thread_id).is_err()) {
                row += 1;
                continue;
            }
            row = self.run(&events, row, thread_id);
        }
        Ok(())
    }

    /// Takes the rows of one thread from `row` on; the first row that is not taken.
    fn run(&mut self, events: &Events<'_>, mut row: usize, thread_id: u32) -> usize {
        let index = thread_id as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, || None);
        }
        let mut thread = match self.threads[index].take() {
            Some(thread) => thread,
            None => self.begin(&events.get(row), events.cpu(row)),
        };
        while row < events.len() {
            let event = events.get(row);
            if event.thread_id != thread_id {
                break;
            }
            match event.kind {
                CallEvent::Enter => self.enter(&mut thread, &event, events.cpu(row), StartReason::Entry),
                CallEvent::Exit => self.exit(&mut thread, &event, EndReason::Exit),
                CallEvent::TailExit => self.exit(&mut thread, &event, EndReason::TailCall),
                CallEvent::ExceptionExit => self.exit(&mut thread, &event, EndReason::Unwound),
                CallEvent::Argument => {
                    if let Some(call) = thread.stack.last() {
                        self.visitor.argument(call, events.value(row));
                    }
                }
            }
            thread.last_ns = thread.last_ns.max(event.ts_ns);
            thread.last_offset = event.record_offset;
            row += 1;
        }
        self.threads[index] = Some(thread);
        row
    }

    fn begin(&mut self, first: &Event, cpu: Option<u32>) -> Thread<V::Mark> {
        let (last_ns, last_offset) = (first.ts_ns, first.record_offset);
        let mut thread = Thread { stack: Vec::new(), open: None, last_ns, last_offset };
        for function_id in self.lost.0.remove(&first.thread_id).unwrap_or_default().into_iter().rev() {
            self.enter(&mut thread, &Event { function_id, ..*first }, cpu, StartReason::Lost);
        }
        thread
    }

    #[inline]
    fn enter(
        &mut self,
        thread: &mut Thread<V::Mark>,
        event: &Event,
        cpu: Option<u32>,
        start_reason: StartReason,
    ) {
        let Event { ts_ns, thread_id, function_id, source_id, record_offset, .. } = *event;
        let depth = thread.stack.len() as u32;
        let entry = Entry {
            thread_id,
            function_id,
            start_ns: ts_ns,
            start_reason,
            cpu,
            depth,
            source_id,
            record_offset,
        };
        let mark = self.visitor.enter(&entry, thread.stack.last());
        thread.stack.push(Frame { entry, mark, children_ns: 0 });
        if let Some(open) = &mut thread.open {
            *open.entry(function_id).or_default() += 1;
        }
    }

    #[inline]
    fn exit(&mut self, thread: &mut Thread<V::Mark>, event: &Event, reason: EndReason) {
        if thread.stack.last().is_none_or(|top| top.entry.function_id != event.function_id)
            && !self.unwind(thread, event)
        {
            return;
        }
        self.close(thread, event.ts_ns, reason, event.record_offset);
    }

    /// Closes what lies above the nearest open call of the event's function; false where there is none.
    #[cold]
    fn unwind(&mut self, thread: &mut Thread<V::Mark>, event: &Event) -> bool {
        let stack = &thread.stack;
        // Counted once, then kept up: a scan for every exit that does not fit would take the square of the depth.
        let open = thread.open.get_or_insert_with(|| {
            let mut open = FxHashMap::default();
            stack.iter().for_each(|frame| *open.entry(frame.entry.function_id).or_default() += 1);
            open
        });
        if open.get(&event.function_id).is_none_or(|&count| count == 0) {
            if stack.is_empty() {
                self.orphans.0.entry(event.thread_id).or_default().push(event.function_id);
            } else {
                self.visitor.orphan(event);
            }
            return false;
        }
        while thread.stack.last().is_some_and(|top| top.entry.function_id != event.function_id) {
            self.close(thread, event.ts_ns, EndReason::Unwound, event.record_offset);
        }
        true
    }

    #[inline]
    fn close(&mut self, thread: &mut Thread<V::Mark>, end_ns: i64, reason: EndReason, record_offset: u64) {
        let Some(call) = thread.stack.pop() else { return };
        if let Some(open) = &mut thread.open
            && let Some(count) = open.get_mut(&call.entry.function_id)
        {
            *count -= 1;
            if *count == 0 {
                open.remove(&call.entry.function_id);
            }
        }
        let parent = thread.stack.last_mut();
        let duration_ns = match &self.selection.time_ns {
            None => end_ns.saturating_sub(call.entry.start_ns).max(0),
            Some(range) => {
                let (start, end) = (call.entry.start_ns.max(range.start), end_ns.min(range.end));
                if start >= range.end || end < range.start || end < start {
                    return;
                }
                end.saturating_sub(start)
            }
        };
        let self_ns = duration_ns.saturating_sub(call.children_ns).max(0);
        let leave = Leave { end_ns, reason, duration_ns, self_ns, record_offset };
        if let Some(parent) = parent {
            parent.children_ns = parent.children_ns.saturating_add(duration_ns);
        }
        self.visitor.leave(&call, &leave, thread.stack.last());
    }

    /// Closes what is still open, where the recording of its thread ends. Gives the visitor back, and the calls whose entries
    /// were lost: where there are any, what it was told has not all the calls around it.
    #[must_use]
    pub fn finish(mut self) -> (V, Lost) {
        for mut thread in std::mem::take(&mut self.threads).into_iter().flatten() {
            while !thread.stack.is_empty() {
                let (at, offset) = (thread.last_ns, thread.last_offset);
                self.close(&mut thread, at, EndReason::Truncated, offset);
            }
        }
        (self.visitor, self.orphans)
    }
}
