//! Programs and libraries as linkers make them, and where their debug information is.

use std::path::{Path, PathBuf};
use std::process::Command;

use perfuse_binaries::symbolize::{SymbolFrame, Symbolizer};
use perfuse_binaries::xray_map::{FunctionNames, MapFile};

use crate::compiled::{FUNCTIONS, SOURCE, TARGETS, compile, compilers, is_right};
use crate::extracted;
use crate::tools::{Scratch, have, options, run, symbolizer};

/// What [`SOURCE`] and its sleds call: in place of a runtime, so that no library of the machine is needed.
const OUTSIDE: &str = "
long outside(long n) { return n; }
void __xray_FunctionEntry(void) {}
void __xray_FunctionExit(void) {}
void __xray_FunctionTailExit(void) {}
void __xray_ArgLoggerEntry(void) {}
";

/// Compiles [`SOURCE`], with what it calls beside it; `None` where the compiler has no XRay for the target.
fn objects(scratch: &Scratch, compiler: &str, target: Option<&str>, flags: &[&str]) -> Option<[PathBuf; 2]> {
    let target = target.map(|target| format!("--target={target}"));
    let all: Vec<&str> = target.as_deref().into_iter().chain(flags.iter().copied()).collect();
    let object = compile(scratch, compiler, "shapes.o", &all)?;
    let (source, outside) = (scratch.write("outside.c", OUTSIDE), scratch.0.join("outside.o"));
    run(Command::new(compiler).args(target).args(["-c", "-fPIC"]).arg(source).arg("-o").arg(&outside));
    Some([object, outside])
}

fn link(linker: &str, objects: &[PathBuf], name: &str, flags: &[&str]) -> PathBuf {
    let linked = objects[0].with_file_name(name);
    let mut command = Command::new(linker);
    run(command.args(flags).arg("--build-id=sha1").args(objects).arg("-o").arg(&linked));
    linked
}

#[test]
fn libraries_of_every_machine() {
    let scratch = Scratch::new("libraries");
    if !have(&["ld.lld-22", "llvm-nm-22"]) {
        return;
    }
    let mut num_read = 0;
    for compiler in compilers() {
        for target in TARGETS {
            let flags = ["-fPIC", "-ffunction-sections"];
            let Some(objects) = objects(&scratch, compiler, Some(target), &flags) else { continue };
            for kind in ["-shared", "-pie", "-no-pie"] {
                is_right(&link("ld.lld-22", &objects, "shapes", &[kind, "-e", "0", "--emit-relocs"]), "");
                num_read += 1;
            }
        }
    }
    assert!(num_read == 51 || !have(&["clang-14", "clang-22"]), "{num_read}");
}

/// Both linkers order and drop parts of the map with the functions these are about.
#[test]
fn functions_that_are_dropped_leave_the_map() {
    let scratch = Scratch::new("dropped");
    for compiler in compilers() {
        for linker in ["ld", "ld.lld-22"].into_iter().filter(|linker| have(&[linker])) {
            let flags = ["-ffunction-sections", "-fPIC", "-fvisibility=hidden"];
            let objects = objects(&scratch, compiler, None, &flags).expect("XRay");
            let program = link(linker, &objects, "shapes", &["-pie", "--gc-sections", "-e", "_Z5chainl"]);
            let file = MapFile::open(&program, None).expect("a map");
            assert_eq!(file.map().findings, [], "{compiler} {linker}");
            let names = file.names(&file.map().functions, &symbolizer(false));
            let mut names: Vec<&str> = frames(&names).map(|frame| &*frame.name).collect();
            names.sort_unstable();
            assert_eq!(names, ["chain(long)", "hidden(long)", "pick(long)"], "{compiler} {linker}");
        }
    }
}

/// A linker that folds equal functions into one leaves one part of the map, and of the index.
#[test]
fn functions_folded_into_one_are_one() {
    if !have(&["clang-22", "ld.lld-22"]) {
        return;
    }
    let scratch = Scratch::new("folded");
    let source = scratch.write(
        "folded.cc",
        "#define SLEDS __attribute__((noinline, xray_always_instrument))
        SLEDS long one(long n) { return n * 3; }
        SLEDS long other(long n) { return n * 3; }
        SLEDS long last(long n) { return n + 1; }",
    );
    let object = scratch.0.join("folded.o");
    let mut command = Command::new("clang-22");
    command.args(["-c", "-O1", "-fxray-instrument", "-ffunction-sections"]);
    run(command.arg(&source).arg("-o").arg(&object));
    let program = link(
        "ld.lld-22",
        &[object],
        "folded",
        &["-e", "_Z3onel", "--icf=all", "--unresolved-symbols=ignore-all"],
    );
    let file = MapFile::open(&program, None).expect("a map");
    let names = file.names(&file.map().functions, &symbolizer(false));
    let names: Vec<&str> = frames(&names).map(|frame| &*frame.name).collect();
    assert!(names.len() == 2 && names[0].starts_with('o') && names[1] == "last(long)", "{names:?}");
    assert_eq!(file.map().findings, []);
}

fn frames(names: &FunctionNames) -> impl Iterator<Item = &SymbolFrame> {
    names.functions.iter().map(|frame| frame.as_ref().expect("a name"))
}

