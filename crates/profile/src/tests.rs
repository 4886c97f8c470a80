//! Profiles of hand-built recordings whose answers follow from how they are built.

use std::any::Any;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_binaries::symbolize::Follow;
use perfuse_engine::calls::{Options, Selection};
use perfuse_engine::unwind::Stop;
use perfuse_formats::{
    BatchStream, Clock, ClockMap, Format, Placement, Position, Recording, Repaired, Source, Summary,
    TableRequest, UnpackLimit, one_batch, registry,
};
use perfuse_tables::access::text;
use perfuse_tables::{
    CallEvent, Offsets, UserStack, call_events, callchains, code_objects, functions, mappings,
};
use perfuse_wire::{Diagnostics, Endian, RecordView};

use crate::{DefinedLines, Prefetch, Profile, ProfileInput, ProfileOptions};

/// Marker of a call chain: user space follows.
const USER: u64 = (-512i64) as u64;

type MakeTable = Box<dyn Fn(&str, &Placement) -> Option<RecordBatch> + Send + Sync>;

fn format(name: &str) -> &'static Format {
    registry::FORMATS.iter().find(|format| format.name == name).unwrap()
}

/// A recording whose tables are made by a function.
struct BuiltRecording {
    format: &'static Format,
    source: Arc<Source>,
    extent: Offsets,
    make: MakeTable,
    /// Register pairs and bytes of user stacks.
    stacks: Vec<(Vec<u64>, Vec<u8>)>,
}

impl BuiltRecording {
    fn new(format: &'static Format, extent: Offsets, make: MakeTable) -> Self {
        let source = Arc::new(Source::from_bytes("built", vec![0]).unwrap());
        Self { format, source, extent, make, stacks: Vec::new() }
    }
}

impl Recording for BuiltRecording {
    fn format(&self) -> &'static Format {
        self.format
    }

    fn source(&self) -> &Arc<Source> {
        &self.source
    }

    fn summary(&self) -> Summary {
        Summary {
            version: None,
            endian: Endian::Little,
            pointer_bytes: Some(8),
            arch: Some("x86_64"),
            producer: None,
            clock: "monotonic",
            span: None,
            counts: Vec::new(),
            header: Vec::new(),
        }
    }

    fn read_record<'a>(
        &'a self,
        _at: &mut Position,
        _wanted: &dyn Fn(&str) -> bool,
    ) -> Option<RecordView<'a>> {
        None
    }

    fn check(&self, _sink: &mut Diagnostics) {}

    fn repair(&self, _out: &mut File) -> io::Result<Repaired> {
        Ok(Repaired::default())
    }

    fn extent(&self) -> Offsets {
        self.extent
    }

    fn table(&self, name: &str, placement: &Placement, _request: &TableRequest) -> Option<BatchStream> {
        (self.make)(name, placement).map(one_batch)
    }

    fn num_user_stacks(&self) -> u64 {
        self.stacks.len() as u64
    }

    fn user_stack(&self, number: u64, registers: &mut Vec<u64>) -> Option<UserStack<'_>> {
        let (pairs, bytes) = self.stacks.get(number as usize)?;
        registers.clone_from(pairs);
        Some(UserStack { bytes, big_endian: false })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A dump of process 7 with functions `<prefix>0`, `<prefix>1`, ... at `(start, created, retired)`, each of 0x100 bytes;
/// times are ticks of its own clock.
fn dump(prefix: &'static str, code: Vec<(u64, u64, Option<u64>)>) -> BuiltRecording {
    let count = code.len() as u32;
    let extent = Offsets { source: 1, function: count, code_object: count, ..Offsets::default() };
    let make = move |table: &str, placement: &Placement| match table {
        "functions" => {
            let mut table = functions::Builder::new();
            for number in 0..count {
                let name = format!("{prefix}{number}");
                let id = placement.first.function + number;
                table.push(id, None, &name, &name, None, None, None, None);
            }
            Some(table.finish())
        }
        "code_objects" => {
            let process = placement.identities.lock().unwrap().process(placement.own_process(7));
            let mut table = code_objects::Builder::new();
            for (number, &(start, created, retired)) in (0..).zip(&code) {
                let (id, function) =
                    (placement.first.code_object + number, placement.first.function + number);
                let (created, retired) =
                    (placement.clock.ns(created), retired.map(|ticks| placement.clock.ns(ticks)));
                let (code, source) = (None, placement.source_id);
                table.push(
                    id, function, process, None, "jit", None, created, retired, start, 0x100, code, 0,
                    source, 0,
                );
            }
            Some(table.finish())
        }
        _ => None,
    };
    BuiltRecording::new(format("jitdump"), extent, Box::new(make))
}

