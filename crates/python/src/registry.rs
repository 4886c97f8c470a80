//! What there is: formats, layouts, rules and tables, for documentation and for `explain`.

use std::path::PathBuf;

use perfuse_formats::registry::{self, FORMATS};
use perfuse_tables::{Alignment, Choices, TABLES};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Every rule of every format: `code, severity, section, format`; their texts are in Python.
#[pyfunction]
pub fn rules(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    registry::rules()
        .map(|(format, rule)| {
            let row = PyDict::new(py);
            row.set_item("code", rule.code)?;
            row.set_item("severity", rule.severity.name())?;
            row.set_item("section", rule.section)?;
            row.set_item("format", format)?;
            Ok(row)
        })
        .collect()
}

/// Every format: `name, title, about, role, report, clock, process_field, patterns, capabilities, tables, layouts`; see
/// `perfuse.descriptors.Format`.
#[pyfunction]
pub fn formats(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    FORMATS
        .iter()
        .map(|format| {
            let row = PyDict::new(py);
            row.set_item("name", format.name)?;
            row.set_item("title", format.title)?;
            row.set_item("about", format.about)?;
            row.set_item("role", format.role.name())?;
            row.set_item("report", format.report)?;
            let clock = PyDict::new(py);
            clock.set_item("kinds", format.clock.kinds)?;
            let alignments = format.clock.alignments.iter().map(|alignment| alignment.name());
            clock.set_item("alignments", alignments.collect::<Vec<_>>())?;
            clock.set_item("start_field", format.clock.start_field)?;
            row.set_item("clock", clock)?;
            row.set_item("process_field", format.process_field)?;
            row.set_item("patterns", format.files)?;
            let parts = [
                ("writer", format.capabilities.writer),
                ("repair", format.capabilities.repair),
                ("layout", !format.layouts.is_empty()),
            ];
            let capabilities = parts.into_iter().filter(|(_, has)| *has).map(|(name, _)| name);
            row.set_item("capabilities", capabilities.collect::<Vec<_>>())?;
            row.set_item("tables", format.tables)?;
            let layouts = format
                .layouts
                .iter()
                .map(|layout| {
                    let entry = PyDict::new(py);
                    entry.set_item("name", layout.name)?;
                    entry.set_item("section", layout.section)?;
                    entry.set_item("doc", layout.doc.trim())?;
                    entry.set_item("fixed_bytes", layout.fixed_bytes)?;
                    let fields = layout.fields.iter().map(|f| (f.name, f.ty.name(), f.doc.trim()));
                    entry.set_item("fields", fields.collect::<Vec<_>>())?;
                    Ok(entry)
                })
                .collect::<PyResult<Vec<_>>>()?;
            row.set_item("layouts", layouts)?;
            Ok(row)
        })
        .collect()
}

/// Every common table: `name, doc, columns` as `(name, Arrow type, nullable, doc)`.
#[pyfunction]
pub fn tables(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    TABLES
        .iter()
        .map(|table| {
            let row = PyDict::new(py);
            row.set_item("name", table.name)?;
            row.set_item("doc", table.doc.trim())?;
            let columns = table.columns.iter().map(|column| {
                (column.name, (column.data_type)().to_string(), column.nullable, column.meaning())
            });
            row.set_item("columns", columns.collect::<Vec<_>>())?;
            Ok(row)
        })
        .collect()
}

/// Every value of column `clocks.alignment`, with its meaning.
#[pyfunction]
pub fn alignments() -> Vec<(&'static str, &'static str)> {
    Alignment::ALL
        .iter()
        .zip(Alignment::MEANINGS)
        .map(|(word, meaning)| (word.name(), meaning.trim()))
        .collect()
}

/// Name of the format of which a directory is one recording; None where it is a directory of other files.
#[pyfunction]
pub fn directory_format(py: Python<'_>, path: PathBuf) -> Option<&'static str> {
    py.detach(|| registry::detect_directory(&path)).map(|format| format.name)
}

/// Names of the formats that a file with these first bytes may be of, each with how certain that is: `likely` or `certain`.
#[pyfunction]
pub fn sniff(head: &[u8]) -> Vec<(&'static str, &'static str)> {
    FORMATS.iter().filter_map(|format| Some((format.name, (format.sniff)(head).certainty()?))).collect()
}
