//! Whether calls are entered and left in pairs, thread by thread.

use perfuse_wire::{Diagnostics, Rule};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rustc_hash::FxHashMap;

use crate::basic;
use crate::consts::{Action, FUNCTION_BYTES};
use crate::fdr::{Survey, owner};
use crate::log::XRay;
use crate::record_iter::{Step, Walk};
use crate::records::Dialect;
use crate::rules::{NO_ENTRY, NO_EXIT, UNWOUND};
use perfuse_recording::Recording;

/// How many of something, and where the first is.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    num: u64,
    first: Option<u64>,
}

impl Tally {
    fn count(&mut self, num: u64, offset: u64) {
        self.num = self.num.saturating_add(num);
        if num > 0 {
            self.first = Some(self.first.map_or(offset, |first| first.min(offset)));
        }
    }

    fn add(&mut self, other: Self) {
        self.count(other.num, other.first.unwrap_or(u64::MAX));
    }
}

/// Calls of some threads.
#[derive(Clone, Copy, Debug, Default)]
struct Balance {
    no_entry: Tally,
    unwound: Tally,
    no_exit: Tally,
    threads: u64,
}

impl Balance {
    fn and(mut self, other: Self) -> Self {
        self.no_entry.add(other.no_entry);
        self.unwound.add(other.unwound);
        self.no_exit.add(other.no_exit);
        self.threads = self.threads.saturating_add(other.threads);
        self
    }

    fn tell(self, sink: &mut Diagnostics) {
        let mut tell = |rule: &'static Rule, tally: Tally, what: &str| {
            if let Some(first) = tally.first {
                sink.push(rule, first, None, "", || {
                    format!("{what}: {}; threads: {}", tally.num, self.threads).into()
                });
            }
        };
        tell(&NO_ENTRY, self.no_entry, "exits without entry");
        tell(&NO_EXIT, self.no_exit, "calls without exit");
        tell(&UNWOUND, self.unwound, "calls left without an exit of their own");
    }
}

/// The calls a thread is in.
#[derive(Debug, Default)]
struct Stack {
    calls: Vec<u32>,
    /// How often each function is in it: an exit of another is not looked for.
    open: FxHashMap<u32, u32>,
    balance: Balance,
    last: u64,
}

impl Stack {
    fn take(&mut self, action: Action, function_id: u32, offset: u64) {
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

    fn end(mut self) -> Balance {
        self.balance.no_exit.count(self.calls.len() as u64, self.last);
        self.balance.threads = 1;
        self.balance
    }
}

/// Tells of the calls of a log of FDR mode, its threads side by side.
pub fn fdr(log: &XRay, survey: &Survey, sink: &mut Diagnostics) {
    let mut threads: FxHashMap<(i32, i32), Vec<usize>> = FxHashMap::default();
    for &index in &survey.order {
        if let Some(block) = survey.blocks.get(index) {
            threads.entry(owner(block)).or_default().push(index);
        }
    }
    let balances = threads.into_values().collect::<Vec<_>>().into_par_iter().map(|blocks| {
        let mut stack = Stack::default();
        for index in blocks {
            buffer(log, survey, index, &mut stack);
        }
        stack.end()
    });
    balances.reduce(Balance::default, Balance::and).tell(sink);
}

fn buffer(log: &XRay, survey: &Survey, index: usize, stack: &mut Stack) {
    let Some(block) = survey.blocks.get(index) else { return };
    let dialect = Dialect { payloads: block.payloads, ..log.header().dialect() };
    let mut walk = Walk::new(log.source(), block.records.clone(), dialect);
    loop {
        let run = walk.functions(usize::MAX);
        let mut offset = run.offset as u64;
        run.for_each(|action, id, _| {
            stack.take(action, id, offset);
            offset = offset.saturating_add(FUNCTION_BYTES as u64);
        });
        match walk.next() {
            Some(Step::Metadata { .. } | Step::Function { .. }) => {}
            Some(Step::Broken(_)) | None => break,
        }
    }
    log.source().release(block.records.clone());
}

/// Tells of the calls of a log of Basic mode.
pub fn basic(log: &XRay, survey: &basic::Survey, sink: &mut Diagnostics) {
    let header = log.header();
    let version = header.dialect().version;
    let mut threads: FxHashMap<(i32, i32), Stack> = FxHashMap::default();
    for index in survey.indexes() {
        let Some(entry) = basic::entry_at(log.source(), index, header.endian) else { continue };
        if let (basic::Entry::Normal(record), Some(owner)) = (entry, entry.owner(version)) {
            let stack = threads.entry(owner).or_default();
            let offset = basic::offset_of(index) as u64;
            stack.take(Action(record.kind), record.function_id.cast_unsigned(), offset);
        }
    }
    threads.into_values().map(Stack::end).fold(Balance::default(), Balance::and).tell(sink);
}
