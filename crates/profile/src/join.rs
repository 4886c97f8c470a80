//! Samples joined with code and mappings; copies of stacks are unwound first.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use arrow_array::RecordBatch;
use perfuse_binaries::symbolize::{Options, Symbolizer};
use perfuse_engine::address_spaces::AddressSpaces;
use perfuse_engine::code_map::CodeMap;
use perfuse_engine::join::{
    self, CodeFunctions, CodeLines, JoinedTables, LocatedSamples, NativeNames, PerfMaps,
};
use perfuse_engine::mappings::Mappings;
use perfuse_engine::unwind::{Chains, UnwindModules, UnwindRows, UnwindSources, UnwindTotals, Unwinder};
use perfuse_formats::{Recording, Source, TableRequest, registry};
use perfuse_tables::access::ColumnError;
use perfuse_tables::{CodeUnwinding, FrameRecovery, UserStack};

use crate::prefetch::Prefetch;
use crate::profile::Profile;
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
        let uncertainty = |source: u32| {
            let mut placed = self.placed.iter().map(|placed| (placed.placement.source_id, &placed.clock));
            // Clocks of one rate are aligned so that no code is created later than it was.
            let clock = placed.find(|(id, clock)| *id == source && clock.kind == "tsc");
            clock.and_then(|(_, clock)| clock.uncertainty_ns).unwrap_or_default()
        };
        let codes = CodeMap::new(&code_objects, &code_moves)?.with_uncertainty(&code_objects, uncertainty)?;
        let functions = CodeFunctions::new(&code_objects)?;
        let mappings = Mappings::new(&mapping_rows)?;
        let symbolizer = Symbolizer::new(Options {
            symbol_dirs: self.options.symbol_dirs.clone(),
            debug: self.options.debug_info,
            recorded_on: self.options.recorded_on.clone(),
            ..Options::default()
        });
        let spaces = AddressSpaces { codes: &codes, mappings: &mappings };
        let located = if self.has_user_stacks() {
            let sources = RecordedUnwinding { placed: &self.placed };
            let modules = UnwindModules::new(spaces, &symbolizer, &sources);
            let (located, totals) =
                unwind_and_locate(Unwinder::new(&modules), self.stream("callchains", false), spaces);
            let _ = self.unwind_totals.set(totals);
            located?
        } else {
            join::locate(self.stream("callchains", false).map(|batch| Ok(Chains::from(batch))), spaces)?
        };
        let sampled_code =
            TableRequest { code_objects: Some(located.code_objects.clone()), ..TableRequest::default() };
        let lines = self.collect("line_rows", &sampled_code);
        let lines = CodeLines::new(lines, self.collect("inline_calls", &sampled_code))?;
        let perf_maps = self.perf_maps();
        let native = NativeNames { symbolizer: &symbolizer, perf_maps: &perf_maps };
        let resolution = join::resolve(&located, &mappings, &functions, &lines, &native)?;
        join::emit(&located, &resolution, &mappings, self.next_keys)
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

    /// Perf maps are searched in the symbol directories, beside the recordings, and where runtimes write them.
    fn perf_maps(&self) -> PerfMaps {
        let parent = |recording: &Arc<dyn Recording>| {
            PathBuf::from(&recording.source().path).parent().map(Path::to_path_buf)
        };
        let beside = self.recordings().filter_map(parent);
        let dirs = self.options.symbol_dirs.iter().cloned().chain(beside);
        PerfMaps::new(dirs.chain([PathBuf::from("/tmp")]).collect(), self.pids())
    }
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
    chains: impl Iterator<Item = RecordBatch> + Send + 'static,
    spaces: AddressSpaces<'_>,
) -> (Result<LocatedSamples, ColumnError>, UnwindTotals) {
    std::thread::scope(|scope| {
        let (sender, unwound) = sync_channel(MAX_WAITING);
        let thread = scope.spawn(move || {
            // Sending fails once the receiver is dropped.
            let chains = Prefetch::new(chains);
            let _ = chains.map(|batch| sender.send(unwinder.unwind(batch))).take_while(Result::is_ok).count();
            *unwinder.totals()
        });
        let located = join::locate(unwound.into_iter(), spaces);
        (located, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
