//! The cost of the calls of a trace, in one pass.

use arrow_array::RecordBatch;
use perfuse_tables::CallRows;
use perfuse_tables::access::ColumnError;

use super::paths::{CallPaths, PathRow};
use super::segment::Accountant;
use super::selection::{Options, Selection};
use super::series::EndCounts;
use super::{graph, segment, statistics};

/// Numbers of the whole selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTotals {
    /// Number of rows of `call_events`.
    pub num_events: u64,
    /// Number of calls.
    pub num_calls: u64,
    /// Numbers of calls that did not simply begin and end.
    pub counts: EndCounts,
    /// First and last time stamp.
    pub span_ns: Option<(i64, i64)>,
}

/// The cost of calls.
#[derive(Debug)]
pub struct Account {
    /// One row per function and group.
    pub functions: RecordBatch,
    /// One row per caller and callee, where requested.
    pub edges: Option<RecordBatch>,
    /// One row per thread.
    pub threads: RecordBatch,
    /// One row per thread and pair of processors that it migrated between.
    pub migrations: RecordBatch,
    /// Every call path.
    pub paths: CallPaths,
    /// Calls and time of threads in them.
    pub path_rows: Vec<PathRow>,
    /// Paths and rows after `Options::same_functions` made equal functions one, as in `functions` and `edges`; `None` without it.
    pub common_paths: Option<(CallPaths, Vec<PathRow>)>,
    /// Totals of all functions, whichever were requested.
    pub totals: CallTotals,
}

/// Adds up the calls of `call_events`, in segments that follow each other, and of `call_sums`, which have no time and are left
/// out where a time is selected. `segments` is called again where calls were already open when a recording began.
///
/// # Errors
/// [`ColumnError`] when the batches do not have the columns of these tables.
pub fn account<B: Iterator<Item: Into<CallRows>> + Send>(
    segments: impl Fn() -> Vec<B>,
    mut sums: impl Iterator<Item = RecordBatch>,
    options: &Options,
) -> Result<Account, ColumnError> {
    let Accountant { mut tree, threads } = segment::visit(segments, options)?;
    if options.selection.time_ns.is_none() {
        sums.try_for_each(|batch| tree.add_sums(&batch))?;
    }
    let mut paths = CallPaths::default();
    let path_rows = paths.add(&tree);
    let totals = CallTotals {
        num_events: threads.num_events(),
        num_calls: tree.nodes.iter().map(|node| node.num_calls).fold(0, u64::saturating_add),
        counts: tree.counts(),
        span_ns: threads.span_ns(),
    };
    let common_paths = options.same_functions.as_ref().map(|same| {
        tree.merge_functions(same);
        let mut paths = CallPaths::default();
        let rows = paths.add(&tree);
        (paths, rows)
    });
    Ok(Account {
        functions: statistics::functions(&mut tree, options.rank),
        edges: options.edges.then(|| graph::edges(&mut tree, options.rank)),
        threads: threads.batch(&tree),
        migrations: threads.migrations(),
        paths,
        path_rows,
        common_paths,
        totals,
    })
}

/// Calls and time of threads in each path, of a selection of the calls that `paths` was made of.
///
/// # Errors
/// [`ColumnError`]
pub fn path_rows<B: Iterator<Item: Into<CallRows>> + Send>(
    segments: impl Fn() -> Vec<B>,
    mut sums: impl Iterator<Item = RecordBatch>,
    selection: &Selection,
    paths: &CallPaths,
) -> Result<Vec<PathRow>, ColumnError> {
    let options = Options { selection: selection.clone(), functions: Some(Vec::new()), ..Options::default() };
    let Accountant { mut tree, .. } = segment::visit(segments, &options)?;
    if selection.time_ns.is_none() {
        sums.try_for_each(|batch| tree.add_sums(&batch))?;
    }
    Ok(paths.rows(&tree))
}
