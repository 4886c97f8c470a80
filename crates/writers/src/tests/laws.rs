//! Any events at all.

use std::collections::BTreeMap;

use CallEvent::{Enter, ExceptionExit, Exit, TailExit};
use perfuse_tables::{EndReason, StartReason};
use proptest::prelude::*;

use super::super::ordered::{self, CallEnd, OrderedCalls};
use super::*;
use perfuse_engine::calls::LostEntries;

/// Thread, function, start and end of a call, in nanoseconds from the first event on.
type Call = (u32, u32, i64, i64);

/// Thread id, name, start and end.
pub type Slice = (u32, String, i64, i64);

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![4 => Just(Enter), 3 => Just(Exit), 1 => Just(TailExit), 1 => Just(ExceptionExit)];
    let step = (0u32..3, 0i64..3, kind, 0u32..3);
    prop::collection::vec(step, 1..100).prop_map(|mut steps| {
        let mut now = 1000;
        for step in &mut steps {
            now += step.1;
            step.1 = now;
        }
        steps
    })
}

pub fn selections() -> impl Strategy<Value = Option<std::ops::Range<i64>>> {
    prop::option::of((1000i64..1080, 1i64..60).prop_map(|(start, len)| start * 1000..(start + len) * 1000))
}

/// Keeps calls, and whether they are within each other.
#[derive(Debug, Default)]
struct Nested {
    open: BTreeMap<u32, Vec<(u32, i64)>>,
    calls: Vec<Call>,
    last_ns: BTreeMap<u32, i64>,
}

impl ordered::CallSink for Nested {
    fn begin_call(&mut self, thread_id: u32, function_id: u32, start_ns: i64, _start_reason: StartReason) {
        self.open.entry(thread_id).or_default().push((function_id, start_ns));
        let before = self.last_ns.insert(thread_id, start_ns);
        assert!(before.is_none_or(|before| before <= start_ns), "in time order");
    }

    fn end_call(&mut self, thread_id: u32, function_id: u32, end: &CallEnd<'_>) {
        let (of, start_ns) = self.open.get_mut(&thread_id).and_then(Vec::pop).expect("one is open");
        assert_eq!(of, function_id);
        assert!(self.last_ns.insert(thread_id, end.end_ns).is_some_and(|before| before <= end.end_ns));
        assert!(matches!(end.reason, EndReason::Truncated) || end.arguments.is_empty());
        self.calls.push((thread_id, function_id, start_ns, end.end_ns));
    }

    fn failed(&self) -> bool {
        false
    }
}

fn nested(made: &Made) -> Vec<Call> {
    let run = |lost: LostEntries| {
        let mut calls =
            Calls::new(OrderedCalls::new(Nested::default(), &made.selection), made.selection.clone(), lost);
        made.events.iter().for_each(|batch| calls.push(batch).unwrap());
        calls.finish()
    };
    let (_, lost) = run(LostEntries::default());
    let nested = run(lost).0.into_sink();
    assert!(nested.open.values().all(Vec::is_empty), "all end");
    nested.calls
}

/// A field of an event of ours; times in nanoseconds.
fn field<'a>(event: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = event.split_once(&format!("\"{name}\":"))?;
    let end = rest.find([',', '}']).unwrap();
    Some(rest[..end].trim_matches('"'))
}

fn ns(event: &str, name: &str) -> Option<i64> {
    field(event, name).map(|us| (us.parse::<f64>().unwrap() * 1000.0).round() as i64)
}

#[derive(Debug)]
struct Read {
    phase: char,
    tid: u32,
    name: String,
    ts_ns: i64,
    duration_ns: i64,
}

fn read(events: &[String]) -> Vec<Read> {
    let calls = events.iter().filter(|event| !event.contains("\"ph\":\"M\""));
    let read = |event: &String| Read {
        phase: field(event, "ph").unwrap().chars().next().unwrap(),
        tid: field(event, "tid").unwrap().parse().unwrap(),
        name: event[9..event.find("\",\"").unwrap()].to_owned(),
        ts_ns: ns(event, "ts").unwrap(),
        duration_ns: ns(event, "dur").unwrap_or(0),
    };
    calls.map(read).collect()
}

/// Slices as a viewer puts them together that sorts by time: ends first, then the longest, then as they stand.
pub fn as_viewers_read(events: &[String]) -> Vec<Slice> {
    let mut events = read(events);
    events.sort_by_key(|event| {
        let rank = match event.phase {
            'E' => i64::MIN,
            'X' => i64::MAX - event.duration_ns,
            _ => i64::MAX,
        };
        (event.tid, event.ts_ns, rank)
    });
    let mut slices = Vec::new();
    let mut open: Vec<(u32, String, i64)> = Vec::new();
    for event in events {
        match event.phase {
            'B' => open.push((event.tid, event.name, event.ts_ns)),
            'E' => {
                let (tid, name, start_ns) = open.pop().expect("one is open");
                assert_eq!((tid, &name), (event.tid, &event.name), "what began last ends first");
                slices.push((tid, name, start_ns, event.ts_ns));
            }
            _ => slices.push((event.tid, event.name, event.ts_ns, event.ts_ns + event.duration_ns)),
        }
    }
    assert_eq!(open, [], "all end");
    slices
}

/// The same slices as calls.
fn as_calls(slices: Vec<Slice>) -> Vec<Call> {
    let names = ["main", "operator\\\"\\\"_x", "b\\\\é\\n"];
    let call = |(tid, name, start_ns, end_ns): Slice| {
        let function = names.iter().position(|known| *known == name).unwrap() as u32;
        (tid - 10, function, start_ns, end_ns)
    };
    slices.into_iter().map(call).collect()
}

proptest! {
    #[test]
    fn chrome_has_the_calls_that_are_nested(steps in steps(), time_ns in selections()) {
        let mut made = Made::of(vec![events(&steps)]);
        made.selection.time_ns = time_ns.clone();
        let mut expected = nested(&made);
        let first = expected.iter().map(|call| call.2).min().unwrap_or(0);
        let mut calls = as_calls(as_viewers_read(&made.chrome()));
        let zero = calls.iter().map(|call| call.2).min().unwrap_or(0);
        for call in &mut expected {
            (call.2, call.3) = (call.2 - first + zero, call.3 - first + zero);
        }
        expected.sort_unstable();
        calls.sort_unstable();
        prop_assert_eq!(calls, expected);
    }
}
