//! The cost of calls, by function.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::call_functions;
use perfuse_workers::{in_call, install};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::durations::{Durations, Figures, Rank};
use super::selection::CallGrouping;
use super::series::{EndCounts, Series, SeriesList};
use super::tree::{CallPathTree, PathNode};
use crate::NONE;

/// The cost of the calls of a series.
#[derive(Debug, Default)]
pub struct CallStatistics {
    pub caller_id: u32,
    pub function_id: u32,
    pub group: u32,
    num_calls: u64,
    recursive_calls: u64,
    self_ns: u64,
    total_ns: u64,
    summed_ns: u64,
    counts: EndCounts,
    num_timed: u64,
    figures: Option<Figures>,
}

impl CallStatistics {
    fn add(&mut self, node: &PathNode, is_recursive: bool) {
        self.num_calls = self.num_calls.saturating_add(node.num_calls);
        self.self_ns = self.self_ns.saturating_add(node.self_ns);
        if is_recursive {
            self.recursive_calls = self.recursive_calls.saturating_add(node.num_calls);
        } else {
            self.total_ns = self.total_ns.saturating_add(node.total_ns);
        }
    }
}

/// Rows of all series, by caller, function and group. `series_of` returns the series of a node's calls, `is_recursive`
/// states which nodes are within another of the same series.
pub fn rows(
    tree: &CallPathTree,
    series: SeriesList,
    series_of: impl Fn(&PathNode) -> u32,
    is_recursive: &[bool],
    rank: Rank,
) -> Vec<CallStatistics> {
    let mut index_of = FxHashMap::default();
    let mut rows: Vec<(CallStatistics, Durations)> = Vec::new();
    let mut row_of = Vec::with_capacity(series.list.len());
    for Series { caller_id, function_id, group, counts } in series.list {
        let next = rows.len();
        let index = *index_of.entry((caller_id, function_id, group)).or_insert_with(|| {
            rows.push((
                CallStatistics { caller_id, function_id, group, ..CallStatistics::default() },
                Durations::default(),
            ));
            next
        });
        if let Some((row, _)) = rows.get_mut(index) {
            row.counts.merge(counts);
        }
        row_of.push(index);
    }
    let mut durations = series.durations;
    let recursive_only = tree.options().recursive_only;
    for (number, (node, &is_recursive)) in (0..).zip(tree.nodes.iter().zip(is_recursive)) {
        let index = series_of(node) as usize;
        let Some(&row) = row_of.get(index) else { continue };
        let Some((row, all)) = rows.get_mut(row) else { continue };
        row.add(node, is_recursive);
        if is_recursive || !recursive_only {
            row.summed_ns = row.summed_ns.saturating_add(tree.summed.get(&number).copied().unwrap_or(0));
            if let Some(durations) = durations.get_mut(index) {
                all.append(std::mem::take(durations));
            }
        }
    }
    // Calls outside of the selected time have no figures, and those of some functions are not requested.
    rows.retain(|(row, _)| {
        let has_calls = row.num_calls > 0 || row.total_ns > 0 || row.counts.num_orphans > 0;
        has_calls && tree.options().has(row.function_id)
    });
    // One function often has most of the calls: rows are processed one by one, those with most calls first.
    rows.sort_by_key(|(_, durations)| std::cmp::Reverse(durations.len()));
    let finish = |(mut row, durations): (CallStatistics, Durations)| {
        row.num_timed = durations.len() as u64;
        row.figures = durations.figures(rank);
        row
    };
    let mut rows: Vec<CallStatistics> =
        install(|| rows.into_par_iter().with_max_len(1).map(in_call(finish)).collect());
    rows.sort_by_key(|row| (row.function_id, row.caller_id, row.group));
    rows
}

