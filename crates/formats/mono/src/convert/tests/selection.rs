//! Tests of the selection of parts of a log.

use rustc_hash::FxHashSet;

use crate::consts::EventByte;
use crate::convert::tests::{converted, event_texts, fixture, num_events, part};
use crate::convert::{LogSelection, ThreadChoice};
use crate::tests::assemble::{THREAD, TIME, buffer, buffer_of, event, header, log, open, uleb};

/// `METHOD_ENTER` (0x23) or `METHOD_LEAVE` (0x13) of the method `away` bytes from the previous one, `after` ns later.
fn call(byte: u8, after: u64, away: u8) -> Vec<u8> {
    [vec![byte], uleb(after), vec![away & 0x7f]].concat()
}

fn within(start: u64, end: u64) -> LogSelection {
    LogSelection { time: Some(start..end), ..LogSelection::default() }
}

fn times(log: &crate::MonoLog, range: (u64, u64)) -> Vec<u64> {
    let (out, _) = converted(&[log], &part(within(range.0, range.1)));
    let cut = open(out);
    let list = event_texts(&cut);
    let time = |text: &str| text.split("time: Some(").nth(1)?.split(')').next()?.parse().ok();
    list.iter().map(|(_, text)| time(text).unwrap()).collect()
}

#[test]
fn a_time_range_retains_whole_calls() {
    // a (1010-1090) calls b (1020-1030), c (1040-1050); then d (1095-1099). Methods are 0x1000, 0x1001, 0x1002, 0x1003.
    let events = [
        call(0x23, 10, 0),
        call(0x23, 10, 1),
        call(0x13, 10, 0),
        call(0x23, 10, 1),
        call(0x13, 10, 0),
        call(0x13, 40, 0x7e),
        call(0x23, 5, 3),
        call(0x13, 4, 0),
    ];
    let log = log(&[buffer(&events)]);
    assert_eq!(times(&log, (1022, 1025)), [1010, 1020, 1030, 1090], "within b: a is around it");
    assert_eq!(times(&log, (1041, 1042)), [1010, 1040, 1050, 1090]);
    assert_eq!(times(&log, (1060, 1070)), [1010, 1090]);
    assert_eq!(times(&log, (1091, 1092)), [] as [u64; 0]);
    assert_eq!(times(&log, (1096, 2000)), [1095, 1099]);
    assert_eq!(times(&log, (0, 2000)).len(), 8);
}

#[test]
fn collections_and_waits_are_retained_whole() {
    // GC start and end, contention and done.
    let events = [
        event(0x11, &[&[0, 0]]),
        event(0x05, &[&[1], &[0]]),
        [vec![0x11], uleb(100), vec![5, 0]].concat(),
        event(0x05, &[&[2], &[0]]),
    ];
    let log = log(&[buffer(&events)]);
    assert_eq!(times(&log, (TIME + 50, TIME + 60)).len(), 4);
    assert_eq!(times(&log, (TIME + 200, TIME + 300)).len(), 0);
}

#[test]
fn a_heapshot_is_retained_whole_or_omitted() {
    let log = fixture("v17-heapshot");
    let boundaries = log.survey().events.definitions.heapshots.clone();
    let (first, last) = (boundaries[0], boundaries[1]);
    assert!(first.is_start && !last.is_start);
    let middle = first.time.midpoint(last.time);
    let (out, _) = converted(&[&log], &part(within(middle, middle + 1)));
    let cut = open(out);
    assert_eq!(cut.survey().count(EventByte::HEAP_START), 1);
    assert_eq!(cut.survey().count(EventByte::HEAP_END), 1);
    let objects = cut.survey().count(EventByte::HEAP_OBJECT);
    assert!(objects > 0 && objects < log.survey().count(EventByte::HEAP_OBJECT));
    // The events that name the objects are retained, though they are outside the range.
    let names = [EventByte::METADATA_END_LOAD, EventByte::METHOD_JIT, EventByte::HEAP_ROOT_REGISTER];
    for byte in names {
        assert_eq!(cut.survey().count(byte), log.survey().count(byte));
    }
}

#[test]
fn threads_by_name_or_id() {
    let other = THREAD + 0x100;
    let named = [vec![0x02, 1, 5], sleb(THREAD.wrapping_sub(0x1000) as i64), b"main\0".to_vec()].concat();
    let bytes = [
        header(),
        buffer(&[named, call(0x23, 1, 0)]),
        buffer_of(other, TIME, &[call(0x23, 5, 0), call(0x13, 5, 0)]),
    ];
    let log = open(bytes.concat());
    for (choice, num) in [
        (ThreadChoice::Name("main".into()), 2),
        (ThreadChoice::Id(THREAD), 2),
        (ThreadChoice::Id(other), 3),
        (ThreadChoice::Id(1), 1),
    ] {
        let selection = LogSelection { threads: Some(vec![choice.clone()]), ..LogSelection::default() };
        let (out, _) = converted(&[&log], &part(selection));
        assert_eq!(num_events(&open(out)), num, "{choice:?}: the name is always there");
    }
}

fn sleb(mut value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    while !(-0x40..0x40).contains(&value) {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8 & 0x7f);
    out
}

#[test]
fn kinds() {
    let log = fixture("v17-i386-calls");
    let kinds: FxHashSet<_> = [EventByte::METHOD_ENTER].into_iter().collect();
    let (out, _) = converted(&[&log], &part(LogSelection { kinds: Some(kinds), ..LogSelection::default() }));
    let cut = open(out);
    assert_eq!(cut.survey().count(EventByte::METHOD_ENTER), log.survey().count(EventByte::METHOD_ENTER));
    assert_eq!(cut.survey().count(EventByte::METHOD_LEAVE), 0);
    assert_eq!(cut.survey().count(EventByte::ALLOC), 0);
    assert_eq!(cut.survey().count(EventByte::METHOD_JIT), log.survey().count(EventByte::METHOD_JIT));
}

/// COUNTERS (0x47) of data version 17: index, type, value; 0 ends the list. Values are differences.
fn counters(after: u64, values: &[(u8, u8)]) -> Vec<u8> {
    let list = values.iter().flat_map(|&(index, value)| [index, 0, value]);
    [vec![0x47], uleb(after), list.collect(), vec![0]].concat()
}

#[test]
fn counters_add_up_to_the_same_in_a_part() {
    let events = [counters(10, &[(1, 5), (2, 7)]), counters(10, &[(1, 3)]), counters(10, &[(1, 1)])];
    let log = log(&[buffer(&events)]);
    let (out, _) = converted(&[&log], &part(within(TIME + 15, TIME + 40)));
    let texts = event_texts(&open(out));
    assert!(texts[0].1.contains("value: Signed(8)") && texts[0].1.contains("value: Signed(7)"), "{texts:?}");
    assert!(texts[1].1.contains("value: Signed(1)") && !texts[1].1.contains("index: 2"), "{texts:?}");
}
