//! Calls and other events of a range of time of a saved profile, as recordings: of the tables of its file, without the copies.

use std::collections::HashMap;
use std::io::Write;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, PoisonError};

use arrow_array::RecordBatch;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_schema::ArrowError;
use perfuse_engine::allocated::AllocationOrigin;
use perfuse_engine::calls::{BorderEvents, CallPath, CallPaths, FirstKeys, Sampled, is_call, slices_of_part};
use perfuse_engine::selected::rows_where;
use perfuse_formats::saved::SavedProfile;
use perfuse_formats::saved::parquet_file::{ParquetTable, TableError, write};
use perfuse_formats::{
    BatchStream, CallStream, Clock, Format, Placement, Position, Rate, Recording, Source, Summary,
    TableRequest, call_stream, one_batch, registry,
};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use perfuse_tables::{AllocationSum, BATCH_ROWS, Offsets, call_events, event_objects, samples, slices};
use perfuse_wire::{Diagnostics, Endian, RecordView};
use rustc_hash::FxHashMap;

use crate::calls_near::CallsNear;
use crate::event_objects::known_origins;
use crate::inputs::Damage;
use crate::profile::{Profile, SavedTraces, TraceSamples};
use crate::recordings::ProfileInput;
use crate::saved::{SavedError, SavedFacts};
use crate::saved_sums::saved_allocation_sums;
use crate::saved_tables::SavedTables;

/// What is known of a recording without its copy.
#[derive(Clone)]
pub struct RecordingFacts {
    /// Name of its format.
    pub format: String,
    /// Tables that have rows of it.
    pub tables: Vec<String>,
    /// Numbers of its keys by kind; see [`keys_of`].
    pub keys: HashMap<String, u64>,
    /// First and last time stamp in ticks of its clock.
    pub span: Option<(u64, u64)>,
    /// Its clock.
    pub clock: Clock,
    /// Process id on the recorded machine, where the file contains another one.
    pub pid: Option<i32>,
}

/// Writes table `call_events` as Parquet, in row groups of `group_rows` rows. Returns its number of rows, and table
/// `border_events` where it is of use.
///
/// # Errors
/// Those of the batches, of the output and of the Parquet library.
pub fn write_call_events(
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    group_rows: usize,
    out: impl Write + Send,
) -> Result<(u64, Option<Vec<RecordBatch>>), TableError> {
    let mut borders = BorderEvents::new(group_rows);
    let searched = batches.map(|batch| {
        let batch = batch?;
        borders.push(&batch).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        Ok(batch)
    });
    let table = &call_events::SPEC;
    let num_rows = write(table, table.schema(), group_rows, searched, out)?;
    let found = borders.finish().map_err(|error| TableError::Table(table.name, error.to_string()))?;
    Ok((num_rows, found))
}

/// A recording of a saved profile: its copy, or what is known of it without that.
pub enum SavedInput {
    /// Its copy.
    Copy(ProfileInput),
    /// What is known of it.
    Facts(RecordingFacts),
}

/// Tables with rows of single heap snapshots.
const OF_SNAPSHOTS: [&str; 3] = ["heap_objects", "heap_references", "heap_roots"];

/// The events of a range of time of a file.
#[derive(Clone)]
pub(crate) struct SavedRange {
    file: Arc<dyn Recording>,
    time_ns: Range<i64>,
    /// `None` where no calls were recorded, or none are requested.
    calls: Option<Arc<CallsNear>>,
    num_threads: u32,
    damage: Damage,
}

impl SavedRange {
    /// Those of an open file; `None` where it has not the tables that calls of a range need.
    fn open(file: &Arc<dyn Recording>, time_ns: Range<i64>) -> Result<Option<Self>, TableError> {
        let Some(saved) = file.as_any().downcast_ref::<SavedProfile>() else { return Ok(None) };
        let near = times(&time_ns);
        let calls = match saved.parquet("call_events")? {
            None => None,
            Some(events) => match CallsNear::open(saved, events, &near)? {
                None => return Ok(None),
                Some(calls) => Some(Arc::new(calls)),
            },
        };
        Ok(Some(Self { calls, ..Self::without_calls(file, saved, time_ns)? }))
    }