/// Samples of one thread of a process: times and chains, innermost address first. Each has the user stack of its number.
fn samples(pid: i32, chains: Vec<(i64, Vec<u64>)>, stacks: Vec<(Vec<u64>, Vec<u8>)>) -> BuiltRecording {
    let extent = Offsets { source: 1, sample: chains.len() as u64, mapping: 1, ..Offsets::default() };
    let has_stacks = !stacks.is_empty();
    let make = move |table: &str, placement: &Placement| {
        let (process, thread) = {
            let mut identities = placement.identities.lock().unwrap();
            (identities.process(pid.into()), identities.thread(pid.into(), pid))
        };
        match table {
            "callchains" => {
                let mut table = callchains::Builder::new();
                for (number, (at, chain)) in (0..).zip(&chains) {
                    let stack = has_stacks.then_some(number);
                    let (id, source) = (placement.first.sample + number, placement.source_id);
                    table.push(id, *at, process, thread, None, 1, "cycles", chain, stack, source, number * 8);
                }
                Some(table.finish())
            }
            "mappings" => {
                let mut table = mappings::Builder::new();
                let id = placement.first.mapping;
                table.push(id, Some(process), Some(0), 0x1000, 0x9000, 0, "//anon", None, true, 0, 0);
                Some(table.finish())
            }
            _ => None,
        }
    };
    BuiltRecording { stacks, ..BuiltRecording::new(format("perf_data"), extent, Box::new(make)) }
}

/// A call trace: function 0 is entered at 100 and left at 200 ns, and calls function 1 from 120 to 150.
fn trace(pid: i32) -> BuiltRecording {
    let extent = Offsets { source: 1, function: 2, ..Offsets::default() };
    let make = move |table: &str, placement: &Placement| match table {
        "functions" => {
            let mut table = functions::Builder::new();
            for (number, name) in [(0, "outer"), (1, "inner")] {
                let id = placement.first.function + number;
                table.push(id, None, name, name, None, None, None, None);
            }
            Some(table.finish())
        }
        "call_events" => {
            let thread = placement.identities.lock().unwrap().thread(pid.into(), pid);
            let mut table = call_events::Builder::new();
            for (at, function, kind) in [
                (100, 0, CallEvent::Enter),
                (120, 1, CallEvent::Enter),
                (150, 1, CallEvent::Exit),
                (200, 0, CallEvent::Exit),
            ] {
                let function = placement.first.function + function;
                table.push(at, thread, None, kind, function, None, placement.source_id, at as u64);
            }
            Some(table.finish())
        }
        _ => None,
    };
    BuiltRecording::new(format("xray"), extent, Box::new(make))
}

fn profile(inputs: Vec<(BuiltRecording, ClockMap, Option<i32>)>) -> Profile {
    let input = |(recording, map, pid)| ProfileInput {
        recording: Arc::new(recording) as Arc<dyn Recording>,
        clock: Clock { map, ..Clock::nanoseconds("monotonic") },
        pid,
        nth_of_pid: Arc::default(),
        definitions: None,
    };
    Profile::new(inputs.into_iter().map(input).collect(), ProfileOptions::default())
}

fn on_one_clock(recordings: Vec<BuiltRecording>) -> Profile {
    profile(recordings.into_iter().map(|recording| (recording, ClockMap::default(), None)).collect())
}

impl Profile {
    fn batches(&self, table: &str) -> Vec<RecordBatch> {
        self.table(table, false).unwrap().unwrap().map(Result::unwrap).collect()
    }

    fn keys(&self, table: &str, column: &str) -> Vec<Option<u32>> {
        let batches = self.batches(table);
        let keys = |batch: &RecordBatch| -> Vec<_> {
            batch.column_by_name(column).unwrap().as_primitive::<UInt32Type>().iter().collect()
        };
        batches.iter().flat_map(keys).collect()
    }

