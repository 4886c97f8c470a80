//! Step 3 of the join: names, lines and inlined calls of each location.

use std::cmp::Reverse;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use perfuse_addresses::inlined;
use perfuse_binaries::symbolize::{Module, PerfMap, Resolved, SymbolFrame, Symbolizer};
use perfuse_tables::access::{ColumnError, numbers};
use perfuse_workers::{in_call, install};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::lines::{CodeLines, SourcePosition};
use super::locate::{LocatedSamples, Location};
use super::recorded::RecordedNames;
use crate::address_spaces::Region;
use crate::forks::AddressSpaceStarts;
use crate::mappings::{Mapping, Mappings};

/// Functions of JIT code, from table `code_objects`.
#[derive(Debug, Default)]
pub struct CodeFunctions {
    functions: FxHashMap<u32, u32>,
}

impl CodeFunctions {
    /// From table `code_objects`.
    ///
    /// # Errors
    /// When a batch is not of that table.
    pub fn new(code_objects: &[RecordBatch]) -> Result<Self, ColumnError> {
        let mut functions = FxHashMap::default();
        for batch in code_objects {
            let ids = numbers::<UInt32Type>(batch, "code_object_id")?;
            let function_ids = numbers::<UInt32Type>(batch, "function_id")?;
            functions.extend(ids.values().iter().copied().zip(function_ids.values().iter().copied()));
        }
        Ok(Self { functions })
    }
}

/// Function of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameFunction {
    /// One of the recordings' own, by key.
    Existing(u32),
    /// A function of a program or library.
    Native {
        /// Index of its file in [`Mappings::files`], or [`NO_MODULE`].
        module: u32,
        /// Name in the symbol table.
        linkage_name: String,
        /// Demangled name.
        name: String,
        /// Address of the symbol in the file's own layout.
        symbol_address: Option<u64>,
        /// Whether other functions of its file have its name.
        shares_name: bool,
        /// Source file that declares it, where its name states that.
        path: Option<String>,
        /// Line at which it starts.
        line: Option<u32>,
    },
    /// No function is known, for this reason.
    Unnamed(String),
}

/// One frame at a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedFrame {
    /// Its function.
    pub function: FrameFunction,
    /// Source position.
    pub position: SourcePosition,
    /// Address within the file, or offset in the code.
    pub relative_address: Option<u64>,
}

/// Frames of all locations.
#[derive(Debug, Default)]
pub struct Resolution {
    /// By location, outermost frame first: a location in inlined code has several.
    pub frames: Vec<Vec<ResolvedFrame>>,
}

/// Sources of names for native code.
pub struct NativeNames<'a> {
    /// Names for mapped files and the kernel.
    pub symbolizer: &'a Symbolizer,
    /// Names for memory not backed by a file.
    pub perf_maps: &'a PerfMaps,
    /// Names in the recordings themselves.
    pub recorded: &'a RecordedNames,
    /// Which processes have copies of the memory of others.
    pub starts: &'a AddressSpaceStarts,
}

