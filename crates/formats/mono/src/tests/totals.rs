//! Tests that the survey's totals, and the rows of requested objects, agree with all rows of allocations.

use std::collections::BTreeMap;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_recording::{Placement, Recording, TableRequest};
use perfuse_tables::access::{nullable, numbers};

use crate::recording::MonoLog;
use crate::tests::assemble::*;

/// Count, bytes, largest object and time of the first, by thread and type.
type Sums = BTreeMap<(u32, Option<u32>), (u64, u64, u64, i64)>;

fn take(sums: &mut Sums, key: (u32, Option<u32>), (count, bytes, largest, first): (u64, u64, u64, i64)) {
    let sum = sums.entry(key).or_insert((0, 0, 0, i64::MAX));
    *sum = (sum.0 + count, sum.1 + bytes, sum.2.max(largest), sum.3.min(first));
}

fn of_rows(log: &MonoLog) -> Sums {
    let mut sums = Sums::new();
    let request = TableRequest { no_allocation_stacks: true, ..TableRequest::default() };
    for batch in log.table("allocations", &Placement::alone(log), &request).unwrap() {
        let threads = numbers::<UInt32Type>(&batch, "thread_id").unwrap();
        let types = numbers::<UInt32Type>(&batch, "type_id").unwrap();
        let sizes = numbers::<UInt64Type>(&batch, "size_bytes").unwrap();
        let times = numbers::<Int64Type>(&batch, "ts_ns").unwrap();
        for row in 0..batch.num_rows() {
            let size = sizes.value(row);
            let key = (threads.value(row), nullable(types, row));
            take(&mut sums, key, (1, size, size, times.value(row)));
        }
    }
    sums
}

fn of_survey(log: &MonoLog) -> Option<Sums> {
    let mut sums = Sums::new();
    for sum in log.allocation_sums(&Placement::alone(log))? {
        take(
            &mut sums,
            (sum.group.thread_id, sum.group.type_id),
            (sum.count, sum.bytes, sum.largest, sum.first_ns),
        );
    }
    Some(sums)
}

/// METADATA of a class at 0x1000 + `at` and its vtable at 0x1040 + `at`.
fn class(at: u8, name: &str) -> Vec<u8> {
    let class = event(0x22, &[&[1, at, 0], &text(name)]);
    let vtable = event(0x22, &[&[7, at | 0x20, 0, at]]);
    [class, vtable].concat()
}

fn alloc(class: u8, object: u8, size: u8) -> Vec<u8> {
    event(0x00, &[&[class | 0x20, object, size]])
}

/// METADATA: the start of the thread of a [`buffer`].
fn thread_starts() -> Vec<u8> {
    let distance = THREAD as i64 - 0x1000;
    let mut sleb = Vec::new();
    let mut left = distance;
    while left >= 0x40 {
        sleb.push((left & 0x7f) as u8 | 0x80);
        left >>= 7;
    }
    sleb.push(left as u8);
    event(0x22, &[&[5], &sleb])
}

#[test]
fn every_data_version_has_equal_totals() {
    let mut num = 0;
    for (name, bytes) in fixtures() {
        let log = open(bytes);
        if let Some(sums) = of_survey(&log) {
            assert_eq!(sums, of_rows(&log), "{name}");
            num += sums.len();
        }
    }
    assert!(num > 30, "{num}");
}

#[test]
fn threads_with_one_id_have_separate_totals() {
    let first = buffer_of(THREAD, 1000, &[thread_starts(), class(0, "A"), alloc(0, 1, 16)]);
    let second = buffer_of(THREAD, 2000, &[alloc(0, 2, 24)]);
    let third = buffer_of(THREAD, 3000, &[alloc(0, 3, 32), thread_starts(), alloc(0, 4, 40)]);
    let log = log(&[first, second, third]);
    let sums = of_survey(&log).unwrap();
    assert_eq!(sums, of_rows(&log));
    assert_eq!(sums.values().map(|sum| sum.1).collect::<Vec<_>>(), [40, 72]);
}

#[test]
fn no_totals_if_an_address_has_two_classes() {
    let events = [class(0, "A"), alloc(0, 1, 16), class(0, "B"), alloc(0, 2, 16)];
    assert_eq!(of_survey(&log(&[buffer(&events)])), None);
}

#[test]
fn no_totals_of_too_many_classes() {
    let of_class = |class: u64| {
        event(0x00, &[&[class as u8 | 0x80, (class >> 7) as u8 | 0x80, (class >> 14) as u8], &[0, 16]])
    };
    let few = log(&[buffer(&(0..10_000).map(of_class).collect::<Vec<_>>())]);
    assert_eq!(few.survey().events.allocations.totals().map(<[_]>::len), Some(10_000));
    let many = log(&[buffer(&(0..20_000).map(of_class).collect::<Vec<_>>())]);
    assert!(many.survey().events.allocations.totals().is_none());
    assert_eq!(of_survey(&many), None);
}

#[test]
fn requested_moves_are_from_and_to_the_addresses() {
    let moves = |objects: &[u8]| event(0x31, &[&[objects.len() as u8], objects]);
    let log = log(&[buffer(&[moves(&[1, 2, 3, 4]), moves(&[2, 5])])]);
    let rows = |objects: Option<Vec<u64>>| -> Vec<(u64, u64)> {
        let request = TableRequest { objects: objects.map(Into::into), ..TableRequest::default() };
        let batches = log.table("object_moves", &Placement::alone(&log), &request).unwrap();
        let pairs = batches.flat_map(|batch| {
            let column = |name| numbers::<UInt64Type>(&batch, name).unwrap().values().to_vec();
            column("old_address").into_iter().zip(column("new_address")).collect::<Vec<_>>()
        });
        pairs.collect()
    };
    let [first, second, third] = [(0x8008, 0x8010), (0x8018, 0x8020), (0x8010, 0x8028)];
    assert_eq!(rows(None), [first, second, third]);
    assert_eq!(rows(Some(vec![0x8010])), [first, third]);
    assert_eq!(rows(Some(vec![0x8020, 0x8028])), [second, third]);
    assert_eq!(rows(Some(vec![])), []);
}

#[test]
fn requested_allocations_are_those_of_the_addresses() {
    let events: Vec<_> = (0..60).map(|at| alloc(0, at, 16)).collect();
    let log = log(&[buffer(&events[..20]), buffer(&events[20..40]), buffer(&events[40..])]);
    let rows = |objects: Option<Vec<u64>>| -> Vec<u64> {
        let request = TableRequest { objects: objects.map(Into::into), ..TableRequest::default() };
        let batches = log.table("allocations", &Placement::alone(&log), &request).unwrap();
        let objects = batches
            .flat_map(|batch| numbers::<UInt64Type>(&batch, "object_address").unwrap().values().to_vec());
        objects.collect()
    };
    let all = rows(None);
    assert_eq!(all.len(), 60);
    for requested in
        [vec![], vec![all[0]], vec![all[19], all[20]], vec![all[3], all[59], 1 << 40], vec![all[30] + 4]]
    {
        let expected: Vec<_> = all.iter().copied().filter(|object| requested.contains(object)).collect();
        assert_eq!(rows(Some(requested.clone())), expected, "{requested:x?}");
    }
}