/// Table `call_functions`.
pub fn functions(tree: &mut CallPathTree, rank: Rank) -> RecordBatch {
    let series = std::mem::take(&mut tree.series);
    let is_recursive = recursion(&tree.nodes, |node| u64::from(node.function_id));
    let rows = rows(tree, series, |node| node.series, &is_recursive, rank);
    let by = tree.options().by;
    let group =
        |grouping: CallGrouping| keys(rows.iter().map(|row| if by == grouping { row.group } else { NONE }));
    let mut columns = vec![
        keys(rows.iter().map(|row| row.function_id)),
        group(CallGrouping::Thread),
        group(CallGrouping::Cpu),
    ];
    columns.extend(figures(&rows).into_iter().map(|(_, column)| column));
    call_functions::batch(columns)
}

/// The columns that rows of functions and of edges share.
pub fn figures(rows: &[CallStatistics]) -> Vec<(&'static str, ArrayRef)> {
    let number = |value: fn(&CallStatistics) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(value)))
    };
    let figure = |value: fn(&Figures) -> u64| -> ArrayRef {
        Arc::new(rows.iter().map(|row| row.figures.as_ref().map(value)).collect::<UInt64Array>())
    };
    vec![
        ("num_calls", number(|row| row.num_calls)),
        ("num_timed", number(|row| row.num_timed)),
        ("min_ns", figure(|figures| figures.min_ns)),
        ("median_ns", figure(|figures| figures.median_ns)),
        ("p90_ns", figure(|figures| figures.p90_ns)),
        ("p99_ns", figure(|figures| figures.p99_ns)),
        ("max_ns", figure(|figures| figures.max_ns)),
        (
            "sum_ns",
            number(|row| row.figures.map_or(0, |figures| figures.sum_ns).saturating_add(row.summed_ns)),
        ),
        ("self_ns", number(|row| row.self_ns)),
        ("total_ns", number(|row| row.total_ns)),
        ("recursive_calls", number(|row| row.recursive_calls)),
        ("num_unwound", number(|row| row.counts.num_unwound)),
        ("num_tail_calls", number(|row| row.counts.num_tail_calls)),
        ("num_truncated", number(|row| row.counts.num_truncated)),
        ("num_lost", number(|row| row.counts.num_lost)),
        ("num_orphans", number(|row| row.counts.num_orphans)),
    ]
}

/// A column of keys; [`NONE`] is null.
pub fn keys(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(values.map(|value| (value != NONE).then_some(value)).collect::<UInt32Array>())
}

/// Which nodes have an ancestor with the same key: one depth-first traversal, however deep the tree is.
pub fn recursion(nodes: &[PathNode], key: impl Fn(&PathNode) -> u64) -> Vec<bool> {
    let mut first_child = vec![NONE; nodes.len()];
    let mut next_sibling = vec![NONE; nodes.len()];
    for (index, node) in nodes.iter().enumerate().rev() {
        if let (Some(first), Some(next)) =
            (first_child.get_mut(node.parent as usize), next_sibling.get_mut(index))
        {
            *next = std::mem::replace(first, index as u32);
        }
    }
    let child_of = |index: u32| first_child.get(index as usize).copied().unwrap_or(NONE);
    let sibling_of = |index: u32| next_sibling.get(index as usize).copied().unwrap_or(NONE);
    let mut on_path: FxHashMap<u64, u32> = FxHashMap::default();
    let mut found = vec![false; nodes.len()];
    for (thread, _) in (0..).zip(nodes).filter(|(_, node)| node.parent == NONE) {
        let mut at = child_of(thread);
        while let Some(node) = nodes.get(at as usize) {
            let count = on_path.entry(key(node)).or_default();
            if let Some(is_recursive) = found.get_mut(at as usize) {
                *is_recursive = *count > 0;
            }
            *count = count.saturating_add(1);
            let mut left = at;
            at = child_of(at);
            // Without children: on to the next sibling of the nearest node that has one.
            while at == NONE
                && left != thread
                && let Some(node) = nodes.get(left as usize)
            {
                on_path.entry(key(node)).and_modify(|count| *count = count.saturating_sub(1));
                at = sibling_of(left);
                left = node.parent;
            }
        }
    }
    found
}
