//! The profile: recordings with common keys on one clock, and all their tables.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use perfuse_binaries::symbolize::{Follow, Symbolizer};
use perfuse_binaries::xray_map::{NamedFunctions, ObjectMaps};
use perfuse_engine::align::{FirstUse, first_uses};
use perfuse_engine::allocated::{AllocationSums, TypeFunctions, TypedStacks};
use perfuse_engine::calls::{CallPaths, FirstKeys, Sampled};
use perfuse_engine::join::JoinedTables;
use perfuse_engine::unwind::UnwindTotals;
use perfuse_formats::{CallStream, Clock, Recording, TableRequest, UnpackLimit, WallClockTime};
use perfuse_tables::access::{ColumnError, numbers};
use perfuse_tables::{Identities, Offsets, clocks, sources};
use perfuse_workers::in_background;

use crate::address_columns::has_points;
use crate::definitions::DefinedLines;
use crate::naming_finding::NamingFinding;
use crate::recordings::{PlacedRecording, ProfileInput, RecordingSet, place, table_request};
use crate::saved_tables::SavedTables;
use crate::table_stream::TableStream;

/// How functions of a profile are named.
#[derive(Default)]
pub struct ProfileOptions {
    /// Directories with copies of the recorded programs and libraries, and with perf maps.
    pub symbol_dirs: Vec<PathBuf>,
    /// Whether lines and inlined calls are read from debug information.
    pub debug_info: bool,
    /// Host name and kernel release of the recorded machine.
    pub recorded_on: Option<(String, String)>,
    /// Which files that recordings name are opened.
    pub follow: Follow,
    /// How large compressed sections of those files may become.
    pub unpack_limit: UnpackLimit,
    /// XRay instrumentation maps, which name functions that recordings have only numbers of.
    pub xray_maps: ObjectMaps,
}

impl ProfileOptions {
    /// Whether functions are named in the same way with other options. Instrumentation maps are not compared: with any, it is not.
    fn is_same(&self, other: &Self) -> bool {
        let rest = |options: &Self| (options.debug_info, options.follow, options.unpack_limit);
        self.symbol_dirs == other.symbol_dirs
            && self.recorded_on == other.recorded_on
            && rest(self) == rest(other)
            && self.xray_maps.is_empty()
            && other.xray_maps.is_empty()
    }
}

/// Tables that a saved profile has not, or only a part of.
const MADE_AGAIN: [&str; 3] = ["instructions", "line_rows", "inline_calls"];

/// Call traces as samples.
pub(crate) struct TraceSamples {
    pub(crate) paths: CallPaths,
    pub(crate) first: FirstKeys,
    /// Frames and stacks of every call path.
    pub(crate) sampled: Sampled,
    /// Time that threads spent in each call path.
    pub(crate) samples: RecordBatch,
}

/// What is stated about the stacks of calls and allocations of a saved profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SavedTraces {
    /// Number of rows of `samples` that are of calls.
    pub(crate) num_samples: u64,
}

/// Several recordings on one clock. Tables that need several recordings are made when first asked for.
pub struct Profile {
    pub(crate) placed: Vec<PlacedRecording>,
    identities: Arc<Mutex<Identities>>,
    /// First keys after those of all recordings.
    pub(crate) next_keys: Offsets,
    pub(crate) options: ProfileOptions,
    pub(crate) named_functions: OnceLock<Result<Vec<NamedFunctions>, ColumnError>>,
    pub(crate) symbolizer: OnceLock<Symbolizer>,
    pub(crate) joined: OnceLock<Result<JoinedTables, ColumnError>>,
    /// Set when the join was started before its first use.
    join_started: OnceLock<()>,
    /// Set by the join: files that it could not use.
    pub(crate) unused_files: OnceLock<Vec<NamingFinding>>,
    /// Set by the join, where there were stacks to unwind.
    pub(crate) unwind_totals: OnceLock<UnwindTotals>,
    pub(crate) trace_samples: OnceLock<Result<TraceSamples, ColumnError>>,
    pub(crate) allocation_sums: OnceLock<Result<AllocationSums, ColumnError>>,
    pub(crate) type_functions: OnceLock<Result<TypeFunctions, ColumnError>>,
    pub(crate) typed_stacks: OnceLock<Result<TypedStacks, ColumnError>>,
    /// The tables as they were saved, where the recordings are those of a saved profile.
    pub(crate) saved: Option<SavedTables>,
    /// Tables of which the saved profile has only some rows.
    pub(crate) partial_tables: Vec<String>,
    /// Whether `named_functions` were saved.
    pub(crate) has_saved_names: bool,
    /// Where events are those of a range, and stacks of all calls and allocations are read of the saved tables: what is stated
    /// about these.
    pub(crate) saved_traces: Option<SavedTraces>,
}

