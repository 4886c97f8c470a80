//! The right file is found, and every other is refused with a reason.

use std::path::{Path, PathBuf};
use std::process::Command;

use perfuse_binaries::symbolize::{Module, Symbolizer};

use crate::program::{Scratch, build_id, file_offset, functions, options, run, symbolizer, text};

/// A stripped program and its debug file.
fn split(scratch: &Scratch, flags: &[&str]) -> (PathBuf, PathBuf) {
    let program = scratch.compile("shapes", flags);
    let debug = scratch.0.join("shapes.debug");
    run(Command::new("objcopy").arg("--only-keep-debug").args([&program, &debug]));
    run(Command::new("strip").arg(&program));
    run(Command::new("objcopy").arg(format!("--add-gnu-debuglink={}", text(&debug))).arg(&program));
    (program, debug)
}

/// Name and line of the first instruction of `plain`, whose location is in the debug file.
fn plain(module: &Module, program: &Path, debug: &Path) -> (Option<String>, Option<u32>) {
    let function =
        functions(debug, &[]).into_iter().find(|function| function.name == "plain").expect("plain");
    let found = module.resolve(file_offset(program, function.address));
    let frame = found.frames.first();
    (frame.map(|frame| frame.name.to_string()), frame.and_then(|frame| frame.line))
}

fn named() -> (Option<String>, Option<u32>) {
    let line =
        crate::program::SOURCE.lines().position(|line| line.contains("int plain(")).expect("plain") + 1;
    (Some("plain".to_owned()), Some(line as u32))
}

#[test]
fn a_debug_file_is_found_by_its_link() {
    let scratch = Scratch::new("link");
    let (program, debug) = split(&scratch, &["-g"]);
    let module = symbolizer(true).module(text(&program), None);
    assert_eq!(module.debug_file().as_deref(), Some(debug.as_path()));
    assert_eq!(plain(&module, &program, &debug), named());

    let hidden = scratch.0.join(".debug");
    std::fs::create_dir(&hidden).expect("a directory");
    let moved = hidden.join("shapes.debug");
    std::fs::rename(&debug, &moved).expect("moved");
    let module = symbolizer(true).module(text(&program), None);
    assert_eq!(plain(&module, &program, &moved), named());
}

#[test]
fn a_debug_file_without_build_id_must_have_the_checksum() {
    let scratch = Scratch::new("crc");
    let (program, debug) = split(&scratch, &["-g", "-Wl,--build-id=none"]);
    let module = symbolizer(true).module(text(&program), None);
    assert_eq!(plain(&module, &program, &debug), named());

    let other = scratch.0.join("other.debug");
    std::fs::copy(&debug, &other).expect("a copy");
    let mut bytes = std::fs::read(&debug).expect("the debug file");
    bytes.push(0);
    std::fs::write(&debug, bytes).expect("a changed debug file");
    let module = symbolizer(true).module(text(&program), None);
    assert_eq!(module.debug_file(), None);
    assert_eq!(plain(&module, &program, &other), (None, None));
}