    /// Those of an open file, without calls.
    fn without_calls(
        file: &Arc<dyn Recording>,
        saved: &SavedProfile,
        time_ns: Range<i64>,
    ) -> Result<Self, TableError> {
        let threads = saved.parquet("threads")?.map_or(0, |threads| threads.num_rows);
        let num_threads = u32::try_from(threads).unwrap_or(u32::MAX);
        Ok(Self { file: Arc::clone(file), time_ns, calls: None, num_threads, damage: Damage::default() })
    }

    /// A recording of the profile, by its place in it.
    fn recording(
        &self,
        facts: RecordingFacts,
        source_id: u32,
        is_alone: bool,
    ) -> Result<ProfileInput, SavedError> {
        let format = registry::FORMATS.iter().find(|known| known.name == facts.format);
        let format = *format.ok_or(SavedError::Keys("sources"))?;
        let (clock, pid) = (facts.clock, facts.pid);
        let range = self.clone();
        let recording = Arc::new(SavedEvents { range, format, source_id, facts, is_alone });
        Ok(ProfileInput { recording, clock, pid, nth_of_pid: Arc::default(), definitions: None })
    }

    /// Whether it is all times.
    fn is_of_all_times(&self) -> bool {
        self.time_ns == (i64::MIN..i64::MAX)
    }

    /// What is read of the file; `None` where it cannot be read, which is noted as damage.
    pub(crate) fn noting<T>(
        &self,
        read: impl FnOnce(&SavedProfile) -> Result<Option<T>, TableError>,
    ) -> Option<T> {
        let read = read(self.file.as_any().downcast_ref::<SavedProfile>()?);
        read.unwrap_or_else(|error| {
            self.damage.note(&self.file.source().path, error);
            None
        })
    }

    /// Batches up to the first that cannot be read.
    fn noted<T: 'static>(
        &self,
        batches: impl Iterator<Item = Result<T, TableError>> + Send + 'static,
    ) -> Box<dyn Iterator<Item = T> + Send> {
        let Self { file, damage, .. } = self.clone();
        Box::new(
            batches
                .map_while(move |batch| batch.map_err(|error| damage.note(&file.source().path, error)).ok()),
        )
    }

    /// Rows of a table that are stored with those of some times.
    fn stored(
        &self,
        open: impl FnOnce(&SavedProfile) -> Result<Option<ParquetTable>, TableError>,
        column: &str,
        near: &RangeInclusive<i64>,
    ) -> BatchStream {
        let opened = || -> Result<BatchStream, TableError> {
            let saved = self.file.as_any().downcast_ref::<SavedProfile>();
            let Some(table) = saved.map_or(Ok(None), open)? else {
                return Ok(Box::new(std::iter::empty()));
            };
            let num_threads = self.num_threads;
            let rows = table.rows_near(column, near, BATCH_ROWS)?;
            Ok(self.noted(rows.map(move |batch| with_threads(batch?, num_threads))))
        };
        opened().unwrap_or_else(|error| {
            self.damage.note(&self.file.source().path, error);
            Box::new(std::iter::empty())
        })
    }

    /// Rows of a table that are stored with those in the range.
    fn rows(&self, name: &str) -> BatchStream {
        if name != "slices" {
            return self.stored(|saved| saved.parquet(name), "ts_ns", &times(&self.time_ns));
        }
        // A slice that starts before the range may extend into it.
        let started = i64::MIN..=*times(&self.time_ns).end();
        let open = |saved: &SavedProfile| match saved.resolved_table(&slices::SPEC)? {
            None => saved.parquet(name),
            found => Ok(found),
        };
        self.stored(open, "start_ns", &started)
    }

    /// Rows of `event_objects` that are stored with those of some times.
    fn event_objects(&self, near: &RangeInclusive<i64>) -> BatchStream {
        self.stored(|saved| saved.resolved_table(&event_objects::SPEC), "ts_ns", near)
    }
}

/// The least and the greatest time of a range; the greatest is less where there is none. The greatest of all is in ranges that end
/// with it.
fn times(range: &Range<i64>) -> RangeInclusive<i64> {
    range.start..=if range.end == i64::MAX { range.end } else { range.end.saturating_sub(1) }
}

/// A recording of which the events of a range are read from tables.
pub(crate) struct SavedEvents {
    range: SavedRange,
    format: &'static Format,
    source_id: u32,
    facts: RecordingFacts,
    /// Whether it is the only recording.
    is_alone: bool,
}

impl SavedEvents {
    /// The range, where it is all times.
    pub(crate) fn range_of_all_times(&self) -> Option<&SavedRange> {
        Some(&self.range).filter(|range| range.is_of_all_times())
    }
}

