//! Border events: with them and the row groups of a range, results are those of all events.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use perfuse_tables::CallEvent::{self, Argument, Enter, ExceptionExit, Exit, TailExit};
use perfuse_tables::call_events;
use proptest::prelude::*;
use rustc_hash::FxHashMap;

use super::formatted_rows;
use crate::calls::*;
use crate::selected::rows_where;

/// Of a thread: what happens, to which function, how long after the event before, and whether it is of the next recording.
type Step = (u32, CallEvent, u32, i64, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![
        6 => Just(Enter), 5 => Just(Exit), 1 => Just(TailExit), 1 => Just(ExceptionExit), 1 => Just(Argument)
    ];
    let after = prop_oneof![8 => 0i64..9, 1 => -40i64..0];
    let is_next = prop::bool::weighted(0.02);
    prop::collection::vec((0u32..3, kind, 0u32..4, after, is_next), 1..160)
}

fn table(steps: &[Step], batch_rows: usize) -> Vec<RecordBatch> {
    let (mut now, mut source) = (0, 0);
    let mut table = call_events::Builder::new();
    let mut batches = Vec::new();
    for (row, &(thread, kind, function, after, is_next)) in (0u64..).zip(steps) {
        now += after;
        source += u32::from(is_next);
        let value = (kind == Argument).then_some(row * 10);
        table.push(now, thread, Some(thread / 2), kind, function, value, source, row);
        if table.len() == batch_rows {
            batches.push(table.finish());
        }
    }
    batches.push(table.finish());
    batches
}

/// What a reader has of a range: border events of row groups without an event in it, and the others.
fn read(
    steps: &[Step],
    group_rows: usize,
    borders: &[RecordBatch],
    range: &std::ops::Range<i64>,
) -> Vec<RecordBatch> {
    let groups = table(steps, group_rows);
    let mut read = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let times = group.column_by_name("ts_ns").unwrap().as_primitive::<Int64Type>().values();
        let (least, greatest) = (times.iter().min(), times.iter().max());
        if least.is_some_and(|least| *least < range.end)
            && greatest.is_some_and(|greatest| *greatest >= range.start)
        {
            read.push(group.clone());
            continue;
        }
        let first = (number * group_rows) as u64;
        for batch in borders {
            let rows = batch.column(0).as_primitive::<UInt64Type>();
            let here = rows_where(batch, |row| (first..first + group_rows as u64).contains(&rows.value(row)));
            let columns: Vec<usize> = (1..=call_events::SPEC.columns.len()).collect();
            read.push(here.project(&columns).unwrap());
        }
    }
    read
}

/// What visitors receive of the calls of a range, in order.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    calls: Vec<String>,
    args: Vec<Vec<(u32, u64)>>,
}

impl Visitor for Seen {
    type CallData = u64;

    fn enter(&mut self, entry: &CallEntry, _parent: Option<&OpenCall<u64>>) -> u64 {
        self.args.resize_with(self.args.len().max(entry.thread_id as usize + 1), Vec::new);
        self.args[entry.thread_id as usize].retain(|(depth, _)| *depth < entry.depth);
        entry.record_offset
    }

    fn leave(&mut self, call: &OpenCall<u64>, level: Level, leave: &Leave, parent: Option<&OpenCall<u64>>) {
        let of_depth = |(depth, _): &&(u32, u64)| *depth == level.depth;
        let args: Vec<u64> =
            self.args[level.thread_id as usize].iter().filter(of_depth).map(|(_, it)| *it).collect();
        let parent = parent.map(|parent| parent.mark);
        self.calls
            .push(format!("{} {} {level:?} {leave:?} {parent:?} {args:?}", call.mark, call.function_id));
    }

    fn argument(&mut self, _call: &OpenCall<u64>, level: Level, value: u64) {
        self.args[level.thread_id as usize].push((level.depth, value));
    }
}

/// The calls of a selection as visitors see them.
fn seen(batches: &[RecordBatch], selection: &Selection) -> Vec<String> {
    visit(|| batches.iter().cloned(), selection, Seen::default).unwrap().calls
}

proptest! {
    #[test]
    fn ranges_need_border_events_and_their_row_groups(
        steps in steps(),
        group_rows in 1usize..24,
        batch_rows in 1usize..30,
        from in -60i64..400,
        length in 0i64..120,
        threads in prop::option::of(prop::collection::vec(0u32..3, 1)),
    ) {
        let batches = table(&steps, batch_rows);
        let mut borders = BorderEvents::new(group_rows);
        batches.iter().try_for_each(|batch| borders.push(batch)).unwrap();
        let Some(borders) = borders.finish().unwrap() else {
            let lost = LostEntries::of(batches.into_iter()).unwrap();
            prop_assert!(steps.len() <= group_rows || lost.have_left_others());
            return Ok(());
        };
        let range = from..from + length;
        let read = read(&steps, group_rows, &borders, &range);
        let selection = Selection { threads, time_ns: Some(range) };
        prop_assert_eq!(seen(&read, &selection), seen(&batches, &selection));
        for (by, recursive_only) in [(CallGrouping::Function, true), (CallGrouping::Thread, false), (CallGrouping::Cpu, false)] {
            let options = Options { by, selection: selection.clone(), recursive_only, edges: true, ..Options::default() };
            let of = |batches: &[RecordBatch]| {
                let batches = batches.to_vec();
                account(move || vec![batches.clone().into_iter()], std::iter::empty(), &options).unwrap()
            };
            let (some, all) = (of(&read), of(&batches));
            prop_assert_eq!(&some.functions, &all.functions);
            prop_assert_eq!(&some.edges, &all.edges);
            prop_assert_eq!(&some.threads, &all.threads);
            prop_assert_eq!(&some.migrations, &all.migrations);
            prop_assert_eq!(some.totals, all.totals);
            prop_assert_eq!(some.paths.batch(&some.path_rows), all.paths.batch(&all.path_rows));
            prop_assert_eq!(&some.path_rows, &all.path_rows);
        }
    }
}

