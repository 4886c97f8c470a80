//! perf.data
use std::sync::Arc;

use perfuse_wire::ParseError;

use crate::{Format, Recording, Source};

/// perf.data
pub static FORMAT: Format = Format {
    name: "perf_data",
    title: "perf.data",
    about: "",
    sniff: |_| false,
    open,
    rules: &[],
    layouts: &[],
    tables: &[],
};

fn open(_source: Arc<Source>) -> Result<Arc<dyn Recording>, ParseError> {
    Err(ParseError::new(perfuse_wire::ErrorKind::BadMagic { found: 0 }, 0, "magic"))
}
