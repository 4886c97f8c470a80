//! Texts are compared with the output of readelf itself.

use super::corpus::{bytes, files, open};
use crate::SFrame;
use crate::readelf::{Dump, Style};

pub fn text(file: &SFrame, style: Style) -> String {
    let blocks: Vec<_> = Dump::of(file, style, 0).expect("is shown").collect();
    String::from_utf8(blocks.concat()).expect("is text")
}

/// The version of readelf that wrote a dump, from the names of folder and file.
fn style_of(path: &str) -> Style {
    let is_of =
        |version: &str| path.contains(&format!("/{version}")) || path.contains(&format!("_{version}."));
    match path {
        _ if path.contains("llvm22.o") => Style::Readelf247,
        _ if is_of("v1") => Style::Readelf240,
        _ if is_of("v2") => Style::Readelf244,
        _ => Style::Readelf247,
    }
}

#[test]
fn fixtures_have_the_text_of_readelf() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/testdata");
    for name in ["v1_ld_r_broken.o", "v2_nest_llvm22.o", "lld22_v2.so", "v3_leaf.so"] {
        let path = format!("{folder}/{name}");
        let expected = bytes(format!("{path}.readelf.txt").as_ref());
        let made = text(&open(bytes(path.as_ref()), None), style_of(&path));
        assert_eq!(made, String::from_utf8_lossy(&expected), "{name}");
    }
}

#[test]
fn a_style_refuses_what_that_readelf_refuses() {
    let file = open(super::hand_made::version3(), None);
    let refused = Dump::of(&file, Style::Readelf240, 0).map(drop).unwrap_err();
    assert_eq!(refused.shown_by, Some("readelf-2.47"));
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
