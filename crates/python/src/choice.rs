//! Options that are one of some names.

use pyo3::prelude::*;

use crate::errors::value_error;

/// The value of an option that is one of some names.
pub fn choice<T: Copy>(option: &str, name: &str, all: &[(&str, T)]) -> PyResult<T> {
    match all.iter().find(|(known, _)| *known == name) {
        Some(&(_, value)) => Ok(value),
        None => {
            let known: Vec<_> = all.iter().map(|(known, _)| *known).collect();
            Err(value_error(format!("{option} is one of {}, not {name:?}", known.join(", "))))
        }
    }
}
