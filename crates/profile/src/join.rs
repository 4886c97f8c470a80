//! Samples joined with code and mappings; copies of stacks are unwound first.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, SystemTime};

use arrow_array::RecordBatch;
use perfuse_binaries::symbolize::{Follow, Options, Symbolizer};
use perfuse_engine::address_spaces::AddressSpaces;
use perfuse_engine::code_map;
use perfuse_engine::forks::AddressSpaceStarts;
use perfuse_engine::join::{
    self, AddressColumn, CodeFunctions, CodeLines, JoinedTables, LocatedSamples, NativeNames, PerfMapDirs,
    PerfMaps, RecordedNames, UnusedMap,
};
use perfuse_engine::mappings::Mappings;
use perfuse_engine::unwind::{Chains, UnwindModules, UnwindRows, UnwindSources, UnwindTotals, Unwinder};
use perfuse_formats::{AddressSpaceStart, Recording, Source, TableRequest, fusing, registry};
use perfuse_stopping::part;
use perfuse_tables::access::ColumnError;
use perfuse_tables::{CodeUnwinding, FrameRecovery, UserStack};
use rustc_hash::FxHashMap;

use crate::address_columns::{POINTS, frame_columns, with_column};
use crate::definitions::describe_map_names;
use crate::naming_finding::NamingFinding;
use crate::prefetch::Prefetch;
use crate::profile::{Profile, realtime_offset_ns};
use crate::recordings::PlacedRecording;

impl Profile {
    /// Tables of the join, made at the first call.
    pub(crate) fn joined(&self) -> Result<&JoinedTables, ColumnError> {
        self.joined.get_or_init(|| self.join()).as_ref().map_err(|error| *error)
    }

    fn join(&self) -> Result<JoinedTables, ColumnError> {
        let everything = TableRequest::default();
        let mapping_rows = self.collect("mappings", &everything);
        let code_objects = self.collect("code_objects", &everything);
        let code_moves = self.collect("code_moves", &everything);
        // Of the processes that have keys: those of the chains get theirs later.
        let starts = self.address_space_starts();
        let chains = Prefetch::new(self.stream("callchains", false)).begun();
        let uncertainty = |source: u32| {
            let mut placed = self.placed.iter().map(|placed| (placed.placement.source_id, &placed.clock));
            // Clocks of one rate are aligned so that no code is created later than it was.
            let clock = placed.find(|(id, clock)| *id == source && clock.kind == "tsc");
            clock.and_then(|(_, clock)| clock.uncertainty_ns).unwrap_or_default()
        };
        let codes = code_map::of_tables(&code_objects, &code_moves)?;
        let codes = code_map::with_uncertainty(codes, &code_objects, uncertainty)?;
        let functions = CodeFunctions::new(&code_objects)?;
        let mappings = Mappings::new(&mapping_rows)?;
        let symbolizer = self.symbolizer();
        let spaces = AddressSpaces { codes: &codes, mappings: &mappings, starts: &starts };
        let points: Vec<_> = POINTS
            .iter()
            .filter(|(table, _)| self.fills(table))
            .map(|&(table, columns)| AddressColumn { batches: Box::new(self.stream(table, false)), columns })
            .collect();
        let has_link_registers = self.recordings().any(|recording| recording.has_link_registers());
        let located = if self.has_user_stacks() || has_link_registers {
            let sources = RecordedUnwinding { placed: &self.placed };
            let modules = UnwindModules::new(spaces, symbolizer, &sources);
            let (located, totals) = unwind_and_locate(Unwinder::new(&modules), chains, points, spaces);
            if self.has_user_stacks() {
                let _ = self.unwind_totals.set(totals);
            }
            located?
        } else {
            join::locate(chains.map(|batch| Ok(Chains::from(batch))), points, spaces)?
        };
        let sampled_code =
            TableRequest { code_objects: Some(located.code_objects.clone()), ..TableRequest::default() };
        let lines = self.collect("line_rows", &sampled_code);
        let lines = CodeLines::new(lines, self.collect("inline_calls", &sampled_code))?;
        let perf_maps = self.perf_maps();
        let listed = |placed: &PlacedRecording| {
            let source_id = placed.placement.source_id;
            placed.recording.recorded_symbols().into_iter().map(move |file| (source_id, file))
        };
        let recorded = RecordedNames::new(self.placed.iter().flat_map(listed), self.pids());
        let native = NativeNames { symbolizer, perf_maps: &perf_maps, recorded: &recorded, starts: &starts };
        let resolution = join::resolve(&located, &mappings, &functions, &lines, &native)?;
        let _ = self.unused_files.set(unused_files(symbolizer, &perf_maps));
        join::emit(&located, &resolution, &mappings, self.next_keys)
    }

