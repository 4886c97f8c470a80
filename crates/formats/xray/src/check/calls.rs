//! Checks that function entries and exits are balanced in each thread.

use perfuse_wire::{Diagnostics, Rule};
use perfuse_workers::{in_call, install};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rustc_hash::FxHashMap;

use crate::basic;
use crate::consts::{Action, FUNCTION_BYTES};
use crate::fdr::{FdrSurvey, thread_ids};
use crate::log::XRay;
use crate::record_iter::{RecordItem, RecordIter};
use crate::records::XRayDialect;
use crate::rules::{NO_ENTRY, NO_EXIT, UNWOUND};
use perfuse_recording::Recording;

/// How often something occurs, and the first offset.
#[derive(Clone, Copy, Debug, Default)]
struct Occurrences {
    num: u64,
    first: Option<u64>,
}

impl Occurrences {
    /// Adds occurrences, the first at this offset.
    fn count(&mut self, num: u64, offset: u64) {
        self.num = self.num.saturating_add(num);
        if num > 0 {
            self.first = Some(self.first.map_or(offset, |first| first.min(offset)));
        }
    }

    /// Adds the occurrences in other threads.
    fn add(&mut self, other: Self) {
        self.count(other.num, other.first.unwrap_or(u64::MAX));
    }
}

/// Unbalanced calls of some threads.
#[derive(Clone, Copy, Debug, Default)]
struct CallBalance {
    no_entry: Occurrences,
    unwound: Occurrences,
    no_exit: Occurrences,
    threads: u64,
}

impl CallBalance {
    /// Adds the calls of other threads.
    fn merge(mut self, other: Self) -> Self {
        self.no_entry.add(other.no_entry);
        self.unwound.add(other.unwound);
        self.no_exit.add(other.no_exit);
        self.threads = self.threads.saturating_add(other.threads);
        self
    }

    /// Reports unbalanced calls.
    fn report(self, sink: &mut Diagnostics) {
        let mut report = |rule: &'static Rule, occurrences: Occurrences, what: &str| {
            if let Some(first) = occurrences.first {
                sink.push(rule, first, None, "", || {
                    format!("{what}: {}; threads: {}", occurrences.num, self.threads).into()
                });
            }
        };
        report(&NO_ENTRY, self.no_entry, "exits without entry");
        report(&NO_EXIT, self.no_exit, "calls without exit");
        report(&UNWOUND, self.unwound, "calls left without an exit of their own");
    }
}

/// The open calls of a thread.
#[derive(Debug, Default)]
struct CallStack {
    calls: Vec<u32>,
    /// Number of open calls of each function, so that an exit without entry is detected without a search.
    open: FxHashMap<u32, u32>,
    balance: CallBalance,
    last: u64,
}

impl CallStack {
    /// Applies a function record.
    fn apply(&mut self, action: Action, function_id: u32, offset: u64) {
        self.last = offset;
        match action {
            Action::ENTRY | Action::ENTRY_ARGS => {
                self.calls.push(function_id);
                let open = self.open.entry(function_id).or_default();
                *open = open.saturating_add(1);
            }
            Action::EXIT | Action::TAIL_EXIT => self.leave(function_id, offset),
            _ => {}
        }
    }

    /// Applies an exit: the innermost call of the function ends, with all calls inside it.
    fn leave(&mut self, function_id: u32, offset: u64) {
        if self.open.get(&function_id).is_none_or(|&open| open == 0) {
            return self.balance.no_entry.count(1, offset);
        }
        while let Some(call) = self.calls.pop() {
            if let Some(open) = self.open.get_mut(&call) {
                *open = open.saturating_sub(1);
            }
            if call == function_id {
                return;
            }
            self.balance.unwound.count(1, offset);
        }
    }

    /// The unbalanced calls at the end of the thread.
    fn end(mut self) -> CallBalance {
        self.balance.no_exit.count(self.calls.len() as u64, self.last);
        self.balance.threads = 1;
        self.balance
    }
}

/// Checks the calls of an FDR log, threads in parallel.
pub fn check_fdr_calls(log: &XRay, survey: &FdrSurvey, sink: &mut Diagnostics) {
    let mut threads: FxHashMap<(i32, i32), Vec<usize>> = FxHashMap::default();
    for &index in &survey.order {
        if let Some(block) = survey.blocks.get(index) {
            threads.entry(thread_ids(block)).or_default().push(index);
        }
    }
    let balance = |blocks: Vec<usize>| {
        let mut stack = CallStack::default();
        for index in blocks {
            read_buffer(log, survey, index, &mut stack);
        }
        stack.end()
    };
    let threads: Vec<_> = threads.into_values().collect();
    let balances = install(|| {
        threads.into_par_iter().map(in_call(balance)).reduce(CallBalance::default, CallBalance::merge)
    });
    balances.report(sink);
}

/// Applies the records of a buffer to the stack of its thread.
fn read_buffer(log: &XRay, survey: &FdrSurvey, index: usize, stack: &mut CallStack) {
    let Some(block) = survey.blocks.get(index) else { return };
    let dialect = XRayDialect { payloads: block.payloads, ..log.header().dialect() };
    let mut records = RecordIter::new(log.source(), block.records.clone(), dialect);
    loop {
        let run = records.functions(usize::MAX);
        let mut offset = run.offset as u64;
        run.for_each(|action, id, _| {
            stack.apply(action, id, offset);
            offset = offset.saturating_add(FUNCTION_BYTES as u64);
        });
        match records.next() {
            Some(RecordItem::Metadata { .. } | RecordItem::Function { .. }) => {}
            Some(RecordItem::Broken(_)) | None => break,
        }
    }
    log.source().release(block.records.clone());
}

/// Checks the calls of a Basic mode log.
pub fn check_basic_calls(log: &XRay, survey: &basic::BasicSurvey, sink: &mut Diagnostics) {
    let header = log.header();
    let version = header.dialect().version;
    let mut threads: FxHashMap<(i32, i32), CallStack> = FxHashMap::default();
    for index in survey.indexes() {
        let Some(entry) = basic::read_item(log.source(), index, header.endian) else { continue };
        if let (basic::BasicItem::Function(record), Some(thread_ids)) = (entry, entry.thread_ids(version)) {
            let stack = threads.entry(thread_ids).or_default();
            let offset = basic::record_offset(index) as u64;
            stack.apply(Action(record.kind), record.function_id.cast_unsigned(), offset);
        }
    }
    threads.into_values().map(CallStack::end).fold(CallBalance::default(), CallBalance::merge).report(sink);
}
