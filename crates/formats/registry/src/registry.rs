//! The one list of formats: a new format is one folder and one line here.

use std::sync::Arc;

use perfuse_wire::{ErrorKind, ParseError, Rule};

use crate::{Format, Recording, Source, fusing, instrumentation_map, jitdump, mono, perf_data, sframe, xray};

/// Every format, in the order they are asked.
pub static FORMATS: &[&Format] =
    &[&jitdump::FORMAT, &perf_data::FORMAT, &mono::FORMAT, &sframe::FORMAT, &xray::FORMAT];

/// The format whose magic these first bytes have.
#[must_use]
pub fn detect(head: &[u8]) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| (format.sniff)(head))
}

/// Opens a source as whatever its first bytes say it is.
///
/// # Errors
/// `BadMagic` when no format knows the bytes; a format's own error when not even its header can be read.
pub fn open(source: Arc<Source>) -> Result<Arc<dyn Recording>, ParseError> {
    match detect(&source) {
        Some(format) => (format.open)(source),
        None => {
            let found = source.first_chunk::<4>().map_or(0, |b| u32::from_be_bytes(*b));
            Err(ParseError::new(ErrorKind::BadMagic { found }, 0, "magic"))
        }
    }
}

/// Every rule, with the format it belongs to; those of no one format under `fusing` and `instrumentation_map`.
pub fn rules() -> impl Iterator<Item = (&'static str, &'static Rule)> {
    let own = FORMATS.iter().flat_map(|format| format.rules.iter().map(|rule| (format.name, *rule)));
    let others = [("fusing", fusing::RULES), ("instrumentation_map", instrumentation_map::RULES)];
    own.chain(others.into_iter().flat_map(|(name, rules)| rules.iter().map(move |rule| (name, *rule))))
}
