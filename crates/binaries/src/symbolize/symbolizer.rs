//! Opens the modules of a recording.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use perfuse_mapped::UnpackLimit;
use rustc_hash::FxHashMap;

use super::elf_module::ElfModule;
use super::follow::Follow;
use super::image::{ElfBuildId, Image};
use super::kernel::{RecordedKernel, module_symbols};
use super::live_kernel;
use super::locate::{SearchPath, find_debug_image, find_image, find_supplement, first_with_id};
use super::module::{DebugFiles, Module, SymbolSource};
use super::recorded_path::RecordedPath;
use super::split_dwarf::SplitFiles;

/// Where symbols are searched, and which are requested.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directories that are searched before all others, for a recording of another machine: by the full path below
    /// them, by the bare file name, and by build id.
    pub symbol_dirs: Vec<PathBuf>,
    /// Whether to read DWARF, for lines and inlined calls. Without it functions are named by symbol tables alone.
    pub debug: bool,
    /// perf's build-id caches.
    pub build_id_dirs: Vec<PathBuf>,
    /// Where separate debug files are installed, and debuginfod's cache. Nothing is downloaded.
    pub debug_dirs: Vec<PathBuf>,
    /// Whether the recording may be of this machine, so that the running kernel may be the recorded one.
    pub live_kernel: bool,
    /// Host name and kernel release of the recorded machine, where they are known.
    pub recorded_on: Option<(String, String)>,
    /// Which files that the recording names are opened.
    pub follow: Follow,
    /// How large compressed sections may become.
    pub unpack_limit: UnpackLimit,
}

impl Default for Options {
    /// This machine's usual directories: `~/.debug`, `/usr/lib/debug` and debuginfod's cache. DWARF is read.
    fn default() -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| home.as_ref().map(|home| home.join(".cache")));
        let debuginfod = std::env::var_os("DEBUGINFOD_CACHE_PATH").map(PathBuf::from);
        let debuginfod = debuginfod.or_else(|| cache.map(|cache| cache.join("debuginfod_client")));
        Self {
            symbol_dirs: Vec::new(),
            debug: true,
            build_id_dirs: home.map(|home| home.join(".debug")).into_iter().collect(),
            debug_dirs: std::iter::once(PathBuf::from("/usr/lib/debug")).chain(debuginfod).collect(),
            live_kernel: true,
            recorded_on: None,
            follow: Follow::default(),
            unpack_limit: UnpackLimit::default(),
        }
    }
}

/// Opens modules, each once. Can be shared by threads, which read different modules at the same time.
#[derive(Debug)]
pub struct Symbolizer {
    search: Arc<SearchPath>,
    debug: bool,
    live_kernel: bool,
    /// Whether the recording was made on this machine, under the running kernel's release.
    was_here: bool,
    modules: Mutex<FxHashMap<ModuleKey, Arc<OnceLock<Arc<Module>>>>>,
}

/// What identifies a module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ModuleKey {
    path: String,
    build_id: Option<ElfBuildId>,
    reference_address: Option<u64>,
}

