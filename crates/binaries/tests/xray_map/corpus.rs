//! Every program and library of the corpus, compared with llvm-xray's output.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use perfuse_binaries::xray_map::{MapFile, SledKind};

use crate::extracted::{self, Line};
use crate::tools::{run, symbolizer};

/// The corpus's folder of XRay; `None` where it does not exist.
pub fn corpus() -> Option<PathBuf> {
    perfuse_corpus::find("xray")
}

fn expected(corpus: &Path, program: &str) -> Option<Vec<Line>> {
    let plain = corpus.join("expected").join(format!("{program}.instrmap.yaml"));
    if let Ok(text) = std::fs::read_to_string(&plain) {
        return Some(extracted::lines(&text));
    }
    let packed = std::fs::File::open(plain.with_extension("yaml.gz")).ok()?;
    let mut text = String::new();
    GzDecoder::new(packed).read_to_string(&mut text).expect("text");
    Some(extracted::lines(&text))
}

fn programs(corpus: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["bin", "dso"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(corpus.join(folder)).expect("a folder"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_none_or(|extension| extension != "xray"))
        .collect();
    found.sort();
    found
}

#[test]
fn maps_are_those_of_llvm_xray() {
    let Some(corpus) = corpus() else { return };
    let mut num_compared = 0;
    for path in programs(&corpus) {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let file = MapFile::open(&path, None).unwrap_or_else(|error| panic!("{name}: {error}"));
        let map = file.map();
        assert_eq!(map.findings, [], "{name}");
        assert_eq!((map.architecture, map.pointer_bytes), ("x86_64", 8), "{name}");
        let found = extracted::of(map, &file.names(&map.functions, &symbolizer(true)));
        if let Some(expected) = expected(&corpus, name) {
            assert_eq!(found.len(), expected.len(), "{name}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(found.agrees(expected), "{name}: {found:?}, not {expected:?}");
            }
            num_compared += 1;
        } else {
            assert!(found.iter().all(|line| !line.name.is_empty()), "{name}");
        }
    }
    assert!(num_compared >= 20, "{num_compared} programs with an expected map");
}

/// llvm-xray refuses programs with typed events, so the expected contents come from nm and readelf.
#[test]
fn typed_events_are_read() {
    let Some(corpus) = corpus() else { return };
    let path = corpus.join("bin/typed22");
    let file = MapFile::open(&path, None).expect("a map");
    let map = file.map();
    let sections = run(Command::new("readelf").arg("-SW").arg(&path));
    let section = sections.lines().find(|line| line.contains("xray_instr_map")).expect("the section");
    let size = section.split_whitespace().rev().nth(5).expect("a size");
    let size = usize::from_str_radix(size, 16).expect("a number");
    assert_eq!(map.sleds.len() * 32, size, "{section}");
    let num_typed = map.sleds.iter().filter(|sled| sled.kind == SledKind::TYPED_EVENT).count();
    assert!(num_typed > 0 && map.sleds.iter().all(|sled| sled.kind.name().is_some()));

    let listing = run(Command::new("nm").args(["-C", "--defined-only"]).arg(&path));
    for (function, frame) in map.functions.iter().zip(file.names(&map.functions, &symbolizer(true)).functions)
    {
        let address = format!("{:016x} ", function.location.expect("a location").address);
        let named = frame.expect("a name").name;
        assert!(
            listing.lines().any(|line| line.starts_with(&address) && line.ends_with(&*named)),
            "{address} {named}"
        );
    }
}
