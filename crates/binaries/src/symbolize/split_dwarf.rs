//! Split debug information: what the compiler left out of a program, in a `.dwo` file for each unit or in one package.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::SplitDwarfLoad;
use gimli::{DwarfPackage, DwoId};

use super::dwarf_sections::{DwarfReader, DwarfSources};
use super::image::Image;

/// Finds files with split debug information.
pub(crate) trait SplitFiles: Send + Sync {
    /// Files that may be the package of all units of a program, the most likely first.
    fn packages(&self, program: &Path) -> Vec<Arc<Image>>;

    /// Files that may have the rest of a unit of a program, the most likely first: by the name that the unit states, and
    /// the directory in which it was compiled.
    fn units(&self, program: &Path, name: &Path, directory: Option<&Path>) -> Vec<Arc<Image>>;
}

/// Reads the rest of the units of a program when they are first looked up.
pub(super) struct SplitDwarf {
    /// The program, and its debug file.
    programs: Vec<PathBuf>,
    files: Arc<dyn SplitFiles>,
    packages: OnceCell<Vec<DwarfPackage<DwarfReader>>>,
    num_missing: Cell<usize>,
    first_missing: RefCell<Option<String>>,
}

impl SplitDwarf {
    pub(super) fn new(programs: Vec<PathBuf>, files: Arc<dyn SplitFiles>) -> Self {
        let (packages, num_missing, first_missing) = Default::default();
        Self { programs, files, packages, num_missing, first_missing }
    }

    /// The rest of a unit; `None` where it was not found, which is noted.
    pub(super) fn load(
        &self,
        unit: &SplitDwarfLoad<DwarfReader>,
        sources: &mut DwarfSources,
    ) -> Option<Arc<gimli::Dwarf<DwarfReader>>> {
        let found = self.in_package(unit, sources).or_else(|| self.in_file(unit, sources)).map(Arc::new);
        if found.is_none() {
            self.num_missing.set(self.num_missing.get().saturating_add(1));
            let name = path_of(unit.path.as_ref()).unwrap_or_default();
            self.first_missing.borrow_mut().get_or_insert_with(|| name.display().to_string());
        }
        found
    }

    /// What was not found so far.
    pub(super) fn missing(&self) -> Option<String> {
        let first = self.first_missing.borrow();
        let name = first.as_ref()?;
        Some(match self.num_missing.get() {
            0 | 1 => format!("{name} was not found, which has inlined calls"),
            num => {
                format!("{name} and {} more were not found, which have inlined calls", num.saturating_sub(1))
            }
        })
    }

    fn in_package(
        &self,
        unit: &SplitDwarfLoad<DwarfReader>,
        sources: &mut DwarfSources,
    ) -> Option<gimli::Dwarf<DwarfReader>> {
        let packages = self.packages.get_or_init(|| {
            let images = self.programs.iter().flat_map(|program| self.files.packages(program));
            images.filter_map(|image| sources.package(&image).ok()).collect()
        });
        packages.iter().find_map(|package| package.find_cu(unit.dwo_id, &unit.parent).ok().flatten())
    }

    fn in_file(
        &self,
        unit: &SplitDwarfLoad<DwarfReader>,
        sources: &mut DwarfSources,
    ) -> Option<gimli::Dwarf<DwarfReader>> {
        let (name, directory) = (path_of(unit.path.as_ref())?, path_of(unit.comp_dir.as_ref()));
        let of = |program: &PathBuf| self.files.units(program, &name, directory.as_deref());
        self.programs.iter().flat_map(of).find_map(|image| {
            let mut dwarf = sources.split_sections(&image).ok()?;
            dwarf.make_dwo(&unit.parent);
            // The program may have been built again since, or the file.
            (first_id(&dwarf)? == unit.dwo_id).then_some(dwarf)
        })
    }
}

/// The id of the first unit of a `.dwo` file.
fn first_id(dwarf: &gimli::Dwarf<DwarfReader>) -> Option<DwoId> {
    let header = dwarf.units().next().ok()??;
    dwarf.unit(header).ok()?.dwo_id
}

fn path_of(text: Option<&DwarfReader>) -> Option<PathBuf> {
    Some(PathBuf::from(std::str::from_utf8(text?.slice()).ok()?))
}
