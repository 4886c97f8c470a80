//! Tests of the conversion of every data version to every other.

use perfuse_wire::Severity;

use crate::consts::{EventByte, NEWEST, metadata};
use crate::convert::outcome::LogConvertError;
use crate::convert::tests::{converted, event_texts, fixture, num_events, to};
use crate::convert::{UnsupportedItem, convert};
use crate::header::Header;
use crate::survey::definitions::MetadataRecord;
use crate::tests::assemble::{checked, fixtures, open};

#[test]
fn an_unchanged_log_is_written_byte_for_byte() {
    for (name, bytes) in fixtures() {
        let log = open(bytes.clone());
        let (again, summary) = converted(&[&log], &Default::default());
        assert!(again == bytes, "{name}");
        assert!(summary.omitted_events.is_empty() && summary.unsupported.is_empty(), "{name}: {summary:?}");
        assert_eq!(summary.num_events, num_events(&log));
    }
}

#[test]
fn every_log_as_every_data_version() {
    for (name, bytes) in fixtures() {
        let log = open(bytes);
        for version in 1..=NEWEST {
            let (out, summary) = converted(&[&log], &to(version));
            let new = open(out);
            assert_eq!(new.header().fixed.format, version);
            let grave: Vec<_> =
                checked(&new).into_iter().filter(|d| d.rule.severity >= Severity::DataLoss).collect();
            let before: Vec<_> =
                checked(&log).into_iter().filter(|d| d.rule.severity >= Severity::DataLoss).collect();
            assert!(grave.len() <= before.len(), "{name} as {version}: {grave:?}");
            let made = summary.unsupported.get(&UnsupportedItem::AddedVtables).copied().unwrap_or(0);
            let left: u64 = summary.omitted_events.values().sum();
            assert_eq!(num_events(&new), summary.num_events, "{name} as {version}");
            assert_eq!(
                num_events(&log) + made,
                summary.num_events + left,
                "{name} as {version}: {summary:?}"
            );
        }
    }
}

/// A conversion without unsupported items is reversible.
#[test]
fn to_a_newer_data_version_and_back() {
    for (name, through) in [("v11-bt", 12), ("v17-heapshot", 17), ("v01-heapshot", 2), ("crafted-v09", 10)] {
        let log = fixture(name);
        let own = log.header().fixed.format;
        let there = open(converted(&[&log], &to(through)).0);
        let (back, summary) = converted(&[&there], &to(own));
        assert!(summary.omitted_events.is_empty(), "{name}: {summary:?}");
        if own > 1 {
            assert_eq!(event_texts(&open(back)), event_texts(&log), "{name}");
        }
    }
}

#[test]
fn unsupported_items_are_counted() {
    let log = fixture("crafted-v17");
    let (out, summary) = converted(&[&log], &to(12));
    let new = open(out);
    for byte in [EventByte::SYNC_POINT, EventByte::HEAP_ROOT_REGISTER, EventByte::AOT_ID] {
        assert_eq!(summary.omitted_events.get(&byte).copied(), Some(log.survey().count(byte)), "{byte}");
        assert_eq!(new.survey().count(byte), 0);
    }
    for item in [
        UnsupportedItem::HeaderFields,
        UnsupportedItem::RootSlots,
        UnsupportedItem::Generations,
        UnsupportedItem::Mvids,
    ] {
        assert!(summary.unsupported.contains_key(&item), "{item:?} {summary:?}");
    }
    let monitors = [EventByte::MONITOR_CONTENTION, EventByte::MONITOR_DONE, EventByte::MONITOR_CONTENTION_BT];
    let num_after: u64 = monitors.iter().map(|byte| new.survey().count(*byte)).sum();
    let before = log.survey().count(EventByte::MONITOR) + log.survey().count(EventByte::MONITOR_BT);
    assert!(num_after > 0 && num_after <= before);
}

/// The reader of November 2010 reads flags from the upper half of the startup time; they must be 0.
#[test]
fn the_header_of_data_version_1_suits_the_first_reader() {
    let (out, _) = converted(&[&fixture("crafted-v17")], &to(1));
    assert_eq!(out[8..32], [0; 24]);
    assert_eq!(Header::read(&out).unwrap().size, 32);
}

#[test]
fn classes_get_vtables_and_back() {
    let log = fixture("crafted-v13");
    let loaded =
        |it: &&MetadataRecord| it.mtype == metadata::CLASS && it.what == EventByte::METADATA_END_LOAD;
    let classes = log.survey().events.definitions.metadata.iter().filter(loaded).count() as u64;
    let (out, summary) = converted(&[&log], &to(17));
    assert_eq!(summary.unsupported[&UnsupportedItem::AddedVtables], classes);
    let (_, back) = converted(&[&open(out)], &to(13));
    assert_eq!(back.unsupported.get(&UnsupportedItem::UnknownVtables), None);
}

#[test]
fn unknown_data_versions_are_rejected() {
    for version in [0, 18] {
        let log = fixture("crafted-v13");
        let refused = convert(&[&log], &to(version), std::io::sink());
        assert!(matches!(refused, Err(LogConvertError::Version(_))));
    }
    assert!(matches!(convert(&[], &to(1), std::io::sink()), Err(LogConvertError::Nothing)));
}
