//! The functions, modules and tiers with the most weight, as record batches: what a report shows of a tree with many functions.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use rustc_hash::FxHashMap;

use super::tree::CallTree;
use super::weights::{WeightGrouping, WeightRow, weight_columns};
use crate::NONE;
use crate::batch;

/// Which weight functions are sorted by; the other one decides between equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightOrder {
    /// Weight of the samples taken in a function.
    SelfWeight,
    /// Weight of the samples that have it in their stack.
    TotalWeight,
}

impl WeightOrder {
    /// All orders with their names.
    pub const ALL: [(&'static str, Self); 2] = [("self", Self::SelfWeight), ("total", Self::TotalWeight)];

    fn weights(self, row: &WeightRow) -> (u64, u64) {
        match self {
            Self::SelfWeight => (row.self_weight, row.total_weight),
            Self::TotalWeight => (row.total_weight, row.self_weight),
        }
    }
}

impl CallTree {
    /// Number of functions, addresses without a name grouped by module and reason.
    #[must_use]
    pub fn num_functions(&self) -> usize {
        self.weight_rows(WeightGrouping::Function).len()
    }

    /// The heaviest functions, at most `limit`: the columns of [`weights`](CallTree::weights), and `tiers`, the heaviest first.
    /// Equal ones are sorted by name, module and line.
    #[must_use]
    pub fn heaviest_functions(&self, order: WeightOrder, limit: Option<usize>) -> RecordBatch {
        let mut rows = self.weight_rows(WeightGrouping::Function);
        let compare = |one: &WeightRow, other: &WeightRow| self.compare(order, one, other);
        let limit = limit.unwrap_or(usize::MAX);
        if limit < rows.len() {
            rows.select_nth_unstable_by(limit, compare);
            rows.truncate(limit);
        }
        rows.sort_unstable_by(compare);
        let mut tiers: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        tiers.extend(
            rows.iter().filter_map(|row| self.symbol_of(row.example)).map(|one| (one.group, Vec::new())),
        );
        for row in perfuse_stopping::checked(self.weight_rows(WeightGrouping::Tiered)) {
            let Some(symbol) = self.symbol_of(row.example) else { continue };
            if let Some(tiers) = tiers.get_mut(&symbol.group)
                && self.text(symbol.tier).is_some()
                && !tiers.contains(&symbol.tier)
            {
                tiers.push(symbol.tier);
            }
        }
        let mut lists = ListBuilder::new(StringBuilder::new());
        for row in &rows {
            let of_row = self.symbol_of(row.example).and_then(|symbol| tiers.get(&symbol.group));
            for &tier in of_row.into_iter().flatten() {
                lists.values().append_option(self.text(tier));
            }
            lists.append(true);
        }
        let mut columns = weight_columns(self, &rows, WeightGrouping::Function);
        columns.push(("tiers", Arc::new(lists.finish())));
        batch::of(columns)
    }

    /// Self weight by module, or else by tier, the heaviest first: `name, kind, self_weight, self_samples`. Code without either
    /// has its kind as the name, that without a module in brackets. `kind` is that of the most weight in the group.
    #[must_use]
    pub fn group_weights(&self, by_module: bool) -> RecordBatch {
        let mut groups: Vec<(String, &str, WeightRow)> = Vec::new();
        let mut numbers: FxHashMap<(bool, u32), usize> = FxHashMap::default();
        for row in self.weight_rows(WeightGrouping::Tiered).into_iter().filter(|row| row.self_samples > 0) {
            let Some(symbol) = self.symbol_of(row.example) else { continue };
            let id = if by_module { symbol.module } else { symbol.tier };
            let is_kind = self.text(id).is_none();
            let id = if is_kind { symbol.kind } else { id };
            let number = *numbers.entry((is_kind, id)).or_insert_with(|| {
                let name = self.text(id).unwrap_or_default();
                let name = if is_kind && by_module { format!("[{name}]") } else { name.to_owned() };
                groups.push((name, self.text(symbol.kind).unwrap_or_default(), WeightRow::default()));
                groups.len().saturating_sub(1)
            });
            if let Some((_, _, sum)) = groups.get_mut(number) {
                sum.self_weight = sum.self_weight.saturating_add(row.self_weight);
                sum.self_samples = sum.self_samples.saturating_add(row.self_samples);
            }
        }
        groups.sort_by(|(one, _, row), (other, _, more)| {
            more.self_weight.cmp(&row.self_weight).then_with(|| one.cmp(other))
        });
        let wide = |value: fn(&WeightRow) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(groups.iter().map(|(_, _, row)| value(row))))
        };
        batch::of(vec![
            ("name", Arc::new(StringArray::from_iter_values(groups.iter().map(|(name, _, _)| name)))),
            ("kind", Arc::new(StringArray::from_iter_values(groups.iter().map(|(_, kind, _)| kind)))),
            ("self_weight", wide(|row| row.self_weight)),
            ("self_samples", wide(|row| row.self_samples)),
        ])
    }

    fn compare(&self, order: WeightOrder, one: &WeightRow, other: &WeightRow) -> Ordering {
        let weights = |row| Reverse(order.weights(row));
        let names = |row: &WeightRow| {
            let symbol = self.symbol_of(row.example);
            symbol.map(|symbol| {
                let line = if symbol.line == NONE { 0 } else { symbol.line };
                (self.text(symbol.name), self.text(symbol.module).unwrap_or_default(), line)
            })
        };
        weights(one).cmp(&weights(other)).then_with(|| names(one).cmp(&names(other)))
    }

    /// A text that is not empty.
    fn text(&self, id: u32) -> Option<&str> {
        self.symbols.texts.get(id).filter(|text| !text.is_empty())
    }
}