    fn texts(&self, table: &str, column: &'static str) -> Vec<Option<String>> {
        let batches = self.batches(table);
        let texts = |batch: &RecordBatch| -> Vec<_> {
            let texts = text(batch, column).unwrap();
            (0..batch.num_rows()).map(|row| texts.get(row).map(str::to_owned)).collect()
        };
        batches.iter().flat_map(texts).collect()
    }

    /// Names of the functions of each sample, innermost first; `?` for frames without one. Asserts that each reference between
    /// samples, stacks, frames and functions resolves to one row.
    fn sampled_functions(&self) -> Vec<Vec<String>> {
        let names = self.texts("functions", "name");
        let functions = unique(self.keys("functions", "function_id"));
        let frames = unique(self.keys("frames", "frame_id"));
        let frame_functions = self.keys("frames", "function_id");
        let stacks = unique(self.keys("stacks", "stack_id"));
        let (parents, stack_frames) =
            (self.keys("stacks", "parent_stack_id"), self.keys("stacks", "frame_id"));
        let row = |keys: &[u32], key: u32| keys.iter().position(|known| *known == key).unwrap();
        let of_stack = |mut stack: Option<u32>| {
            let mut found = Vec::new();
            while let Some(key) = stack {
                let at = row(&stacks, key);
                let frame = row(&frames, stack_frames[at].unwrap());
                let name = frame_functions[frame].map(|key| names[row(&functions, key)].clone().unwrap());
                found.push(name.unwrap_or_else(|| "?".to_owned()));
                stack = parents[at];
            }
            found
        };
        self.keys("samples", "stack_id").into_iter().map(of_stack).collect()
    }
}

/// The keys of a table, none of which may occur twice.
fn unique(keys: Vec<Option<u32>>) -> Vec<u32> {
    let keys: Vec<u32> = keys.into_iter().map(Option::unwrap).collect();
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len(), "{keys:?}");
    keys
}

#[test]
fn keys_of_two_dumps_do_not_collide() {
    let code = |start| vec![(start, 0, None), (start + 0x100, 0, None)];
    let profile = on_one_clock(vec![
        dump("a", code(0x1000)),
        dump("b", code(0x2000)),
        samples(7, vec![(5, vec![USER, 0x1010]), (5, vec![USER, 0x2110])], Vec::new()),
    ]);
    assert_eq!(unique(profile.keys("code_objects", "code_object_id")), [0, 1, 2, 3]);
    assert_eq!(unique(profile.keys("functions", "function_id")), [0, 1, 2, 3]);
    assert_eq!(unique(profile.keys("sources", "source_id")), [0, 1, 2]);
    assert_eq!(profile.sampled_functions(), [["a0"], ["b1"]]);
}

/// The dump counts ticks of half a nanosecond from 1,000 ns on: code 1 replaces code 0 at tick 400, which is 1,200 ns.
#[test]
fn code_is_placed_on_the_clock_of_the_samples() {
    let half = ClockMap { numerator: 1, denominator: 2, offset_ns: 1000 };
    let code = vec![(0x1000, 100, Some(400)), (0x1000, 400, None)];
    let at = |ns| (ns, vec![USER, 0x1010]);
    let profile = profile(vec![
        (samples(7, vec![at(1049), at(1050), at(1199), at(1200)], Vec::new()), ClockMap::default(), None),
        (dump("f", code), half, None),
    ]);
    assert_eq!(profile.sampled_functions(), [["?"], ["f0"], ["f0"], ["f1"]]);
    let offsets: Vec<i64> = profile.batches("clocks")[0]
        .column_by_name("offset_ns")
        .unwrap()
        .as_primitive::<Int64Type>()
        .values()
        .to_vec();
    assert_eq!(offsets, [0, 1000]);
}

