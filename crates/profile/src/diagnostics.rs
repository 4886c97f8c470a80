//! Table `diagnostics`.

use arrow_array::RecordBatch;
use perfuse_formats::registry;
use perfuse_tables::diagnostics;

/// `(path, code, message, offset, record_index, field, count)`
pub type DiagnosticRow = (String, String, String, Option<u64>, Option<u64>, String, u64);

/// Table `diagnostics`; `source_id` is the index of a row's path in `paths`. Rows with an unknown code are left out.
#[must_use]
pub fn diagnostics_batch(rows: &[DiagnosticRow], paths: &[String]) -> RecordBatch {
    let mut table = diagnostics::Builder::new();
    for (path, code, message, offset, record_index, field, count) in rows {
        let source_id = paths.iter().position(|source| source == path).unwrap_or_default() as u32;
        let Some((_, rule)) = registry::rules().find(|(_, rule)| rule.code == code) else { continue };
        let section = Some(rule.section).filter(|section| !section.is_empty());
        let field = Some(field.as_str()).filter(|field| !field.is_empty());
        let severity = rule.severity.name();
        table.push(source_id, code, severity, message, *offset, *record_index, field, section, *count);
    }
    table.finish()
}
