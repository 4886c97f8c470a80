//! Stacks folded into call trees, and the weight of each function in them.
//!
//! [`call_tree`] takes the common tables: samples are added up by stack, stacks with the same symbols are
//! merged, and the result is a [`CallTree`] in preorder. [`CallTree::weights`] adds up weights by function, module and so on.

mod backtraces;
mod collapsed;
pub mod columns;
mod events;
mod frame_names;
mod heaviest;
mod invert;
mod layout;
mod origin;
mod output;
mod positions;
mod samples;
mod short_name;
mod symbols;
#[cfg(test)]
mod tests;
mod transform;
mod tree;
mod unnamed;
mod weights;

use std::fmt;
use std::ops::Range;

use arrow_array::RecordBatch;

pub use backtraces::backtraces;
pub use collapsed::LineCount;
pub use events::{SampledEvent, sampled_events};
pub use frame_names::frame_names;
pub use heaviest::WeightOrder;
pub use origin::CodeOrigin;
pub use positions::{Callee, CodePosition, CodeSamples, PositionSum, SelectedCode, code_samples};
pub use symbols::{CallSymbol, CallSymbols};
pub use transform::{StackIds, StackStep, StackTransform};
pub(crate) use tree::SymbolStacks;
pub use tree::{CallNode, CallTree};
pub use unnamed::UnnamedFrames;
pub use weights::WeightGrouping;

/// The common tables that stacks are made of, in record batches.
#[derive(Clone, Debug, Default)]
pub struct StackTables {
    /// Table `samples`.
    pub samples: Vec<RecordBatch>,
    /// Table `stacks`.
    pub stacks: Vec<RecordBatch>,
    /// Table `frames`.
    pub frames: Vec<RecordBatch>,
    /// Table `functions`.
    pub functions: Vec<RecordBatch>,
    /// Table `code_objects`.
    pub code_objects: Vec<RecordBatch>,
    /// Table `modules`.
    pub modules: Vec<RecordBatch>,
    /// Table `mappings`.
    pub mappings: Vec<RecordBatch>,
    /// Table `threads`.
    pub threads: Vec<RecordBatch>,
}

/// Which samples are in a tree, and how they are merged.
#[derive(Clone, Debug, Default)]
pub struct CallTreeOptions {
    /// Roots are the functions that ran; children are their callers.
    pub inverted: bool,
    /// Each thread has roots of its own; otherwise all threads' stacks merge.
    pub split_threads: bool,
    /// A function that calls itself directly is one node.
    pub merge_recursion: bool,
    /// Only these threads (`thread_id`).
    pub threads: Option<Vec<u32>>,
    /// Only threads of these processes (`process_id`).
    pub processes: Option<Vec<u32>>,
    /// Only this event.
    pub event: Option<String>,
    /// An event whose weights are counted as the numbers of samples: `calls` for the weights of `wall-time`.
    pub counted_event: Option<String>,
    /// Only samples at or after the start and before the end.
    pub time_ns: Option<Range<i64>>,
    /// Nodes lighter than this share of the whole (0 to 1) are left out; their weight still counts in their callers.
    pub min_share: f64,
    /// Frames are distinguished by their source line: a symbol is a line of a function.
    pub by_line: bool,
}

/// An error in the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackError {
    /// A column is absent or of another type.
    Column {
        /// The table that lacks it.
        table: &'static str,
        /// Its name.
        column: &'static str,
        /// The type found, where there is such a column.
        found: Option<String>,
    },
    /// A row refers to a row that does not exist, or that it must not refer to.
    Reference {
        /// The table that refers.
        table: &'static str,
        /// Its column with the reference.
        column: &'static str,
        /// The key that it contains.
        key: u32,
    },
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column { table, column, found: Some(found) } => {
                write!(f, "column {column} of table {table} cannot be of type {found}")
            }
            Self::Column { table, column, found: None } => write!(f, "table {table} has no column {column}"),
            Self::Reference { table, column, key } => {
                write!(f, "{table}.{column} is {key}, which is not the key of a row that it can refer to")
            }
        }
    }
}

impl std::error::Error for StackError {}

/// Folds samples into a call tree.
///
/// # Errors
/// When a table lacks a column, a stack refers to a frame or parent that is not there, or a parent's row does not come
/// before its children's.
pub fn call_tree(tables: &StackTables, options: &CallTreeOptions) -> Result<CallTree, StackError> {
    let symbols = CallSymbols::of(tables, options.by_line)?;
    let stacks = SymbolStacks::of(tables, &symbols)?;
    let sums = samples::add_up(tables, options, &stacks.keys)?;
    let forward = tree::fold(&stacks, &sums, options.merge_recursion);
    // Pruning before inverting would lose light callers of a function that is heavy in sum.
    let mut nodes = if options.inverted { invert::invert(&forward, options.min_share) } else { forward };
    nodes.order(options.min_share);
    Ok(CallTree { symbols, nodes })
}
