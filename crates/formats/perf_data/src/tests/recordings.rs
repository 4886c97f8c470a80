//! Real recordings, compared with perf's own output.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};

use super::{batches, codes, open, testdata};
use crate::PerfData;
use perfuse_recording::Recording;

/// Every perf.data of the corpus of JITDUMP.
fn corpus_files() -> Vec<PathBuf> {
    let files = perfuse_corpus::files(&["jitdump/produced"]);
    files.into_iter().filter(|path| path.to_str().unwrap().ends_with(".perf.data")).collect()
}

/// Number of samples by file, from `perf report -D` of the recording perf.
const CORPUS_SAMPLES: &[(&str, u64)] = &[
    ("cpython313", 226),
    ("llvm14-mcjit", 553),
    ("node20", 1419),
    ("node20-noclock", 1429),
    ("node20-nsz", 1299),
    ("node24", 1122),
    ("node24-5k", 2085),
    ("openjdk17-jvmti", 3309),
    ("postgres15", 1628),
    ("wasmtime50", 1366),
];

fn count(perf: &PerfData, name: &str) -> u64 {
    perf.summary().counts.iter().find(|(kind, _)| kind == name).map_or(0, |(_, count)| *count)
}

/// Number of records of each kind from perf itself, where it is installed and can read the file.
fn perf_counts(path: &std::path::Path) -> Option<BTreeMap<String, u64>> {
    let output = Command::new("perf").args(["report", "-D", "-i"]).arg(path).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut counts = BTreeMap::new();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        if word.starts_with("PERF_RECORD_") {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    (output.status.success() && !counts.is_empty()).then_some(counts)
}

fn assert_perf_agrees(path: &std::path::Path) {
    let perf = open(path);
    let Some(theirs) = perf_counts(path) else { return };
    for (name, expected) in theirs {
        let name = match name.as_str() {
            "PERF_RECORD_ATTR" => "PERF_RECORD_HEADER_ATTR",
            "PERF_RECORD_FEATURE" => "PERF_RECORD_HEADER_FEATURE",
            same => same,
        };
        assert_eq!(count(&perf, name), expected, "{name} in {}", path.display());
    }
}

#[test]
fn every_recording_of_the_corpus() {
    let files = corpus_files();
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let stem = name.strip_suffix(".perf.data").unwrap();
        let perf = open(path);
        let samples = count(&perf, "PERF_RECORD_SAMPLE");
        if let Some((_, expected)) = CORPUS_SAMPLES.iter().find(|(name, _)| *name == stem) {
            assert_eq!(samples, *expected, "{name}");
        }
        assert_perf_agrees(path);
        assert_eq!(
            batches(&perf, "callchains").iter().map(|b| b.num_rows() as u64).sum::<u64>(),
            samples,
            "{name}"
        );
        assert_eq!(perf.extent().sample, samples, "{name}");
        assert_eq!(perf.clock_is_monotonic(), stem != "node20-noclock", "{name}");
        let expected: &[&str] = match stem {
            "node20-noclock" => &["PD008"],
            "cpython315-dwarf" => &["PD009"],
            _ => &[],
        };
        assert_eq!(codes(&perf), expected, "{name}");
        assert!(perf.jit_markers().len() == 1, "{name}: {:?}", perf.jit_markers());
    }
    assert!(files.is_empty() || files.len() == 16, "{} recordings", files.len());
}

#[test]
fn small_recordings() {
    for name in ["fork", "zstd", "pipe", "dwarf", "group"] {
        assert_perf_agrees(&testdata(&format!("{name}.perf.data")));
    }
}

#[test]
fn compressed_and_piped_files() {
    for name in ["fork", "zstd", "pipe"] {
        let perf = open(&testdata(&format!("{name}.perf.data")));
        assert_eq!(perf.clockid(), Some(1), "{name}");
        assert_eq!(perf.hostname().as_deref(), Some("vm"), "{name}");
        assert_eq!(perf.perf_version().as_deref(), Some("6.1.192"), "{name}");
        assert_eq!(perf.command_line().unwrap().last().unwrap(), "./spin", "{name}");
        assert!(perf.clock_data().unwrap().wall_clock_ns > 1_700_000_000_000_000_000, "{name}");
        assert_eq!(codes(&perf), [""; 0], "{name}");
        let rows = batches(&perf, "callchains");
        assert_eq!(rows.len(), 1);
        let times = rows[0].column_by_name("ts_ns").unwrap().as_primitive::<Int64Type>();
        assert!(times.values().is_sorted(), "{name}");
        let events =
            rows[0].column_by_name("event").unwrap().as_dictionary::<arrow_array::types::Int32Type>();
        assert_eq!(events.values().as_string::<i32>().value(0), "cpu-clock");
        let periods = rows[0].column_by_name("period").unwrap().as_primitive::<UInt64Type>();
        assert!(periods.values().iter().all(|&period| period == 2_004_008), "{name}");
    }
}

