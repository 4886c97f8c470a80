//! Tests of merging several logs.

use crate::convert::outcome::LogConvertError;
use crate::convert::tests::{converted, event_texts, fixture, part};
use crate::convert::{LogSelection, Options, ThreadChoice, UnsupportedItem, convert};
use crate::recording::MonoLog;
use crate::tests::assemble::{fixtures, open};

#[test]
fn threads_are_split_and_merged_again() {
    for (name, bytes) in fixtures() {
        let log = open(bytes);
        let mut ids: Vec<u64> = log.data().names().threads.list.iter().map(|thread| thread.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let parts: Vec<_> = ids
            .iter()
            .map(|id| {
                let threads = Some(vec![ThreadChoice::Id(*id)]);
                open(converted(&[&log], &part(LogSelection { threads, ..LogSelection::default() })).0)
            })
            .collect();
        let (whole, summary) = converted(&parts.iter().collect::<Vec<_>>(), &Options::default());
        let whole = open(whole);
        let sorted = |log| {
            let mut all = event_texts(log);
            all.sort();
            all
        };
        // SYNC_POINT is in every part.
        let (mut before, mut after) = (sorted(&log), sorted(&whole));
        before.retain(|(_, text)| !text.contains("SyncPoint"));
        after.retain(|(_, text)| !text.contains("SyncPoint"));
        assert_eq!(after, before, "{name}: {summary:?}");
    }
}

#[test]
fn a_duplicate_log_changes_nothing() {
    let (name, bytes) = fixtures().swap_remove(3);
    let log = open(bytes.clone());
    let (out, summary) = converted(&[&log, &log], &Options::default());
    assert!(out == bytes, "{name}");
    assert_eq!(summary.unsupported[&UnsupportedItem::Copies], log.survey().buffers.list.len() as u64);
}

#[test]
fn counters_of_two_parts_add_up() {
    let log = fixture("crafted-v17");
    let (start, end) = log.survey().events.span.unwrap();
    let middle = start.midpoint(end);
    let half = |time| {
        open(converted(&[&log], &part(LogSelection { time: Some(time), ..LogSelection::default() })).0)
    };
    let halves = [half(start..middle), half(middle..end + 1)];
    let (out, _) = converted(&[&halves[0], &halves[1]], &Options::default());
    // The second half starts with every value, so some occur again as a difference of 0.
    let values = |log: &MonoLog| -> Vec<String> {
        let events = event_texts(log).into_iter().filter(|(_, text)| text.contains("body: Counters {"));
        let values = events.flat_map(|(_, text)| {
            let (_, list) = text.split_once("values: [").unwrap();
            list.split("CounterEntry").map(str::to_owned).collect::<Vec<_>>()
        });
        let differences = values.filter(|text| text.contains("igned(") && !text.contains("igned(0)"));
        differences.map(|text| text.trim_end_matches([',', ' ', ']', '}']).to_owned()).collect()
    };
    let before = values(&log);
    assert!(before.len() > 8);
    let mut after = values(&open(out));
    // Values of performance counters are absolute.
    after.dedup();
    assert_eq!(after[..before.len()], before);
}

#[test]
fn logs_of_other_runs_are_rejected() {
    let (first, other) = (fixture("v17-heapshot"), fixture("v14-bt"));
    let refused = convert(&[&first, &other], &Options::default(), std::io::sink());
    assert!(matches!(refused, Err(LogConvertError::Runs(..))), "{refused:?}");
    let options = Options { any_run: true, ..Options::default() };
    let (out, summary) = converted(&[&first, &other], &options);
    assert_eq!(open(out).survey().num_events(), summary.num_events);
    let narrow = fixture("v17-i386-calls");
    let refused = convert(&[&first, &narrow], &options, std::io::sink());
    assert!(matches!(refused, Err(LogConvertError::Pointers(8, 4))));
}
