//! The formats, and how the one of a file is found. The list is generated from this crate's dependencies by `build.rs`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use perfuse_wire::{ErrorKind, ParseError, Rule};

use crate::{Format, Recording, Sniff, Source, UnpackLimit, fusing, instrumentation_map};

/// The generated list, and each format's crate under the name of its folder.
pub mod formats {
    use crate::Format;

    include!(concat!(env!("OUT_DIR"), "/formats.rs"));
}
pub use formats::FORMATS;

/// The format that is most certain of a file with these first bytes; of several the first in the list.
#[must_use]
pub fn detect(head: &[u8]) -> Option<&'static Format> {
    let mut best = (Sniff::No, None);
    for format in FORMATS.iter().copied() {
        let sniff = (format.sniff)(head);
        if sniff > best.0 {
            best = (sniff, Some(format));
        }
        if sniff == Sniff::Certain {
            break;
        }
    }
    best.1
}

/// The format of which a directory is one recording; `None` where it is a directory of other files.
#[must_use]
pub fn detect_directory(directory: &Path) -> Option<&'static Format> {
    FORMATS.iter().copied().find(|format| format.main_file_of(directory).is_some())
}

/// Reads the bytes of a file, or of a directory that is one recording, as [`read_within`] does with the usual limits.
///
/// # Errors
/// Those of [`read_within`].
pub fn read(path: &str) -> io::Result<Source> {
    read_within(path, UnpackLimit::default())
}

/// Reads the bytes of a regular file, or of a directory that is one recording.
///
/// # Errors
/// Those of the file system, and of [`Source::open_within`].
pub fn read_within(path: &str, limit: UnpackLimit) -> io::Result<Source> {
    let directory = Path::new(path);
    let format = if directory.is_dir() { detect_directory(directory) } else { None };
    match format.and_then(|format| format.directory) {
        Some(layout) => (layout.read)(directory, limit),
        None => Source::open_within(path, limit),
    }
}

/// Opens a source as the format that its first bytes are of.
///
/// # Errors
/// `BadMagic` where they are not of a known format, `Short` where they are too few to be of any; the format's own error where not even its header can be read.
pub fn open(source: Arc<Source>) -> Result<Arc<dyn Recording>, ParseError> {
    match detect(&source) {
        Some(format) => (format.open)(source),
        None => {
            let kind = match source.first_chunk::<4>() {
                Some(bytes) => ErrorKind::BadMagic { found: u32::from_be_bytes(*bytes) },
                None => ErrorKind::Short { need: 4, have: source.len() as u64 },
            };
            Err(ParseError::new(kind, 0, "magic"))
        }
    }
}

/// What to do about a file that [`open`] refused with an error; `format` is what its first bytes are of.
#[must_use]
pub fn advice(format: Option<&Format>, error: &ParseError) -> String {
    match (format.and_then(|format| format.refused), error.kind) {
        (Some(advice), _) => advice.to_owned(),
        (None, ErrorKind::Short { .. }) => {
            "the file ends inside its header: it was cut short, or is still written".to_owned()
        }
        _ => {
            let titles: Vec<_> = FORMATS.iter().map(|format| format.title).collect();
            format!("perfuse reads {}: plain, .gz, .zst or .xz", titles.join(", "))
        }
    }
}

/// Every rule with the name of its format; `fusing` and `instrumentation_map` for those that belong to no format.
pub fn rules() -> impl Iterator<Item = (&'static str, &'static Rule)> {
    let own = FORMATS.iter().flat_map(|format| format.rules.iter().map(|rule| (format.name, *rule)));
    let others = [("fusing", fusing::RULES), ("instrumentation_map", instrumentation_map::RULES)];
    own.chain(others.into_iter().flat_map(|(name, rules)| rules.iter().map(move |rule| (name, *rule))))
}
