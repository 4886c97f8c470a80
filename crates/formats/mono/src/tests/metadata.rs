//! Tests of METADATA events that the specification has and no profiler wrote: failed loads, assemblies and domains until data
//! version 10. What follows them in their buffer is read.

use perfuse_recording::{Placement, Position, Recording, TableRequest};
use perfuse_tables::access::text as texts;

use crate::tests::assemble::*;

const CLASS: u8 = 1;
const IMAGE: u8 = 2;
const ASSEMBLY: u8 = 3;
const DOMAIN: u8 = 4;

/// A METADATA event: time, mtype, pointer 0x1000 + `at`, and what follows.
fn metadata(byte: u8, mtype: u8, at: u8, rest: &[&[u8]]) -> Vec<u8> {
    event(byte, &[&[mtype, at], &rest.concat()])
}

/// Image 0, flags 0 and a name.
fn class(byte: u8, at: u8, name: &str) -> Vec<u8> {
    metadata(byte, CLASS, at, &[&[0, 0], &text(name)])
}

fn allocation(class: u8) -> Vec<u8> {
    event(0x00, &[&[class, 5, 24]])
}

fn old_log(version: u8, events: &[Vec<u8>]) -> crate::recording::MonoLog {
    open([old_header(version), buffer(events)].concat())
}

fn names(log: &crate::recording::MonoLog) -> Vec<String> {
    let mut at = Position::default();
    let mut names = Vec::new();
    while let Some(record) = log.next_record(&mut at) {
        names.push(record.name.to_string());
    }
    names
}

#[test]
fn failed_loads_and_unnamed_assemblies_do_not_lose_the_rest_of_the_buffer() {
    for version in 1..=10 {
        let log = old_log(
            version,
            &[
                metadata(0xa2, IMAGE, 1, &[&[0], &text("missing.dll")]),
                metadata(0x22, ASSEMBLY, 2, &[]),
                // Starts with 0, as flags do.
                allocation(8),
                metadata(0xa2, ASSEMBLY, 3, &[]),
                metadata(0x22, ASSEMBLY, 4, &[&[0], &text("Named, Version=1.0.0.0")]),
                metadata(0x22, DOMAIN, 5, &[]),
                class(0xa2, 6, "Broken"),
                class(0x22, 8, "Good"),
                allocation(8),
            ],
        );
        assert_eq!(codes(&log), ["ML040"], "data version {version}");
        assert_eq!(
            names(&log),
            [
                "METADATA_LOAD_ERR",
                "METADATA_END_LOAD",
                "ALLOC",
                "METADATA_LOAD_ERR",
                "METADATA_END_LOAD",
                "METADATA_END_LOAD",
                "METADATA_LOAD_ERR",
                "METADATA_END_LOAD",
                "ALLOC"
            ]
        );
        // A class that was not loaded is not a type.
        let types = log.table("types", &Placement::alone(&log), &TableRequest::default()).unwrap();
        let types: Vec<String> = types
            .flat_map(|batch| {
                let names = texts(&batch, "name").unwrap();
                (0..batch.num_rows()).map(|row| names.get(row).unwrap().to_owned()).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(types, ["Good"]);
    }
    // Since 11 the byte has no meaning.
    assert!(codes(&old_log(11, &[class(0xa2, 6, "Broken")])).contains(&"ML014"));
}

#[test]
fn a_log_without_the_ends_of_its_threads_is_unfinished() {
    const THREAD_KIND: u8 = 5;
    let start = |at: u8| event(0x22, &[&[THREAD_KIND, at]]);
    let end = |at: u8| event(0x42, &[&[THREAD_KIND, at]]);
    let name = |at: u8, name: &str| event(0x02, &[&[THREAD_KIND, at], &text(name)]);
    let whole = [buffer(&[start(0), name(0, "Main"), start(8)]), buffer(&[end(8), end(0)])];
    assert!(!codes(&log(&whole)).contains(&"ML018"));
    let killed = log(&whole[..1]);
    let found: Vec<_> = checked(&killed).into_iter().filter(|it| it.rule.code == "ML018").collect();
    let [found] = &found[..] else { panic!("{found:?}") };
    assert!(found.message.starts_with("2 of 2 threads have no end (Main)"), "{}", found.message);
    assert_eq!(found.offset, killed.source().len() as u64);
    // A log that is cut inside a buffer is reported as such.
    let bytes = [header(), whole.concat()].concat();
    let cut = codes(&open(bytes[..bytes.len() - 1].to_vec()));
    assert!(cut.contains(&"ML010") && !cut.contains(&"ML018"), "{cut:?}");
}
