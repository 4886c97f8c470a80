//! Writing what was read gives the same bytes.

use super::corpus::{bytes, files, open};
use super::dumps::text;
use crate::SFrame;
use crate::readelf::Style;
use crate::writer::{SectionContents, merge};

/// Sections as producers wrote them, without their files.
fn sections() -> Vec<(String, Vec<u8>)> {
    let found = files(|path| path.ends_with(".sframe") || path.ends_with(".sframe.xz"));
    found.into_iter().map(|path| (path.to_string_lossy().into_owned(), bytes(&path))).collect()
}

pub fn contents(file: &SFrame) -> Vec<SectionContents> {
    file.views().map(SectionContents::of).collect()
}

#[test]
fn what_producers_wrote_is_written_again_byte_for_byte() {
    for (name, section) in sections() {
        let file = open(section.clone(), Some(0x1000));
        for (view, contents) in file.views().zip(contents(&file)) {
            let at = view.unit.at;
            let written = contents.encode(0x1000 + at as u64).expect("fits");
            let expected = &section[at..at + written.len()];
            assert!(written == expected, "{name}: piece at {at}");
        }
    }
}

#[test]
fn shared_rows_read_the_same_and_take_less() {
    for (name, section) in sections().into_iter().filter(|(name, _)| name.contains("/large/libbfd")) {
        let file = open(section.clone(), Some(0));
        let mut contents = contents(&file).remove(0);
        assert!(contents.share_rows() > 0);
        let smaller = contents.encode(0).expect("fits");
        assert!(smaller.len() * 100 < section.len() * 85, "{name}: {} of {}", smaller.len(), section.len());
        let style = match contents.version {
            1 => Style::Readelf240,
            2 => Style::Readelf244,
            _ => Style::Readelf247,
        };
        assert!(text(&open(smaller, Some(0)), style) == text(&file, style), "{name}");
    }
}

#[test]
fn conversions_to_later_versions_and_back_are_lossless() {
    for (name, section) in sections().into_iter().filter(|(name, _)| name.contains("/v1/")) {
        let start = contents(&open(section, Some(0x1000))).remove(0);
        let (second, none) = start.convert(2, None);
        assert_eq!(none, [], "{name}");
        let (third, none) = second.convert(3, None);
        assert_eq!(none, [], "{name}");
        let (second_again, none) = third.convert(2, None);
        assert_eq!(none, [], "{name}");
        let (first_again, none) = second_again.convert(1, None);
        assert_eq!(none, [], "{name}");
        assert!(first_again.encode(0x1000) == start.encode(0x1000), "{name}");
        let written = third.encode(0x1000).expect("fits");
        let read = contents(&open(written, Some(0x1000))).remove(0);
        assert!(read == third, "{name}");
    }
}

#[test]
fn pieces_become_one_sorted_section() {
    for path in files(|path| path.contains("/concat/") && path.ends_with(".so")) {
        let file = open(bytes(&path), None);
        let section = &file.sections()[0];
        assert_eq!(file.units().len(), 3, "{}", path.display());
        let merged =
            merge(contents(&file)).expect("are alike").contents.encode(section.address).expect("fits");
        let put = crate::writer::replace_section(&bytes(&path), section, &merged).expect("is smaller");
        let again = open(put, None);
        assert_eq!(again.units().len(), 1);
        assert!(again.units()[0].is_sorted());
        for view in file.views() {
            for function in view.functions() {
                let found = again.find(function.start).expect("is there still");
                assert_eq!(found.function.size, function.size);
                let before = file.find(function.start).expect("was there");
                assert_eq!(found.recovery, before.recovery);
            }
        }
    }
}