/// Resolves every location to its frames.
///
/// # Errors
/// When a batch is not of its table.
pub fn resolve(
    located: &LocatedSamples,
    mappings: &Mappings,
    names: &CodeFunctions,
    lines: &CodeLines,
    native: &NativeNames<'_>,
) -> Result<Resolution, ColumnError> {
    let mut frames = vec![Vec::new(); located.locations.len()];
    let mut by_file: FxHashMap<(u32, Option<u64>, u32), Vec<usize>> = FxHashMap::default();
    for ((at, location), own) in located.locations.iter().enumerate().zip(&mut frames) {
        perfuse_stopping::checkpoint();
        match location.region {
            Region::Jit { code_object_id, code_offset } => {
                *own = jit_frames(location, code_object_id, code_offset, names, lines)?;
            }
            Region::Mapped { mapping } => {
                let Some(row) = mappings.rows.get(mapping as usize) else { continue };
                let reference = location.is_kernel().then(|| kernel_reference(row, mappings));
                by_file.entry((row.file, reference, row.source_id)).or_default().push(at);
            }
            Region::Deferred => *own = vec![deferred_frame()],
            Region::Anonymous { .. } | Region::Unmapped { .. } | Region::Kernel => {
                *own = recorded_frames(at, located, mappings, native)
                    .unwrap_or_else(|| vec![unmapped_frame(location, mappings, native)]);
            }
        }
    }
    let answer = |((id, reference, _), addresses): ((u32, Option<u64>, u32), Vec<usize>)| {
        let recorded = mappings.files.get(id as usize)?;
        let build_id = recorded.build_id.as_deref();
        let module = match reference {
            Some(reference) => native.symbolizer.kernel(&recorded.path, build_id, Some(reference)),
            None => native.symbolizer.module(&recorded.path, build_id),
        };
        let mut resolved = resolve_in(&module, &addresses, located, mappings);
        let mapping = addresses.first().and_then(|&at| mapping_of(located.locations.get(at)?, mappings));
        if let Some(listed) = mapping.and_then(|row| native.recorded.of_mapping(row, mappings)) {
            // A file with the recorded build id has lines and inlined calls besides.
            let is_certain = build_id.is_some();
            let from_recording = resolve_in(listed, &addresses, located, mappings);
            for (own, other) in resolved.iter_mut().zip(from_recording) {
                if !other.frames.is_empty() && (own.frames.is_empty() || !is_certain) {
                    *own = other;
                }
            }
        }
        Some((id, addresses, resolved))
    };
    // One file may take as long as all others: it is begun first, and a thread takes one at a time.
    let mut by_file: Vec<_> = by_file.into_iter().collect();
    by_file.sort_unstable_by_key(|(file, addresses)| (Reverse(addresses.len()), *file));
    let answers: Vec<_> = install(|| by_file.into_iter().par_bridge().filter_map(in_call(answer)).collect());
    for (id, addresses, resolved) in answers {
        for (at, resolved) in addresses.into_iter().zip(resolved) {
            if let Some(own) = frames.get_mut(at) {
                *own = native_frames(id, resolved);
            }
        }
    }
    Ok(Resolution { frames })
}

/// What distinguishes two boots of a kernel: where its reference symbol was, which is the offset of its mapping; of a module, where
/// it was loaded.
fn kernel_reference(row: &Mapping, mappings: &Mappings) -> u64 {
    let path = mappings.files.get(row.file as usize).map_or("", |file| &file.path);
    if path.starts_with("[kernel") || path.starts_with("[guest") { row.file_offset } else { row.start }
}

/// Resolves locations in mappings of one module.
fn resolve_in(
    module: &Module,
    addresses: &[usize],
    located: &LocatedSamples,
    mappings: &Mappings,
) -> Vec<Resolved> {
    let position = |&at: &usize| Some(file_position(module, located.locations.get(at)?, mappings));
    let positions: Vec<u64> = addresses.iter().map(|at| position(at).unwrap_or_default()).collect();
    let mut resolved = module.resolve_many(&positions);
    if !module.has_call_addresses() {
        resolve_entered(addresses, located, &positions, module, &mut resolved);
    }
    resolved
}

/// The mapping that contains a location.
fn mapping_of<'a>(location: &Location, mappings: &'a Mappings) -> Option<&'a Mapping> {
    let (Region::Mapped { mapping } | Region::Anonymous { mapping, .. }) = location.region else {
        return None;
    };
    mappings.rows.get(mapping as usize)
}

/// Position of a location in the file it is mapped from; 0 where it is not in a file.
fn file_position(module: &Module, location: &Location, mappings: &Mappings) -> u64 {
    let Some(&Mapping { start, file_offset, .. }) = mapping_of(location, mappings) else { return 0 };
    let address = if module.has_call_addresses() { location.address } else { call_address(location) };
    module.position(address, start, file_offset)
}