impl Profile {
    /// Places the recordings; reads as much of each as the number of its keys needs.
    #[must_use]
    pub fn new(inputs: Vec<ProfileInput>, options: ProfileOptions) -> Self {
        let identities = Arc::default();
        let (placed, next_keys) = place(inputs, &identities);
        Self {
            placed,
            identities,
            next_keys,
            options,
            named_functions: OnceLock::new(),
            symbolizer: OnceLock::new(),
            joined: OnceLock::new(),
            join_started: OnceLock::new(),
            unused_files: OnceLock::new(),
            unwind_totals: OnceLock::new(),
            trace_samples: OnceLock::new(),
            allocation_sums: OnceLock::new(),
            type_functions: OnceLock::new(),
            typed_stacks: OnceLock::new(),
            saved: None,
            partial_tables: Vec::new(),
            has_saved_names: false,
            saved_traces: None,
        }
    }

    /// Whether a profile of these inputs and options would be the same as this one.
    pub(crate) fn is_of(&self, inputs: &[ProfileInput], options: &ProfileOptions) -> bool {
        self.options.is_same(options)
            && self.placed.len() == inputs.len()
            && self.placed.iter().zip(inputs).all(|(placed, input)| placed.is_of(input))
    }

    /// The recordings, in the order of their `source_id`.
    pub fn recordings(&self) -> impl Iterator<Item = &Arc<dyn Recording>> {
        self.placed.iter().map(|placed| &placed.recording)
    }

    /// The recordings as a value that streams can own.
    #[must_use]
    pub fn recording_set(&self) -> RecordingSet {
        RecordingSet::new(&self.placed)
    }

