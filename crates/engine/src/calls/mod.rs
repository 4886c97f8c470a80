//! Calls, rebuilt from the events of their begin and end.
//!
//! [`Calls`] rebuilds the stack of each thread and calls a [`Visitor`] for every call. [`account`] computes the cost of calls:
//! one pass adds them up by call path in a [`CallPathTree`], the source of all other results: figures of functions and of pairs of
//! caller and callee, threads, and the `frames`, `stacks` and `samples` that profiles of samples consist of. [`slices`]
//! returns single calls.

mod account;
mod borders;
mod durations;
mod events;
mod graph;
mod machine;
mod migrations;
mod paths;
mod sampled;
mod segment;
mod selection;
mod series;
mod slices;
mod statistics;
mod sums;
#[cfg(test)]
mod tests;
mod thread;
mod tree;
mod visitor;
mod within;

pub use account::{Account, CallTotals, account, path_rows};
pub use borders::BorderEvents;
pub use durations::{Durations, Figures, Rank};
pub use events::{Event, EventColumns};
pub use machine::{Calls, LostEntries, visit};
pub use migrations::ThreadActivities;
pub use paths::{CallPath, CallPaths, PathRow};
pub use sampled::{FirstKeys, Sampled, is_call};
pub use selection::{CallGrouping, Options, Selection};
pub use series::EndCounts;
pub use slices::{Slices, slices, slices_of_part};
pub use tree::{CallPathTree, PathNode};
pub use visitor::{CallEntry, Leave, Level, OpenCall, Visitor};
pub use within::CallsWithin;