/// Resolves return addresses by their own that no call precedes, where a function starts there: code that returns to it was given its
/// address, as signal handlers and the first function of a context are, or was interrupted at its first instruction. Linux
/// kernels have symbols for the padding in front of functions. To others the byte is added that [`call_address`] subtracts.
fn resolve_entered(
    addresses: &[usize],
    located: &LocatedSamples,
    positions: &[u64],
    module: &Module,
    resolved: &mut [Resolved],
) {
    let mut entered = Vec::new();
    for ((at, position), before) in addresses.iter().zip(positions).zip(resolved) {
        let Some(location) = located.locations.get(*at).filter(|location| location.is_return) else {
            continue;
        };
        before.relative_address = before.relative_address.map(|address| address.wrapping_add(1));
        let is_padding = match before.frames.first() {
            Some(symbol) => location.is_kernel() && symbol.name.starts_with("__pfx_"),
            None => true,
        };
        if is_padding {
            entered.push((position.wrapping_add(1), before));
        }
    }
    let positions: Vec<u64> = entered.iter().map(|(position, _)| *position).collect();
    for ((_, before), own) in entered.into_iter().zip(module.resolve_many(&positions)) {
        if !own.frames.is_empty() && own.symbol_address == own.relative_address {
            *before = own;
        }
    }
}

/// The address to resolve: that of the call where the location is a return address.
fn call_address(location: &Location) -> u64 {
    location.address.wrapping_sub(u64::from(location.is_return))
}

/// Frames of JIT code: the function, and the calls inlined at the location.
fn jit_frames(
    location: &Location,
    code_object_id: u32,
    code_offset: u64,
    names: &CodeFunctions,
    lines: &CodeLines,
) -> Result<Vec<ResolvedFrame>, ColumnError> {
    let at = code_offset.saturating_sub(u64::from(location.is_return));
    let outer = match names.functions.get(&code_object_id) {
        Some(function) => FrameFunction::Existing(*function),
        None => FrameFunction::Unnamed("the JIT code has no function".to_owned()),
    };
    let calls = lines.inlined(code_object_id, at)?;
    let calls = calls.into_iter().map(|(function, call)| (FrameFunction::Existing(function), call)).collect();
    let frames = inlined::frames(outer, calls, lines.line(code_object_id, at)?);
    let relative_address = Some(code_offset);
    Ok(frames
        .into_iter()
        .map(|(function, position)| ResolvedFrame { function, position, relative_address })
        .collect())
}

/// Frames of a location outside files, where its recording lists functions for them.
fn recorded_frames(
    at: usize,
    located: &LocatedSamples,
    mappings: &Mappings,
    native: &NativeNames<'_>,
) -> Option<Vec<ResolvedFrame>> {
    let location = located.locations.get(at)?;
    let row = mapping_of(location, mappings);
    if let Some((row, listed)) = row.and_then(|row| Some((row, native.recorded.of_mapping(row, mappings)?))) {
        let resolved = resolve_in(listed, &[at], located, mappings).pop()?;
        return (!resolved.frames.is_empty()).then(|| native_frames(row.file, resolved));
    }
    let resolved = native.recorded.of_process(location.process_id, call_address(location))?;
    Some(native_frames(NO_MODULE, resolved))
}

/// Frames of native code, as the symbolizer resolved them.
fn native_frames(module: u32, resolved: Resolved) -> Vec<ResolvedFrame> {
    let Resolved { frames, relative_address, symbol_address, shares_name, unnamed_because } = resolved;
    if frames.is_empty() {
        let reason =
            unnamed_because.map_or_else(|| "no symbol covers this address".to_owned(), |r| r.to_string());
        let function = FrameFunction::Unnamed(reason);
        return vec![ResolvedFrame { function, position: SourcePosition::default(), relative_address }];
    }
    let frame = |(depth, frame): (usize, SymbolFrame)| {
        let SymbolFrame { name, linkage_name, path, line, column } = frame;
        let linkage_name = linkage_name.unwrap_or_else(|| name.clone()).to_string();
        // The symbol is the outermost function's; inlined functions have none.
        let symbol_address = symbol_address.filter(|_| depth == 0);
        ResolvedFrame {
            function: FrameFunction::Native {
                module,
                linkage_name,
                name: name.to_string(),
                symbol_address,
                shares_name: shares_name && depth == 0,
                path: None,
                line: None,
            },
            position: SourcePosition { path: path.map(|path| path.to_string()), line, column },
            relative_address,
        }
    };
    frames.into_iter().enumerate().map(frame).collect()
}

