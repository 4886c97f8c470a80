//! Python dictionaries of named values.

/// A dictionary: `dict!(py, name: value, ...)`, as a `PyResult`.
macro_rules! dict {
    ($py:expr $(, $key:ident: $value:expr)* $(,)?) => {{
        let dict = pyo3::types::PyDict::new($py);
        let filled = || -> pyo3::PyResult<()> {
            $(pyo3::types::PyDictMethods::set_item(&dict, stringify!($key), $value)?;)*
            Ok(())
        };
        filled().map(|()| dict.clone())
    }};
}
