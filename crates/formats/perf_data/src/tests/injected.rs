//! Written recordings, read by this crate and by perf.

use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use super::{batches, codes, open, open_bytes, testdata};
use crate::{InjectError, InjectedBuildId, InjectedMmap, PerfData, inject};
use perfuse_recording::{Position, Recording};

fn injected(perf: &PerfData, mmaps: &[InjectedMmap]) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    inject(perf, mmaps, &[], &mut out).unwrap();
    out.into_inner()
}

fn mmap(pid: i32, ts_ns: u64, start_address: u64) -> InjectedMmap {
    let path = "/jit/code.so".to_owned();
    InjectedMmap {
        pid,
        tid: pid,
        ts_ns,
        start_address,
        size: 0x1000,
        file_offset: 0x80,
        path,
        build_id: None,
    }
}

fn samples(perf: &PerfData) -> Vec<(Option<u64>, Option<u64>, Vec<u64>)> {
    let mut list = Vec::new();
    perf.for_each_sample(|_, sample| {
        let chain = sample.head.callchain.map(|words| words.iter().collect()).unwrap_or_default();
        list.push((sample.head.time, sample.head.ip, chain));
    });
    list
}

#[test]
fn a_copy_has_the_same_samples_mappings_and_facts() {
    for name in ["fork", "zstd", "pipe", "dwarf", "group"] {
        let perf = open(&testdata(&format!("{name}.perf.data")));
        let again = open_bytes(injected(&perf, &[]));
        assert_eq!(samples(&again), samples(&perf), "{name}");
        assert_eq!(again.extent(), perf.extent(), "{name}");
        assert_eq!(again.command_line(), perf.command_line(), "{name}");
        assert_eq!(again.clock_data(), perf.clock_data(), "{name}");
        assert_eq!(codes(&again), codes(&perf), "{name}");
        // A file in time order does not change.
        let twice = injected(&again, &[]);
        assert_eq!(twice, injected(&perf, &[]), "{name}");
    }
}

#[test]
fn added_mappings_are_in_time_order() {
    let perf = open(&testdata("fork.perf.data"));
    let times: Vec<_> = samples(&perf).iter().map(|(time, ..)| time.unwrap()).collect();
    let middle = times[times.len() / 2];
    let parent = perf.execs()[0];
    let added = [mmap(parent.pid, middle, 0x10_0000), mmap(parent.pid, parent.ts + 1, 0x20_0000)];
    let again = open_bytes(injected(&perf, &added));
    assert_eq!(again.extent().mapping, perf.extent().mapping + 2 + 1, "the child inherits the early one");
    let mut at = Position::default();
    let kernel = std::iter::from_fn(|| again.next_record(&mut at)).filter_map(|view| view.timestamp);
    assert!(kernel.filter(|&time| time != 0).is_sorted());
}

#[test]
fn build_ids_are_added_to_the_table_and_the_record() {
    let perf = open(&testdata("fork.perf.data"));
    let ids = [InjectedBuildId { path: "/jit/other.so".to_owned(), build_id: vec![0xab; 20] }];
    let one = InjectedMmap { build_id: Some(vec![1, 2, 3, 4]), ..mmap(1, 5, 0x1000) };
    let mut out = Cursor::new(Vec::new());
    let result = inject(&perf, &[one], &ids, &mut out).unwrap();
    assert_eq!((result.num_added, result.num_dropped), (1, 0));
    let again = open_bytes(out.into_inner());
    let hex: Vec<_> = batches(&again, "mappings").iter().map(|batch| format!("{batch:?}")).collect();
    assert!(hex.concat().contains("01020304"));
    let table = again.file().build_ids();
    assert_eq!(table.get(b"/jit/other.so", 2), Some(&[0xab; 20][..]));

    let long = InjectedMmap { build_id: Some(vec![0; 21]), ..mmap(1, 5, 0x1000) };
    let refused = inject(&perf, &[long], &[], &mut Cursor::new(Vec::new()));
    assert!(matches!(refused, Err(InjectError::TooLong(_))));
}

/// Unused trailing fields of attributes, which older versions of perf reject, are not written.
#[test]
fn attributes_have_no_unused_fields() {
    let perf = open(&testdata("fork.perf.data"));
    let again = open_bytes(injected(&perf, &[]));
    let size = |perf: &PerfData| perf.file().attributes.list()[0].bytes.len();
    assert!(size(&again) < size(&perf), "{} {}", size(&again), size(&perf));
    let bytes = &again.file().attributes.list()[0].bytes;
    assert_eq!(u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize, bytes.len());
    let whole = &perf.file().attributes.list()[0].bytes;
    assert!(whole[8..].starts_with(&bytes[8..]) && whole[bytes.len()..].iter().all(|&byte| byte == 0));
}

/// `perf script` on a file, where perf is installed.
fn script(path: &Path) -> Option<String> {
    let fields = "pid,tid,time,event,ip,sym,dso";
    let output =
        Command::new("perf").args(["script", "--no-inline", "-F", fields, "-i"]).arg(path).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn written(test: &str, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("perfuse-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn perf_shows_a_copy_like_the_recording() {
    for name in ["fork", "zstd", "pipe", "dwarf", "group"] {
        let original = testdata(&format!("{name}.perf.data"));
        let Some(expected) = script(&original) else { return };
        let path = written("again", name, &injected(&open(&original), &[]));
        assert_eq!(script(&path).unwrap(), expected, "{name}");
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}

/// A file of one symbol is mapped over code that was sampled, half-way through the recording: perf must show the symbol
/// for the later half of the samples there, and only for those.
#[test]
fn perf_finds_added_code_after_its_time() {
    let assembly = written(
        "added",
        "code.s",
        b".text\n.globl jitted\n.type jitted,@function\njitted: .fill 0x3000,1,0x90\n.size jitted,.-jitted\n",
    );
    let library = assembly.with_extension("so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-nostdlib", "-Wl,-z,separate-code", "-o"]).arg(&library).arg(&assembly);
    if !gcc.status().is_ok_and(|status| status.success()) {
        return;
    }
    let perf = open(&testdata("fork.perf.data"));
    // The parent computes in a loop in one page of its program.
    let parent = perf.execs()[0].pid;
    let mut hot = Vec::new();
    perf.for_each_sample(|_, sample| {
        let (ip, pid) = (sample.head.ip.unwrap(), sample.head.pid.unwrap());
        if pid == parent && (0x5000_0000_0000..0x6000_0000_0000).contains(&ip) {
            hot.push((sample.head.time.unwrap(), ip & !0xfff));
        }
    });
    let (since, page) = hot[hot.len() / 2];
    let added = [InjectedMmap {
        file_offset: 0x1000,
        path: library.to_str().unwrap().to_owned(),
        ..mmap(parent, since, page)
    }];
    let path = written("added", "code.perf.data", &injected(&perf, &added));
    let Some(text) = script(&path) else { return };
    let mut num = (0, 0);
    for block in text.split("\n\n").filter(|block| block.trim_start().starts_with(&format!("{parent}/"))) {
        let mut lines = block.lines();
        let head = lines.next().unwrap();
        let seconds = head.split_whitespace().nth(1).unwrap().trim_end_matches(':');
        let micros: u64 = seconds.replace('.', "").parse().unwrap();
        let leaf = lines.next().unwrap();
        let named = leaf.contains("jitted");
        if !named && !leaf.contains("/spin)") {
            continue;
        }
        assert_eq!(named, micros >= since / 1000, "{block}");
        if named { num.1 += 1 } else { num.0 += 1 }
    }
    assert!(num.0 > 0 && num.1 > 0, "{num:?}");
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}