#[test]
fn a_debug_file_is_found_by_build_id() {
    let scratch = Scratch::new("by-id");
    let (program, debug) = split(&scratch, &["-g"]);
    let id = build_id(&program);
    let dir = scratch.0.join("debug/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&dir).expect("a directory");
    let moved = dir.join(format!("{}.debug", &id[2..]));
    std::fs::rename(&debug, &moved).expect("moved");
    let mut options = options(true);
    options.debug_dirs.push(scratch.0.join("debug"));
    let module = Symbolizer::new(options).module(text(&program), Some(&id));
    assert_eq!(module.debug_file(), Some(moved.clone()));
    assert_eq!(plain(&module, &program, &moved), named());
}

#[test]
fn another_build_of_the_file_is_refused() {
    let scratch = Scratch::new("other-build");
    let program = scratch.compile("shapes", &[]);
    let id = build_id(&program);
    let symbolizer = symbolizer(false);
    assert_eq!(symbolizer.module(text(&program), Some(&id)).unnamed_because(), None);
    assert_eq!(symbolizer.module(text(&program), None).unnamed_because(), None);

    let other = symbolizer.module(text(&program), Some("0123456789abcdef0123456789abcdef01234567"));
    let reason = other.resolve(0x1000).unnamed_because.expect("a reason");
    assert!(reason.starts_with("build id differs") && reason.contains(&id), "{reason}");

    let deleted = format!("{} (deleted)", text(&program));
    assert_eq!(
        symbolizer.module(&deleted, Some(&id)).unnamed_because(),
        None,
        "the same build is there again"
    );
    assert!(
        symbolizer.module(&deleted, None).unnamed_because().is_some_and(|reason| reason.contains("deleted"))
    );

    run(Command::new("objcopy").arg("--remove-section=.note.gnu.build-id").arg(&program));
    let without = symbolizer.module(&format!("{}/./shapes", text(&scratch.0)), Some(&id));
    assert!(without.unnamed_because().is_some_and(|reason| reason.contains("no build id")), "{without:?}");
}

#[test]
fn what_is_no_program_is_refused() {
    let scratch = Scratch::new("no-program");
    let script = scratch.0.join("script");
    std::fs::write(&script, "#!/bin/sh\n").expect("a script");
    let reason =
        |path: &str| symbolizer(true).module(path, None).resolve(0).unnamed_because.expect("a reason");
    assert_eq!(&*reason("/nonexistent/program"), "module file not found");
    assert_eq!(&*reason(text(&scratch.0)), "module file not found", "a directory");
    assert_eq!(&*reason("//anon"), "the memory is not mapped from a file");
    assert!(reason(text(&script)).starts_with("not a readable ELF file"));
    let assembly = scratch.0.join("System.Linq.dll");
    std::fs::write(&assembly, b"MZ\x90\0\x03\0\0\0").expect("an assembly");
    assert_eq!(&*reason(text(&assembly)), "a PE file, whose symbols are not read");
    let pipe = scratch.0.join("pipe");
    run(Command::new("mkfifo").arg(&pipe));
    assert_eq!(&*reason(text(&pipe)), "module file not found", "and did not wait for a writer");
}

#[test]
fn files_of_another_machine_are_found_in_given_directories() {
    let scratch = Scratch::new("given");
    let program = scratch.compile("shapes", &[]);
    let id = build_id(&program);
    let root = scratch.0.join("root");
    std::fs::create_dir_all(root.join("opt/app")).expect("a directory");
    for (place, recorded) in [("opt/app/shapes", "/opt/app/shapes"), ("shapes", "/elsewhere/shapes")] {
        std::fs::copy(&program, root.join(place)).expect("a copy");
        let mut options = options(false);
        options.symbol_dirs.push(root.clone());
        let module = Symbolizer::new(options).module(recorded, Some(&id));
        assert_eq!(module.file(), Some(root.join(place).as_path()));
        std::fs::remove_file(root.join(place)).expect("removed");
    }

    let cached = scratch.0.join("cache").join(format!(".build-id/{}/{}", &id[..2], &id[2..]));
    std::fs::create_dir_all(&cached).expect("a directory");
    std::fs::copy(&program, cached.join("elf")).expect("a copy");
    let mut options = options(false);
    options.build_id_dirs.push(scratch.0.join("cache"));
    let module = Symbolizer::new(options).module("/gone/shapes", Some(&id));
    assert_eq!(module.file(), Some(cached.join("elf").as_path()));
}

#[test]
fn exported_symbols_serve_where_there_are_no_others() {
    let scratch = Scratch::new("exported");
    let library = scratch.compile("libshapes.so", &["-shared", "-fPIC"]);
    run(Command::new("strip").arg(&library));
    let module = symbolizer(true).module(text(&library), None);
    let exported = functions(&library, &["-D"]);
    assert!(!exported.is_empty());
    for function in exported {
        let found = module.resolve(file_offset(&library, function.address));
        assert!(!found.frames.is_empty(), "{} {found:?}", function.name);
    }
    assert!(module.resolve(u64::MAX).unnamed_because.is_some());
}

/// A stripped program that exports `plain`; its other functions are in `.gnu_debugdata`, as Fedora ships it.
fn with_mini_debug_info(scratch: &Scratch) -> (PathBuf, PathBuf) {
    let whole = scratch.compile("shapes", &["-Wl,--export-dynamic-symbol=plain"]);
    let (program, mini, kept) =
        (scratch.0.join("stripped"), scratch.0.join("mini"), scratch.0.join("kept.txt"));
    let names: Vec<_> =
        functions(&whole, &[]).into_iter().map(|one| one.name).filter(|name| name != "plain").collect();
    std::fs::write(&kept, names.join("\n")).expect("a list of symbols");
    run(Command::new("objcopy").arg("--only-keep-debug").args([&whole, &mini]));
    run(Command::new("objcopy").arg("-S").arg(format!("--keep-symbols={}", text(&kept))).arg(&mini));
    run(Command::new("xz").arg(&mini));
    let section = format!(".gnu_debugdata={}.xz", text(&mini));
    run(Command::new("strip").arg(&whole).arg("-o").arg(&program));
    run(Command::new("objcopy").arg(format!("--add-section={section}")).arg(&program));
    // What is not stripped has the truth.
    let unstripped = scratch.compile("unstripped", &["-Wl,--export-dynamic-symbol=plain"]);
    (program, unstripped)
}

#[test]
fn functions_of_gnu_debugdata_and_exported_ones_are_named() {
    let scratch = Scratch::new("mini");
    let (program, unstripped) = with_mini_debug_info(&scratch);
    assert!(functions(&program, &["-D"]).iter().any(|function| function.name == "plain"));
    let (mini, whole) = (symbolizer(false), symbolizer(false));
    let (mini, whole) = (mini.module(text(&program), None), whole.module(text(&unstripped), None));
    let all = functions(&unstripped, &[]);
    assert!(all.len() > 4, "{}", all.len());
    for function in all {
        for address in [function.address, function.address + function.size - 1] {
            let found = mini.resolve(file_offset(&program, address));
            assert_eq!(
                found.frames,
                whole.resolve(file_offset(&unstripped, address)).frames,
                "{}",
                function.name
            );
            assert_eq!(found.symbol_address, Some(function.address), "{}", function.name);
            assert_eq!(mini.function_code(address).map(|code| code.bytes.len() as u64), Ok(function.size));
        }
    }
}

#[test]
fn damaged_gnu_debugdata_is_a_reason() {
    let scratch = Scratch::new("mini-damaged");
    let (program, unstripped) = with_mini_debug_info(&scratch);
    let total =
        functions(&unstripped, &[]).into_iter().find(|one| one.name.contains("total")).expect("total");
    let packed = std::fs::read(scratch.0.join("mini.xz")).expect("the packed file");
    for (name, bytes) in [("cut", &packed[..packed.len() / 2]), ("no xz", &b"\x7fELF"[..]), ("empty", &[])] {
        let (damaged, part) = (scratch.0.join(name), scratch.0.join("part"));
        std::fs::write(&part, bytes).expect("a section");
        let section = format!("--update-section=.gnu_debugdata={}", text(&part));
        run(Command::new("objcopy").arg(section).args([&program, &damaged]));
        let found =
            symbolizer(false).module(text(&damaged), None).resolve(file_offset(&damaged, total.address));
        assert_eq!(found.frames, [], "{name}");
        assert!(
            found.unnamed_because.expect("a reason").contains(".gnu_debugdata cannot be unpacked"),
            "{name}"
        );
    }
}