/// In its pid namespace the process is 7; the recorder of the samples knew it as 4711.
#[test]
fn the_pid_of_the_recorded_machine_replaces_that_of_a_dump() {
    let chains = vec![(5, vec![USER, 0x1010])];
    let matched = |pid| {
        let dump = (dump("f", vec![(0x1000, 0, None)]), ClockMap::default(), pid);
        let samples = (samples(4711, chains.clone(), Vec::new()), ClockMap::default(), None);
        profile(vec![samples, dump])
    };
    assert_eq!(matched(Some(4711)).sampled_functions(), [["f0"]]);
    assert_eq!(matched(None).sampled_functions(), [["?"]], "process 7 has no samples");
    assert_eq!(matched(Some(4711)).pids().len(), 0, "processes get keys when tables are made");
}

#[test]
fn a_sample_outside_any_code_has_a_frame_with_the_reason() {
    let profile = on_one_clock(vec![
        dump("f", vec![(0x1000, 0, None)]),
        samples(7, vec![(5, vec![USER, 0x1100]), (5, vec![USER, 0xa000])], Vec::new()),
    ]);
    assert_eq!(profile.sampled_functions(), [["?"], ["?"]]);
    let reasons = profile.texts("frames", "unnamed_because");
    let expected =
        ["anonymous memory that no dump has code for at that time", "no mapping holds this address"];
    assert_eq!(reasons.iter().flatten().collect::<Vec<_>>(), expected);
}

/// `f1` at 0x1150 was called from `f0` at 0x1050 by code that keeps frame pointers; `f0` is outermost.
#[test]
fn copies_of_stacks_are_unwound_through_jit_code() {
    let (sp, fp) = (0x7000u64, 0x7010u64);
    let words = [0u64, 0, 0, 0x1050];
    let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let registers = vec![7, sp, 6, fp, 16, 0x1150];
    let profile = on_one_clock(vec![
        dump("f", vec![(0x1000, 0, None), (0x1100, 0, None)]),
        samples(7, vec![(5, vec![USER, 0x1150])], vec![(registers, stack)]),
    ]);
    assert_eq!(profile.sampled_functions(), [["f1", "f0"]]);
    let unwound_by = profile.texts("frames", "unwound_by");
    assert_eq!(unwound_by.iter().flatten().collect::<Vec<_>>(), ["sampled", "frame_pointer"]);
    let totals = profile.unwind_totals().unwrap().unwrap();
    assert_eq!((totals.num_stacks, totals.stops[Stop::Outermost as usize]), (1, 1));
}

/// `outer` runs 70 ns by itself, `inner` 30 ns; the trace's frames and stacks have other keys than those of the samples.
#[test]
fn a_trace_beside_samples_keeps_its_own_keys() {
    let profile = on_one_clock(vec![
        dump("f", vec![(0x1000, 0, None)]),
        samples(7, vec![(5, vec![USER, 0x1010])], Vec::new()),
        trace(7),
    ]);
    let mut functions = profile.sampled_functions();
    functions.sort();
    // Each call path has a row of its time and one of its calls.
    functions.dedup();
    assert_eq!(functions, [vec!["f0"], vec!["inner", "outer"], vec!["outer"]]);
    let ids: Vec<u64> = profile
        .batches("samples")
        .iter()
        .flat_map(|batch| {
            batch.column_by_name("sample_id").unwrap().as_primitive::<UInt64Type>().values().to_vec()
        })
        .collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    let costs = profile.call_costs(&Options::default(), false).unwrap();
    let total = |column| costs.totals.column_by_name(column).unwrap();
    assert_eq!(total("num_calls").as_primitive::<UInt64Type>().values(), &[2]);
    let span = ["first_ns", "last_ns"].map(|column| total(column).as_primitive::<Int64Type>().value(0));
    assert_eq!(span, [100, 200]);
    let time_ns = |selection| -> u64 {
        let batches = profile.selected_samples(&selection).unwrap();
        let time = |batch: &RecordBatch| {
            let weights = batch.column_by_name("weight").unwrap().as_primitive::<UInt64Type>();
            let units = text(batch, "weight_unit").unwrap();
            let rows = (0..batch.num_rows()).filter(|row| units.get(*row) == Some("ns"));
            rows.map(|row| weights.value(row)).sum::<u64>()
        };
        batches.iter().map(time).sum()
    };
    assert_eq!(time_ns(Selection::default()), 100);
    assert_eq!(time_ns(Selection { threads: None, time_ns: Some(130..140) }), 10);
}

