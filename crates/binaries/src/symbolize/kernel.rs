//! Symbols of recorded kernels and kernel modules.

use std::path::PathBuf;
use std::sync::Arc;

use object::{Object, ObjectSymbol};
use perfuse_mapped::read_regular;

use super::address_space::AddressSpace;
use super::elf_module::ElfModule;
use super::image::ElfBuildId;
use super::kallsyms::Kallsyms;
use super::live_kernel::{self, base_in_line};
use super::locate::{SearchPath, find_image, first_with_id};
use super::module::SymbolSource;

/// Larger lists of symbols are not read; real ones have 15 MB.
const MOST_KALLSYMS_BYTES: u64 = 256 << 20;
/// The name under which perf caches a kernel's symbols.
const CACHED_AS: &str = "[kernel.kallsyms]";
/// Names of a kernel's list of symbols, and of its list of modules, beside its core file.
const LIST: &str = "kallsyms";
const MODULES: &str = "modules";
/// A larger list of modules is not read.
const MOST_MODULES_BYTES: u64 = 16 << 20;

/// A recorded kernel: its build, and the address of one of its symbols.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedKernel<'a> {
    pub(crate) build_id: Option<&'a ElfBuildId>,
    /// `_text` or `_stext`, and its recorded address.
    pub(crate) reference: Option<(&'a str, u64)>,
    /// Whether it may be the running kernel.
    pub(crate) may_be_live: bool,
    /// Whether it ran on this machine and has the release of the running kernel.
    pub(crate) was_here: bool,
}

impl RecordedKernel<'_> {
    /// Its symbols: a list of the recorded boot in a given directory, a copy of kallsyms in perf's cache, the running kernel's own, or a vmlinux; the last first where
    /// lines are requested.
    pub(crate) fn symbols(&self, search: &SearchPath, with_dwarf: bool) -> SymbolSource {
        if let Some(id) = self.build_id
            && with_dwarf
            && let Ok(symbols) = self.vmlinux(search, id)
        {
            return symbols;
        }
        if let Some(kallsyms) = self.listed(search) {
            return SymbolSource::Kallsyms(kallsyms);
        }
        let Some(id) = self.build_id else { return self.without_build_id() };
        let found =
            self.cached(search, id).or_else(|| self.live(id)).unwrap_or(Err("kernel symbols not found"));
        match found {
            Ok(kallsyms) => SymbolSource::Kallsyms(kallsyms),
            Err(reason) => self
                .vmlinux(search, id)
                .unwrap_or_else(|vmlinux| SymbolSource::None(vmlinux.unwrap_or(reason).into())),
        }
    }

    /// Piped and packed recordings have no build ids: their kernel is identified by machine, release and address.
    fn without_build_id(&self) -> SymbolSource {
        if !(self.may_be_live && self.was_here && self.reference.is_some()) {
            return SymbolSource::None("the kernel's build id was not recorded".into());
        }
        match live_kernel::symbols(self.reference) {
            Ok(kallsyms) => SymbolSource::Kallsyms(kallsyms),
            Err(reason) => SymbolSource::None(reason.into()),
        }
    }

    /// A list named `kallsyms` in one of the given directories, as `perf record --kcore` stores it. It states no build: it is that of
    /// the recorded boot where its reference symbol has the recorded address.
    fn listed(&self, search: &SearchPath) -> Option<Kallsyms> {
        let reference = self.reference?;
        search.symbol_dirs.iter().find_map(|dir| {
            let text = read_regular(&dir.join(LIST), MOST_KALLSYMS_BYTES).ok()?;
            Kallsyms::kernel(text, Some(reference)).ok().filter(Kallsyms::is_unslid)
        })
    }

    fn cached(&self, search: &SearchPath, id: &ElfBuildId) -> Option<Result<Kallsyms, &'static str>> {
        let paths = search.cached(id, CACHED_AS, "kallsyms");
        let list = paths.iter().find_map(|path| read_regular(path, MOST_KALLSYMS_BYTES).ok())?;
        Some(Kallsyms::kernel(list, self.reference))
    }

    fn live(&self, id: &ElfBuildId) -> Option<Result<Kallsyms, &'static str>> {
        let running = live_kernel::build_id().filter(|_| self.may_be_live)?;
        if running.matches(id) {
            return Some(live_kernel::symbols(self.reference));
        }
        Some(Err("build id differs: another kernel runs here"))
    }

    /// The symbols of a vmlinux; the error is the reason why the file that was found cannot be used, or `None` where none was.
    fn vmlinux(&self, search: &SearchPath, id: &ElfBuildId) -> Result<SymbolSource, Option<&'static str>> {
        let mut paths: Vec<PathBuf> = search.symbol_dirs.iter().map(|dir| dir.join("vmlinux")).collect();
        paths.extend(search.cached(id, CACHED_AS, "elf"));
        paths.extend(search.debug_files(id));
        let image = first_with_id(search, &paths, id).ok_or(None)?;
        let (name, recorded) =
            self.reference.ok_or("the recording does not state where the kernel was loaded")?;
        let linked = image.elf().ok().and_then(|elf| Some(elf.symbol_by_name(name)?.address()));
        let slide = recorded.wrapping_sub(linked.ok_or("the vmlinux lacks the recorded reference symbol")?);
        let mut module = ElfModule::read(image, None).map_err(|_| "the vmlinux is damaged")?;
        module.space = AddressSpace::Slid(slide);
        Ok(SymbolSource::Elf(Box::new(module)))
    }
}

/// A kernel module's symbols: from the kernel's list where the module is loaded here, else from its file.
pub(crate) fn module_symbols(
    search: &SearchPath,
    path: &str,
    name: &str,
    build_id: Option<&ElfBuildId>,
    may_be_live: bool,
    start: Option<u64>,
) -> SymbolSource {
    if let Some(kallsyms) = listed_module(search, name, start) {
        return SymbolSource::Kallsyms(kallsyms);
    }
    let Some(id) = build_id else {
        return SymbolSource::None("the kernel module's build id was not recorded".into());
    };
    let live =
        if may_be_live { live_kernel::module_symbols(name, id) } else { Err("kernel symbols not found") };
    match live {
        Ok(kallsyms) => SymbolSource::Kallsyms(kallsyms),
        Err(reason) => match find_image(search, path, false, Some(id)) {
            Ok(image) => ElfModule::read(image, None).map_or_else(
                |error| SymbolSource::None(error.to_string().into()),
                |module| SymbolSource::Elf(Box::new(module)),
            ),
            Err(_) => SymbolSource::None(Arc::from(reason)),
        },
    }
}

/// A module's symbols in the lists of a given directory, where that states that it was loaded at the recorded address.
fn listed_module(search: &SearchPath, name: &str, start: Option<u64>) -> Option<Kallsyms> {
    let start = start?;
    let name = name.replace('-', "_");
    search.symbol_dirs.iter().find_map(|dir| {
        let modules = read_regular(&dir.join(MODULES), MOST_MODULES_BYTES).ok()?;
        let modules = String::from_utf8(modules).ok()?;
        modules.lines().find_map(|line| base_in_line(line, &name)).filter(|&base| base == start)?;
        Kallsyms::module(read_regular(&dir.join(LIST), MOST_KALLSYMS_BYTES).ok()?, &name, start).ok()
    })
}
