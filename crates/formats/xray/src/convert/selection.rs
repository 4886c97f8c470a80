//! Selects a part of a log: threads, functions, a range of time.
//!
//! A call that overlaps the range is kept whole, and so are the calls around it: their entries are passed on when
//! their thread reaches the range, and their exits after it. So stacks and durations of the selection are correct.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::consts::Action;
use crate::writer::{BufferStart, LogSink, ThreadEvent, ThreadIds, TscStamp, WriteError};

/// The part of the logs to write; everything where nothing is given.
#[derive(Clone, Debug, Default)]
pub struct RecordSelection {
    /// In ticks: calls that overlap this range are written whole, with those around them; events where they are in
    /// it.
    pub ticks: Option<Range<u64>>,
    /// Only threads with these ids.
    pub tids: Option<Vec<i32>>,
    /// Only functions with these ids, as unsigned numbers.
    pub functions: Option<FxHashSet<u32>>,
}

impl RecordSelection {
    /// Whether everything is selected.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.ticks.is_none() && self.tids.is_none() && self.functions.is_none()
    }

    /// Whether a thread is selected.
    #[must_use]
    pub fn has_thread(&self, (_, tid): ThreadIds) -> bool {
        self.tids.as_ref().is_none_or(|tids| tids.contains(&tid))
    }
}

/// A sink that passes the selected events on to another.
#[derive(Debug)]
pub struct SelectionFilter<'a, S> {
    functions: Option<&'a FxHashSet<u32>>,
    cut: Option<TimeRangeCut>,
    /// Whether the last call was excluded, and with it its arguments.
    is_call_excluded: bool,
    sink: &'a mut S,
}

impl<'a, S: LogSink> SelectionFilter<'a, S> {
    /// A filter before the first event.
    pub fn new(selection: &'a RecordSelection, sink: &'a mut S) -> Self {
        let cut = selection.ticks.clone().map(TimeRangeCut::new);
        Self { functions: selection.functions.as_ref(), cut, is_call_excluded: false, sink }
    }

    /// Whether an event belongs to a function that is not selected.
    fn is_excluded(&mut self, event: &ThreadEvent<'_>) -> bool {
        match (event, self.functions) {
            (ThreadEvent::Call { function_id, .. }, Some(functions)) => {
                self.is_call_excluded = !functions.contains(function_id);
                self.is_call_excluded
            }
            (ThreadEvent::Argument(_), _) => self.is_call_excluded,
            _ => false,
        }
    }
}

impl<S: LogSink> LogSink for SelectionFilter<'_, S> {
    fn begin(&mut self, start: &BufferStart) {
        self.sink.begin(start);
    }

    fn end(&mut self, _even_empty: bool) -> Result<(), WriteError> {
        self.sink.end(false)
    }

    // Where records are left out, the sink writes absolute counters where the times require them.
    fn new_cpu(&mut self, _at: TscStamp) {}

    fn wrap(&mut self, _tsc: u64) {}

    fn write_event(&mut self, thread_ids: ThreadIds, at: TscStamp, event: ThreadEvent<'_>) {
        if self.is_excluded(&event) {
            return;
        }
        let Some(cut) = &mut self.cut else { return self.sink.write_event(thread_ids, at, event) };
        let thread = cut.thread(thread_ids);
        let sink = &mut *self.sink;
        let mut emit = |at: TscStamp, event: ThreadEvent<'_>| sink.write_event(thread_ids, at, event);
        match event {
            ThreadEvent::Call { action: action @ (Action::EXIT | Action::TAIL_EXIT), function_id } => {
                thread.leave(at, action, function_id, &mut emit);
            }
            ThreadEvent::Call { action, function_id } => thread.enter(at, action, function_id, &mut emit),
            ThreadEvent::Argument(value) => thread.argument(at, value, &mut emit),
            ThreadEvent::Event { .. } => thread.event(at, event, &mut emit),
        }
    }

    fn check(&mut self) -> Result<(), WriteError> {
        self.sink.check()
    }
}

/// Selects the calls and events that overlap a range of time.
#[derive(Debug)]
pub struct TimeRangeCut {
    range: Range<u64>,
    threads: FxHashMap<ThreadIds, ThreadCut>,
}

/// Position of a thread relative to the range; it only advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangePosition {
    Before,
    Within,
    After,
}

