//! Every target with its stored inputs, with the fixtures of its formats, and with changed copies of both, without the
//! instrumentation that `fuzz/run` needs.
//!
//! `PERFUSE_FUZZ_RUNS` is the number of changed copies of each input, `PROPTEST_RNG_SEED` what they are chosen from,
//! `PERFUSE_FUZZ_TARGET` a part of the names of the targets. Inputs that fail are written to `fuzz/artifacts`.

use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use perfuse_fuzzing::{Target, targets};

/// Changed copies of each input, unless the environment states another number.
const RUNS: u64 = 2;

/// Larger files take too long for a test.
const MAX_BYTES: usize = 24 << 10;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The files of a folder that are not too large, in order of their names; none where it does not exist.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    let mut contents = Vec::new();
    for path in found {
        if path.is_dir() {
            contents.extend(files(&path));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        if bytes.len() <= MAX_BYTES {
            contents.push((path.file_name().unwrap().to_string_lossy().into_owned(), bytes));
        }
    }
    contents
}

/// What a target starts from: its stored inputs, then the fixtures of its formats.
fn inputs(target: &Target) -> Vec<(String, Vec<u8>)> {
    let mut all = files(&root().join("fuzz/stored").join(&target.name));
    for format in target.seeds.split_whitespace() {
        all.extend(files(&root().join("crates/formats").join(format).join("src/testdata")));
    }
    all
}

/// Numbers that look random: xorshift, from a seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// Values at which sizes and counts are compared.
const VALUES: [u64; 12] =
    [0, 1, 7, 8, 16, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff];

/// A copy of an input with one to four changes.
fn changed(input: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        let length = numbers.below(64).min(bytes.len() - at);
        match numbers.below(9) {
            0 | 1 if !bytes.is_empty() => bytes[at] = numbers.next() as u8,
            2 if !bytes.is_empty() => bytes[at] ^= 1 << numbers.below(8),
            3 | 4 => {
                let value = VALUES[numbers.below(VALUES.len())];
                let size = [1, 2, 4, 8][numbers.below(4)].min(bytes.len() - at);
                let value = if numbers.below(4) == 0 { value.to_be_bytes() } else { value.to_le_bytes() };
                bytes[at..at + size].copy_from_slice(&value[..size]);
            }
            5 => drop(bytes.drain(at..at + length)),
            6 => bytes.truncate(at),
            7 => {
                let piece = bytes[at..at + length].to_vec();
                let to = numbers.below(bytes.len());
                drop(bytes.splice(to..to, piece));
            }
            _ => {
                let from = numbers.below(other.len());
                let piece = &other[from..(from + numbers.below(256)).min(other.len())];
                drop(bytes.splice(at..at + length, piece.iter().copied()));
            }
        }
    }
    bytes.truncate(MAX_BYTES);
    bytes
}

fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

/// Runs a target with an input; where it fails, stores the input, and returns why.
fn failure(target: &Target, name: &str, bytes: &[u8]) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).err()?;
    let folder = root().join("fuzz/artifacts").join(&target.name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), bytes).unwrap();
    Some(format!("{} with fuzz/artifacts/{}/{name}: {}", target.name, target.name, reason(&*panic)))
}

/// Runs the targets of a kind.
fn run(is_of_kind: impl Fn(&str) -> bool) {
    let (runs, seed) = (number("PERFUSE_FUZZ_RUNS", RUNS), number("PROPTEST_RNG_SEED", 1));
    let selected = std::env::var("PERFUSE_FUZZ_TARGET").unwrap_or_default();
    let mut failures = Vec::new();
    let mut num_targets = 0;
    for target in targets().iter().filter(|it| is_of_kind(&it.name) && it.name.contains(&selected)) {
        let inputs = inputs(target);
        let (begin, mut num_runs) = (Instant::now(), 0u64);
        num_targets += 1;
        assert!(!inputs.is_empty(), "{} has no stored inputs", target.name);
        for (number, (name, bytes)) in inputs.iter().enumerate() {
            failures.extend(failure(target, name, bytes));
            num_runs += 1;
            let mut numbers = Numbers((seed << 32) ^ (number as u64 + 1) ^ 0x9e37_79b9_7f4a_7c15);
            for copy in 0..runs {
                let other = &inputs[numbers.below(inputs.len())].1;
                let bytes = changed(bytes, other, &mut numbers);
                failures.extend(failure(target, &format!("{name}-{seed}-{copy}"), &bytes));
                num_runs += 1;
                if failures.len() > 20 {
                    break;
                }
            }
        }
        let seconds = begin.elapsed().as_secs_f64().max(1e-6);
        println!("{}: {num_runs} executions, {:.0} per second", target.name, num_runs as f64 / seconds);
    }
    assert!(num_targets > 0 || !selected.is_empty(), "no targets");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn records() {
    run(|name| name.starts_with("records-"));
}

#[test]
fn tables() {
    run(|name| name.starts_with("tables-"));
}

#[test]
fn repairs() {
    run(|name| name.starts_with("repair-"));
}

#[test]
fn written_files() {
    run(|name| name.starts_with("written-"));
}

#[test]
fn others() {
    run(|name| !["records-", "tables-", "repair-", "written-"].iter().any(|kind| name.starts_with(kind)));
}
