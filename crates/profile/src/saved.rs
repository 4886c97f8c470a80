//! Saved profiles: what was resolved on the machine that saved a profile, in place of the join.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use perfuse_binaries::symbolize::Follow;
use perfuse_binaries::xray_map::NamedFunctions;
use perfuse_engine::join::JoinedTables;
use perfuse_formats::saved::SavedProfile;
use perfuse_formats::saved::parquet_file::TableError;
use perfuse_formats::{Clock, Placement, Recording, TableRequest};
use perfuse_tables::access::{ColumnError, nullable, numbers};
use perfuse_tables::{
    BATCH_ROWS, Identities, TableSpec, frames, functions, modules, processes, samples, stacks, threads,
};

use crate::profile::{Profile, ProfileOptions};
use crate::recordings::ProfileInput;
use crate::saved_tables::{SavedTables, callers_first};
use crate::table_stream::TableStream;

/// Rows of tables `frames`, `stacks`, `samples`, `functions` and `modules` that the join made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinedRows {
    /// In the order of the tables above.
    pub rows: [Range<u64>; 5],
}

/// Names of the tables of [`JoinedRows`].
pub const JOINED_TABLES: [&str; 5] = ["frames", "stacks", "samples", "functions", "modules"];

/// Rows of `functions` and `modules` that instrumentation maps named, of one recording.
pub type NamedRows = (Range<u64>, Range<u64>);

/// What a saved profile states about its tables.
#[derive(Clone, Debug, Default)]
pub struct SavedFacts {
    /// Of the join; `None` where no recording had samples to join.
    pub joined: Option<JoinedRows>,
    /// Of each recording whose functions were named by maps.
    pub named: Vec<NamedRows>,
    /// Tables of which the file has only some rows, for other programs: all rows are made again of the copies.
    pub partial: Vec<String>,
    /// Number of rows of `samples` that are of calls, which those of allocations follow.
    pub traced_samples: u64,
}

/// Why a saved profile cannot be opened.
#[derive(Debug)]
pub enum SavedError {
    /// A table cannot be read.
    Table(TableError),
    /// Keys of a table contradict those of others.
    Keys(&'static str),
}

impl fmt::Display for SavedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(error) => error.fmt(out),
            Self::Keys(table) => {
                write!(out, "keys of table {table} are not in order, or refer to rows that do not exist")
            }
        }
    }
}

impl From<TableError> for SavedError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}

/// A table as it was saved, without opening the recordings; `None` where the file has no rows of it. With `near`, a column of
/// integers and a range, parts of a large table without a value in the range are neither read nor returned.
#[must_use]
pub fn saved_table(
    file: &Arc<dyn Recording>,
    name: &str,
    near: Option<(&str, &RangeInclusive<i64>)>,
) -> Option<TableStream> {
    SavedTables::of(file).table(name, near)
}

/// Whether a column of keys counts up from a first key.
fn counts_up(batch: &RecordBatch, column: &'static str, first: u32) -> bool {
    let Ok(keys) = numbers::<UInt32Type>(batch, column) else { return false };
    keys.values().iter().zip(first..).all(|(key, expected)| *key == expected)
}

/// Whether all keys in a column are below a limit; null is allowed.
fn are_below(batch: &RecordBatch, column: &'static str, limit: u32) -> bool {
    let Ok(keys) = numbers::<UInt32Type>(batch, column) else { return false };
    (0..keys.len()).filter_map(|row| nullable(keys, row)).all(|key| key < limit)
}

fn end(first: u32, batch: &RecordBatch) -> u32 {
    first.saturating_add(u32::try_from(batch.num_rows()).unwrap_or(u32::MAX))
}

/// Keys of processes and threads as saved tables have them.
fn identities(tables: &SavedProfile) -> Result<Option<Identities>, TableError> {
    let whole = |spec: &'static TableSpec| -> Result<Vec<RecordBatch>, TableError> {
        let opened = tables.parquet(spec.name)?;
        opened.map_or_else(|| Ok(Vec::new()), |opened| opened.rows(None, BATCH_ROWS)?.collect())
    };
    Ok(Identities::of_tables(&whole(&processes::SPEC)?, &whole(&threads::SPEC)?))
}

impl Profile {
    /// A profile of the recordings of a saved profile, with what was resolved when it was saved.
    ///
    /// # Errors
    /// [`SavedError`]
    pub fn of_saved(
        inputs: Vec<ProfileInput>,
        file: &Arc<dyn Recording>,
        facts: &SavedFacts,
    ) -> Result<Self, SavedError> {
        let saved = SavedTables::of(file);
        let mut profile =
            Self::new(inputs, ProfileOptions { follow: Follow::Nothing, ..ProfileOptions::default() });
        let Some(tables) = saved.profile() else { return Err(SavedError::Keys("sources")) };
        if let Some(JoinedRows { rows }) = &facts.joined {
            let [frame_rows, stack_rows, sample_rows, function_rows, module_rows] = rows.clone();
            let joined = JoinedTables {
                frames: tables.batch(&frames::SPEC, frame_rows)?,
                stacks: tables.batch(&stacks::SPEC, stack_rows)?,
                samples: vec![tables.batch(&samples::SPEC, sample_rows)?],
                functions: tables.batch(&functions::SPEC, function_rows)?,
                modules: tables.batch(&modules::SPEC, module_rows)?,
                points: Vec::new(), // tables with addresses are read from the file, with their frames
            };
            profile.check_keys(&joined)?;
            profile.joined = OnceLock::from(Ok(joined));
        }
        // Keys of processes and threads are those of the saved tables, in whatever order other tables are made.
        match identities(tables)? {
            Some(identities) => *profile.identities() = identities,
            // Without a join, the recordings give the same keys again.
            None if facts.joined.is_none() => {}
            None => return Err(SavedError::Keys("threads")),
        }
        if !facts.named.is_empty() {
            let named = facts.named.iter().map(|(function_rows, module_rows)| {
                Ok(NamedFunctions {
                    functions: tables.batch(&functions::SPEC, function_rows.clone())?,
                    modules: tables.batch(&modules::SPEC, module_rows.clone())?,
                    findings: Vec::new(),
                })
            });
            profile.named_functions = OnceLock::from(Ok(named.collect::<Result<Vec<_>, TableError>>()?));
            profile.has_saved_names = true;
        }
        profile.saved = facts.joined.is_some().then_some(saved);
        profile.partial_tables.clone_from(&facts.partial);
        Ok(profile)
    }

