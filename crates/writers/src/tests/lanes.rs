//! Slices other than calls, and counters.

use CallEvent::{Enter, Exit};
use perfuse_tables::{EndReason, SliceKind, StartReason};
use proptest::prelude::*;

use super::laws::{Slice, as_viewers_read, selections, steps};
use super::*;

/// Thread, start and end in microseconds, and what it is.
type Own = (u32, i64, i64, SliceKind, &'static str);

fn slices_of(own: &[Own]) -> RecordBatch {
    let mut table = slices::Builder::new();
    for (id, &(thread, start, end, kind, name)) in (0..).zip(own) {
        let (start_ns, duration_ns) = (start * 1000, (end - start) * 1000);
        let reasons = (StartReason::Entry, EndReason::Exit);
        let args = (kind == SliceKind::Lock).then_some("[\"0x10\"]");
        table.push(
            id,
            thread,
            start_ns,
            duration_ns,
            0,
            0,
            None,
            None,
            Some(name),
            kind,
            reasons.0,
            reasons.1,
            None,
            args,
            0,
            id,
        );
    }
    table.finish()
}

fn with(steps: &[Step], own: &[Own]) -> Made {
    let mut made = Made::of(vec![events(steps)]);
    made.slices = slices_of(own);
    made
}

const WAIT: (SliceKind, &str) = (SliceKind::Lock, "wait");

/// The tracks that slices of this name are on: thread id, and the track's name.
fn tracks_of(written: &[String], name: &str) -> Vec<(u32, String)> {
    let mut tids: Vec<u32> = as_viewers_read(&slices_in(written))
        .into_iter()
        .filter(|slice| slice.1 == name)
        .map(|slice| slice.0)
        .collect();
    tids.sort_unstable();
    tids.dedup();
    let title = |tid: u32| {
        let wanted = format!("\"tid\":{tid},\"args\":{{\"name\":\"");
        let named = written
            .iter()
            .filter(|event| event.starts_with("{\"name\":\"thread_name\""))
            .find_map(|event| event.split_once(&wanted));
        named.map(|(_, rest)| rest.trim_end_matches("\"}}").to_owned()).unwrap_or_default()
    };
    tids.into_iter().map(|tid| (tid, title(tid))).collect()
}

fn slices_in(written: &[String]) -> Vec<String> {
    let is_slice =
        |event: &&String| ["X", "B", "E"].iter().any(|ph| event.contains(&format!("\"ph\":\"{ph}\"")));
    written.iter().filter(is_slice).cloned().collect()
}

#[test]
fn what_nests_with_the_calls_of_its_thread_is_among_them() {
    let steps = [(0, 0, Enter, 0), (0, 4, Enter, 1), (0, 6, Exit, 1), (0, 10, Exit, 0)];
    for (start, end) in [(1, 3), (5, 5), (3, 7), (11, 12), (7, 9)] {
        let written = with(&steps, &[(0, start, end, WAIT.0, WAIT.1)]).chrome();
        assert_eq!(tracks_of(&written, "wait"), [(10, "app \\\"1\\\"".to_owned())], "{start}..{end}");
    }
    for (start, end) in [(3, 5), (5, 7), (4, 5), (5, 6), (9, 12), (10, 10), (0, 10)] {
        let written = with(&steps, &[(0, start, end, WAIT.0, WAIT.1)]).chrome();
        let beside = (13, "Locks of app \\\"1\\\"".to_owned());
        assert_eq!(tracks_of(&written, "wait"), [beside], "{start}..{end}");
    }
}

#[test]
fn all_of_a_kind_are_together() {
    let steps = [(0, 0, Enter, 0), (0, 10, Exit, 0)];
    let own = [(0, 1, 2, WAIT.0, WAIT.1), (0, 9, 12, WAIT.0, WAIT.1), (0, 3, 4, SliceKind::Jit, "compile")];
    let written = with(&steps, &own).chrome();
    assert_eq!(tracks_of(&written, "wait").len(), 1);
    assert_eq!(tracks_of(&written, "wait")[0].0, 13);
    assert_eq!(tracks_of(&written, "compile")[0].0, 10);
}

#[test]
fn collections_are_of_the_process_and_finalizers_of_their_thread() {
    let gc = SliceKind::Gc;
    let own = [(1, 0, 9, gc, "major pause"), (2, 1, 8, gc, "major collection"), (1, 3, 4, gc, "finalizer")];
    let written = with(&[], &own).chrome();
    let track = (13, "GC".to_owned());
    assert_eq!(tracks_of(&written, "major pause"), std::slice::from_ref(&track));
    assert_eq!(tracks_of(&written, "major collection"), [track]);
    assert_eq!(tracks_of(&written, "finalizer")[0].0, 11);
}

#[test]
fn what_a_call_lost_at_the_start_is_around_is_not_trusted() {
    let written = with(&[(0, 0, Enter, 1), (0, 2, Exit, 1), (0, 5, Exit, 0)], &[(0, 3, 4, WAIT.0, WAIT.1)]);
    assert_eq!(tracks_of(&written.chrome(), "wait")[0].0, 13);
}

#[test]
fn a_slice_has_its_arguments() {
    let mut made =
        with(&[], &[(0, 5, 8, WAIT.0, WAIT.1), (0, 8, 8, WAIT.0, WAIT.1), (0, 9, 20, WAIT.0, WAIT.1)]);
    made.selection.time_ns = Some(6000..10_000);
    let common = r#""cat":"lock""#;
    let events: Vec<_> = slices_in(&made.chrome())
        .iter()
        .map(|event| event.replace(r#""name":"wait","#, "").replace(r#""pid":10,"tid":10,"#, ""))
        .collect();
    assert_eq!(
        events,
        [
            format!(r#"{{{common},"ph":"B","ts":0}}"#),
            format!(r#"{{{common},"ph":"E","ts":2,"args":{{"arguments":["0x10"],"start_reason":"lost"}}}}"#),
            format!(r#"{{{common},"ph":"X","ts":2,"dur":0,"args":{{"arguments":["0x10"]}}}}"#),
            format!(r#"{{{common},"ph":"B","ts":3}}"#),
            format!(
                r#"{{{common},"ph":"E","ts":4,"args":{{"arguments":["0x10"],"end_reason":"truncated"}}}}"#
            ),
        ]
    );
}

#[test]
fn counters_count() {
    let mut made = Made::of(Vec::new());
    let mut counters = counters::Builder::new();
    counters.push(0, "Working Set", Some("System"), Some("bytes"), "long", None, 0, 0);
    counters.push(1, "Working Set", Some("System"), None, "double", None, 0, 0);
    counters.push(2, "Never CounterSurvey", None, None, "string", None, 0, 0);
    made.counters = counters.finish();
    let mut samples = counter_samples::Builder::new();
    samples.push(0, 7000, Some(4096.0), None, 0, 0);
    samples.push(1, 8000, Some(0.5), None, 0, 0);
    samples.push(1, 8000, Some(f64::NAN), None, 0, 0);
    samples.push(2, 8000, None, Some("text"), 0, 0);
    made.counter_samples = samples.finish();
    let mut instants = instants::Builder::new();
    instants.push(9000, 0, None, "gc_resize", Some("65536"), None, None, None, 0, 0);
    made.instants = instants.finish();
    let written = made.chrome();
    assert_eq!(
        written[2..],
        [
            r#"{"name":"System: Working Set","cat":"counter","ph":"C","pid":10,"ts":0,"args":{"bytes":4096}}"#,
            r#"{"name":"System: Working Set (2)","cat":"counter","ph":"C","pid":10,"ts":1,"args":{"value":0.5}}"#,
            r#"{"name":"GC heap size","cat":"counter","ph":"C","pid":10,"ts":2,"args":{"bytes":65536}}"#,
        ]
    );
}

fn own() -> impl Strategy<Value = Vec<Own>> {
    let kinds = prop_oneof![
        Just((SliceKind::Lock, "wait")),
        Just((SliceKind::Gc, "major pause")),
        Just((SliceKind::Gc, "finalizer")),
        Just((SliceKind::Jit, "compile")),
    ];
    let one = (0u32..3, 1000i64..1080, 0i64..30, kinds);
    prop::collection::vec(
        one.prop_map(|(thread, start, len, (kind, name))| (thread, start, start + len, kind, name)),
        0..12,
    )
}

/// Whether two slices are one in the other, or one after the other.
fn nested(a: &Slice, b: &Slice) -> bool {
    let (a, b) = if (a.2, -a.3) <= (b.2, -b.3) { (a, b) } else { (b, a) };
    b.3 <= a.3 || b.2 >= a.3
}

proptest! {
    #[test]
    fn slices_of_a_track_nest_and_none_is_missing(
        steps in steps(), own in own(), time_ns in selections()
    ) {
        let mut made = with(&steps, &own);
        made.selection.time_ns = time_ns.clone();
        let written = as_viewers_read(&slices_in(&made.chrome()));
        for (index, a) in written.iter().enumerate() {
            for b in &written[index + 1..] {
                prop_assert!(a.0 != b.0 || nested(a, b), "{a:?} {b:?}");
            }
        }
        let range = time_ns.unwrap_or(0..i64::MAX);
        let cut = |&(_, start, end, _, name): &Own| {
            let (start, end) = (start * 1000, end * 1000);
            (start < range.end && end >= range.start).then(|| (name, end.min(range.end) - start.max(range.start)))
        };
        let mut expected: Vec<_> = own.iter().filter_map(cut).collect();
        let names: Vec<_> = own.iter().map(|own| own.4).collect();
        let theirs = written.iter().filter(|slice| names.contains(&slice.1.as_str()));
        let mut theirs: Vec<_> = theirs.map(|slice| (slice.1.as_str(), slice.3 - slice.2)).collect();
        expected.sort_unstable();
        theirs.sort_unstable();
        prop_assert_eq!(theirs, expected);
    }
}
