//! Rebuilds the stack of each thread from events, and calls a visitor for each call.
//!
//! An exit closes the nearest open call of its function; calls above it were left without one (an exception, `longjmp`)
//! and end there too, as unwound. An exit of a function that is not open, on an empty stack, is of a call whose entry was
//! lost at the start. That call was around all events before it, which is only known at its exit, so a second pass starts
//! with such calls open: they end with these exits and no others.
//!
//! Where calls are open at such an exit, it is of a lost entry too if none of them has an exit of its own until the end: they
//! were left before it. The outermost of them must not be the first event of its thread, which is the call that others are in,
//! and the exit not by an exception, as Mono records for calls that have ended already.

use std::collections::VecDeque;
use std::ops::Range;

use arrow_array::RecordBatch;
use perfuse_tables::access::ColumnError;
use perfuse_tables::{CallEvent, CallExit, CallRow, CallRows, CallRun, EndReason, StartReason};
use rustc_hash::{FxHashMap, FxHashSet};

use super::events::{Event, EventColumns, EventWithExit};
use super::selection::Selection;
use super::thread::{LostEntry, ThreadStack};
use super::visitor::{CallEntry, Leave, Level, OpenCall, Visitor};

/// Calls whose entries were lost at the start, by file and thread, in the order of their exits: innermost first.
#[derive(Clone, Debug, Default)]
pub struct LostEntries(FxHashMap<(u32, u32), Vec<LostEntry>>);

impl LostEntries {
    /// Of all rows of `call_events`.
    ///
    /// # Errors
    /// [`ColumnError`] when the batches are not of `call_events`.
    pub fn of(mut events: impl Iterator<Item = RecordBatch>) -> Result<Self, ColumnError> {
        let mut calls = Calls::new(NoVisitor, Selection::default(), Self::default());
        events.try_for_each(|batch| calls.push(&batch))?;
        Ok(calls.finish().1)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their threads.
    #[must_use]
    pub fn threads(&self) -> FxHashSet<u32> {
        self.0.keys().map(|&(_, thread_id)| thread_id).collect()
    }

    /// Whether exits of some came while calls were open, which had been left before.
    #[must_use]
    pub fn have_left_others(&self) -> bool {
        self.0.values().flatten().any(LostEntry::has_left_others)
    }

    /// Their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }
}

/// A visitor that does nothing: for a pass that only finds lost entries.
#[derive(Debug)]
struct NoVisitor;

impl Visitor for NoVisitor {
    type CallData = ();
    #[inline]
    fn enter(&mut self, _entry: &CallEntry, _parent: Option<&OpenCall<()>>) {}
    #[inline]
    fn leave(&mut self, _call: &OpenCall<()>, _level: Level, _leave: &Leave, _parent: Option<&OpenCall<()>>) {
    }
}

/// The events of a segment that are about calls from before it.
#[derive(Debug, Default)]
pub(super) struct EarlierCalls {
    /// By thread.
    pub exits: FxHashMap<u32, VecDeque<EarlierExit>>,
    /// Whether an exit may be of an earlier call or of none.
    pub is_ambiguous: bool,
}

/// The exit of an earlier call.
#[derive(Debug)]
pub(super) struct EarlierExit {
    /// Number of such exits before it in its thread.
    pub index: usize,
    pub event: Event,
    pub cpu: Option<u32>,
}

impl EarlierCalls {
    /// Stores an exit; `is_outermost` where no call of the segment is open.
    pub fn exit(&mut self, event: Event, cpu: Option<u32>, is_outermost: bool) {
        if is_outermost {
            let exits = self.exits.entry(event.thread_id).or_default();
            exits.push_back(EarlierExit { index: exits.len(), event, cpu });
        } else {
            self.is_ambiguous = true;
        }
    }
}

/// The stacks of all threads. A thread has one in each file; files follow each other.
#[derive(Debug)]
pub struct Calls<V: Visitor> {
    pub(super) visitor: V,
    selection: Selection,
    pub(super) source_id: u32,
    pub(super) threads: Vec<Option<ThreadStack<V::CallData>>>,
    lost: LostEntries,
    found: LostEntries,
    /// Where the events are a segment: its events about earlier calls.
    pub(super) before: Option<EarlierCalls>,
}

/// Calls a visitor for all calls. Where entries were lost at the start there are two passes, each with a visitor of its own.
///
/// # Errors
/// [`ColumnError`] when the batches are not of `call_events`.
pub fn visit<V: Visitor, B: Iterator<Item = RecordBatch>>(
    events: impl Fn() -> B,
    selection: &Selection,
    visitor: impl Fn() -> V,
) -> Result<V, ColumnError> {
    let mut calls = Calls::new(visitor(), selection.clone(), LostEntries::default());
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
    pub fn new(visitor: V, selection: Selection, lost: LostEntries) -> Self {
        let (threads, found) = (Vec::new(), LostEntries::default());
        Self { visitor, selection, source_id: 0, threads, lost, found, before: None }
    }

    /// The same for a segment of the events, without the events before it.
    pub(super) fn segment(visitor: V, selection: Selection) -> Self {
        Self {
            before: Some(EarlierCalls::default()),
            ..Self::new(visitor, selection, LostEntries::default())
        }
    }

    /// What gets the calls.
    pub fn visitor(&mut self) -> &mut V {
        &mut self.visitor
    }

    /// Adds a batch of `call_events`.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), ColumnError> {
        let events = EventColumns::new(batch)?;
        let mut row = 0;
        while row < events.len() {
            perfuse_stopping::checkpoint();
            let Event { thread_id, source_id, .. } = events.get(row);
            let end = row.saturating_add(events.run(row).max(1));
            self.enter_source(source_id);
            if self.selection.has(thread_id) {
                self.batch_run(&events, row..end);
            }
            row = end;
        }
        Ok(())
    }

