//! The table `diagnostics` of a profile, built from the diagnostics that Python holds.

use perfuse_formats::registry;
use perfuse_tables::diagnostics;
use pyo3::prelude::*;

use crate::arrow::ArrowStream;

/// Table `diagnostics`; `source_id` is the index of a row's path in `paths`. Rows with an unknown code are left out.
#[pyfunction]
fn diagnostics_table(rows: Vec<DiagnosticRow>, paths: Vec<String>) -> ArrowStream {
    let mut table = diagnostics::Builder::new();
    for (path, code, message, offset, record_index, field, count) in &rows {
        let source_id = paths.iter().position(|source| source == path).unwrap_or_default() as u32;
        let Some((_, rule)) = registry::rules().find(|(_, rule)| rule.code == code) else { continue };
        let section = Some(rule.section).filter(|section| !section.is_empty());
        let field = Some(field.as_str()).filter(|field| !field.is_empty());
        let severity = rule.severity.name();
        table.push(source_id, code, severity, message, *offset, *record_index, field, section, *count);
    }
    ArrowStream::of(table.finish())
}

/// `(path, code, message, offset, record_index, field, count)`
type DiagnosticRow = (String, String, String, Option<u64>, Option<u64>, String, u64);

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(diagnostics_table, module)?)
}
