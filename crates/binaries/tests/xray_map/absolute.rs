//! Maps of versions 0 and 1, whose addresses are absolute, so that loaders relocate them.

use std::path::{Path, PathBuf};
use std::process::Command;

use perfuse_binaries::xray_map::{MapFile, SledKind};

use crate::tools::{Scratch, functions, have, run, symbolizer};

/// Target, size of an address, and the flags its linker needs.
const MACHINES: [(&str, usize); 12] = [
    ("x86_64-linux-gnu", 8),
    ("i386-linux-gnu", 4),
    ("aarch64-linux-gnu", 8),
    ("armv7-linux-gnueabihf", 4),
    ("powerpc64le-linux-gnu", 8),
    ("powerpc64-linux-gnu", 8),
    ("riscv64-linux-gnu", 8),
    ("riscv32-linux-gnu", 4),
    ("loongarch64-linux-gnu", 8),
    ("s390x-linux-gnu", 8),
    ("mips-linux-gnu", 4),
    ("mips64el-linux-gnuabi64", 8),
];

/// Three functions of 32 bytes with a sled at their start and one 8 bytes on; the last is one that others may replace.
fn source(word_bytes: usize, version: u8, index: bool) -> String {
    let word = if word_bytes == 8 { ".quad" } else { ".long" };
    let padding = 4 * word_bytes - 2 * word_bytes - 3;
    let mut text = String::from(".text\n");
    let mut map = String::from(".section xray_instr_map,\"aw\",%progbits\n");
    let mut functions = String::from(".section xray_fn_idx,\"aw\",%progbits\n");
    for (name, visibility) in [("alpha", ".hidden alpha"), ("beta", ".hidden beta"), ("gamma", "")] {
        text += &format!(
            ".globl {name}\n{visibility}\n.type {name},%function\n{name}:\n.space 8\n.Lexit_{name}:\n.space 24\n.size {name},32\n"
        );
        map += &format!(".Lfirst_{name}:\n");
        for (sled, kind) in [(name.to_owned(), 0), (format!(".Lexit_{name}"), 1)] {
            map += &format!("{word} {sled}, {name}\n.byte {kind},1,{version}\n.space {padding}\n");
        }
        map += &format!(".Lend_{name}:\n");
        functions += &format!("{word} .Lfirst_{name}, .Lend_{name}\n");
    }
    text + &map + if index { &functions } else { "" }
}

fn assemble(scratch: &Scratch, target: &str, text: &str) -> PathBuf {
    let (source, object) = (scratch.write("absolute.s", text), scratch.0.join("absolute.o"));
    let mut command = Command::new("clang-22");
    run(command.arg(format!("--target={target}")).args(["-c"]).arg(source).arg("-o").arg(&object));
    object
}

fn is_right(file: &Path, version: u8, how: &str) {
    let opened = MapFile::open(file, None).unwrap_or_else(|error| panic!("{how}: {error}"));
    let map = opened.map();
    assert_eq!(map.findings, [], "{how}");
    let names = opened.names(&map.functions, &symbolizer(false)).functions;
    let symbols = functions(file);
    assert_eq!(map.functions.len(), 3, "{how}");
    for ((function, frame), name) in map.functions.iter().zip(names).zip(["alpha", "beta", "gamma"]) {
        let symbol = symbols.iter().find(|symbol| symbol.name == name).expect("a symbol");
        assert_eq!(frame.as_ref().map(|frame| &*frame.name), Some(name), "{how}");
        let sleds = &map.sleds[function.sleds.clone()];
        let found: Vec<_> = sleds
            .iter()
            .map(|sled| (sled.location.expect("a location").address, sled.kind, sled.version))
            .collect();
        let expected = [(0, SledKind::FUNCTION_ENTER), (8, SledKind::FUNCTION_EXIT)];
        let expected = expected.map(|(within, kind)| (symbol.address + within, kind, version));
        assert_eq!(found, expected, "{how}: {name}");
        assert_eq!(sleds[0].function.map(|location| location.address), Some(symbol.address), "{how}: {name}");
    }
}

#[test]
fn absolute_addresses_are_relocated() {
    if !have(&["clang-22", "ld.lld-22", "llvm-nm-22"]) {
        return;
    }
    let scratch = Scratch::new("absolute");
    let mut num_read = 0;
    for (target, word_bytes) in MACHINES {
        for (version, index) in [(0, false), (1, true)] {
            let object = assemble(&scratch, target, &source(word_bytes, version, index));
            is_right(&object, version, target);
            let linked = scratch.0.join("absolute");
            let relr = ["-pie", "--pack-dyn-relocs=relr"];
            let addends = ["-shared", "--apply-dynamic-relocs"];
            for flags in
                [&["-shared"][..], &["-pie"], &["-no-pie"], &relr, &addends, &["-pie", "--emit-relocs"]]
            {
                let mut linker = Command::new("ld.lld-22");
                run(linker
                    .args(["-e", "alpha", "-z", "notext"])
                    .args(flags)
                    .arg(&object)
                    .arg("-o")
                    .arg(&linked));
                is_right(&linked, version, &format!("{target} {flags:?}"));
                num_read += 1;
            }
        }
    }
    assert_eq!(num_read, MACHINES.len() * 2 * 6);
}

/// llvm-xray reads what it can of these as well.
#[test]
fn absolute_addresses_are_as_llvm_xray_reads_them() {
    if !have(&["clang-22", "ld.lld-22", "llvm-xray-22"]) {
        return;
    }
    let scratch = Scratch::new("absolute-llvm");
    let object = assemble(&scratch, "x86_64-linux-gnu", &source(8, 1, false));
    let linked = scratch.0.join("absolute");
    let mut linker = Command::new("ld.lld-22");
    run(linker.args(["-pie", "-e", "alpha"]).arg(&object).arg("-o").arg(&linked));
    let expected =
        crate::extracted::lines(&run(Command::new("llvm-xray-22").args(["extract", "-s"]).arg(&linked)));
    let file = MapFile::open(&linked, None).expect("a map");
    let found = crate::extracted::of(file.map(), &file.names(&file.map().functions, &symbolizer(false)));
    assert_eq!((found.len(), expected.len()), (6, 6));
    assert!(
        found.iter().zip(&expected).all(|(found, expected)| found.agrees(expected)),
        "{found:?} {expected:?}"
    );
}
