//! Names for functions that a recording has only numbers of, from instrumentation maps.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use perfuse_binaries::symbolize::{Options, Symbolizer};
use perfuse_binaries::xray_map::{Error, MapFile, NamedFunctions, NativeIds, ObjectMaps, name_functions};
use perfuse_formats::TableRequest;
use perfuse_tables::access::ColumnError;
use pyo3::prelude::*;

use crate::errors::{io_error, lacking};
use crate::fusion::{Fusion, Placed};

/// `(path, code, message, offset, count)`; the path is that of a log where the finding is about how it fits.
pub type FindingRow = (String, &'static str, String, Option<u64>, u64);

/// Opens the maps of objects.
pub fn open_maps(py: Python<'_>, maps: Vec<(u32, PathBuf)>) -> PyResult<ObjectMaps> {
    let mut objects = ObjectMaps::new();
    for (object, path) in maps {
        let name = path.to_string_lossy().into_owned();
        let file = py.detach(|| MapFile::open(&path, None)).map_err(|error| match error {
            Error::Io(error) => io_error(py, &name, &error),
            Error::NotAnObject(_) => lacking(py, &name, error, "give the program that was recorded"),
            Error::NoMap(_) => lacking(py, &name, error, "compile and link with `clang -fxray-instrument`"),
        })?;
        objects.insert(object, file).map_err(|error| lacking(py, &name, error, "give --map OBJECT=FILE"))?;
    }
    Ok(objects)
}

/// Bits of a placed recording's function numbers, where it has numbers.
fn ids(placed: &Placed) -> Option<NativeIds> {
    Some(if placed.recording().function_id_bits()? < u32::BITS {
        NativeIds::Bits28
    } else {
        NativeIds::Bits32
    })
}

impl Fusion {
    /// Tables `functions` and `modules` of each recording that has numbers for functions, named; those of others as they are.
    pub fn named(&self) -> Result<&Vec<NamedFunctions>, ColumnError> {
        self.named.get_or_init(|| self.name_all()).as_ref().map_err(|error| *error)
    }

    fn name_all(&self) -> Result<Vec<NamedFunctions>, ColumnError> {
        let options =
            Options { symbol_dirs: self.symbol_dirs.clone(), debug: self.debug_info, ..Options::default() };
        let symbolizer = Symbolizer::new(options);
        if self.maps.iter().next().is_none() {
            return Ok(Vec::new());
        }
        let mut first_module = self.keys_after_join()?.module;
        let mut all = Vec::new();
        for placed in &self.placed {
            let Some(ids) = ids(placed) else { continue };
            for functions in placed.table("functions", &TableRequest::default()) {
                let mut named = name_functions(&functions, ids, &self.maps, first_module, &symbolizer)?;
                let log = &placed.recording().source().path;
                named.findings.iter_mut().filter(|(path, _)| path.is_empty()).for_each(|(path, _)| {
                    path.clone_from(log);
                });
                first_module = first_module.saturating_add(named.modules.num_rows() as u32);
                all.push(named);
            }
        }
        Ok(all)
    }

    /// A table of functions or modules as recordings have it, and what maps say.
    pub fn with_names(&self, name: &str) -> Result<Vec<RecordBatch>, ColumnError> {
        let has_maps = self.maps.iter().next().is_some();
        let plain = self.placed.iter().filter(|placed| !has_maps || ids(placed).is_none());
        let mut batches: Vec<RecordBatch> =
            plain.flat_map(|placed| placed.table(name, &TableRequest::default())).collect();
        let of = |named: &NamedFunctions| {
            if name == "functions" { named.functions.clone() } else { named.modules.clone() }
        };
        batches.extend(self.named()?.iter().map(of));
        Ok(batches)
    }

    /// What is wrong with maps, and with how they fit.
    pub fn naming_findings(&self) -> Result<Vec<FindingRow>, ColumnError> {
        let mut rows: Vec<FindingRow> = Vec::new();
        for (path, finding) in self.named()?.iter().flat_map(|named| named.findings.clone()) {
            let row = (path, finding.code, finding.message, finding.offset, finding.count);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        Ok(rows)
    }
}