    /// Forks and execs of the processes that have keys.
    fn address_space_starts(&self) -> AddressSpaceStarts {
        let identities = self.identities();
        let mut starts = Vec::new();
        for placed in &self.placed {
            let recorded = placed.recording.sampling_facts().unwrap_or_default().address_spaces;
            starts.extend(recorded.into_iter().filter_map(|AddressSpaceStart { pid, ts, parent }| {
                let key = |pid| identities.key(placed.placement.process(pid));
                Some((key(pid)?, placed.placement.clock.ns(ts), parent.and_then(key)))
            }));
        }
        AddressSpaceStarts::new(starts)
    }

    /// Opens the programs and libraries of the recordings.
    pub(crate) fn symbolizer(&self) -> &Symbolizer {
        self.symbolizer.get_or_init(|| {
            Symbolizer::new(Options {
                symbol_dirs: self.options.symbol_dirs.clone(),
                debug: self.options.debug_info,
                recorded_on: self.options.recorded_on.clone(),
                follow: self.options.follow,
                unpack_limit: self.options.unpack_limit,
                ..Options::default()
            })
        })
    }

    /// Whether any samples have copies of their stacks.
    pub(crate) fn has_user_stacks(&self) -> bool {
        self.recordings().any(|recording| recording.num_user_stacks() > 0)
    }

    /// Counts of unwound stacks and frames; `None` where there were none to unwind.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn unwind_totals(&self) -> Result<Option<&UnwindTotals>, ColumnError> {
        if self.has_user_stacks() {
            self.joined()?;
        }
        Ok(self.unwind_totals.get())
    }

    /// When processes began, by their keys: those that began while they were recorded, where a recording states the wall clock.
    fn process_starts(&self) -> FxHashMap<u32, SystemTime> {
        let identities = self.identities();
        let mut starts: FxHashMap<u32, SystemTime> = FxHashMap::default();
        for PlacedRecording { recording, clock, placement, .. } in &self.placed {
            let Some(realtime) = realtime_offset_ns(recording.as_ref(), clock) else { continue };
            for started in recording.sampling_facts().unwrap_or_default().address_spaces {
                let key = identities.key(placement.process(started.pid));
                let since_epoch = placement.clock.ns(started.ts).checked_add(realtime);
                let since_epoch = since_epoch.and_then(|ns| u64::try_from(ns).ok()).map(Duration::from_nanos);
                let began = since_epoch.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
                if let (Some(key), Some(began)) = (key, began) {
                    starts.entry(key).and_modify(|first| *first = began.min(*first)).or_insert(began);
                }
            }
        }
        starts
    }

    /// Perf maps are searched in the symbol directories; if all files are followed, also beside the recordings and where
    /// runtimes write them.
    fn perf_maps(&self) -> PerfMaps {
        let parent = |recording: &Arc<dyn Recording>| {
            PathBuf::from(&recording.source().path).parent().map(Path::to_path_buf)
        };
        let mut dirs = PerfMapDirs::default();
        if self.options.follow != Follow::Nothing {
            dirs.named.clone_from(&self.options.symbol_dirs);
        }
        if self.options.follow == Follow::All {
            let beside = self.recordings().filter_map(parent);
            dirs.shared = beside.chain([PathBuf::from("/tmp")]).collect();
            dirs.shared.dedup();
        }
        let with_definitions = self.placed.iter().filter_map(|placed| {
            Some((parent(&placed.recording)?, Arc::clone(placed.definitions.as_ref()?)))
        });
        PerfMaps::new(
            dirs,
            self.pids(),
            self.process_starts(),
            describe_map_names(with_definitions.collect()),
        )
    }
}