fn line_of(text: &str) -> u32 {
    let line = SOURCE.lines().position(|line| line.starts_with(text));
    line.unwrap_or_else(|| panic!("no line begins with {text}")) as u32 + 1
}

/// Every function of the file is named and has the line of its declaration.
fn has_lines(file: &MapFile, symbolizer: &Symbolizer) {
    let names = file.names(&file.map().functions, symbolizer);
    assert_eq!(names.functions.len(), FUNCTIONS.len());
    for frame in frames(&names) {
        let raw = frame.linkage_name.as_deref().unwrap_or(&frame.name);
        let (_, text) =
            FUNCTIONS.iter().find(|(name, _)| *name == raw).unwrap_or_else(|| panic!("{frame:?}"));
        assert_eq!(frame.line, Some(line_of(text)), "{frame:?}");
        assert!(frame.path.as_ref().is_some_and(|path| path.ends_with("/shapes.cc")), "{frame:?}");
    }
}

#[test]
fn debug_information_contains_the_declarations_of_functions() {
    let scratch = Scratch::new("debug");
    for compiler in compilers() {
        let lines_alone = ["-gline-tables-only", "-fdebug-info-for-profiling", "-gdwarf-4"];
        for debug in [&["-g"][..], &["-gdwarf-3"], &["-gline-tables-only"], &lines_alone, &["-g", "-gz"]] {
            let flags: Vec<&str> = debug.iter().copied().chain(["-fPIC", "-ffunction-sections"]).collect();
            let objects = objects(&scratch, compiler, None, &flags).expect("XRay");
            let program = link("ld", &objects, "shapes", &["-pie", "-e", "0"]);
            has_lines(&MapFile::open(&program, None).expect("a map"), &symbolizer(true));
        }
    }
}

#[test]
fn a_stripped_program_has_the_names_of_its_debug_file() {
    let scratch = Scratch::new("stripped");
    for compiler in compilers() {
        let objects =
            objects(&scratch, compiler, None, &["-g", "-fPIC", "-fvisibility=hidden"]).expect("XRay");
        let whole = link("ld", &objects, "whole", &["-pie", "-e", "0"]);
        let (program, debug) = (scratch.0.join("shapes"), scratch.0.join("shapes.debug"));
        run(Command::new("objcopy").arg("--only-keep-debug").args([&whole, &debug]));
        run(Command::new("strip").arg(&whole).arg("-o").arg(&program));
        let file = MapFile::open(&program, None).expect("a map");
        let unnamed = file.names(&file.map().functions, &symbolizer(true));
        assert!(unnamed.functions.iter().all(Option::is_none), "{unnamed:?}");

        // By its link, by its build id, and where the whole program is in a given directory.
        run(Command::new("objcopy").arg(format!("--add-gnu-debuglink={}", debug.display())).arg(&program));
        let linked = MapFile::open(&program, None).expect("a map");
        has_lines(&linked, &symbolizer(true));

        let error = MapFile::open(&debug, None).expect_err("a debug file has no map");
        assert!(error.to_string().contains("open the program itself"), "{error}");
        std::fs::remove_file(&debug).expect("removed");
        has_lines_in(&linked, &scratch, |dir, id| {
            dir.join(format!(".build-id/{}/{}.debug", &id[..2], &id[2..]))
        });
        has_lines_in(&linked, &scratch, |dir, _| dir.join("shapes"));
    }
}

/// Puts the whole program somewhere in a directory, and looks there.
fn has_lines_in(file: &MapFile, scratch: &Scratch, place: impl Fn(&Path, &str) -> PathBuf) {
    let dir = scratch.0.join("symbols");
    let id = file.names(&[], &symbolizer(false)).build_id.expect("a build id");
    let path = place(&dir, &id);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("created");
    std::fs::copy(scratch.0.join("whole"), &path).expect("a copy");
    let mut options = options(true);
    options.symbol_dirs.push(dir.clone());
    has_lines(file, &Symbolizer::new(options));
    std::fs::remove_dir_all(&dir).expect("removed");
}

/// The output of llvm-xray for files it can read.
#[test]
fn linked_programs_are_as_llvm_xray_reads_them() {
    let scratch = Scratch::new("extract");
    for compiler in compilers() {
        let extract = compiler.replace("clang", "llvm-xray");
        for (linker, kind) in [("ld", "-pie"), ("ld", "-no-pie"), ("ld", "-shared"), ("ld.lld-22", "-shared")]
        {
            if !have(&[linker, &extract]) {
                continue;
            }
            let objects = objects(&scratch, compiler, None, &["-fPIC", "-ffunction-sections"]).expect("XRay");
            let program = link(linker, &objects, "shapes", &[kind, "-e", "0"]);
            let expected =
                extracted::lines(&run(Command::new(&extract).args(["extract", "-s"]).arg(&program)));
            let file = MapFile::open(&program, None).expect("a map");
            let found = extracted::of(file.map(), &file.names(&file.map().functions, &symbolizer(true)));
            assert_eq!(found.len(), expected.len(), "{compiler} {linker} {kind}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(found.agrees(expected), "{compiler} {linker} {kind}: {found:?}, not {expected:?}");
            }
        }
    }
}