impl Recording for SavedEvents {
    fn format(&self) -> &'static Format {
        self.format
    }

    fn source(&self) -> &Arc<Source> {
        self.range.file.source()
    }

    fn summary(&self) -> Summary {
        Summary {
            version: None,
            endian: Endian::Little,
            pointer_bytes: None,
            arch: None,
            producer: None,
            clock: self.facts.clock.kind,
            span: self.facts.span,
            counts: Vec::new(),
            header: Vec::new(),
        }
    }

    fn read_record<'a>(
        &'a self,
        _at: &mut Position,
        _wanted: &dyn Fn(&str) -> bool,
    ) -> Option<RecordView<'a>> {
        None
    }

    fn check(&self, _sink: &mut Diagnostics) {}

    fn clock(&self, _rate: Rate) -> Clock {
        self.facts.clock
    }

    fn extent(&self) -> Offsets {
        offsets_of(|kind| self.facts.keys.get(kind).copied().unwrap_or(0))
    }

    fn fills(&self, table: &str) -> bool {
        self.facts.tables.iter().any(|one| one == table)
    }

    fn table(&self, name: &str, placement: &Placement, request: &TableRequest) -> Option<BatchStream> {
        if !self.fills(name) {
            return None;
        }
        let source_id = self.source_id;
        if name == "call_events" {
            let calls = self.range.calls.as_ref()?;
            return Some(self.range.noted(calls.rows(source_id)));
        }
        let rows = self.range.rows(name);
        let (first, extent) = (placement.first, self.extent());
        let keys = |first: u32, num: u32| first..first.saturating_add(num);
        let (column, own) = match name {
            // Of this recording alone: its process.
            "processes" => {
                let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(pid) = placement.pid {
                    identities.process(placement.process(pid));
                }
                return Some(one_batch(identities.processes()));
            }
            "samples" => {
                let own = first.sample..first.sample.saturating_add(extent.sample);
                return Some(Box::new(rows.map(move |batch| samples_with(&batch, &own))));
            }
            "functions" => ("function_id", keys(first.function, extent.function)),
            "modules" => ("module_id", keys(first.module, extent.module)),
            "frames" => ("frame_id", keys(first.frame, extent.frame)),
            "stacks" => ("stack_id", keys(first.stack, extent.stack)),
            _ => ("source_id", source_id..source_id.saturating_add(1)),
        };
        let rows = rows.map(move |batch| rows_with(&batch, column, &own));
        Some(match request.snapshot {
            Some(snapshot) if OF_SNAPSHOTS.contains(&name) => {
                let one = snapshot..snapshot.saturating_add(1);
                Box::new(rows.map(move |batch| rows_with(&batch, "snapshot_id", &one)))
            }
            _ => Box::new(rows),
        })
    }

    fn num_rows(&self, table: &str) -> Option<u64> {
        let range = self.range_of_all_times().filter(|_| self.is_alone && table != "slices")?;
        range.noting(|file| Ok(Some(file.parquet(table)?.map_or(0, |table| table.num_rows))))
    }

    fn allocation_sums(&self, _placement: &Placement) -> Option<Vec<AllocationSum>> {
        self.range_of_all_times()?.noting(|file| saved_allocation_sums(file, self.source_id))
    }

    fn call_segments(&self, _placement: &Placement) -> Vec<CallStream> {
        let segments = self.range.calls.iter().flat_map(|calls| calls.segments(self.source_id));
        segments.map(|rows| call_stream(self.range.noted(rows))).collect()
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// The rows of a batch whose keys in a column are some; none where it has not the column.
fn rows_with(batch: &RecordBatch, column: &'static str, own: &Range<u32>) -> RecordBatch {
    let Ok(keys) = numbers::<UInt32Type>(batch, column) else { return batch.slice(0, 0) };
    rows_where(batch, |row| nullable(keys, row).is_some_and(|key| own.contains(&key)))
}

/// The rows of a batch of `samples` with some keys.
fn samples_with(batch: &RecordBatch, own: &Range<u64>) -> RecordBatch {
    let Ok(keys) = numbers::<UInt64Type>(batch, "sample_id") else { return batch.slice(0, 0) };
    rows_where(batch, |row| own.contains(&keys.value(row)))
}

/// The batch, whose threads must be some that exist: memory is used by the greatest key.
fn with_threads(batch: RecordBatch, num_threads: u32) -> Result<RecordBatch, TableError> {
    let threads = numbers::<UInt32Type>(&batch, "thread_id");
    if threads.is_ok_and(|threads| threads.iter().flatten().any(|key| key >= num_threads)) {
        let message = "column thread_id refers to rows that do not exist".to_owned();
        return Err(TableError::Table("threads", message));
    }
    Ok(batch)
}

impl Profile {
    /// A profile of the events of a range of time of a saved profile, of its tables alone: calls and other rows outside of the
    /// range may be missing. `None` where the file has not the tables for it. Also returns what is found to be wrong while rows are
    /// read.
    ///
    /// # Errors
    /// [`SavedError`]
    pub fn of_saved_range(
        file: &Arc<dyn Recording>,
        time_ns: Range<i64>,
        recordings: Vec<RecordingFacts>,
        facts: &SavedFacts,
    ) -> Result<Option<(Self, Damage)>, SavedError> {
        let Some(range) = SavedRange::open(file, time_ns)? else { return Ok(None) };
        let is_alone = recordings.len() == 1;
        let inputs = recordings
            .into_iter()
            .zip(0u32..)
            .map(|(known, number)| range.recording(known, number, is_alone));
        let mut profile = Self::of_saved(inputs.collect::<Result<_, _>>()?, file, facts)?;
        profile.saved = Some(SavedTables::of(file));
        profile.saved_traces = Some(SavedTraces { num_samples: facts.traced_samples });
        Ok(Some((profile, range.damage)))
    }

    /// A profile of a saved profile in which only some recordings are copies: for what is about these. It has no calls of the others.
    /// Also returns what is found to be wrong while rows are read.
    ///
    /// # Errors
    /// [`SavedError`]
    pub fn of_some_copies(
        file: &Arc<dyn Recording>,
        recordings: Vec<SavedInput>,
        facts: &SavedFacts,
    ) -> Result<(Self, Damage), SavedError> {
        let Some(saved) = file.as_any().downcast_ref::<SavedProfile>() else {
            return Err(SavedError::Keys("sources"));
        };
        let all = SavedRange::without_calls(file, saved, i64::MIN..i64::MAX)?;
        let inputs = recordings.into_iter().zip(0u32..).map(|(input, number)| match input {
            SavedInput::Copy(input) => Ok(input),
            SavedInput::Facts(known) => all.recording(known, number, false),
        });
        Ok((Self::of_saved(inputs.collect::<Result<_, _>>()?, file, facts)?, all.damage))
    }

    /// A recording of which a range is read; `None` where the profile is not of a range.
    pub(crate) fn saved_events(&self) -> Option<&SavedEvents> {
        self.recordings().find_map(|one| one.as_any().downcast_ref::<SavedEvents>())
    }

    /// A table as it was saved.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub(crate) fn saved_batches(&self, name: &'static str) -> Result<Vec<RecordBatch>, ColumnError> {
        let wrong = ColumnError { column: "stack_id" };
        // A table without rows is not in the file.
        let rows = self.saved.as_ref().ok_or(wrong)?.table(name, None);
        rows.map_or_else(|| Ok(Vec::new()), |rows| rows.collect::<Result<_, _>>().map_err(|_| wrong))
    }

    /// Allocations of the objects of events of a range; `None` where one of them is of another event.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub(crate) fn saved_origins(
        &self,
        objects: &[(u64, i64)],
    ) -> Result<Option<Vec<Option<AllocationOrigin>>>, ColumnError> {
        let events = self.saved_events();
        let times = objects.iter().map(|(_, time)| *time);
        let (Some(events), Some(least), Some(greatest)) = (events, times.clone().min(), times.max()) else {
            return Ok(objects.is_empty().then(Vec::new));
        };
        known_origins(events.range.event_objects(&(least..=greatest)), objects)
    }

    /// Rows of table `slices` that may start in the range of time of a saved profile, and others, with their own keys: of calls in
    /// row groups without an event in the range, some are missing. `None` where the file does not state what is needed of these.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn slices_of_range(
        &self,
    ) -> Result<Option<Box<dyn Iterator<Item = RecordBatch> + Send>>, ColumnError> {
        let Some((range, calls)) =
            self.saved_events().and_then(|one| Some((&one.range, one.range.calls.as_ref()?)))
        else {
            return Ok(None);
        };
        if !calls.are_numbered() {
            return Ok(None);
        }
        let self_ns = calls.self_ns().map_err(|_| ColumnError { column: "self_ns" })?;
        let rows = range.noted(calls.numbered_rows());
        let calls = slices_of_part(rows, self.next_keys.slice, self_ns);
        Ok(Some(Box::new(self.stream("slices", false).chain(calls))))
    }

    /// Call traces as samples, of the saved tables: keys of frames and stacks are those of all calls, whichever are selected.
    ///
    /// # Errors
    /// Where tables `stacks` and `frames` have other rows than calls.
    pub(crate) fn saved_trace_samples(&self) -> Result<TraceSamples, ColumnError> {
        let keys = self.keys_after_join()?;
        let first = FirstKeys { frame: keys.frame, stack: keys.stack, sample: keys.sample };
        let wrong = ColumnError { column: "stack_id" };
        // Frames of traced functions follow each other, as do their stacks.
        let (mut functions, mut codes) = (Vec::new(), FxHashMap::default());
        for batch in self.saved_batches("frames")? {
            let ids = numbers::<UInt32Type>(&batch, "frame_id")?;
            let (kinds, found_by) = (text(&batch, "kind")?, text(&batch, "unwound_by")?);
            let of = numbers::<UInt32Type>(&batch, "function_id")?;
            let codes_of = numbers::<UInt32Type>(&batch, "code_object_id")?;
            for row in (0..batch.num_rows()).filter(|&row| ids.value(row) >= first.frame) {
                let code = nullable(codes_of, row);
                let (kind, found_by) = (kinds.get(row), found_by.get(row));
                let is_call = is_call(kind.unwrap_or_default(), found_by.unwrap_or_default(), code.is_some());
                let function = nullable(of, row).filter(|_| is_call);
                codes.extend(function.zip(code));
                functions.push(function);
            }
        }
        let mut paths = Vec::new();
        for batch in self.saved_batches("stacks")? {
            let ids = numbers::<UInt32Type>(&batch, "stack_id")?;
            let (parents, frames) = (
                numbers::<UInt32Type>(&batch, "parent_stack_id")?,
                numbers::<UInt32Type>(&batch, "frame_id")?,
            );
            let depths = numbers::<UInt32Type>(&batch, "depth")?;
            for row in (0..batch.num_rows()).filter(|&row| ids.value(row) >= first.stack) {
                let frame = frames.value(row).checked_sub(first.frame);
                let function = frame.and_then(|frame| functions.get(frame as usize).copied().flatten());
                // Stacks of allocations follow those of calls.
                let Some(function_id) = function else { break };
                let parent = match nullable(parents, row) {
                    None => u32::MAX,
                    Some(parent) => parent.checked_sub(first.stack).ok_or(wrong)?,
                };
                paths.push(CallPath { parent, function_id, depth: depths.value(row) });
            }
        }
        let paths = CallPaths::of(paths).ok_or(wrong)?;
        let sampled = Sampled::of(&paths, first, |function| codes.get(&function).copied());
        let samples = RecordBatch::new_empty(samples::SPEC.schema());
        Ok(TraceSamples { paths, first, sampled, samples })
    }
}