    /// A profile of the tables of a saved profile alone, without its recordings: for what needs no others. With `sampled_ns` it
    /// has the samples of these times, and others that are stored with them.
    ///
    /// # Errors
    /// [`SavedError`]
    pub fn of_saved_tables(
        file: &Arc<dyn Recording>,
        sampled_ns: Option<RangeInclusive<i64>>,
    ) -> Result<Self, SavedError> {
        let saved = SavedTables::of_times(file, sampled_ns);
        let mut profile = Self::new(Vec::new(), ProfileOptions::default());
        let Some(tables) = saved.profile() else { return Err(SavedError::Keys("sources")) };
        if let Some(identities) = identities(tables)? {
            *profile.identities() = identities;
        }
        profile.saved = Some(saved);
        Ok(profile)
    }

    fn check_keys(&self, joined: &JoinedTables) -> Result<(), SavedError> {
        let first = self.next_keys;
        let (num_frames, num_stacks) = (end(first.frame, &joined.frames), end(first.stack, &joined.stacks));
        let checks = [
            ("frames", counts_up(&joined.frames, "frame_id", first.frame)),
            ("frames", are_below(&joined.frames, "function_id", end(first.function, &joined.functions))),
            ("frames", are_below(&joined.frames, "mapping_id", first.mapping)),
            ("frames", are_below(&joined.frames, "code_object_id", first.code_object)),
            ("stacks", counts_up(&joined.stacks, "stack_id", first.stack)),
            ("stacks", are_below(&joined.stacks, "frame_id", num_frames)),
            ("stacks", callers_first(&joined.stacks)),
            ("samples", joined.samples.iter().all(|batch| are_below(batch, "stack_id", num_stacks))),
            ("functions", counts_up(&joined.functions, "function_id", first.function)),
            ("functions", are_below(&joined.functions, "module_id", end(first.module, &joined.modules))),
            ("modules", counts_up(&joined.modules, "module_id", first.module)),
        ];
        checks
            .into_iter()
            .find(|(_, is_right)| !is_right)
            .map_or(Ok(()), |(table, _)| Err(SavedError::Keys(table)))
    }

    /// Which rows of the tables were made by the join and by instrumentation maps, to be saved with the tables.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn saved_facts(&self) -> Result<SavedFacts, ColumnError> {
        let joined = if self.fills("callchains") { Some(self.joined_rows()?) } else { None };
        let mut named = Vec::new();
        let named_functions = self.named_functions()?;
        if !named_functions.is_empty() {
            let plain = |name| self.num_plain_rows(name);
            let (mut function, mut module) = (plain("functions"), plain("modules"));
            for one in named_functions {
                let function_end = function.saturating_add(one.functions.num_rows() as u64);
                let module_end = module.saturating_add(one.modules.num_rows() as u64);
                named.push((function..function_end, module..module_end));
                (function, module) = (function_end, module_end);
            }
        }
        let traced = self.trace_samples()?;
        let traced_samples = traced.map_or(0, |traced| traced.samples.num_rows() as u64);
        Ok(SavedFacts { joined, named, partial: Vec::new(), traced_samples })
    }

    /// Clock and process of each recording, as they were given, and which of the processes with a pid are its own.
    pub fn placements(&self) -> impl Iterator<Item = (&Clock, Option<i32>, &BTreeMap<i32, u32>)> {
        self.placed.iter().map(|placed| {
            let Placement { pid, nth_of_pid, .. } = &placed.placement;
            (&placed.clock, *pid, &**nth_of_pid)
        })
    }

    fn joined_rows(&self) -> Result<JoinedRows, ColumnError> {
        let joined = self.joined()?;
        let recorded = |name| {
            let batches = self.collect(name, &TableRequest::default());
            batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>()
        };
        let named = |name| -> Result<u64, ColumnError> {
            Ok(self
                .with_names(name, &TableRequest::default())?
                .iter()
                .map(|batch| batch.num_rows() as u64)
                .sum())
        };
        let after = |first: u64, num_rows: usize| first..first.saturating_add(num_rows as u64);
        let num_samples = joined.samples.iter().map(RecordBatch::num_rows).sum();
        Ok(JoinedRows {
            rows: [
                after(recorded("frames"), joined.frames.num_rows()),
                after(recorded("stacks"), joined.stacks.num_rows()),
                after(recorded("samples"), num_samples),
                after(named("functions")?, joined.functions.num_rows()),
                after(named("modules")?, joined.modules.num_rows()),
            ],
        })
    }
}
