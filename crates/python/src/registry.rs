//! What there is: formats, layouts, rules and tables, for documentation and for `explain`.

use std::borrow::Cow;
use std::path::PathBuf;

use perfuse_formats::Format;
use perfuse_formats::registry::{self, FORMATS};
use perfuse_tables::{Choices, TABLES, TableSpec};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::call;

/// Every rule of every format: `code, severity, section, marks_end, format`; their texts are in Python.
#[pyfunction]
pub fn rules(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    registry::rules()
        .map(|(format, rule)| {
            let (severity, section, marks_end) = (rule.severity.name(), rule.section, rule.marks_end);
            dict!(py, code: rule.code, severity: severity, section: section, marks_end: marks_end, format: format)
        })
        .collect()
}

/// Every format: `name, title, about, role, report, clock, process_field, patterns, capabilities, tables, layouts`; see
/// `perfuse.declared_formats.Format`.
#[pyfunction]
pub fn formats(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let format = |format: &&Format| {
        let alignments: Vec<_> = format.clock.alignments.iter().map(|alignment| alignment.name()).collect();
        let clock = dict!(py,
            kinds: format.clock.kinds, alignments: alignments, start_field: format.clock.start_field,
        )?;
        let parts = [
            ("writer", format.capabilities.writer),
            ("repair", format.capabilities.repair),
            ("layout", !format.layouts.is_empty()),
        ];
        let capabilities: Vec<_> = parts.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect();
        let layouts = format.layouts.iter().map(|layout| {
            let fields: Vec<_> = layout.fields.iter().map(|f| (f.name, f.ty.name(), f.doc.trim())).collect();
            dict!(py,
                name: layout.name, section: layout.section, doc: layout.doc.trim(),
                fixed_bytes: layout.fixed_bytes, fields: fields,
            )
        });
        dict!(py,
            name: format.name, title: format.title, about: format.about, role: format.role.name(),
            report: format.report, clock: clock, process_field: format.process_field, patterns: format.files,
            capabilities: capabilities, tables: format.tables, layouts: layouts.collect::<PyResult<Vec<_>>>()?,
        )
    };
    FORMATS.iter().map(format).collect()
}

/// Every common table: `name, doc, columns` as `(name, Arrow type, nullable, doc)`.
#[pyfunction]
pub fn tables(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let table = |table: &&TableSpec| {
        let columns = table
            .columns
            .iter()
            .map(|column| (column.name, (column.data_type)().to_string(), column.nullable, column.meaning()));
        dict!(py, name: table.name, doc: table.doc.trim(), columns: columns.collect::<Vec<_>>())
    };
    TABLES.iter().map(table).collect()
}

/// Name of the format of which a directory is one recording; None where it is a directory of other files.
#[pyfunction]
pub fn directory_format(py: Python<'_>, path: PathBuf) -> PyResult<Option<&'static str>> {
    Ok(call(py, || registry::detect_directory(&path))?.map(|format| format.name))
}

/// Names of the formats that a file with these first bytes may be of, each with how certain that is: `likely` or `certain`.
#[pyfunction]
pub fn sniff(head: &[u8]) -> Vec<(&'static str, &'static str)> {
    FORMATS.iter().filter_map(|format| Some((format.name, (format.sniff)(head).certainty()?))).collect()
}

/// The first bytes of a regular file, unpacked where it is compressed.
#[pyfunction]
pub fn file_head(py: Python<'_>, path: PathBuf, num_bytes: u64) -> PyResult<Cow<'static, [u8]>> {
    Ok(Cow::Owned(call(py, || perfuse_formats::head_of(&path, num_bytes))??))
}