/// Batches with the number of calls that begin before them.
type Numbered = Vec<(Option<u64>, RecordBatch)>;

/// The events of a range as `slices_of_part` reads them: border events one by one, each with the number of calls before it.
fn numbered(
    steps: &[Step],
    group_rows: usize,
    borders: &[RecordBatch],
    near: impl Fn(&RecordBatch) -> bool,
) -> Option<(Numbered, FxHashMap<u64, i64>)> {
    let mut rows = Vec::new();
    for batch in borders {
        let column = |name| batch.column_by_name(name).unwrap();
        let before = column("calls_before").as_primitive::<UInt64Type>();
        let own = column("self_ns").as_primitive::<Int64Type>();
        let events: Vec<usize> = (1..=call_events::SPEC.columns.len()).collect();
        let events = batch.project(&events).unwrap();
        for (at, row) in column("row").as_primitive::<UInt64Type>().values().iter().enumerate() {
            let own = own.is_valid(at).then(|| own.value(at));
            rows.push((*row, before.is_valid(at).then(|| before.value(at))?, own, events.slice(at, 1)));
        }
    }
    let mut read = Vec::new();
    let mut left = rows.as_slice();
    for (number, group) in table(steps, group_rows).into_iter().enumerate() {
        let end = ((number + 1) * group_rows) as u64;
        let (here, later) = left.split_at(left.partition_point(|(row, ..)| *row < end));
        left = later;
        if near(&group) {
            read.push((here.first().map(|(_, before, ..)| *before), group));
        } else {
            read.extend(here.iter().map(|(_, before, _, event)| (Some(*before), event.clone())));
        }
    }
    let own = rows.iter().filter_map(|(_, before, own, _)| Some((*before, (*own)?)));
    Some((read, own.collect()))
}

proptest! {
    #[test]
    fn slices_that_start_in_a_range_are_those_of_all_events(
        steps in steps(),
        group_rows in 1usize..24,
        from in -60i64..400,
        length in 0i64..120,
    ) {
        let batches = table(&steps, 50);
        let mut borders = BorderEvents::new(group_rows);
        batches.iter().try_for_each(|batch| borders.push(batch)).unwrap();
        let Some(borders) = borders.finish().unwrap() else { return Ok(()) };
        let range = from..from + length;
        let near = |group: &RecordBatch| {
            let times = group.column_by_name("ts_ns").unwrap().as_primitive::<Int64Type>().values();
            times.iter().min().is_some_and(|least| *least < range.end) && times.iter().max() >= Some(&range.start)
        };
        let Some((events, self_ns)) = numbered(&steps, group_rows, &borders, near) else {
            prop_assert!(!LostEntries::of(batches.into_iter()).unwrap().is_empty());
            return Ok(());
        };
        let started = |batches: Vec<RecordBatch>| -> Vec<String> {
            batches.iter().flat_map(|batch| {
                let times = batch.column_by_name("start_ns").unwrap().as_primitive::<Int64Type>().clone();
                let columns: Vec<&str> = batch.schema_ref().fields().iter().map(|one| one.name().as_str()).collect();
                formatted_rows(&rows_where(batch, |row| range.contains(&times.value(row))), &columns)
            }).collect()
        };
        let all = started(slices(|| batches.iter().cloned(), 7).unwrap().collect());
        prop_assert_eq!(started(slices_of_part(events.into_iter(), 7, self_ns).collect()), all);
    }
}

/// Two calls that cross borders, and a call of the same function within a row group, whose last row is its end.
#[test]
fn ends_of_other_calls_are_not_taken_for_theirs() {
    let events = [(Enter, 1), (Enter, 2), (Enter, 1), (Exit, 1), (Enter, 3), (Exit, 3), (Exit, 2), (Exit, 1)];
    let steps: Vec<Step> = events.iter().map(|&(kind, function)| (0, kind, function, 10, false)).collect();
    let mut borders = BorderEvents::new(2);
    table(&steps, 5).iter().try_for_each(|batch| borders.push(batch)).unwrap();
    let borders = borders.finish().unwrap().unwrap();
    let rows: Vec<String> =
        borders.iter().flat_map(|batch| formatted_rows(batch, &["row", "kind", "function_id"])).collect();
    assert_eq!(
        rows,
        ["0 enter 1", "1 enter 2", "2 enter 1", "3 exit 1", "4 enter 3", "5 exit 3", "6 exit 2", "7 exit 1"]
    );
    let few = (0..6u32).flat_map(|number| [(0, Enter, number, 1, false), (0, Exit, number, 1, false)]);
    let mut within = BorderEvents::new(12);
    let steps: Vec<Step> = few.clone().chain(few).collect();
    table(&steps, 50).iter().try_for_each(|batch| within.push(batch)).unwrap();
    let rows = within.finish().unwrap().unwrap();
    let rows: Vec<String> = rows.iter().flat_map(|batch| formatted_rows(batch, &["row"])).collect();
    assert_eq!(rows, ["0", "1", "10", "11", "12", "13", "22", "23"]);
}
