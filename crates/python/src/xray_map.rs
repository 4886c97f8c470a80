//! Instrumentation maps of XRay.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use perfuse_binaries::dependencies::Dependencies;
use perfuse_binaries::symbolize::{Image, Options, Symbolizer};
use perfuse_binaries::xray_map::{FunctionNames, MapFile};
use pyo3::prelude::*;

use crate::arrow::ArrowStream;
use crate::call::call;
use crate::errors::table_error;
use crate::profile::open_map;

/// A program, a library or an object file with sleds.
#[pyclass(frozen, name = "InstrumentationMap", module = "perfuse._core")]
pub struct PyInstrumentationMap {
    file: MapFile,
    symbolizer: Symbolizer,
    names: OnceLock<FunctionNames>,
}

/// `(code, message, offset, count)`.
type MapFindingRow = (&'static str, String, Option<u64>, u64);

#[pymethods]
impl PyInstrumentationMap {
    /// Opens a file and reads its map; names are looked up when they are asked for. `architecture` chooses a part of a
    /// universal file.
    #[staticmethod]
    #[pyo3(signature = (path, symbol_dirs, debug_info, architecture=None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        symbol_dirs: Vec<PathBuf>,
        debug_info: bool,
        architecture: Option<String>,
    ) -> PyResult<Self> {
        let file = open_map(py, &path, architecture.as_deref())?;
        let symbolizer = Symbolizer::new(Options { symbol_dirs, debug: debug_info, ..Options::default() });
        Ok(Self { file, symbolizer, names: OnceLock::new() })
    }

    /// What the code is for: `x86_64`, `aarch64`.
    #[getter]
    fn architecture(&self) -> &'static str {
        self.file.map().architecture
    }

    /// Size of an address.
    #[getter]
    fn pointer_bytes(&self) -> u8 {
        self.file.map().pointer_bytes
    }

    /// Version of its entries; `None` where they have none, or several.
    #[getter]
    fn version(&self) -> Option<u8> {
        let versions = self.file.map().versions();
        versions.first().copied().filter(|_| versions.len() == 1)
    }

    /// Versions of its entries.
    #[getter]
    fn versions(&self) -> Vec<u8> {
        self.file.map().versions()
    }

    /// Number of functions.
    fn __len__(&self) -> usize {
        self.file.map().functions.len()
    }

    /// Number of sleds by kind, in the order of kinds.
    #[getter]
    fn kinds(&self) -> Vec<(String, u64)> {
        let mut counts = BTreeMap::new();
        self.file.map().sleds.iter().for_each(|sled| *counts.entry(sled.kind).or_insert(0) += 1);
        counts.into_iter().map(|(kind, count)| (kind.to_string(), count)).collect()
    }

    /// What is wrong with the map, and with the names of its functions.
    #[getter]
    fn findings(&self, py: Python<'_>) -> PyResult<Vec<MapFindingRow>> {
        let unnamed = call(py, || self.names().finding())?;
        let all = self.file.map().findings.iter().cloned().chain(unnamed);
        Ok(all.map(|finding| (finding.code, finding.message, finding.offset, finding.count)).collect())
    }

    /// One row a function.
    fn functions(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        let batch = call(py, || self.file.map().functions_batch(self.names()))?;
        batch.map(ArrowStream::of).map_err(table_error)
    }

    /// One row a sled.
    fn sleds(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        let batch = call(py, || self.file.map().sleds_batch())?;
        batch.map(ArrowStream::of).map_err(table_error)
    }
}

/// The libraries that an ELF file needs: its own name as a library, names of needed libraries, directories to search. `None` for
/// other files.
#[pyfunction]
pub fn elf_dependencies(path: PathBuf) -> Option<(Option<String>, Vec<String>, Vec<String>)> {
    let Dependencies { soname, needed, search } = Dependencies::read(&Image::open(&path).ok()?).ok()?;
    Some((soname, needed, search))
}

impl PyInstrumentationMap {
    fn names(&self) -> &FunctionNames {
        self.names.get_or_init(|| self.file.names(&self.file.map().functions, &self.symbolizer))
    }
}
