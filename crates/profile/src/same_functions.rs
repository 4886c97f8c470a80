//! Functions that recordings of calls have in common: each has a row of its own in every one of them, and may have several in one.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_formats::TableRequest;
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use rustc_hash::FxHashMap;

use crate::calls::has_calls;
use crate::profile::Profile;

/// Name, module, source file, line and column; and the number in the program, where logs have that.
type Declaration = (String, Option<String>, Option<String>, Option<u32>, Option<u32>, Option<u64>);

/// The bits of a function's number in XRay logs that count the functions of an object. The others number objects, in each run
/// in the order in which they are loaded.
const NUMBER_IN_OBJECT: u64 = (1 << 24) - 1;

impl Profile {
    /// For each function key, that of the first function with its name and declaration: in logs of calls, also of one log, which
    /// may have a function several times under addresses that nothing shows. Numbers of XRay's functions are those of the program
    /// in every run, and so equal in its logs, and different in functions of one name. `None` where each function is itself.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn same_functions(&self) -> Result<Option<Arc<[u32]>>, ColumnError> {
        let with_calls = self.placed.iter().filter(|placed| has_calls(placed.recording.format()));
        let logs: Vec<(Range<u32>, bool)> = with_calls
            .map(|placed| {
                let first = placed.placement.first.function;
                let keys = first..first.saturating_add(placed.recording.extent().function);
                (keys, placed.recording.function_id_bits().is_some())
            })
            .collect();
        let Some(end) = logs.iter().map(|(keys, _)| keys.end).max() else { return Ok(None) };
        let modules = self.module_names()?;
        let mut first_of: FxHashMap<Declaration, u32> = FxHashMap::default();
        let mut same: Vec<u32> = (0..end).collect();
        let mut has_equal = false;
        for batch in self.with_names("functions", &TableRequest::default())? {
            let keys = numbers::<UInt32Type>(&batch, "function_id")?;
            let native_ids = numbers::<UInt64Type>(&batch, "native_id")?;
            let module_ids = numbers::<UInt32Type>(&batch, "module_id")?;
            let (names, paths) = (text(&batch, "name")?, text(&batch, "path")?);
            let (lines, columns) =
                (numbers::<UInt32Type>(&batch, "line")?, numbers::<UInt32Type>(&batch, "column")?);
            for (row, &key) in keys.values().iter().enumerate() {
                let name = names.get(row).unwrap_or_default();
                let log = logs.get(logs.partition_point(|(keys, _)| keys.end <= key));
                let Some((_, has_numbers)) = log.filter(|(keys, _)| keys.contains(&key) && !name.is_empty())
                else {
                    continue;
                };
                let number = if *has_numbers { nullable(native_ids, row) } else { None };
                let declaration = (
                    name.to_owned(),
                    nullable(module_ids, row).and_then(|module| modules.get(&module).cloned()),
                    paths.get(row).map(str::to_owned),
                    nullable(lines, row),
                    nullable(columns, row),
                    number.map(|number| number & NUMBER_IN_OBJECT),
                );
                let first = *first_of.entry(declaration).or_insert(key);
                has_equal |= first != key;
                if let Some(slot) = same.get_mut(key as usize) {
                    *slot = first;
                }
            }
        }
        Ok(has_equal.then(|| same.into()))
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