impl Profile {
    /// Rows of a table with addresses outside call chains, with their frames.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub(crate) fn with_frames(
        &self,
        table: &'static str,
    ) -> Result<impl Iterator<Item = RecordBatch> + Send + 'static, ColumnError> {
        let joined = self.joined()?;
        let filled = POINTS.iter().filter(|(name, _)| self.fills(name));
        let before =
            filled.clone().take_while(|(name, _)| *name != table).map(|(_, columns)| columns.len()).sum();
        let columns = frame_columns(table);
        let points = joined.points.iter().skip(before).take(columns.len());
        let points: Vec<Arc<[u32]>> = points.map(|frames| Arc::from(frames.as_slice())).collect();
        let mut row = 0usize;
        Ok(self.stream(table, false).map(move |batch| {
            let range = row..row.saturating_add(batch.num_rows());
            row = range.end;
            let frames = columns.iter().zip(&points);
            frames.fold(batch, |batch, (column, frames)| {
                with_column(batch, column, frames.get(range.clone()).unwrap_or_default())
            })
        }))
    }
}

/// Findings about files that the join found and could not use.
fn unused_files(symbolizer: &Symbolizer, perf_maps: &PerfMaps) -> Vec<NamingFinding> {
    let finding = |path: String, code, message| NamingFinding { path, code, message, offset: None, count: 1 };
    let debug_info = symbolizer
        .unusable_debug_info()
        .into_iter()
        .map(|(path, message)| finding(path, fusing::UNUSED_DEBUG_INFO.code, message));
    let maps = perf_maps.unused().into_iter().map(|UnusedMap { path, written_and_began }| {
        let path = path.display().to_string();
        let (code, why) = match written_and_began {
            None => (fusing::FOREIGN_PERF_MAP.code, "it belongs to another user".to_owned()),
            Some((written, began)) => {
                let early = began.duration_since(written).unwrap_or_default().as_secs();
                let why = format!("it was last written {early} s before the process began");
                (fusing::EARLIER_PERF_MAP.code, why)
            }
        };
        let message = format!("{path} is not used: {why}");
        finding(path, code, message)
    });
    debug_info.chain(maps).collect()
}

/// Unwinding information of the recordings, and of files of any format with unwinding rows.
struct RecordedUnwinding<'a> {
    placed: &'a [PlacedRecording],
}

impl UnwindSources for RecordedUnwinding<'_> {
    fn file_rows(&self, path: &Path, bytes: &[u8]) -> Option<Box<dyn UnwindRows>> {
        let name = path.to_string_lossy();
        // An image not backed by a file is small: the vdso.
        let source = if path.is_file() {
            Source::open(&name).ok()?
        } else {
            Source::from_bytes(&name, bytes.to_vec()).ok()?
        };
        Some(Box::new(FileRows(registry::open(Arc::new(source)).ok()?)))
    }

    fn code(&self, code_object_id: u32) -> Option<CodeUnwinding<'_>> {
        self.placed.iter().find_map(|placed| {
            let number = code_object_id.checked_sub(placed.placement.first.code_object)?;
            placed.recording.code_unwinding(number)
        })
    }

    fn user_stack(&self, source_id: u32, number: u64, registers: &mut Vec<u64>) -> Option<UserStack<'_>> {
        let placed = self.placed.iter().find(|placed| placed.placement.source_id == source_id)?;
        placed.recording.user_stack(number, registers)
    }
}

/// Unwinding rows of a program or library, opened as a recording.
struct FileRows(Arc<dyn Recording>);

impl UnwindRows for FileRows {
    fn recovery(&self, address: u64) -> Option<FrameRecovery> {
        self.0.recovery(address)
    }
}

/// Most batches that wait between decoding, unwinding and locating.
const MAX_WAITING: usize = 4;

/// Unwinds in one thread and locates addresses in another, while a third decodes the next chains.
fn unwind_and_locate(
    mut unwinder: Unwinder<'_>,
    chains: Prefetch,
    points: Vec<AddressColumn<'_>>,
    spaces: AddressSpaces<'_>,
) -> (Result<LocatedSamples, ColumnError>, UnwindTotals) {
    std::thread::scope(|scope| {
        let (sender, unwound) = sync_channel(MAX_WAITING);
        let thread = scope.spawn(part(move || {
            // Sending fails once the receiver is dropped.
            let _ = chains.map(|batch| sender.send(unwinder.unwind(batch))).take_while(Result::is_ok).count();
            *unwinder.totals()
        }));
        let located = join::locate(unwound.into_iter(), points, spaces);
        (located, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
