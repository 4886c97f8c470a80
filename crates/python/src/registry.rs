//! What there is: formats, layouts, rules and tables, for documentation and for `explain`.

use perfuse_formats::registry::{self, FORMATS};
use perfuse_tables::TABLES;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Every rule of every format: `code, severity, title, section, meaning, action, format`.
#[pyfunction]
fn rules(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    registry::rules()
        .map(|(format, rule)| {
            let row = PyDict::new(py);
            row.set_item("code", rule.code)?;
            row.set_item("severity", rule.severity.name())?;
            row.set_item("title", rule.title)?;
            row.set_item("section", rule.section)?;
            row.set_item("meaning", rule.meaning)?;
            row.set_item("action", rule.action)?;
            row.set_item("format", format)?;
            Ok(row)
        })
        .collect()
}

/// Every format: `name, title, about, tables, layouts`.
#[pyfunction]
fn formats(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    FORMATS
        .iter()
        .map(|format| {
            let row = PyDict::new(py);
            row.set_item("name", format.name)?;
            row.set_item("title", format.title)?;
            row.set_item("about", format.about)?;
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
fn tables(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    TABLES
        .iter()
        .map(|table| {
            let row = PyDict::new(py);
            row.set_item("name", table.name)?;
            row.set_item("doc", table.doc.trim())?;
            let columns =
                table.columns.iter().map(|c| (c.name, (c.data_type)().to_string(), c.nullable, c.doc.trim()));
            row.set_item("columns", columns.collect::<Vec<_>>())?;
            Ok(row)
        })
        .collect()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(rules, module)?)?;
    module.add_function(wrap_pyfunction!(formats, module)?)?;
    module.add_function(wrap_pyfunction!(tables, module)?)
}
