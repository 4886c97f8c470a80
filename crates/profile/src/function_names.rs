//! Names for functions that recordings have only numbers of, from XRay instrumentation maps.

use arrow_array::RecordBatch;
use perfuse_binaries::symbolize::{Options, Symbolizer};
use perfuse_binaries::xray_map::{NamedFunctions, NativeIds, name_functions};
use perfuse_formats::TableRequest;
use perfuse_tables::access::ColumnError;

use crate::function_numbers::{NumberingLog, numbers_of_logs};
use crate::naming_finding::NamingFinding;
use crate::profile::Profile;
use crate::recordings::PlacedRecording;

/// Width of a recording's function numbers; `None` where it has names.
fn native_ids(placed: &PlacedRecording) -> Option<NativeIds> {
    let bits = placed.recording.function_id_bits()?;
    Some(if bits < u32::BITS { NativeIds::Bits28 } else { NativeIds::Bits32 })
}

impl Profile {
    fn has_xray_maps(&self) -> bool {
        self.options.xray_maps.iter().next().is_some() || self.has_saved_names
    }

    /// Number of rows of `functions` or `modules` of the recordings that maps do not name.
    pub(crate) fn num_plain_rows(&self, name: &str) -> u64 {
        let plain = self.placed.iter().filter(|placed| !self.has_xray_maps() || native_ids(placed).is_none());
        let batches = plain.flat_map(|placed| placed.table(name, &TableRequest::default()));
        batches.map(|batch| batch.num_rows() as u64).sum()
    }

    /// Tables `functions` and `modules` of the recordings that have numbers for functions, with names.
    pub(crate) fn named_functions(&self) -> Result<&[NamedFunctions], ColumnError> {
        let named = self.named_functions.get_or_init(|| self.name_functions());
        named.as_deref().map_err(|error| *error)
    }

    fn name_functions(&self) -> Result<Vec<NamedFunctions>, ColumnError> {
        if !self.has_xray_maps() {
            return Ok(Vec::new());
        }
        let (symbol_dirs, debug) = (self.options.symbol_dirs.clone(), self.options.debug_info);
        let (follow, unpack_limit) = (self.options.follow, self.options.unpack_limit);
        let symbolizer =
            Symbolizer::new(Options { symbol_dirs, debug, follow, unpack_limit, ..Options::default() });
        let mut first_module = self.keys_after_join()?.module;
        let mut all = Vec::new();
        for placed in &self.placed {
            let Some(ids) = native_ids(placed) else { continue };
            for functions in placed.table("functions", &TableRequest::default()) {
                let maps = &self.options.xray_maps;
                let mut named = name_functions(&functions, ids, maps, first_module, &symbolizer)?;
                let log = &placed.recording.source().path;
                named.findings.iter_mut().filter(|(path, _)| path.is_empty()).for_each(|(path, _)| {
                    path.clone_from(log);
                });
                first_module = first_module.saturating_add(named.modules.num_rows() as u32);
                all.push(named);
            }
        }
        Ok(all)
    }

    /// Table `functions` or `modules` of all recordings, with names from maps.
    pub(crate) fn with_names(
        &self,
        name: &str,
        request: &TableRequest,
    ) -> Result<Vec<RecordBatch>, ColumnError> {
        let has_maps = self.has_xray_maps();
        let plain = self.placed.iter().filter(|placed| !has_maps || native_ids(placed).is_none());
        let mut batches: Vec<RecordBatch> = plain.flat_map(|placed| placed.table(name, request)).collect();
        let table = |named: &NamedFunctions| {
            if name == "functions" { named.functions.clone() } else { named.modules.clone() }
        };
        batches.extend(self.named_functions()?.iter().map(table));
        if name == "functions" { numbers_of_logs(batches, &self.numbering_logs()) } else { Ok(batches) }
    }

    /// Recordings that have numbers for functions.
    fn numbering_logs(&self) -> Vec<NumberingLog<'_>> {
        let logs = self.placed.iter().filter(|placed| native_ids(placed).is_some());
        logs.map(|placed| {
            let first = placed.placement.first.function;
            let keys = first..first.saturating_add(placed.recording.extent().function);
            NumberingLog { path: &placed.recording.source().path, keys }
        })
        .collect()
    }

    /// Problems of instrumentation maps, and of how they fit the recordings; once samples are joined, also files that could not be
    /// used for them.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn naming_findings(&self) -> Result<Vec<NamingFinding>, ColumnError> {
        let mut distinct: Vec<NamingFinding> = Vec::new();
        for (path, found) in self.named_functions()?.iter().flat_map(|named| named.findings.clone()) {
            let (code, message) = (found.code, found.message);
            let finding = NamingFinding { path, code, message, offset: found.offset, count: found.count };
            if !distinct.contains(&finding) {
                distinct.push(finding);
            }
        }
        distinct.extend(self.unused_files.get().into_iter().flatten().cloned());
        Ok(distinct)
    }
}
