//! Texts held against those of readelf itself.

use super::corpus::{bytes, files, open};
use crate::sframe::SFrame;
use crate::sframe::readelf::{Dump, Style};

pub fn text(file: &SFrame, style: Style) -> String {
    let blocks: Vec<_> = Dump::of(file, style).expect("is shown").collect();
    String::from_utf8(blocks.concat()).expect("is text")
}

/// The readelf that made a dump, by the folder it is in.
fn style_of(path: &str) -> Style {
    match path {
        _ if path.contains("llvm22.o") => Style::Readelf247,
        _ if path.contains("/v1/") || path.contains("_v1.") => Style::Readelf240,
        _ if path.contains("/v2/") || path.contains("_v2.") => Style::Readelf244,
        _ => Style::Readelf247,
    }
}

#[test]
fn every_stored_dump_is_made_again() {
    let stored = files(|path| path.contains(".readelf.txt"));
    assert!(stored.is_empty() || stored.len() >= 59, "some of the corpus is gone: {}", stored.len());
    for stored in stored {
        let name = stored.to_string_lossy().into_owned();
        let expected = String::from_utf8(bytes(&stored)).expect("is text");
        let elf = name.split(".readelf.txt").next().expect("has a name");
        let made = text(&open(bytes(elf.as_ref()), None), style_of(&name));
        let first = made.lines().zip(expected.lines()).find(|(made, expected)| made != expected);
        assert_eq!(first, None, "{name}");
        assert_eq!(made.len(), expected.trim_end_matches('\n').len() + 1, "{name}");
    }
}
