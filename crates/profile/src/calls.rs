//! Calls of call traces: their cost, each call as a slice, and traces as rows of the tables of samples.

use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use perfuse_engine::calls::{
    Account, CallPaths, CallTotals, EndCounts, FirstKeys, Options, PathRow, Sampled, Selection, account,
    path_rows, slices,
};
use perfuse_formats::{Format, TableRequest};
use perfuse_tables::access::{ColumnError, numbers};
use perfuse_tables::call_totals;
use rustc_hash::FxHashMap;

use crate::prefetch::Prefetch;
use crate::profile::{Profile, TraceSamples};
use crate::recordings::PlacedRecording;

/// Costs of the calls of a profile, as tables.
pub struct CallCosts {
    /// A row per function, and per thread or processor where costs were split by these.
    pub functions: RecordBatch,
    /// A row per caller and callee, where requested.
    pub edges: Option<RecordBatch>,
    /// A row per call path and thread, where requested.
    pub paths: Option<RecordBatch>,
    /// A row per thread.
    pub threads: RecordBatch,
    /// A row per thread and pair of processors it moved between.
    pub migrations: RecordBatch,
    /// A row: numbers of all calls, and the unit of times.
    pub totals: RecordBatch,
}

/// Table `call_totals`.
fn totals_row(unit: &str, totals: &CallTotals) -> RecordBatch {
    let CallTotals { num_events, num_calls, counts, span_ns } = *totals;
    let EndCounts { num_unwound, num_tail_calls, num_truncated, num_lost, num_orphans } = counts;
    let (first_ns, last_ns) = span_ns.unzip();
    let mut table = call_totals::Builder::new();
    table.push(
        unit,
        num_events,
        num_calls,
        num_unwound,
        num_tail_calls,
        num_truncated,
        num_lost,
        num_orphans,
        first_ns,
        last_ns,
    );
    table.finish()
}

/// Whether recordings of a format contain calls.
pub(crate) fn has_calls(format: &Format) -> bool {
    format.tables.iter().any(|table| ["call_events", "call_sums"].contains(table))
}

impl Profile {
    /// Whether any recording contains calls.
    fn has_calls(&self) -> bool {
        self.recordings().any(|recording| has_calls(recording.format()))
    }

    /// All call traces as samples, with keys after those of the join.
    pub(crate) fn trace_samples(&self) -> Result<Option<&TraceSamples>, ColumnError> {
        if !self.has_calls() {
            return Ok(None);
        }
        let samples = self.trace_samples.get_or_init(|| {
            if self.saved_traces.is_some() {
                return self.saved_trace_samples();
            }
            let Account { paths, path_rows, .. } =
                self.account(&Options { functions: Some(Vec::new()), ..Options::default() })?;
            self.to_samples(paths, &path_rows)
        });
        samples.as_ref().map(Some).map_err(|error| *error)
    }

    fn to_samples(&self, paths: CallPaths, rows: &[PathRow]) -> Result<TraceSamples, ColumnError> {
        let keys = self.keys_after_join()?;
        let first = FirstKeys { frame: keys.frame, stack: keys.stack, sample: keys.sample };
        let sampled = Sampled::of(&paths, first, self.first_codes()?);
        Ok(TraceSamples {
            first,
            sampled,
            samples: Sampled::samples(rows, first, &self.tick_sources()),
            paths,
        })
    }

    /// A function that returns the first code object of a function.
    fn first_codes(&self) -> Result<impl Fn(u32) -> Option<u32> + use<>, ColumnError> {
        let mut codes = FxHashMap::default();
        for batch in self.collect("code_objects", &TableRequest::default()) {
            let ids = numbers::<UInt32Type>(&batch, "code_object_id")?.values();
            let functions = numbers::<UInt32Type>(&batch, "function_id")?.values();
            for (&function, &id) in functions.iter().zip(ids) {
                codes.entry(function).or_insert(id);
            }
        }
        Ok(move |function| codes.get(&function).copied())
    }

    /// Recordings of calls (`source_id`) whose times are ticks of an unknown rate.
    fn tick_sources(&self) -> Vec<u32> {
        let has_ticks = |placed: &&PlacedRecording| {
            has_calls(placed.recording.format())
                && placed.clock.kind == "unknown"
                && placed.clock.hz.is_none()
        };
        self.placed.iter().filter(has_ticks).map(|placed| placed.placement.source_id).collect()
    }

    fn account(&self, options: &Options) -> Result<Account, ColumnError> {
        account(|| self.call_segments(), self.stream("call_sums", false), options)
    }

    /// Table `slices`: those that recordings contain, then one per call. Events are decoded in another thread while calls are
    /// rebuilt in this one.
    pub(crate) fn slices(&self) -> Result<Box<dyn Iterator<Item = RecordBatch> + Send>, ColumnError> {
        let calls = slices(|| Prefetch::new(self.stream("call_events", false)), self.next_keys.slice)?;
        Ok(Box::new(self.stream("slices", false).chain(calls)))
    }

    /// Table `samples` of some threads and a time range. Rows of call traces are the time that threads spent in each call path
    /// within the range; rows of allocations are what was allocated in it.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn selected_samples(&self, selection: &Selection) -> Result<Vec<RecordBatch>, ColumnError> {
        let own = self.collect("samples", &TableRequest::default());
        let selected = own.iter().chain(&self.joined()?.samples).map(|batch| selection.samples(batch));
        let mut batches = selected.collect::<Result<Vec<_>, _>>()?;
        if let Some(traced) = self.trace_samples()? {
            let sums = self.stream("call_sums", false);
            let rows = path_rows(|| self.call_segments(), sums, selection, &traced.paths)?;
            batches.push(Sampled::samples(&rows, traced.first, &self.tick_sources()));
        }
        batches.extend(self.allocation_samples(Some(selection))?);
        Ok(batches)
    }

    /// Costs of calls; those of call paths only `with_paths`. A function that several recordings contain is one.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn call_costs(&self, options: &Options, with_paths: bool) -> Result<CallCosts, ColumnError> {
        if let Some(saved) = self.saved_costs(options, with_paths) {
            return Ok(saved);
        }
        let same_functions = self.same_functions()?;
        let options = &Options { same_functions, ..options.clone() };
        let Account { functions, edges, threads, migrations, paths, path_rows, common_paths, totals } =
            self.account(options)?;
        let path_table = with_paths.then(|| match &common_paths {
            Some((paths, rows)) => paths.batch(rows),
            None => paths.batch(&path_rows),
        });
        let is_whole = options.selection.threads.is_none() && options.selection.time_ns.is_none();
        if is_whole && self.has_calls() {
            // Saves another pass over the events for the tables of samples.
            self.trace_samples.get_or_init(|| self.to_samples(paths, &path_rows));
        }
        let unit = if self.tick_sources().is_empty() { "ns" } else { "ticks" };
        let totals = totals_row(unit, &totals);
        Ok(CallCosts { functions, edges, paths: path_table, threads, migrations, totals })
    }
}
