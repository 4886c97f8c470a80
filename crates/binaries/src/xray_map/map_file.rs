use std::path::Path;
use std::sync::Arc;

use super::error::Error;
use super::findings::{Finding, UNNAMED};
use super::mach_o_names;
use super::map::{Function, InstrumentationMap, Place};
use crate::symbolize::{Image, Module, SymbolFrame, Symbolizer};

/// A file with an instrumentation map, open.
#[derive(Debug)]
pub struct MapFile {
    image: Image,
    map: InstrumentationMap,
}

/// What the functions of a map are called.
#[derive(Debug, Default)]
pub struct Names {
    /// By function, in the order they were asked for; `None` where no function of the file is known to start at its address.
    pub functions: Vec<Option<SymbolFrame>>,
    /// Build id of the file in hexadecimal, where it has one.
    pub build_id: Option<String>,
    /// Why a function without a name has none.
    pub unnamed_because: Option<Arc<str>>,
}

impl Names {
    /// That some functions have no name, and why.
    #[must_use]
    pub fn finding(&self) -> Option<Finding> {
        let num_unnamed = self.functions.iter().filter(|frame| frame.is_none()).count();
        let because = self.unnamed_because.as_deref().unwrap_or(
            "no symbol starts where they do: the file is stripped, and its debug file was not found",
        );
        let message = format!("{num_unnamed} of {} functions have no name: {because}", self.functions.len());
        (num_unnamed > 0).then_some(Finding { code: UNNAMED, message, offset: None, count: 1 })
    }
}

impl MapFile {
    /// Opens a program, a library or an object file, and reads its map.
    ///
    /// # Errors
    /// When it cannot be read, is no object file, or has no map. See [`InstrumentationMap::read`] for `architecture`.
    pub fn open(path: &Path, architecture: Option<&str>) -> Result<Self, Error> {
        let image = Image::open(path)?;
        let map = InstrumentationMap::read(&image, architecture)?;
        Ok(Self { image, map })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.image.path
    }

    /// The file, as text.
    pub(super) fn display(&self) -> String {
        self.image.path.display().to_string()
    }

    /// Its map.
    #[must_use]
    pub fn map(&self) -> &InstrumentationMap {
        &self.map
    }

    /// Names of functions of the map: from the symbol table or DWARF of an ELF file or of its separate debug file, from the
    /// symbol table of a Mach-O file. dSYM bundles are not read.
    #[must_use]
    pub fn names(&self, functions: &[Function], symbolizer: &Symbolizer) -> Names {
        if self.map.is_mach_o {
            let slice = self.image.get(self.map.slice.clone()).unwrap_or_default();
            return Names { functions: mach_o_names::names(slice, functions), ..Names::default() };
        }
        let module = symbolizer.file(&self.image.path);
        let addresses: Vec<Option<u64>> =
            functions.iter().map(|function| address(&module, function)).collect();
        let build_id = self.image.build_id().map(|id| id.to_string());
        Names {
            functions: module.functions_at(&addresses),
            build_id,
            unnamed_because: module.unnamed_because(),
        }
    }
}

/// A function's place in the address space of its module's symbols.
fn address(module: &Module, function: &Function) -> Option<u64> {
    match function.place? {
        Place { section: None, address } => Some(address),
        Place { section: Some(section), address } => module.section_address(section, address),
    }
}