/// Numbers of keys by kind, as saved profiles state them.
#[must_use]
pub fn keys_of(offsets: &Offsets) -> [(&'static str, u64); 13] {
    [
        ("source", offsets.source.into()),
        ("function", offsets.function.into()),
        ("module", offsets.module.into()),
        ("code_object", offsets.code_object.into()),
        ("mapping", offsets.mapping.into()),
        ("sample", offsets.sample),
        ("unwind_function", offsets.unwind_function.into()),
        ("slice", offsets.slice),
        ("frame", offsets.frame.into()),
        ("stack", offsets.stack.into()),
        ("type", offsets.type_.into()),
        ("counter", offsets.counter.into()),
        ("snapshot", offsets.snapshot.into()),
    ]
}

/// The inverse of [`keys_of`]: `number` returns that of a kind.
fn offsets_of(number: impl Fn(&str) -> u64) -> Offsets {
    let small = |kind| u32::try_from(number(kind)).unwrap_or(u32::MAX);
    Offsets {
        source: small("source"),
        function: small("function"),
        module: small("module"),
        code_object: small("code_object"),
        mapping: small("mapping"),
        sample: number("sample"),
        unwind_function: small("unwind_function"),
        slice: number("slice"),
        frame: small("frame"),
        stack: small("stack"),
        type_: small("type"),
        counter: small("counter"),
        snapshot: small("snapshot"),
    }
}
