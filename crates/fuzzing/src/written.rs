//! Written files, read back.

use std::sync::Arc;

use perfuse_formats::mono::{MonoLog, convert as mono_log};
use perfuse_formats::registry::FORMATS;
use perfuse_formats::sframe::SFrame;
use perfuse_formats::sframe::writer::SectionContents;
use perfuse_formats::xray::{XRay, convert as xray_log};
use perfuse_formats::{Format, Position, Recording, Source};

use crate::open::open;

fn format(name: &str) -> &'static Format {
    FORMATS.iter().find(|format| format.name == name).expect("the registry has the format")
}

/// Writes each piece of an SFrame section.
///
/// # Panics
/// When a written piece cannot be read, or has other functions or rows.
pub(crate) fn sframe(bytes: &[u8]) {
    let Some(recording) = open(format("sframe"), bytes) else { return };
    let file = recording.as_any().downcast_ref::<SFrame>().expect("it was opened as SFrame");
    for view in file.views() {
        let contents = SectionContents::of(view);
        let Ok(section) = contents.encode(view.address) else { continue };
        let source = Source::from_bytes("written", section.clone()).expect("bytes are a source");
        let read = SFrame::open_at(Arc::new(source), Some(view.address)).expect("the section can be read");
        let again: Vec<_> = read.views().map(SectionContents::of).collect();
        let [again] = again.as_slice() else { panic!("{} pieces were read", again.len()) };
        let functions =
            |of: &SectionContents| of.functions.iter().map(|function| function.size).collect::<Vec<_>>();
        assert_eq!(functions(&contents), functions(again));
        for (before, after) in contents.functions.iter().zip(&again.functions) {
            assert_eq!(contents.rows(before), again.rows(after));
        }
        assert_eq!(again.encode(view.address).ok(), Some(section));
    }
}

/// Writes an XRay log with the options of its own header.
///
/// # Panics
/// When the written log cannot be read or written, or writing it once more changes it.
pub(crate) fn xray(bytes: &[u8]) {
    again("xray", bytes, |recording, out| {
        let log = recording.as_any().downcast_ref::<XRay>().expect("it was opened as XRay");
        xray_log::convert(&[log], &xray_log::Options::like(log), out).is_ok()
    });
}

/// Writes a Mono log in its own version.
///
/// # Panics
/// When the written log cannot be read or written, or writing it once more changes it.
pub(crate) fn mono(bytes: &[u8]) {
    again("mono", bytes, |recording, out| {
        let log = recording.as_any().downcast_ref::<MonoLog>().expect("it was opened as a Mono log");
        mono_log::convert(&[log], &mono_log::Options::default(), out).is_ok()
    });
}

fn again(name: &str, bytes: &[u8], write: impl Fn(&dyn Recording, &mut Vec<u8>) -> bool) {
    let Some(recording) = open(format(name), bytes) else { return };
    let mut once = Vec::new();
    if !write(&*recording, &mut once) {
        return;
    }
    let Some(read) = open(format(name), &once) else { panic!("the written log cannot be read") };
    let mut twice = Vec::new();
    assert!(write(&*read, &mut twice), "the written log cannot be written");
    assert!(once == twice, "written logs of {} and {} bytes differ", once.len(), twice.len());
    let mut at = Position::default();
    while read.next_record(&mut at).is_some() {}
}