/// Module index of names that do not belong to a file.
pub const NO_MODULE: u32 = u32::MAX;
/// Module index of frames that stand for the user part of a chain, which was deferred and never recorded.
pub const DEFERRED_MODULE: u32 = u32::MAX - 1;
/// Name of those frames and of their module.
pub const DEFERRED: &str = "[deferred]";

/// The frame that stands for a user part that was never recorded.
fn deferred_frame() -> ResolvedFrame {
    let function = FrameFunction::Native {
        module: DEFERRED_MODULE,
        linkage_name: DEFERRED.to_owned(),
        name: DEFERRED.to_owned(),
        symbol_address: None,
        shares_name: false,
        path: None,
        line: None,
    };
    ResolvedFrame { function, position: SourcePosition::default(), relative_address: None }
}

/// Name of code in memory that a process has from an ancestor, by the perf map of that one.
fn inherited_name(
    location: &Location,
    mapping: u32,
    mappings: &Mappings,
    native: &NativeNames<'_>,
) -> Option<MapFunction> {
    let address = call_address(location);
    let mapped_ns = mappings.rows.get(mapping as usize)?.start_ns;
    let mut ancestors = native.starts.ancestors(location.process_id, mapped_ns).take_while(|ancestor| {
        // A process without samples has no mappings.
        let mapped = mappings.find(ancestor.process_id, address, ancestor.fork_ns);
        mapped.is_none_or(|mapped| mappings.is_anonymous(mapped.id))
    });
    ancestors.find_map(|ancestor| native.perf_maps.find(ancestor.process_id, address))
}

/// The frame of a location outside files and JIT code, named by a perf map where there is one.
fn unmapped_frame(location: &Location, mappings: &Mappings, native: &NativeNames<'_>) -> ResolvedFrame {
    let own_name = || native.perf_maps.find(location.process_id, call_address(location));
    let name = match location.region {
        Region::Kernel => None,
        Region::Anonymous { mapping, .. } => {
            own_name().or_else(|| inherited_name(location, mapping, mappings, native))
        }
        _ => own_name(),
    };
    let function = match (name, location.region) {
        (Some(MapFunction { linkage_name, name, path, line }), _) => FrameFunction::Native {
            module: NO_MODULE,
            linkage_name,
            name,
            symbol_address: None,
            shares_name: false,
            path,
            line,
        },
        (None, Region::Kernel) => FrameFunction::Unnamed("no kernel mapping was recorded here".to_owned()),
        (
            None,
            Region::Anonymous { code_at_other_times: true, .. }
            | Region::Unmapped { code_at_other_times: true },
        ) => FrameFunction::Unnamed("a dump has code at this address, but not at that time".to_owned()),
        (None, Region::Anonymous { .. }) => {
            FrameFunction::Unnamed("anonymous memory that no dump has code for at that time".to_owned())
        }
        (None, _) => FrameFunction::Unnamed("no mapping holds this address".to_owned()),
    };
    ResolvedFrame { function, position: SourcePosition::default(), relative_address: None }
}

/// `perf-PID.map` files, which runtimes without a dump write (`node --perf-basic-prof`); opened when first needed.
pub struct PerfMaps {
    dirs: PerfMapDirs,
    pids: FxHashMap<u32, i32>,
    began: FxHashMap<u32, SystemTime>,
    describe: Box<DescribeName>,
    open: Mutex<FxHashMap<u32, Option<OpenMap>>>,
    unused: Mutex<Vec<UnusedMap>>,
}