/// The child that computes has its parent's program; the child that calls exec has only its own.
#[test]
fn forked_processes_inherit_mappings() {
    let perf = open(&testdata("fork.perf.data"));
    assert_eq!(perf.execs().len(), 2);
    let processes = batches(&perf, "processes");
    let pids =
        processes[0].column_by_name("pid").unwrap().as_primitive::<arrow_array::types::Int32Type>().clone();
    let names = processes[0].column_by_name("name").unwrap().as_dictionary::<arrow_array::types::Int32Type>();
    let names = names.downcast_dict::<arrow_array::StringArray>().unwrap();
    let named: BTreeMap<i32, &str> = pids.values().iter().copied().zip(names.into_iter().flatten()).collect();
    assert_eq!(named.into_values().collect::<Vec<_>>(), ["spin", "spin", "true"]);

    let mappings = batches(&perf, "mappings");
    let process = mappings[0].column_by_name("process_id").unwrap().as_primitive::<UInt32Type>();
    let paths = mappings[0].column_by_name("path").unwrap().as_dictionary::<arrow_array::types::Int32Type>();
    let paths = paths.downcast_dict::<arrow_array::StringArray>().unwrap();
    let mut by_process: BTreeMap<Option<u32>, Vec<String>> = BTreeMap::new();
    for (process, path) in process.iter().zip(paths) {
        let name = path.unwrap().rsplit('/').next().unwrap();
        by_process.entry(process).or_default().push(name.to_owned());
    }
    let lists: Vec<_> = by_process.into_values().collect();
    let own = ["spin", "ld-linux-x86-64.so.2", "[vdso]", "libc.so.6"];
    assert_eq!(lists[0], ["[kernel.kallsyms]_text"]);
    assert_eq!(lists[1], own);
    assert_eq!(lists[2], own);
    assert_eq!(lists[3], ["true", "ld-linux-x86-64.so.2", "[vdso]", "libc.so.6"]);
}

#[test]
fn user_stacks_remain_readable() {
    let perf = open(&testdata("dwarf.perf.data"));
    assert_eq!(perf.num_user_stacks(), 31);
    let (mut num, mut bytes) = (0, 0);
    perf.for_each_sample(|index, sample| {
        assert_eq!(index, num);
        num += 1;
        bytes += sample.user.stack.map_or(0, <[u8]>::len);
        assert!(sample.user.registers.is_none_or(|regs| regs.abi == 2 && regs.values.len() == 20));
    });
    assert_eq!(num, 31);
    assert!(bytes > 10_000, "{bytes}");
    assert_eq!(copied_stacks(&perf), bytes);
    // Two events distinguished by id, in the numbers of `perf script`.
    let rows = batches(&perf, "callchains");
    let events = rows[0].column_by_name("event").unwrap().as_dictionary::<arrow_array::types::Int32Type>();
    let events = events.downcast_dict::<arrow_array::StringArray>().unwrap();
    assert_eq!(events.into_iter().filter(|event| *event == Some("page-faults")).count(), 5);
}

/// Number of bytes of all stacks that `callchains` refers to. Checks that their registers are plausible.
fn copied_stacks(perf: &PerfData) -> usize {
    let (mut bytes, mut registers) = (0, Vec::new());
    for rows in batches(perf, "callchains") {
        let numbers = rows.column_by_name("user_stack").unwrap().as_primitive::<UInt64Type>();
        for number in numbers.iter().flatten() {
            let Some(stack) = perf.user_stack(number, &mut registers) else { continue };
            bytes += stack.len();
            let pairs = registers.as_chunks::<2>().0;
            assert_eq!(pairs.len(), 17, "general registers and the program counter of x86-64");
            let [sp] = pairs.iter().filter(|[number, _]| *number == 7).collect::<Vec<_>>()[..] else {
                panic!()
            };
            assert_eq!((pairs[16][0], sp[1] % 8), (16, 0));
        }
    }
    bytes
}

/// Samples of a group contain the counters of its members, before the call chain.
#[test]
fn grouped_samples_are_decoded() {
    let perf = open(&testdata("group.perf.data"));
    perf.for_each_sample(|_, sample| {
        assert_eq!(sample.head.read.unwrap().iter().next(), Some(2));
        assert!(!sample.head.callchain.unwrap().is_empty());
    });
    assert_eq!(codes(&perf), ["PD008"]);
}

/// The field parser of the linux-perf-data crate, which is independent of this one, reads the same samples.
#[test]
fn another_reader_agrees() {
    use linux_perf_data::linux_perf_event_reader::EventRecord;
    use linux_perf_data::{PerfFileReader, PerfFileRecord};
    // Not `group`: the crate confuses counter groups and single counters.
    let mut paths: Vec<_> = ["fork", "dwarf"].map(|name| testdata(&format!("{name}.perf.data"))).into();
    paths.extend(corpus_files());
    for path in paths {
        let PerfFileReader { mut perf_file, mut record_iter } =
            PerfFileReader::parse_file(std::fs::File::open(&path).unwrap()).unwrap();
        let mut theirs = Vec::new();
        while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
            if let PerfFileRecord::EventRecord { record, .. } = record
                && let EventRecord::Sample(sample) = record.parse().unwrap()
            {
                let chain = sample.callchain.unwrap();
                let chain: Vec<_> = (0..chain.len()).map(|i| chain.get(i).unwrap()).collect();
                let stack = sample.user_stack.map(|(bytes, len)| bytes.as_slice()[..len as usize].to_vec());
                theirs.push((
                    sample.timestamp,
                    sample.ip,
                    sample.pid,
                    sample.tid,
                    sample.period,
                    chain,
                    stack,
                ));
            }
        }
        let mut ours = Vec::new();
        open(&path).for_each_sample(|_, sample| {
            let head = sample.head;
            let chain = head.callchain.unwrap().iter().collect();
            let stack = sample.user.stack.map(<[u8]>::to_vec);
            ours.push((head.time, head.ip, head.pid, head.tid, head.period, chain, stack));
        });
        assert_eq!(ours, theirs, "{}", path.display());
    }
}
