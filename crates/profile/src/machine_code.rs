//! What the addresses in machine code refer to.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use perfuse_binaries::symbolize::Module;
use perfuse_engine::code_map;
use perfuse_engine::mappings::Mappings;
use perfuse_formats::TableRequest;
use perfuse_tables::access::ColumnError;

use crate::profile::Profile;

/// What an address refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeTarget {
    /// JIT code: its key, and the offset in it.
    Code(u32, u64),
    /// A function or stub of a file: its name, the offset in it, and the file.
    Native(Arc<str>, u64, String),
}

/// The rows of a batch that belong to some code objects, in runs; their keys are sorted.
fn rows_of(batch: &RecordBatch, code_objects: &[u32]) -> Vec<RecordBatch> {
    let keys = batch.column_by_name("code_object_id").and_then(|keys| keys.as_primitive_opt::<UInt32Type>());
    let Some(keys) = keys else { return vec![batch.clone()] };
    let is_of = |key: &u32| code_objects.binary_search(key).is_ok();
    let mut start = 0usize;
    let runs = keys.values().chunk_by(|one, next| is_of(one) == is_of(next)).filter_map(|run| {
        let first = start;
        start = start.saturating_add(run.len());
        run.first().filter(|key| is_of(key)).map(|_| batch.slice(first, run.len()))
    });
    runs.collect()
}

impl Profile {
    /// Rows of a table of code (`code_objects`, `line_rows`, `inline_calls`) that belong to some code objects, with their machine
    /// code. Nothing is joined.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn code_rows(&self, name: &str, mut code_objects: Vec<u32>) -> Result<Vec<RecordBatch>, ColumnError> {
        self.settle_keys()?;
        code_objects.sort_unstable();
        let request = TableRequest {
            code_objects: Some(code_objects.clone()),
            with_bytes: true,
            ..TableRequest::default()
        };
        let batches = self.collect(name, &request);
        // Recordings without code bytes, and saved tables, have all rows.
        Ok(batches.iter().flat_map(|batch| rows_of(batch, &code_objects)).collect())
    }

    /// What some addresses of a process referred to at a time: JIT code of that time, else the mapped files.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn code_targets(
        &self,
        process_id: u32,
        at_ns: i64,
        addresses: &[u64],
    ) -> Result<Vec<Option<CodeTarget>>, ColumnError> {
        let queries: Vec<_> = addresses.iter().map(|address| (process_id, at_ns, *address)).collect();
        self.code_targets_at(&queries)
    }

    /// The same for several processes and times: `(process_id, ts_ns, address)`.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn code_targets_at(
        &self,
        queries: &[(u32, i64, u64)],
    ) -> Result<Vec<Option<CodeTarget>>, ColumnError> {
        self.settle_keys()?;
        let everything = TableRequest::default();
        let codes = self.collect("code_objects", &everything);
        let codes = code_map::of_tables(&codes, &self.collect("code_moves", &everything))?;
        let mappings = Mappings::new(&self.collect("mappings", &everything))?;
        let target = |&(process_id, at_ns, address): &(u32, i64, u64)| {
            if let Some(hit) = codes.find(process_id, address, at_ns) {
                return Some(CodeTarget::Code(hit.code_object_id, hit.code_offset));
            }
            let found = mappings.find(process_id, address, at_ns)?;
            let mapping =
                mappings.rows.get(found.id as usize).filter(|_| !mappings.is_anonymous(found.id))?;
            let file = mappings.file(mapping)?;
            let module = self.module(&file.path, file.build_id.as_deref());
            let resolved = module.resolve(module.position(address, mapping.start, mapping.file_offset));
            let name = resolved.frames.first()?.name.clone();
            let offset = resolved.relative_address?.saturating_sub(resolved.symbol_address?);
            Some(CodeTarget::Native(name, offset, file.path.clone()))
        };
        Ok(queries.iter().map(target).collect())
    }

    /// A file that code was mapped from.
    #[must_use]
    pub fn module(&self, path: &str, build_id: Option<&str>) -> Arc<Module> {
        self.symbolizer().module(path, build_id)
    }
}