    /// One of the common tables; `None` for an unknown name.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn table(&self, name: &str, with_bytes: bool) -> Result<Option<TableStream>, ColumnError> {
        let Some(spec) = perfuse_tables::table(name) else { return Ok(None) };
        let is_saved = (!with_bytes || has_points(spec.name)) && !MADE_AGAIN.contains(&spec.name);
        let is_whole = self.partial_tables.iter().all(|partial| partial != spec.name);
        let saved = self.saved.as_ref().filter(|_| is_saved && is_whole);
        if let Some(saved) = saved.and_then(|saved| saved.table(spec.name, None)) {
            return Ok(Some(saved));
        }
        self.settle_keys()?;
        let batches = match spec.name {
            "sources" => vec![self.sources()],
            "clocks" => vec![self.clocks()],
            "processes" | "threads" | "thread_names" => {
                self.joined()?;
                self.trace_samples()?;
                self.meet_sampled_threads()?;
                self.identities().table(name).into_iter().collect()
            }
            "frames" | "stacks" | "samples" => self.sampled_table(name)?,
            "slices" => return Ok(Some(Box::new(self.slices()?.map(Ok)))),
            "functions" | "modules" => self.named_table(name, &TableRequest::default())?,
            name if has_points(name) => return Ok(Some(Box::new(self.with_frames(name)?.map(Ok)))),
            "instructions" => return Ok(Some(Box::new(self.instructions().map(Ok)))),
            "heap_dominators" | "heap_classes" | "heap_sites" => return Ok(Some(self.heap_table(spec.name))),
            _ => return Ok(Some(Box::new(self.stream(name, with_bytes).map(Ok)))),
        };
        Ok(Some(Box::new(batches.into_iter().map(Ok))))
    }

    /// Rows of `frames` or `stacks` that only the events of one table need, with keys of their own; see
    /// [`TableRequest::stacks_of`].
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn stacks_of(&self, name: &str, event_table: &str) -> Result<Vec<RecordBatch>, ColumnError> {
        self.settle_keys()?;
        Ok(self.collect(name, &table_request(event_table, true)))
    }

    /// Table `functions` or `code_objects` with at least the rows that frames refer to; of dumps, with no others but the last row of
    /// `functions`, which is in any case that of the whole table.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn rows_of_stacks(&self, name: &str) -> Result<Vec<RecordBatch>, ColumnError> {
        self.settle_keys()?;
        let joined = self.joined()?;
        let frames = &joined.frames;
        let mut functions = distinct_keys(frames, "function_id")?;
        if joined.functions.num_rows() == 0 {
            // The last row is one of a recording.
            let last = self.next_keys.function.checked_sub(1);
            functions.extend(last.filter(|&last| functions.last().is_none_or(|&referred| referred < last)));
        }
        let request = TableRequest {
            functions: Some(functions),
            code_objects: Some(distinct_keys(frames, "code_object_id")?),
            ..TableRequest::default()
        };
        if name == "functions" { self.named_table(name, &request) } else { Ok(self.collect(name, &request)) }
    }

    /// Table `functions` or `modules`: rows of recordings, then of the join, and of types.
    fn named_table(&self, name: &str, request: &TableRequest) -> Result<Vec<RecordBatch>, ColumnError> {
        let joined = self.joined()?;
        let mut all = self.with_names(name, request)?;
        all.push(if name == "functions" { &joined.functions } else { &joined.modules }.clone());
        if name == "functions" {
            all.extend(self.type_functions()?.map(|types| types.functions.clone()));
        }
        Ok(all)
    }

    /// Tables `frames`, `stacks`, `samples`: rows of recordings, then of the join, of call traces, and of allocations.
    fn sampled_table(&self, name: &str) -> Result<Vec<RecordBatch>, ColumnError> {
        let (joined, traced) = (self.joined()?, self.trace_samples()?);
        let mut all = self.collect(name, &TableRequest::default());
        match name {
            "frames" => all.push(joined.frames.clone()),
            "stacks" => all.push(joined.stacks.clone()),
            _ => all.extend(joined.samples.iter().cloned()),
        }
        all.extend(traced.map(|traced| match name {
            "frames" => traced.sampled.frames.clone(),
            "stacks" => traced.sampled.stacks.clone(),
            _ => traced.samples.clone(),
        }));
        all.extend(match name {
            "frames" => self.type_frames()?,
            "stacks" => self.typed_stacks()?.map(|typed| typed.stacks.clone()),
            _ => self.allocation_samples(None)?,
        });
        Ok(all)
    }

    /// Lines of functions that each recording was given.
    pub fn definitions(&self) -> impl Iterator<Item = Option<&Arc<DefinedLines>>> {
        self.placed.iter().map(|placed| placed.definitions.as_ref())
    }

    /// Starts the join in a thread where there are stacks to unwind, or where its result will be needed in any case; everything
    /// that needs it waits for it. Other samples are joined when a table needs them.
    pub fn start_join(self: &Arc<Self>, is_needed: bool) {
        if (is_needed || self.has_user_stacks()) && self.join_started.set(()).is_ok() {
            let profile = Arc::clone(self);
            drop(in_background(move || profile.joined().is_ok()));
        }
    }

    /// Processes and threads get keys in order of their first occurrence: a join that was started has to be done before any
    /// other table is made.
    pub(crate) fn settle_keys(&self) -> Result<(), ColumnError> {
        if self.join_started.get().is_some() { self.joined().map(|_| ()) } else { Ok(()) }
    }

    /// Gives all threads that have samples their keys and names.
    pub(crate) fn meet_sampled_threads(&self) -> Result<(), ColumnError> {
        self.joined()?;
        // Recordings with samples of their own have threads that no join has seen.
        for placed in self.placed.iter().filter(|placed| placed.recording.fills("samples")) {
            placed.table("threads", &TableRequest::default());
        }
        Ok(())
    }

    /// First keys after those of the recordings and of the join. Everything that needs further keys starts here.
    pub(crate) fn keys_after_join(&self) -> Result<Offsets, ColumnError> {
        let joined = self.joined()?;
        Ok(self.next_keys.plus(Offsets {
            function: joined.functions.num_rows() as u32,
            module: joined.modules.num_rows() as u32,
            frame: joined.frames.num_rows() as u32,
            stack: joined.stacks.num_rows() as u32,
            ..Offsets::default()
        }))
    }

    /// Time from the first to the last event of the recordings that log events: call traces and runtime logs.
    #[must_use]
    pub fn trace_span(&self) -> Option<(i64, i64)> {
        let span = |placed: &PlacedRecording| {
            let logs_events = placed.recording.format().role.logs_events();
            let (first, last) = if logs_events { placed.recording.span() } else { None }?;
            // As the times of events are converted: far from zero, other conversions saturate.
            let scale = placed.placement.clock.around(first);
            Some((scale.ns(first), scale.ns(last)))
        };
        self.placed.iter().filter_map(span).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Creation and first sample of code objects: code of one recording, samples of another, each on its own clock as placed.
    /// Recordings are given by their `source_id`.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn first_uses(&self, samples: usize, code: usize) -> Result<Vec<FirstUse>, ColumnError> {
        let (Some(samples), Some(code)) = (self.placed.get(samples), self.placed.get(code)) else {
            return Ok(Vec::new());
        };
        let code_objects = code.table("code_objects", &TableRequest::default());
        let chains = samples.recording.table("callchains", &samples.placement, &TableRequest::default());
        first_uses(chains.into_iter().flatten(), &code_objects)
    }

    /// Rows of a table that recordings fill, of one after the other, made on demand.
    pub fn stream(&self, name: &str, with_bytes: bool) -> impl Iterator<Item = RecordBatch> + Send + 'static {
        self.recording_set().rows(name, TableRequest { with_bytes, ..TableRequest::default() })
    }

    /// The same, all at once.
    #[must_use]
    pub fn collect(&self, name: &str, request: &TableRequest) -> Vec<RecordBatch> {
        self.placed.iter().flat_map(|placed| placed.table(name, request)).collect()
    }

    /// Whether any recording has rows of a table.
    #[must_use]
    pub fn fills(&self, table: &str) -> bool {
        self.recordings().any(|recording| recording.fills(table))
    }

    /// Table `call_events` in parts that can be made independently.
    pub(crate) fn call_segments(&self) -> Vec<CallStream> {
        self.placed.iter().flat_map(|placed| placed.recording.call_segments(&placed.placement)).collect()
    }

    pub(crate) fn identities(&self) -> MutexGuard<'_, Identities> {
        self.identities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `(process key, pid)` of each process seen so far.
    #[must_use]
    pub fn pids(&self) -> Vec<(u32, i32)> {
        self.identities().pids()
    }

    /// Pid and tid of a thread seen so far, by its key; 0 where unknown.
    #[must_use]
    pub fn thread_owner(&self, thread_id: u32) -> (i32, i32) {
        self.identities().owner(thread_id).unwrap_or_default()
    }

    /// Kind of the clock that all recordings are on; `None` where they differ.
    #[must_use]
    pub fn clock_kind(&self) -> Option<&'static str> {
        let mut kinds = self.placed.iter().map(|placed| placed.clock.kind);
        let first = kinds.next()?;
        kinds.all(|kind| kind == first).then_some(first)
    }

    fn sources(&self) -> RecordBatch {
        let mut table = sources::Builder::new();
        for PlacedRecording { recording, placement, .. } in &self.placed {
            let (summary, source) = (recording.summary(), recording.source());
            table.push(
                placement.source_id,
                recording.format().name,
                summary.version.as_deref(),
                &source.path,
                source.len() as u64,
                summary.endian.name(),
                summary.pointer_bytes,
                summary.arch,
                summary.producer.as_deref(),
                placement.source_id,
            );
        }
        table.finish()
    }

    fn clocks(&self) -> RecordBatch {
        let mut table = clocks::Builder::new();
        for PlacedRecording { recording, clock, placement, .. } in &self.placed {
            table.push(
                placement.source_id,
                placement.source_id,
                clock.kind,
                clock.hz,
                clock.hz_source,
                clock.stated_hz,
                clock.map.offset_ns,
                clock.uncertainty_ns,
                clock.alignment,
                realtime_offset_ns(recording.as_ref(), clock),
            );
        }
        table.finish()
    }
}

/// Difference of the wall clock and the profile's clock, where the recording contains a time of both.
pub(crate) fn realtime_offset_ns(recording: &dyn Recording, clock: &Clock) -> Option<i64> {
    if clock.map.numerator == 0 {
        return None;
    }
    let WallClockTime { ticks, realtime_ns } = match clock.kind {
        "realtime" => WallClockTime { ticks: 0, realtime_ns: 0 },
        _ => recording.wall_clock_time()?,
    };
    realtime_ns.checked_sub(clock.map.ns(ticks))
}

/// The values of a column of keys, sorted; each once.
fn distinct_keys(batch: &RecordBatch, column: &'static str) -> Result<Vec<u32>, ColumnError> {
    let mut keys: Vec<u32> = numbers::<UInt32Type>(batch, column)?.iter().flatten().collect();
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}