/// A map that was found and not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnusedMap {
    /// The file.
    pub path: PathBuf,
    /// For processes that began after it was last written: when these were, in this order. `None` for a file of another user.
    pub written_and_began: Option<(SystemTime, SystemTime)>,
}

/// How much earlier than its process a map may seem to be written: times of files, and of the wall clock in recordings, are coarse.
const SLACK: Duration = Duration::from_secs(1);

/// A map, and the directory in which it was found.
struct OpenMap {
    dir: PathBuf,
    map: PerfMap,
}

/// A function of a perf map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapFunction {
    /// Name as the runtime wrote it.
    pub linkage_name: String,
    /// Name to display.
    pub name: String,
    /// Source file that declares it, where its name states that.
    pub path: Option<String>,
    /// Line at which it starts, where that is known.
    pub line: Option<u32>,
}

/// What the name of a function in a map states, and what is known of it besides; the first argument is the directory of the map.
pub type DescribeName = dyn Fn(&Path, &str) -> MapFunction + Send + Sync;

/// Where perf maps are searched, in this order.
#[derive(Clone, Debug, Default)]
pub struct PerfMapDirs {
    /// Directories that the user names: maps of any owner.
    pub named: Vec<PathBuf>,
    /// Directories that others may write to: maps of the user of this process and of root.
    pub shared: Vec<PathBuf>,
}

impl PerfMaps {
    /// Searches these directories in order; `pids` are `(process key, pid)`, `began` when processes began, by key.
    #[must_use]
    pub fn new(
        dirs: PerfMapDirs,
        pids: impl IntoIterator<Item = (u32, i32)>,
        began: FxHashMap<u32, SystemTime>,
        describe: Box<DescribeName>,
    ) -> Self {
        let pids = pids.into_iter().collect();
        Self { dirs, pids, began, describe, open: Mutex::default(), unused: Mutex::default() }
    }

    /// Maps in shared directories that were not read, because they belong to another user or an earlier process.
    #[must_use]
    pub fn unused(&self) -> Vec<UnusedMap> {
        let mut unused = self.unused.lock().map(|unused| unused.clone()).unwrap_or_default();
        unused.sort();
        unused
    }

    /// Function at an address in a process's map.
    #[must_use]
    pub fn find(&self, process_id: u32, address: u64) -> Option<MapFunction> {
        let pid = self.pids.get(&process_id)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let map = open.entry(process_id).or_insert_with(|| {
            let file = format!("perf-{pid}.map");
            let found = |dir: &PathBuf, map| OpenMap { dir: dir.clone(), map };
            let named = |dir| Some(found(dir, PerfMap::open(&dir.join(&file)).ok()?));
            let shared = |dir| Some(found(dir, self.open_own(process_id, dir.join(&file))?));
            self.dirs.named.iter().find_map(named).or_else(|| self.dirs.shared.iter().find_map(shared))
        });
        let OpenMap { dir, map } = map.as_ref()?;
        Some((self.describe)(dir, &map.find(address)?.name))
    }

    fn open_own(&self, process_id: u32, path: PathBuf) -> Option<PerfMap> {
        let written_and_began = match PerfMap::open_own(&path) {
            Ok(map) => match self.earlier(process_id, &path) {
                None => return Some(map),
                found => found,
            },
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
            Err(_) => return None,
        };
        self.unused.lock().ok()?.push(UnusedMap { path, written_and_began });
        None
    }

    /// When a map was written and its process began, where that is in this order.
    fn earlier(&self, process_id: u32, path: &Path) -> Option<(SystemTime, SystemTime)> {
        let began = *self.began.get(&process_id)?;
        let written = path.metadata().ok()?.modified().ok()?;
        (written.checked_add(SLACK)? < began).then_some((written, began))
    }
}
