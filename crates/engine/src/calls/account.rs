//! What the calls of a trace cost, in one pass.

use arrow_array::RecordBatch;
use perfuse_tables::CallRows;
use perfuse_tables::access::ColumnError;

use super::durations::Rank;
use super::events::Event;
use super::migrations::Threads;
use super::paths::{PathRow, Paths};
use super::selection::Selection;
use super::series::Counts;
use super::statistics::By;
use super::tree::Tree;
use super::visitor::{Entry, Frame, Leave, Level, Visitor};
use super::{graph, segment, statistics};

/// What to look at, and what to tell of it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads and time.
    pub selection: Selection,
    /// What functions are told apart by.
    pub by: By,
    /// How percentiles are taken.
    pub rank: Rank,
    /// Keys of the functions to tell figures of, sorted; all where none.
    pub functions: Option<Vec<u32>>,
    /// Only durations of calls that were made while the function was already on the stack.
    pub recursive_only: bool,
    /// Figures by who calls whom too.
    pub edges: bool,
}

impl Options {
    /// Whether figures of a function are to be told.
    pub(super) fn has(&self, function_id: u32) -> bool {
        self.functions.as_ref().is_none_or(|functions| functions.binary_search(&function_id).is_ok())
    }
}

/// Numbers of the whole selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Rows of `call_events`.
    pub num_events: u64,
    /// Calls.
    pub num_calls: u64,
    /// Those of them that did not simply begin and end.
    pub counts: Counts,
    /// First and last time stamp.
    pub span_ns: Option<(i64, i64)>,
}

/// What calls cost.
#[derive(Debug)]
pub struct Account {
    /// One row a function, told apart as was asked.
    pub functions: RecordBatch,
    /// One row a caller and callee, where that was asked.
    pub edges: Option<RecordBatch>,
    /// One row a thread.
    pub threads: RecordBatch,
    /// One row a thread and pair of processors it went between.
    pub migrations: RecordBatch,
    /// Every call path.
    pub paths: Paths,
    /// What threads spent in them.
    pub path_rows: Vec<PathRow>,
    /// Of all functions, whichever were asked for.
    pub totals: Totals,
}

/// Accounts for the calls of `call_events`, in segments that follow each other, which are asked for once more where calls were
/// already open when a recording began; and for those of `call_sums`, which are left out where a time is selected: they have
/// none.
///
/// # Errors
/// [`ColumnError`] when the batches are not of these tables.
pub fn account<B: Iterator<Item: Into<CallRows>> + Send>(
    segments: impl Fn() -> Vec<B>,
    mut sums: impl Iterator<Item = RecordBatch>,
    options: &Options,
) -> Result<Account, ColumnError> {
    let Accountant { mut tree, threads } = segment::visit(segments, options)?;
    if options.selection.time_ns.is_none() {
        sums.try_for_each(|batch| tree.add_sums(&batch))?;
    }
    let mut paths = Paths::default();
    let path_rows = paths.add(&tree);
    let totals = Totals {
        num_events: threads.num_events(),
        num_calls: tree.nodes.iter().map(|node| node.num_calls).sum(),
        counts: tree.counts(),
        span_ns: threads.span_ns(),
    };
    Ok(Account {
        functions: statistics::functions(&mut tree, options.rank),
        edges: options.edges.then(|| graph::edges(&mut tree, options.rank)),
        threads: threads.batch(&tree),
        migrations: threads.migrations(),
        paths,
        path_rows,
        totals,
    })
}

/// What threads spent in each path, of a part of what `paths` are of.
///
/// # Errors
/// [`ColumnError`]
pub fn path_rows<B: Iterator<Item: Into<CallRows>> + Send>(
    segments: impl Fn() -> Vec<B>,
    mut sums: impl Iterator<Item = RecordBatch>,
    selection: &Selection,
    paths: &Paths,
) -> Result<Vec<PathRow>, ColumnError> {
    let options = Options { selection: selection.clone(), functions: Some(Vec::new()), ..Options::default() };
    let Accountant { mut tree, .. } = segment::visit(segments, &options)?;
    if selection.time_ns.is_none() {
        sums.try_for_each(|batch| tree.add_sums(&batch))?;
    }
    Ok(paths.rows(&tree))
}

/// Adds up calls and looks at threads at once.
#[derive(Debug)]
pub(super) struct Accountant {
    pub tree: Tree,
    pub threads: Threads,
}

impl Accountant {
    pub fn new(options: &Options) -> Self {
        Self { tree: Tree::new(options), threads: Threads::new(options.selection.time_ns.clone()) }
    }
}

impl Visitor for Accountant {
    type Mark = u32;

    #[inline(always)]
    fn enter(&mut self, entry: &Entry, parent: Option<&Frame<u32>>) -> u32 {
        self.tree.enter(entry, parent)
    }

    #[inline(always)]
    fn leave(&mut self, call: &Frame<u32>, level: Level, leave: &Leave, parent: Option<&Frame<u32>>) {
        self.tree.leave(call, level, leave, parent);
    }

    fn orphan(&mut self, event: &Event, cpu: Option<u32>, depth: u32, parent: Option<&Frame<u32>>) {
        self.tree.orphan(event, cpu, depth, parent);
    }

    fn leave_earlier(&mut self, thread_id: u32) {
        self.tree.leave_earlier(thread_id);
    }

    fn rows(
        &mut self,
        thread_id: u32,
        cpu: Option<u32>,
        times: impl DoubleEndedIterator<Item = i64> + ExactSizeIterator,
    ) {
        self.threads.rows(thread_id, cpu, times);
    }
}
