//! Functions that several recordings of calls have in common: each has a row of its own in every one of them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_formats::TableRequest;
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use rustc_hash::FxHashMap;

use crate::calls::has_calls;
use crate::profile::Profile;

/// Name, module, source file, line and column.
type Declaration = (String, Option<String>, Option<String>, Option<u32>, Option<u32>);

impl Profile {
    /// For each function key, that of the first function with its name and declaration, which call trees of samples compare, too.
    /// A function that has only a number is itself. `None` where fewer than two recordings contain calls.
    pub(crate) fn same_functions(&self) -> Result<Option<Arc<[u32]>>, ColumnError> {
        let with_calls = self.placed.iter().filter(|placed| has_calls(placed.recording.format()));
        let keys_of: Vec<Range<u32>> = with_calls
            .map(|placed| {
                let first = placed.placement.first.function;
                first..first.saturating_add(placed.recording.extent().function)
            })
            .collect();
        let (Some(last), true) = (keys_of.iter().map(|keys| keys.end).max(), keys_of.len() > 1) else {
            return Ok(None);
        };
        let modules = self.module_names()?;
        let mut first_of: FxHashMap<Declaration, u32> = FxHashMap::default();
        let mut same: Vec<u32> = (0..last).collect();
        for batch in self.with_names("functions", &TableRequest::default())? {
            let keys = numbers::<UInt32Type>(&batch, "function_id")?;
            let native_ids = numbers::<UInt64Type>(&batch, "native_id")?;
            let module_ids = numbers::<UInt32Type>(&batch, "module_id")?;
            let (names, paths) = (text(&batch, "name")?, text(&batch, "path")?);
            let (lines, columns) =
                (numbers::<UInt32Type>(&batch, "line")?, numbers::<UInt32Type>(&batch, "column")?);
            for (row, &key) in keys.values().iter().enumerate() {
                let name = names.get(row).unwrap_or_default();
                let is_number = |id: u64| name.strip_prefix("function ") == Some(id.to_string().as_str());
                let has_calls = keys_of.iter().any(|keys| keys.contains(&key));
                if !has_calls || name.is_empty() || nullable(native_ids, row).is_some_and(is_number) {
                    continue;
                }
                let module = nullable(module_ids, row).and_then(|module| modules.get(&module).cloned());
                let path = paths.get(row).map(str::to_owned);
                let declaration =
                    (name.to_owned(), module, path, nullable(lines, row), nullable(columns, row));
                let first = *first_of.entry(declaration).or_insert(key);
                if let Some(slot) = same.get_mut(key as usize) {
                    *slot = first;
                }
            }
        }
        Ok(Some(same.into()))
    }

    fn module_names(&self) -> Result<FxHashMap<u32, String>, ColumnError> {
        let mut all = FxHashMap::default();
        for batch in self.with_names("modules", &TableRequest::default())? {
            let (keys, names) = (numbers::<UInt32Type>(&batch, "module_id")?, text(&batch, "name")?);
            for (row, &key) in keys.values().iter().enumerate() {
                all.insert(key, names.get(row).unwrap_or_default().to_owned());
            }
        }
        Ok(all)
    }
}
