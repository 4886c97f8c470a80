//! Split debug information gives the frames that the same program has with all of it inside.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use perfuse_binaries::symbolize::{Follow, Options, Resolved, Symbolizer};

use crate::program::{SOURCE, Scratch, functions, options, run, symbolizer, text};

/// Compiles the program twice, whole and split; both in a directory of the same name, which is part of the paths.
fn compile(scratch: &Scratch, compiler: &str, version: &str) -> (PathBuf, PathBuf) {
    let source = scratch.0.join("shapes.cc");
    fs::write(&source, SOURCE).expect("the source");
    let build = |name: &str, flags: &[&str]| {
        let (object, program) = (scratch.0.join(format!("{name}.o")), scratch.0.join(name));
        let mut command = Command::new(compiler);
        command.current_dir(&scratch.0).args(["-O2", version]).args(flags).args(["-c", "shapes.cc", "-o"]);
        run(command.arg(&object));
        run(Command::new(compiler).args(["-Wl,--build-id"]).arg(&object).arg("-o").arg(&program));
        program
    };
    (build("whole", &["-g"]), build("split", &["-g", "-gsplit-dwarf"]))
}

/// What is known of every byte of the program's own functions, and of where they are declared.
fn everything(program: &Path, symbolizer: &Symbolizer) -> Vec<(Vec<Resolved>, Option<String>)> {
    let module = symbolizer.module(text(program), None);
    let own =
        functions(program, &[]).into_iter().filter(|one| one.name.contains("shapes") || one.name == "plain");
    let of = |function: crate::program::Function| {
        let addresses: Vec<_> = (function.address..function.address + function.size).collect();
        let declared = module.functions_at(&[Some(function.address)]).pop().flatten();
        (module.resolve_addresses(&addresses), declared.map(|one| format!("{:?}:{:?}", one.path, one.line)))
    };
    own.map(of).collect()
}

fn assert_same(
    found: &[(Vec<Resolved>, Option<String>)],
    expected: &[(Vec<Resolved>, Option<String>)],
    what: &str,
) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for ((resolved, declared), (other, other_declared)) in found.iter().zip(expected) {
        for (one, other) in resolved.iter().zip(other) {
            assert_eq!(one, other, "{what}");
        }
        assert_eq!(declared, other_declared, "{what}");
    }
}

fn num_inlined(found: &[(Vec<Resolved>, Option<String>)]) -> usize {
    found.iter().flat_map(|(resolved, _)| resolved).filter(|one| one.frames.len() > 1).count()
}

#[test]
fn files_beside_the_program_or_where_it_was_compiled() {
    for (compiler, version) in
        [("c++", "-gdwarf-4"), ("c++", "-gdwarf-5"), ("clang++", "-gdwarf-4"), ("clang++", "-gdwarf-5")]
    {
        let scratch = Scratch::new(&format!("split-{compiler}{version}"));
        let (whole, split) = compile(&scratch, compiler, version);
        assert!(scratch.0.join("split.dwo").exists());
        let expected = everything(&whole, &symbolizer(true));
        assert!(expected.len() >= 3 && num_inlined(&expected) > 20, "{}", num_inlined(&expected));
        let found = symbolizer(true);
        assert_same(&everything(&split, &found), &expected, &format!("{compiler} {version}"));
        assert_eq!(found.unusable_debug_info(), []);

        // Moved: the path in the program leads nowhere.
        let moved = Scratch::new(&format!("split-moved-{compiler}{version}"));
        for name in ["split", "split.dwo"] {
            fs::rename(scratch.0.join(name), moved.0.join(name)).expect("moved");
        }
        assert_same(
            &everything(&moved.0.join("split"), &symbolizer(true)),
            &expected,
            &format!("{compiler} {version}"),
        );
    }
}

#[test]
fn a_package_beside_the_program_or_in_a_directory_of_symbols() {
    for (tool, version) in [("dwp", "-gdwarf-4"), ("llvm-dwp", "-gdwarf-5")] {
        let scratch = Scratch::new(&format!("package{version}"));
        let (whole, split) = compile(&scratch, "c++", version);
        run(Command::new(tool).current_dir(&scratch.0).args(["-e", "split", "-o", "split.dwp"]));
        fs::remove_file(scratch.0.join("split.dwo")).expect("removed");
        let expected = everything(&whole, &symbolizer(true));
        assert_same(&everything(&split, &symbolizer(true)), &expected, tool);

        let symbols = scratch.0.join("symbols");
        fs::create_dir(&symbols).expect("a directory");
        fs::rename(scratch.0.join("split.dwp"), symbols.join("split.dwp")).expect("moved");
        let named = Options { symbol_dirs: vec![symbols], ..options(true) };
        assert_same(&everything(&split, &Symbolizer::new(named)), &expected, tool);
    }
}

