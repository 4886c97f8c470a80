//! A part of a log: threads, functions, a range of time.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::consts::Action;
use crate::writer::{Beginning, Moment, Owner, Sink, Told, WriteError};

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

/// The range, and how far each thread is.
#[derive(Debug)]
pub struct Cut {
    range: Range<u64>,
    threads: FxHashMap<Owner, Thread>,
}

/// Where a thread is. It only goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Before,
    Within,
    Behind,
}

/// A thread, and the calls it is in.
#[derive(Debug)]
pub struct Thread {
    range: Range<u64>,
    reached: Reached,
    open: Vec<Open>,
    /// How many of the open calls are of a function: an exit of none of them is not looked for.
    of_function: FxHashMap<u32, u32>,
    /// Open calls that were told.
    told: usize,
    /// The last call was entered, and an argument of it is told too (or not).
    entered: Option<bool>,
}

/// A call that has no exit yet.
#[derive(Debug)]
struct Open {
    at: Moment,
    action: Action,
    function_id: u32,
    arguments: Vec<u64>,
    is_told: bool,
}

impl Cut {
    /// Before the first record.
    pub fn new(range: Range<u64>) -> Self {
        Self { range, threads: FxHashMap::default() }
    }

    /// A thread.
    pub fn thread(&mut self, owner: Owner) -> &mut Thread {
        let range = &self.range;
        self.threads.entry(owner).or_insert_with(|| Thread {
            range: range.clone(),
            reached: Reached::Before,
            open: Vec::new(),
            of_function: FxHashMap::default(),
            told: 0,
            entered: None,
        })
    }
}

impl Thread {
    /// It entered a function.
    pub fn entered(
        &mut self,
        at: Moment,
        action: Action,
        function_id: u32,
        emit: &mut impl FnMut(Moment, Told<'_>),
    ) {
        self.reach(at, emit);
        let is_told = self.reached == Reached::Within;
        self.entered = Some(is_told);
        if self.reached == Reached::Behind && self.told == 0 {
            return;
        }
        let count = self.of_function.entry(function_id).or_default();
        *count = count.saturating_add(1);
        self.open.push(Open { at, action, function_id, arguments: Vec::new(), is_told });
        if is_told {
            self.told = self.told.saturating_add(1);
            emit(at, Told::Call { action, function_id });
        }
    }

    /// It left a function: the innermost call of it, and with it all calls within.
    pub fn left(
        &mut self,
        at: Moment,
        action: Action,
        function_id: u32,
        emit: &mut impl FnMut(Moment, Told<'_>),
    ) {
        self.reach(at, emit);
        self.entered = None;
        let is_open = self.of_function.get(&function_id).is_some_and(|&count| count > 0);
        let mut is_told = self.reached == Reached::Within;
        while is_open && let Some(call) = self.open.pop() {
            if let Some(count) = self.of_function.get_mut(&call.function_id) {
                *count = count.saturating_sub(1);
            }
            self.told = self.told.saturating_sub(call.is_told.into());
            if call.function_id == function_id {
                is_told = call.is_told;
                break;
            }
        }
        // An exit of no call is told within the range; behind it, it would be of a call that is not.
        if is_told {
            emit(at, Told::Call { action, function_id });
        }
    }

    /// The function entered last has this argument.
    pub fn argument(&mut self, at: Moment, value: u64, emit: &mut impl FnMut(Moment, Told<'_>)) {
        match self.entered {
            Some(true) => emit(at, Told::Argument(value)),
            Some(false) if self.reached == Reached::Before => {
                if let Some(call) = self.open.last_mut() {
                    call.arguments.push(value);
                }
            }
            _ => {}
        }
    }

    /// It told bytes of the program's own.
    pub fn event(&mut self, at: Moment, told: Told<'_>, emit: &mut impl FnMut(Moment, Told<'_>)) {
        self.reach(at, emit);
        self.entered = None;
        if self.reached == Reached::Within {
            emit(at, told);
        }
    }

    fn reach(&mut self, at: Moment, emit: &mut impl FnMut(Moment, Told<'_>)) {
        if self.reached == Reached::Before && at.tsc >= self.range.start {
            self.reached = Reached::Within;
            for call in &mut self.open {
                call.is_told = true;
                emit(call.at, Told::Call { action: call.action, function_id: call.function_id });
                for &value in &call.arguments {
                    emit(call.at, Told::Argument(value));
                }
            }
            self.told = self.open.len();
        }
        if self.reached == Reached::Within && at.tsc >= self.range.end {
            self.reached = Reached::Behind;
        }
    }
}