impl Symbolizer {
    /// A symbolizer that has opened nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let Options { debug, recorded_on, follow, unpack_limit, .. } = options;
        let was_here =
            recorded_on.is_some_and(|(host, release)| live_kernel::is_this_machine(&host, &release));
        let follows = follow != Follow::Nothing;
        let dirs = |dirs: Vec<PathBuf>| if follows { dirs } else { Vec::new() };
        let search = Arc::new(SearchPath {
            symbol_dirs: dirs(options.symbol_dirs),
            build_id_dirs: dirs(options.build_id_dirs),
            debug_dirs: dirs(options.debug_dirs),
            follow,
            unpack_limit,
        });
        let live_kernel = options.live_kernel && follows;
        Self { search, debug, live_kernel, was_here, modules: Mutex::default() }
    }

    /// The module that a mapping's `path` names, of that build id in hexadecimal where one was recorded.
    ///
    /// Never fails: where there is no such file, or another one, [`Module::unnamed_because`] returns the reason.
    #[must_use]
    pub fn module(&self, path: &str, build_id: Option<&str>) -> Arc<Module> {
        self.open(path, build_id, None)
    }

    /// The program, library or object file at a path: this file, or one of the given directories with its build id, which may
    /// have the symbols that were stripped from it.
    #[must_use]
    pub fn file(&self, path: &Path) -> Module {
        let name = path.to_string_lossy();
        let image = match Image::open_within(path, self.search.unpack_limit) {
            Ok(image) => image,
            Err(error) => return Module::unknown(&name, format!("module file cannot be read: {error}")),
        };
        let same = image.build_id().and_then(|id| find_image(&self.search, &name, false, Some(&id)).ok());
        self.elf_module(&name, &name, same.unwrap_or_else(|| Arc::new(image)))
    }

    /// Files whose debug information exceeds a limit, is damaged or incomplete, and why, as a sentence; of the modules that
    /// were looked at so far.
    #[must_use]
    pub fn unusable_debug_info(&self) -> Vec<(String, String)> {
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = modules.values().filter_map(|slot| slot.get());
        let mut found: Vec<_> = opened
            .filter_map(|module| {
                let (path, reason) = module.unusable_debug_info()?;
                Some((path.display().to_string(), reason))
            })
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// A kernel. `reference_address` is where the symbol was loaded whose name follows the bracket in `path`: the file
    /// offset of perf's mapping of `[kernel.kallsyms]_text`. It distinguishes two boots of the same kernel. Of a module it is where
    /// that was loaded.
    #[must_use]
    pub fn kernel(&self, path: &str, build_id: Option<&str>, reference_address: Option<u64>) -> Arc<Module> {
        self.open(path, build_id, reference_address.filter(|&address| address != 0))
    }

    fn open(&self, path: &str, build_id: Option<&str>, reference_address: Option<u64>) -> Arc<Module> {
        let build_id = build_id.and_then(ElfBuildId::from_hex);
        let key = ModuleKey { path: path.to_owned(), build_id, reference_address };
        let slot = {
            let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(modules.entry(key.clone()).or_default())
        };
        Arc::clone(slot.get_or_init(|| Arc::new(self.load(&key))))
    }

    fn load(&self, key: &ModuleKey) -> Module {
        let path = key.path.as_str();
        let build_id = key.build_id.as_ref();
        let symbols = match RecordedPath::parse(path, build_id.is_some()) {
            RecordedPath::Kernel { reference } => {
                let reference =
                    key.reference_address.filter(|_| !reference.is_empty()).map(|at| (reference, at));
                let (may_be_live, was_here) = (self.live_kernel, self.was_here);
                let kernel = RecordedKernel { build_id, reference, may_be_live, was_here };
                kernel.symbols(&self.search, self.debug)
            }
            RecordedPath::Guest { reference } => {
                let reference =
                    key.reference_address.filter(|_| !reference.is_empty()).map(|at| (reference, at));
                let kernel = RecordedKernel { build_id, reference, may_be_live: false, was_here: false };
                kernel.symbols(&self.search, self.debug)
            }
            RecordedPath::KernelModule(name) => {
                module_symbols(&self.search, path, name, build_id, self.live_kernel, key.reference_address)
            }
            RecordedPath::Vdso => match self.vdso(build_id) {
                Ok(image) => return self.elf_module(path, path, image),
                Err(reason) => SymbolSource::None(reason.into()),
            },
            RecordedPath::Anonymous => SymbolSource::None("the memory is not mapped from a file".into()),
            RecordedPath::File { path: file, deleted } => {
                match find_image(&self.search, file, deleted, build_id) {
                    Ok(image) => return self.elf_module(path, file, image),
                    Err(reason) => SymbolSource::None(reason),
                }
            }
        };
        Module::new(path, symbols, self.debug, self.debug_files(None))
    }

    fn debug_files(&self, supplement: Option<Arc<Image>>) -> Option<DebugFiles> {
        let split: Arc<dyn SplitFiles> = Arc::clone(&self.search) as _;
        Some(DebugFiles { supplement, split })
    }

    fn elf_module(&self, name: &str, path: &str, image: Arc<Image>) -> Module {
        let debug_image = find_debug_image(&self.search, &image, path, self.debug);
        let linking = debug_image.as_ref().unwrap_or(&image);
        let supplement = if self.debug { find_supplement(&self.search, linking) } else { None };
        match ElfModule::read(image, debug_image) {
            Ok(module) => Module::new(
                name,
                SymbolSource::Elf(Box::new(module)),
                self.debug,
                self.debug_files(supplement),
            ),
            Err(error) => Module::unknown(name, format!("not a readable ELF file: {error}")),
        }
    }

    fn vdso(&self, build_id: Option<&ElfBuildId>) -> Result<Arc<Image>, &'static str> {
        let Some(id) = build_id else {
            // perf 7 lists its build id under the name of a temporary file. A kernel of the same release has the same code.
            let live = if self.live_kernel && self.was_here { live_kernel::vdso() } else { None };
            return live.map(Arc::new).ok_or("the vdso's build id was not recorded");
        };
        if let Some(cached) = first_with_id(&self.search, &self.search.cached(id, "[vdso]", "vdso"), id) {
            return Ok(cached);
        }
        let live = if self.live_kernel { live_kernel::vdso() } else { None };
        let live = live.filter(|image| image.build_id().is_some_and(|found| found.matches(id)));
        live.map(Arc::new).ok_or("build id differs: the vdso of another kernel")
    }
}