#[test]
fn a_missing_damaged_or_other_file_is_reported() {
    let scratch = Scratch::new("split-missing");
    let (whole, split) = compile(&scratch, "c++", "-gdwarf-5");
    let expected = everything(&whole, &symbolizer(true));
    let dwo = scratch.0.join("split.dwo");
    let bytes = fs::read(&dwo).expect("the file");
    let other = {
        let other = Scratch::new("split-other");
        fs::write(other.0.join("shapes.cc"), SOURCE.replace("% 7", "% 8")).expect("a source");
        let mut command = Command::new("c++");
        command.current_dir(&other.0).args([
            "-O2",
            "-g",
            "-gsplit-dwarf",
            "-c",
            "shapes.cc",
            "-o",
            "split.o",
        ]);
        run(&mut command);
        fs::read(other.0.join("split.dwo")).expect("the other file")
    };
    for (what, content) in
        [("none", None), ("cut", Some(&bytes[..bytes.len() / 2])), ("other", Some(&other[..]))]
    {
        fs::remove_file(&dwo).ok();
        if let Some(content) = content {
            fs::write(&dwo, content).expect("a file");
        }
        let symbolizer = symbolizer(true);
        let found = everything(&split, &symbolizer);
        assert_eq!(num_inlined(&found), 0, "{what}");
        // The line table is in the program.
        let lines = |all: &[(Vec<Resolved>, Option<String>)]| {
            let innermost = |one: &Resolved| one.frames.last().and_then(|frame| frame.line);
            all.iter().flat_map(|(resolved, _)| resolved).map(innermost).collect::<Vec<_>>()
        };
        assert_eq!(lines(&found), lines(&expected), "{what}");
        let [(path, reason)] = &symbolizer.unusable_debug_info()[..] else { panic!("{what}") };
        assert_eq!(path, text(&split));
        assert!(reason.contains("split.dwo was not found"), "{what}: {reason}");
    }
}

#[test]
fn recorded_paths_are_opened_only_where_that_is_allowed() {
    let scratch = Scratch::new("split-follow");
    let (_, split) = compile(&scratch, "c++", "-gdwarf-5");
    let elsewhere = scratch.0.join("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    fs::rename(&split, elsewhere.join("split")).expect("moved");
    let options = |follow| Options { symbol_dirs: vec![elsewhere.clone()], follow, ..options(true) };
    let program = elsewhere.join("split");
    assert!(num_inlined(&everything(&program, &Symbolizer::new(options(Follow::All)))) > 20);
    let named = Symbolizer::new(options(Follow::Named));
    assert_eq!(num_inlined(&everything(&program, &named)), 0);
    assert_eq!(named.unusable_debug_info().len(), 1);
}

#[test]
fn a_package_beside_a_program_with_a_separate_debug_file() {
    let scratch = Scratch::new("split-debug-file");
    let (whole, split) = compile(&scratch, "c++", "-gdwarf-5");
    run(Command::new("llvm-dwp").current_dir(&scratch.0).args(["-e", "split", "-o", "split.dwp"]));
    fs::remove_file(scratch.0.join("split.dwo")).expect("removed");
    let (debug, all) = (scratch.0.join("split.debug"), scratch.0.join("all"));
    run(Command::new("objcopy").arg("--only-keep-debug").args([&split, &debug]));
    fs::copy(&split, &all).expect("a copy");
    run(Command::new("strip").arg(&split));
    run(Command::new("objcopy").arg(format!("--add-gnu-debuglink={}", text(&debug))).arg(&split));
    let module = symbolizer(true).module(text(&split), None);
    assert_eq!(module.debug_file(), Some(debug));
    let addresses: Vec<_> = functions(&all, &[]).into_iter().map(|one| one.address + one.size / 2).collect();
    let expected = symbolizer(true).module(text(&whole), None).resolve_addresses(&addresses);
    assert!(expected.iter().any(|one| one.frames.len() > 1));
    assert_eq!(module.resolve_addresses(&addresses), expected);
}
