//! Sums over all calls and allocations: as they are saved, and as a saved profile has them.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_engine::calls::Options;
use perfuse_formats::saved::SavedProfile;
use perfuse_formats::saved::parquet_file::TableError;
use perfuse_tables::access::{ColumnError, nullable, numbers};
use perfuse_tables::{
    AllocationGroup, AllocationSum, TableSpec, allocation_sums, call_functions, call_migrations, call_paths,
    call_threads, call_totals,
};

use crate::calls::CallCosts;
use crate::profile::Profile;

/// Keys that sums have, and the tables whose rows they refer to.
const KEYS: [(&str, &str); 5] = [
    ("thread_id", "threads"),
    ("function_id", "functions"),
    ("type_id", "types"),
    ("stack_id", "stacks"),
    ("source_id", "sources"),
];

/// Whether the keys of a batch of sums refer to rows that exist, and paths follow those of their callers.
fn is_consistent(file: &SavedProfile, batch: &RecordBatch) -> Result<bool, TableError> {
    let keys = |column| numbers::<UInt32Type>(batch, column).ok();
    for (column, table) in KEYS {
        let Some(keys) = keys(column) else { continue };
        let num_rows = file.parquet(table)?.map_or(0, |table| table.num_rows);
        if keys.iter().flatten().any(|key| u64::from(key) >= num_rows) {
            return Ok(false);
        }
    }
    Ok(match (keys("path_id"), keys("parent_path_id")) {
        (Some(paths), Some(parents)) => paths.iter().zip(parents).all(|(path, parent)| parent < path),
        _ => true,
    })
}

/// A whole table; `None` where the file has not got it.
fn whole(file: &SavedProfile, spec: &'static TableSpec) -> Result<Option<RecordBatch>, TableError> {
    let Some(table) = file.resolved_table(spec)? else { return Ok(None) };
    let num_rows = usize::try_from(table.num_rows).unwrap_or(usize::MAX);
    let batch = table.rows(None, num_rows.max(1))?.next().transpose()?;
    let batch = batch.unwrap_or_else(|| RecordBatch::new_empty(spec.schema()));
    if batch.num_rows() != num_rows || !is_consistent(file, &batch)? {
        let message = "rows are missing, or refer to rows that do not exist".to_owned();
        return Err(TableError::Table(spec.name, message));
    }
    Ok(Some(batch))
}

/// Costs of all calls; `None` where the file has not got them.
pub(crate) fn saved_costs(file: &SavedProfile, with_paths: bool) -> Result<Option<CallCosts>, TableError> {
    let table = |spec| whole(file, spec);
    let (Some(functions), Some(threads)) = (table(&call_functions::SPEC)?, table(&call_threads::SPEC)?)
    else {
        return Ok(None);
    };
    let (Some(migrations), Some(totals)) = (table(&call_migrations::SPEC)?, table(&call_totals::SPEC)?)
    else {
        return Ok(None);
    };
    let paths = if with_paths { table(&call_paths::SPEC)? } else { None };
    if totals.num_rows() != 1 || paths.is_some() != with_paths {
        return Ok(None);
    }
    Ok(Some(CallCosts { functions, edges: None, paths, threads, migrations, totals }))
}

/// Sums of the allocations of a recording; `None` where the file has not got them.
pub(crate) fn saved_allocation_sums(
    file: &SavedProfile,
    source_id: u32,
) -> Result<Option<Vec<AllocationSum>>, TableError> {
    let spec = &allocation_sums::SPEC;
    let Some(batch) = whole(file, spec)? else { return Ok(None) };
    let sums = sums_of(&batch, source_id);
    sums.map(Some).map_err(|error| TableError::Table(spec.name, error.to_string()))
}

fn sums_of(batch: &RecordBatch, own_source: u32) -> Result<Vec<AllocationSum>, ColumnError> {
    let keys = |column| numbers::<UInt32Type>(batch, column);
    let (threads, types, stacks) = (keys("thread_id")?, keys("type_id")?, keys("stack_id")?);
    let sources = keys("source_id")?;
    let counts = |column| numbers::<UInt64Type>(batch, column);
    let (objects, bytes) = (counts("num_objects")?, counts("size_bytes")?);
    let (largest, offsets) = (counts("largest_bytes")?, counts("record_offset")?);
    let times = numbers::<Int64Type>(batch, "first_ns")?;
    let own = (0..batch.num_rows()).filter(|&row| sources.value(row) == own_source);
    let sum = |row| AllocationSum {
        group: AllocationGroup {
            thread_id: threads.value(row),
            type_id: nullable(types, row),
            stack_id: nullable(stacks, row),
        },
        count: objects.value(row),
        bytes: bytes.value(row),
        largest: largest.value(row),
        first_ns: times.value(row),
        source_id: own_source,
        record_offset: offsets.value(row),
    };
    Ok(own.map(sum).collect())
}

impl Profile {
    /// Costs of all calls as they were saved; `None` where something else is requested, or they were not saved.
    pub(crate) fn saved_costs(&self, options: &Options, with_paths: bool) -> Option<CallCosts> {
        let range = self.saved_events()?.range_of_all_times().filter(|_| options.are_usual())?;
        range.noting(|file| saved_costs(file, with_paths))
    }

    /// Sums over all calls and allocations, with the names of their tables, to be saved with a profile.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn resolved_sums(
        &self,
        of_calls: bool,
        of_allocations: bool,
    ) -> Result<Vec<(&'static TableSpec, RecordBatch)>, ColumnError> {
        let mut tables: Vec<(&'static TableSpec, RecordBatch)> = Vec::new();
        if of_calls {
            let CallCosts { functions, edges: _, paths, threads, migrations, totals } =
                self.call_costs(&Options::default(), true)?;
            tables.push((&call_functions::SPEC, functions));
            tables.extend(paths.map(|paths| (&call_paths::SPEC, paths)));
            tables.push((&call_threads::SPEC, threads));
            tables.push((&call_migrations::SPEC, migrations));
            tables.push((&call_totals::SPEC, totals));
        }
        if of_allocations {
            let mut table = allocation_sums::Builder::new();
            for sum in self.all_allocation_sums()?.all() {
                let AllocationGroup { thread_id, type_id, stack_id } = sum.group;
                let (count, bytes, largest) = (sum.count, sum.bytes, sum.largest);
                let (time, source, offset) = (sum.first_ns, sum.source_id, sum.record_offset);
                table.push(thread_id, type_id, stack_id, count, bytes, largest, time, source, offset);
            }
            tables.push((&allocation_sums::SPEC, table.finish()));
        }
        Ok(tables)
    }
}