#[test]
fn a_join_that_was_started_gives_the_same_tables() {
    let words: Vec<u8> = [0u64, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    let recordings = || {
        let stack = (vec![7, 0x7000, 6, 0, 16, 0x1010], words.clone());
        vec![dump("f", vec![(0x1000, 0, None)]), samples(7, vec![(5, vec![USER, 0x1010])], vec![stack])]
    };
    let (started, plain) = (Arc::new(on_one_clock(recordings())), on_one_clock(recordings()));
    started.start_join(false);
    for table in ["processes", "threads", "frames", "stacks", "samples", "functions", "code_objects"] {
        assert_eq!(started.batches(table), plain.batches(table), "{table}");
    }
}

/// Findings about instrumentation maps are reported by code, which has to be that of a rule.
#[test]
fn every_finding_of_an_instrumentation_map_has_a_rule() {
    let rules = perfuse_formats::instrumentation_map::RULES.iter().map(|rule| rule.code);
    assert!(rules.eq(perfuse_binaries::xray_map::CODES.iter().copied()));
}

#[test]
fn an_unknown_table_is_none() {
    let profile = on_one_clock(Vec::new());
    assert!(profile.table("nothing", false).unwrap().is_none());
    assert!(profile.batches("samples").iter().all(|batch| batch.num_rows() == 0));
}

#[test]
fn prefetched_batches_come_in_order_and_a_dropped_iterator_ends_its_thread() {
    let batch = |pid| {
        let mut table = perfuse_tables::processes::Builder::new();
        table.push(0, pid, None, None, None);
        table.finish()
    };
    let pid = |batch: RecordBatch| {
        batch.column_by_name("pid").unwrap().as_primitive::<arrow_array::types::Int32Type>().value(0)
    };
    assert!(Prefetch::new((0..100).map(batch)).map(pid).eq(0..100));
    // Without an end: dropping waits for the thread, which has to notice.
    let mut endless = Prefetch::new((0..).map(batch));
    assert_eq!(endless.next().map(pid), Some(0));
    drop(endless);
}

#[test]
#[should_panic(expected = "while decoding")]
fn a_panic_of_the_prefetching_thread_is_passed_on() {
    let _ = Prefetch::new(std::iter::once_with(|| panic!("while decoding"))).count();
}

#[test]
fn a_profile_is_that_of_its_own_inputs_and_options_alone() {
    let recording = || -> Arc<dyn Recording> {
        Arc::new(BuiltRecording::new(format("perf_data"), Offsets::default(), Box::new(|_, _| None)))
    };
    let of = |recording: &Arc<dyn Recording>| ProfileInput {
        recording: Arc::clone(recording),
        clock: Clock::nanoseconds("monotonic"),
        pid: None,
        nth_of_pid: Arc::default(),
        definitions: None,
    };
    let options = || ProfileOptions { debug_info: true, ..ProfileOptions::default() };
    let own = recording();
    let made = Profile::new(vec![of(&own)], options());
    assert!(made.is_of(&[of(&own)], &options()));

    let other_inputs = [
        vec![],
        vec![of(&recording())],
        vec![of(&own), of(&recording())],
        vec![ProfileInput { clock: Clock::nanoseconds("perf"), ..of(&own) }],
        vec![ProfileInput { pid: Some(1), ..of(&own) }],
        vec![ProfileInput { nth_of_pid: Arc::new([(1, 1)].into()), ..of(&own) }],
        vec![ProfileInput {
            definitions: Some(Arc::new(DefinedLines::new(std::iter::empty::<(String, Vec<_>)>()))),
            ..of(&own)
        }],
    ];
    for inputs in other_inputs {
        assert!(!made.is_of(&inputs, &options()));
    }
    let other_options = [
        ProfileOptions { debug_info: false, ..options() },
        ProfileOptions { symbol_dirs: vec!["/symbols".into()], ..options() },
        ProfileOptions { recorded_on: Some(("host".to_owned(), "6.1".to_owned())), ..options() },
        ProfileOptions { follow: Follow::Nothing, ..options() },
        ProfileOptions { unpack_limit: UnpackLimit::bytes(1 << 20), ..options() },
    ];
    for other in other_options {
        assert!(!made.is_of(&[of(&own)], &other));
    }
}