/// The open calls of a thread.
#[derive(Debug)]
pub struct ThreadCut {
    range: Range<u64>,
    position: RangePosition,
    open: Vec<UnfinishedCall>,
    /// Number of open calls of each function, so that an exit without entry is detected without a search.
    open_by_function: FxHashMap<u32, u32>,
    /// Number of open calls whose entry was passed on.
    num_emitted: usize,
    /// Whether the entry of the last call was passed on; `None` where an argument would not follow an entry.
    last_entered: Option<bool>,
}

/// A call without an exit so far.
#[derive(Debug)]
struct UnfinishedCall {
    at: TscStamp,
    action: Action,
    function_id: u32,
    arguments: Vec<u64>,
    is_emitted: bool,
}

impl TimeRangeCut {
    /// A cut before the first event.
    pub fn new(range: Range<u64>) -> Self {
        Self { range, threads: FxHashMap::default() }
    }

    /// The state of a thread.
    pub fn thread(&mut self, thread_ids: ThreadIds) -> &mut ThreadCut {
        let range = &self.range;
        self.threads.entry(thread_ids).or_insert_with(|| ThreadCut {
            range: range.clone(),
            position: RangePosition::Before,
            open: Vec::new(),
            open_by_function: FxHashMap::default(),
            num_emitted: 0,
            last_entered: None,
        })
    }
}

impl ThreadCut {
    /// A function was entered.
    pub fn enter(
        &mut self,
        at: TscStamp,
        action: Action,
        function_id: u32,
        emit: &mut impl FnMut(TscStamp, ThreadEvent<'_>),
    ) {
        self.advance(at, emit);
        let is_emitted = self.position == RangePosition::Within;
        self.last_entered = Some(is_emitted);
        if self.position == RangePosition::After && self.num_emitted == 0 {
            return;
        }
        let count = self.open_by_function.entry(function_id).or_default();
        *count = count.saturating_add(1);
        self.open.push(UnfinishedCall { at, action, function_id, arguments: Vec::new(), is_emitted });
        if is_emitted {
            self.num_emitted = self.num_emitted.saturating_add(1);
            emit(at, ThreadEvent::Call { action, function_id });
        }
    }

    /// A function was left: its innermost call ends, with all calls inside it.
    pub fn leave(
        &mut self,
        at: TscStamp,
        action: Action,
        function_id: u32,
        emit: &mut impl FnMut(TscStamp, ThreadEvent<'_>),
    ) {
        self.advance(at, emit);
        self.last_entered = None;
        let is_open = self.open_by_function.get(&function_id).is_some_and(|&count| count > 0);
        let mut is_emitted = self.position == RangePosition::Within;
        while is_open && let Some(call) = self.open.pop() {
            if let Some(count) = self.open_by_function.get_mut(&call.function_id) {
                *count = count.saturating_sub(1);
            }
            self.num_emitted = self.num_emitted.saturating_sub(call.is_emitted.into());
            if call.function_id == function_id {
                is_emitted = call.is_emitted;
                break;
            }
        }
        // An exit without entry is passed on inside the range only; after it, its call was not passed on.
        if is_emitted {
            emit(at, ThreadEvent::Call { action, function_id });
        }
    }

    /// The function entered last has this argument.
    pub fn argument(&mut self, at: TscStamp, value: u64, emit: &mut impl FnMut(TscStamp, ThreadEvent<'_>)) {
        match self.last_entered {
            Some(true) => emit(at, ThreadEvent::Argument(value)),
            Some(false) if self.position == RangePosition::Before => {
                if let Some(call) = self.open.last_mut() {
                    call.arguments.push(value);
                }
            }
            _ => {}
        }
    }

    /// A custom or typed event.
    pub fn event(
        &mut self,
        at: TscStamp,
        event: ThreadEvent<'_>,
        emit: &mut impl FnMut(TscStamp, ThreadEvent<'_>),
    ) {
        self.advance(at, emit);
        self.last_entered = None;
        if self.position == RangePosition::Within {
            emit(at, event);
        }
    }

    /// Moves the thread to a time; where it enters the range, passes on the entries of its open calls.
    fn advance(&mut self, at: TscStamp, emit: &mut impl FnMut(TscStamp, ThreadEvent<'_>)) {
        if self.position == RangePosition::Before && at.tsc >= self.range.start {
            self.position = RangePosition::Within;
            for call in &mut self.open {
                call.is_emitted = true;
                emit(call.at, ThreadEvent::Call { action: call.action, function_id: call.function_id });
                for &value in &call.arguments {
                    emit(call.at, ThreadEvent::Argument(value));
                }
            }
            self.num_emitted = self.open.len();
        }
        if self.position == RangePosition::Within && at.tsc >= self.range.end {
            self.position = RangePosition::After;
        }
    }
}
