//! Object files of every machine, as two compilers write them.

use std::path::{Path, PathBuf};
use std::process::Command;

use perfuse_binaries::xray_map::{InstrumentationMap, MapFile, SledKind};

use crate::tools::{Function, Scratch, functions, have, run, symbolizer};

pub const SOURCE: &str = "
#define SLEDS __attribute__((noinline, xray_always_instrument))
extern \"C\" long outside(long);
namespace shapes {
struct Square { long side; SLEDS long area(long scale); };
long Square::area(long scale) { return side * side * scale; }
}
SLEDS __attribute__((xray_log_args(1))) long pick(long n) {
    if (n > 3) return outside(n) * 2;
    return outside(n + 1) + 1;
}
SLEDS static long hidden(long n) { return outside(n) - outside(-n); }
SLEDS long chain(long n) { return hidden(n) + pick(n); }
template <typename T> SLEDS T twice(T value) { return value + value; }
template int twice<int>(int);
long without(long n) { return chain(n) + 1; }
#ifdef EVENTS
SLEDS long events(long n) {
    long before = outside(n);
    __xray_customevent(\"custom\", 6);
    __xray_typedevent(7, \"typed\", 5);
    return before + outside(n + 1);
}
#endif
";

/// Functions of [`SOURCE`] that have sleds, and what their line begins with.
pub const FUNCTIONS: [(&str, &str); 5] = [
    ("_ZN6shapes6Square4areaEl", "long Square::area("),
    ("_Z4pickl", "SLEDS __attribute__((xray_log_args(1)))"),
    ("_ZL6hiddenl", "SLEDS static long hidden("),
    ("_Z5chainl", "SLEDS long chain("),
    ("_Z5twiceIiET_S0_", "template <typename T> SLEDS T twice("),
];

/// Every compiler that is here, or has to be.
pub fn compilers() -> impl Iterator<Item = &'static str> {
    ["clang-14", "clang-22"].into_iter().filter(|compiler| have(&[compiler]))
}

/// Compiles [`SOURCE`]; `None` where the compiler has no XRay for the target.
pub fn compile(scratch: &Scratch, compiler: &str, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let (source, object) = (scratch.write("shapes.cc", SOURCE), scratch.0.join(name));
    let mut command = Command::new(compiler);
    command.args(["-c", "-O1", "-fxray-instrument", "-Wno-stdlibcxx-not-found"]).args(flags);
    let output = command.arg(&source).arg("-o").arg(&object).output().expect("a compiler");
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("fxray-instrument") {
        return None;
    }
    assert!(output.status.success(), "{command:?}: {errors}");
    Some(object)
}

/// Compares a map with [`FUNCTIONS`] and the file's own symbols, which have `prefix` before their names.
pub fn is_right(file: &Path, prefix: &str) -> InstrumentationMap {
    let opened = MapFile::open(file, None).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let map = opened.map();
    assert_eq!(map.findings, [], "{}", file.display());
    let names = opened.names(&map.functions, &symbolizer(true));
    let symbols = functions(file);
    let mut found = Vec::new();
    for ((function, frame), id) in map.functions.iter().zip(&names.functions).zip(1..) {
        let frame = frame.as_ref().unwrap_or_else(|| panic!("{}: no name for {function:?}", file.display()));
        let raw = frame.linkage_name.as_deref().unwrap_or(&frame.name);
        let symbol = symbols.iter().find(|symbol| symbol.name.strip_prefix(prefix) == Some(raw));
        let symbol = symbol.unwrap_or_else(|| panic!("{raw} is not in {symbols:?}"));
        assert_eq!(function.id, id);
        assert_eq!(
            function.location.map(|location| location.address),
            Some(symbol.address),
            "{raw} in {}",
            file.display()
        );
        sleds_are_right(map, function.sleds.clone(), symbol);
        found.push(raw.to_owned());
    }
    let mut expected = FUNCTIONS.map(|(name, _)| name.to_owned());
    found.retain(|name| !name.contains("events"));
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{}", file.display());
    InstrumentationMap::read(&std::fs::read(file).expect("the file"), None).expect("a map")
}

fn sleds_are_right(map: &InstrumentationMap, sleds: std::ops::Range<usize>, symbol: &Function) {
    let sleds = &map.sleds[sleds];
    let entry =
        if symbol.name.ends_with("Z4pickl") { SledKind::LOG_ARGS_ENTER } else { SledKind::FUNCTION_ENTER };
    assert_eq!(sleds[0].kind, entry, "{symbol:?}");
    for sled in sleds {
        // clang 14 writes version 0 for Hexagon instead of 2.
        let version = if map.architecture == "hexagon" { sled.version } else { 2 };
        let expected = (sleds[0].function, true, version);
        assert_eq!((sled.function, sled.always_instrument, sled.version), expected, "{symbol:?}");
        let within = sled.location.expect("a location").address - symbol.address;
        assert!(symbol.size == 0 || within < symbol.size, "{sled:?} is not in {symbol:?}");
        assert!(sled.kind.name().is_some(), "{sled:?}");
    }
    let mut kinds = sleds.iter().map(|sled| sled.kind);
    assert!(
        kinds.any(|kind| kind == SledKind::FUNCTION_EXIT || kind == SledKind::TAIL_EXIT),
        "{symbol:?} ends"
    );
    if symbol.name.contains("events") {
        let kinds: Vec<SledKind> = sleds.iter().map(|sled| sled.kind).collect();
        assert!(
            kinds.contains(&SledKind::CUSTOM_EVENT) && kinds.contains(&SledKind::TYPED_EVENT),
            "{kinds:?}"
        );
    }
}

/// Machines of Linux that a compiler has XRay for.
pub const TARGETS: [&str; 10] = [
    "x86_64-linux-gnu",
    "aarch64-linux-gnu",
    "armv7-linux-gnueabihf",
    "powerpc64le-linux-gnu",
    "riscv64-linux-gnu",
    "loongarch64-linux-gnu",
    "s390x-linux-gnu",
    "mips-linux-gnu",
    "mips64el-linux-gnuabi64",
    "hexagon-linux-musl",
];

#[test]
fn relocations_contain_the_addresses_of_sleds_in_object_files() {
    let scratch = Scratch::new("objects");
    let mut num_read = 0;
    for compiler in compilers().filter(|_| have(&["llvm-nm-22"])) {
        for target in TARGETS {
            let target = format!("--target={target}");
            for flags in [&[target.as_str()][..], &[&target, "-ffunction-sections"]] {
                if let Some(object) = compile(&scratch, compiler, "shapes.o", flags) {
                    let map = is_right(&object, "");
                    let in_sections = map.functions.iter().all(|function| {
                        let location = function.location.expect("a location");
                        map.section_name(location).is_some_and(|name| name.starts_with(".text"))
                    });
                    assert!(in_sections, "{compiler} {flags:?}");
                    num_read += 1;
                }
            }
        }
    }
    // clang 14 has no XRay for RISC-V, LoongArch and s390x.
    assert!(num_read == 34 || !have(&["clang-14", "clang-22", "llvm-nm-22"]), "{num_read}");
}

#[test]
fn custom_and_typed_events_have_sleds() {
    let scratch = Scratch::new("events");
    for compiler in compilers().filter(|_| have(&["llvm-nm-22"])) {
        for target in ["--target=x86_64-linux-gnu", "--target=aarch64-linux-gnu"] {
            if compiler == "clang-14" && target.contains("aarch64") {
                // It has sleds for events on x86-64 alone.
                continue;
            }
            let object = compile(&scratch, compiler, "events.o", &[target, "-DEVENTS"]).expect("XRay");
            assert_eq!(is_right(&object, "").functions.len(), FUNCTIONS.len() + 1);
        }
    }
}

#[test]
fn mach_o_is_read_too() {
    if !have(&["clang-22", "ld64.lld-22", "llvm-lipo-22", "llvm-nm-22"]) {
        return;
    }
    let scratch = Scratch::new("mach-o");
    let mut libraries = Vec::new();
    for (arch, target) in [("x86_64", "x86_64-apple-macosx"), ("arm64", "arm64-apple-macos")] {
        let object = compile(&scratch, "clang-22", arch, &[&format!("--target={target}")]).expect("XRay");
        is_right(&object, "_");
        let library = scratch.0.join(format!("{arch}.dylib"));
        let mut linker = Command::new("ld64.lld-22");
        linker.args(["-arch", arch, "-platform_version", "macos", "13", "13", "-dylib"]);
        run(linker.args(["-undefined", "dynamic_lookup"]).arg(&object).arg("-o").arg(&library));
        is_right(&library, "_");
        libraries.push(library);
    }
    let universal = scratch.0.join("universal.dylib");
    run(Command::new("llvm-lipo-22").arg("-create").args(&libraries).arg("-output").arg(&universal));
    for (architecture, library) in ["x86_64", "aarch64"].into_iter().zip(&libraries) {
        let alone = MapFile::open(library, None).expect("a map");
        let part = MapFile::open(&universal, Some(architecture)).expect("a map");
        assert_eq!((part.map().architecture, part.map().findings.len()), (architecture, 0));
        assert_eq!(part.map().functions, alone.map().functions);
        let names = |file: &MapFile| file.names(&file.map().functions, &symbolizer(false)).functions;
        assert_eq!(names(&part), names(&alone));
    }
    let any = MapFile::open(&universal, None).expect("a map");
    assert_eq!(any.map().findings.len(), 1, "{:?}", any.map().findings);
    assert!(any.map().findings[0].message.contains("x86_64, aarch64"), "{:?}", any.map().findings);
    assert!(MapFile::open(&universal, Some("s390x")).is_err());
}