    /// Adds rows of `call_events`, of either kind.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub(super) fn take(&mut self, rows: &CallRows) -> Result<(), ColumnError> {
        match rows {
            CallRows::Batch(batch) => self.push(batch)?,
            CallRows::Run(run) => {
                self.enter_source(run.source_id);
                if self.selection.has(run.thread_id) {
                    self.add_run(run);
                }
            }
        }
        Ok(())
    }

    fn add_run(&mut self, run: &CallRun) {
        let CallRun { thread_id, source_id, rows, .. } = run;
        let Some(first) = rows.first() else { return };
        let event = |row: &CallRow| Event::of(row, *thread_id, *source_id);
        let steps = rows.iter().map(|row| (0, EventWithExit { event: event(row), exit: row.exit() }));
        self.run(event(first), None, steps, |_| 0);
        self.visitor.rows(*thread_id, None, run.num_events(), run.times());
    }

    /// Adds rows of one thread on one processor.
    fn batch_run(&mut self, events: &EventColumns<'_>, rows: Range<usize>) {
        let (first, cpu) = (events.get(rows.start), events.cpu(rows.start));
        self.run(first, cpu, events.steps(rows.clone()), |row| events.value(row));
        self.visitor.rows(first.thread_id, cpu, rows.len(), events.times(rows).iter().copied());
    }

    /// Adds events of one thread on one processor, with the numbers of their rows, also the first of them, and a function that
    /// returns the argument in a row.
    #[inline]
    fn run(
        &mut self,
        first: Event,
        cpu: Option<u32>,
        steps: impl Iterator<Item = (usize, EventWithExit)>,
        value: impl Fn(usize) -> u64,
    ) {
        let mut thread = self.take_thread(&first, cpu);
        let (mut last_ns, mut last_offset) = (first.ts_ns, first.record_offset);
        for (row, EventWithExit { event, exit }) in steps {
            let end = exit.unwrap_or(CallExit { ts_ns: event.ts_ns, record_offset: event.record_offset });
            last_ns = last_ns.max(event.ts_ns).max(end.ts_ns);
            last_offset = end.record_offset;
            match event.kind {
                _ if exit.is_some() => self.leaf(&mut thread, &event, end, cpu),
                CallEvent::Enter => self.enter(&mut thread, &event, cpu, StartReason::Entry),
                CallEvent::Exit => self.exit(&mut thread, &event, cpu, EndReason::Exit),
                CallEvent::TailExit => self.exit(&mut thread, &event, cpu, EndReason::TailCall),
                CallEvent::ExceptionExit => self.exit(&mut thread, &event, cpu, EndReason::Unwound),
                CallEvent::Argument => match thread.stack.split_last() {
                    Some((call, around)) => {
                        let depth = around.len() as u32;
                        let Event { source_id, thread_id, .. } = event;
                        self.visitor.argument(call, Level { source_id, thread_id, depth }, value(row));
                    }
                    None => self.visitor.argument_outside(value(row)),
                },
            }
        }
        thread.last_ns = thread.last_ns.max(last_ns);
        thread.last_offset = last_offset;
        self.put_thread(thread);
    }

    pub(super) fn put_thread(&mut self, thread: ThreadStack<V::CallData>) {
        let index = thread.first.0.thread_id as usize;
        if let Some(slot) = self.threads.get_mut(index) {
            *slot = Some(thread);
        }
    }

    /// The thread of an event; the event is its first where the thread is new.
    pub(super) fn take_thread(&mut self, event: &Event, cpu: Option<u32>) -> ThreadStack<V::CallData> {
        let index = event.thread_id as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index.saturating_add(1), || None);
        }
        match self.threads.get_mut(index).and_then(Option::take) {
            Some(thread) => thread,
            None => self.begin(event, cpu),
        }
    }

    fn begin(&mut self, first: &Event, cpu: Option<u32>) -> ThreadStack<V::CallData> {
        let lost = self.lost.0.remove(&(first.source_id, first.thread_id)).unwrap_or_default();
        let functions: Vec<u32> = lost.iter().rev().map(|entry| entry.function_id).collect();
        let mut thread = ThreadStack::new((*first, cpu), lost);
        for function_id in functions {
            self.enter(&mut thread, &Event { function_id, ..*first }, cpu, StartReason::Lost);
        }
        thread
    }

    // Inlined, as are the others: passing events and calls through memory takes half of the whole time.
    #[inline(always)]
    fn enter(
        &mut self,
        thread: &mut ThreadStack<V::CallData>,
        event: &Event,
        cpu: Option<u32>,
        start_reason: StartReason,
    ) {
        let call = self.begun(thread, event, cpu, start_reason);
        thread.push(call);
    }

    /// A call that begins, which is not on the stack yet.
    #[inline(always)]
    fn begun(
        &mut self,
        thread: &ThreadStack<V::CallData>,
        event: &Event,
        cpu: Option<u32>,
        start_reason: StartReason,
    ) -> OpenCall<V::CallData> {
        let Event { ts_ns: start_ns, function_id, .. } = *event;
        let entry = CallEntry::of(event, cpu, start_reason, thread.stack.len());
        let mark = self.visitor.enter(&entry, thread.stack.last());
        OpenCall { start_ns, function_id, start_reason, mark, children_ns: 0 }
    }

    /// A call without calls in it, which most are: it is not put on the stack.
    #[inline(always)]
    fn leaf(
        &mut self,
        thread: &mut ThreadStack<V::CallData>,
        event: &Event,
        exit: CallExit,
        cpu: Option<u32>,
    ) {
        if self.selection.time_ns.is_some() {
            let call = self.begun(thread, event, cpu, StartReason::Entry);
            let end = (exit.ts_ns, EndReason::Exit, exit.record_offset);
            return self.ended(event.thread_id, &call, &mut thread.stack, end);
        }
        let CallExit { ts_ns: end_ns, record_offset } = exit;
        let (start_ns, start_reason, reason) = (event.ts_ns, StartReason::Entry, EndReason::Exit);
        let duration_ns = if start_ns < end_ns { end_ns.abs_diff(start_ns) } else { 0 };
        let leave = Leave {
            start_ns,
            start_reason,
            end_ns,
            reason,
            duration_ns,
            self_ns: duration_ns,
            record_offset,
        };
        let entry = CallEntry::of(event, cpu, start_reason, thread.stack.len());
        if let Some(parent) = thread.stack.last_mut() {
            parent.children_ns = parent.children_ns.saturating_add(duration_ns);
        }
        self.visitor.leaf(&entry, &leave, thread.stack.last());
    }

    #[inline(always)]
    pub(super) fn exit(
        &mut self,
        thread: &mut ThreadStack<V::CallData>,
        event: &Event,
        cpu: Option<u32>,
        reason: EndReason,
    ) {
        if thread.stack.last().is_none_or(|top| top.function_id != event.function_id)
            && !self.unwind(thread, *event, cpu)
        {
            return;
        }
        self.close(thread, event.ts_ns, reason, event.record_offset);
    }

    /// Closes the calls above the nearest open call of the event's function; false where there is none.
    #[cold]
    fn unwind(&mut self, thread: &mut ThreadStack<V::CallData>, event: Event, cpu: Option<u32>) -> bool {
        if !thread.has_open(event.function_id) {
            if thread.ends_lost_call(event.function_id) {
                while thread.stack.last().is_some_and(|top| top.start_reason == StartReason::Entry) {
                    self.close(thread, event.ts_ns, EndReason::Unwound, event.record_offset);
                }
                return true;
            }
            thread.end_without_start(event);
            match thread.stack.last() {
                None if self.before.is_some() => self.visitor.leave_earlier(event.thread_id),
                None => {}
                parent => self.visitor.orphan(&event, cpu, thread.stack.len() as u32, parent),
            }
            if let Some(before) = &mut self.before {
                before.exit(event, cpu, thread.stack.is_empty());
            }
            return false;
        }
        while thread.stack.last().is_some_and(|top| top.function_id != event.function_id) {
            self.close(thread, event.ts_ns, EndReason::Unwound, event.record_offset);
        }
        true
    }

    #[inline(always)]
    fn close(
        &mut self,
        thread: &mut ThreadStack<V::CallData>,
        end_ns: i64,
        reason: EndReason,
        record_offset: u64,
    ) {
        let Some((call, around)) = thread.stack.split_last_mut() else { return };
        if let Some(open) = &mut thread.open
            && call.start_reason == StartReason::Entry
            && let Some(count) = open.get_mut(&call.function_id)
        {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&call.function_id);
            }
        }
        self.ended(thread.first.0.thread_id, call, around, (end_ns, reason, record_offset));
        thread.stack.pop();
        thread.keep_orphans();
    }

    /// Reports the end of a call within others.
    #[inline(always)]
    fn ended(
        &mut self,
        thread_id: u32,
        call: &OpenCall<V::CallData>,
        around: &mut [OpenCall<V::CallData>],
        (end_ns, reason, record_offset): (i64, EndReason, u64),
    ) {
        let OpenCall { start_ns, start_reason, .. } = *call;
        let mut leave =
            Leave { start_ns, start_reason, end_ns, reason, duration_ns: 0, self_ns: 0, record_offset };
        if self.selection.time_ns.as_ref().is_some_and(|range| !leave.cut(range)) {
            return;
        }
        if leave.start_ns < leave.end_ns {
            leave.duration_ns = leave.end_ns.abs_diff(leave.start_ns);
        }
        leave.self_ns = leave.duration_ns.saturating_sub(call.children_ns);
        if let Some(parent) = around.last_mut() {
            parent.children_ns = parent.children_ns.saturating_add(leave.duration_ns);
        }
        let level = Level { source_id: self.source_id, thread_id, depth: around.len() as u32 };
        self.visitor.leave(call, level, &leave, around.last());
    }

    /// Starts the events of a file.
    pub(super) fn enter_source(&mut self, source_id: u32) {
        if source_id == self.source_id {
            return;
        }
        if let Some(before) = &mut self.before
            && self.threads.iter().any(Option::is_some)
        {
            before.is_ambiguous = true;
        }
        self.end_source();
        self.source_id = source_id;
    }

    /// Closes the calls that are still open, at the end of the recording of their thread.
    fn end_source(&mut self) {
        for mut thread in std::mem::take(&mut self.threads).into_iter().flatten() {
            let found = std::mem::take(&mut thread.found);
            if !found.is_empty() {
                self.found.0.insert((self.source_id, thread.first.0.thread_id), found);
            }
            while !thread.stack.is_empty() {
                let (at, offset) = (thread.last_ns, thread.last_offset);
                self.close(&mut thread, at, EndReason::Truncated, offset);
            }
        }
    }

    /// Closes the calls that are still open. Returns the visitor, and the calls whose entries were lost: where there are any, the
    /// visitor was called without these calls around the others.
    #[must_use]
    pub fn finish(mut self) -> (V, LostEntries) {
        self.end_source();
        (self.visitor, self.found)
    }
}
