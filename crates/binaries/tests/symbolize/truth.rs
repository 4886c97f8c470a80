//! Results for addresses agree with nm, addr2line and objdump.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use perfuse_binaries::symbolize::{Resolved, SymbolFrame};

use crate::program::{Scratch, file_offset, functions, run, symbolizer, text};

/// Function and position of each frame at an address, the innermost first, from addr2line.
fn addr2line(program: &Path, addresses: &[u64]) -> Vec<Vec<(String, String)>> {
    let addresses: Vec<String> = addresses.iter().map(|address| format!("{address:#x}")).collect();
    let output = run(Command::new("addr2line").arg("-fiae").arg(program).args(&addresses));
    let mut all: Vec<Vec<(String, String)>> = Vec::new();
    let mut lines = output.lines();
    while let Some(line) = lines.next() {
        match all.last_mut() {
            Some(frames) if !line.starts_with("0x") => {
                let position = lines.next().expect("a position");
                let position = position.split(" (discriminator").next().unwrap_or_default();
                frames.push((line.to_owned(), position.to_owned()));
            }
            _ => all.push(Vec::new()),
        }
    }
    all
}

fn raw_name(frame: &SymbolFrame) -> &str {
    frame.linkage_name.as_deref().unwrap_or(&frame.name)
}

fn position(frame: &SymbolFrame) -> String {
    let line = frame.line.map_or_else(|| "?".to_owned(), |line| line.to_string());
    format!("{}:{line}", frame.path.as_deref().unwrap_or("??"))
}

/// Every byte of the functions in `names`, compared with addr2line.
fn agrees_with_addr2line(program: &Path, names: &[&str]) -> usize {
    let wanted =
        functions(program, &[]).into_iter().filter(|function| names.contains(&function.name.as_str()));
    let addresses: Vec<u64> =
        wanted.flat_map(|function| function.address..function.address + function.size).collect();
    let offsets: Vec<u64> =
        addresses.iter().map(|&address| file_offset_in(program, address, addresses[0])).collect();
    let found = symbolizer(true).module(text(program), None).resolve_many(&offsets);
    let mut num_inlined = 0;
    for ((address, found), expected) in addresses.iter().zip(&found).zip(addr2line(program, &addresses)) {
        assert_eq!(found.relative_address, Some(*address));
        let innermost_first: Vec<&SymbolFrame> = found.frames.iter().rev().collect();
        let positions: Vec<String> = innermost_first.iter().map(|frame| position(frame)).collect();
        let expected_positions: Vec<&String> = expected.iter().map(|(_, position)| position).collect();
        assert_eq!(
            positions.iter().collect::<Vec<_>>(),
            expected_positions,
            "{address:#x} {innermost_first:?}"
        );
        // Of inlined frames binutils 2.40 gives the innermost the name of the outermost.
        let outermost = innermost_first.last().expect("a frame");
        let expected_outermost = &expected.last().expect("a frame").0;
        if expected.len() == 1 {
            assert_eq!(raw_name(outermost), expected_outermost, "{address:#x}");
        }
        num_inlined += usize::from(expected.len() > 1);
    }
    num_inlined
}

/// One readelf for all addresses of a text segment.
fn file_offset_in(program: &Path, address: u64, first: u64) -> u64 {
    thread_local!(static FIRST: std::cell::RefCell<Option<(std::path::PathBuf, u64)>> = const { std::cell::RefCell::new(None) });
    FIRST.with_borrow_mut(|known| match known {
        Some((path, offset)) if path == program => *offset + address - first,
        _ => {
            let offset = file_offset(program, first);
            *known = Some((program.to_owned(), offset));
            offset + address - first
        }
    })
}

#[test]
fn lines_and_inlined_calls_are_those_of_addr2line() {
    let scratch = Scratch::new("lines");
    for (name, flags) in [
        ("dwarf2", &["-gdwarf-2"][..]),
        ("dwarf4", &["-gdwarf-4"]),
        ("dwarf5", &["-gdwarf-5"]),
        ("packed", &["-g", "-gz=zlib"]),
        ("fixed", &["-g", "-no-pie"]),
    ] {
        let program = scratch.compile(name, flags);
        let names = [
            "_ZN6shapes5totalERKSt6vectorINS_6SquareESaIS1_EE",
            "plain",
            "main",
            "_ZN6shapes5twiceIiEET_S1_",
        ];
        let num_inlined = agrees_with_addr2line(&program, &names);
        assert!(num_inlined > 50, "{name}: {num_inlined} addresses in inlined code");
    }
}

/// Sources of a program of two units: with `-flto` a function of the second is inlined in the first.
const UNITS: [(&str, &str); 2] = [
    (
        "first.c",
        "int weigh(int n);
         __attribute__((noinline)) int first(int n) { return weigh(n) + 3; }
         int main(int argc, char **argv) { (void)argv; return first(argc); }",
    ),
    (
        "second.c",
        "int table[4] = {1, 2, 3, 4};
         static inline int part(int k) { return table[k & 3] * k; }
         int weigh(int n) { int sum = 0; for (int k = 0; k < n; k++) sum += part(k); return sum; }",
    ),
];

#[test]
fn units_that_refer_to_each_other_or_not() {
    let scratch = Scratch::new("units");
    let mut compile = Command::new("cc");
    compile.current_dir(&scratch.0).args(["-O2", "-g"]);
    for (name, source) in UNITS {
        std::fs::write(scratch.0.join(name), source).expect("a source");
        compile.arg(name);
    }
    for (name, flags, outer) in [("apart", &[][..], "weigh"), ("together", &["-flto"], "first")] {
        run(compile.args(flags).args(["-o", name]));
        let program = scratch.0.join(name);
        // Of units that refer to each other binutils 2.40 gives positions in a file `<artificial>`.
        if flags.is_empty() {
            assert!(agrees_with_addr2line(&program, &["first", "weigh", "main"]) > 10);
        }
        let module = symbolizer(true).module(text(&program), None);
        let names = |address| -> Vec<String> {
            let found = module.resolve(file_offset(&program, address));
            found.frames.iter().map(|frame| frame.name.to_string()).collect()
        };
        let function =
            |name: &str| functions(&program, &[]).into_iter().find(|function| function.name == name);
        let outer = function(outer).expect("the outer function");
        let mut stacks = (outer.address..outer.address + outer.size).map(names);
        assert!(stacks.any(|stack| stack.ends_with(&["weigh".into(), "part".into()])), "{name}");
        let start = function("_start").expect("the entry point");
        assert_eq!(names(start.address), ["_start"], "a function without debug information");
    }
}

#[test]
fn inlined_calls_have_their_names() {
    let scratch = Scratch::new("inlines");
    let program = scratch.compile("shapes", &["-g"]);
    let total =
        functions(&program, &[]).into_iter().find(|function| function.name.contains("total")).expect("total");
    let module = symbolizer(true).module(text(&program), None);
    let offset = file_offset(&program, total.address);
    let stacks: Vec<Vec<String>> = (0..total.size)
        .map(|byte| module.resolve(offset + byte).frames.iter().map(|frame| frame.name.to_string()).collect())
        .collect();
    let outer = "shapes::total(std::vector<shapes::Square, std::allocator<shapes::Square> > const&)";
    assert!(stacks.iter().all(|stack| stack[0] == outer), "the outermost comes first");
    let whole = [outer, "shapes::Square::area() const", "shapes::Square::half() const"];
    assert!(stacks.iter().any(|stack| stack == &whole), "{stacks:?}");
}

#[test]
fn every_function_has_the_name_nm_gives_it() {
    let scratch = Scratch::new("names");
    let program = scratch.compile("shapes", &[]);
    let module = symbolizer(false).module(text(&program), None);
    let all = functions(&program, &[]);
    assert!(all.len() >= 6, "{}", all.len());
    for function in &all {
        let found = module.resolve(file_offset(&program, function.address + function.size / 2));
        let aliases = all.iter().filter(|other| other.address == function.address);
        let names: Vec<&str> = aliases.map(|alias| alias.name.as_str()).collect();
        let [frame] = &found.frames[..] else { panic!("{found:?}") };
        assert!(names.contains(&raw_name(frame)), "{frame:?}, not one of {names:?}");
        assert_eq!((found.symbol_address, frame.path.as_ref()), (Some(function.address), None));
    }
    let twice = all.iter().find(|function| function.name.contains("twiceIi")).expect("the template");
    let found = module.resolve(file_offset(&program, twice.address));
    assert_eq!(&*found.frames[0].name, "shapes::twice<int>(int)");
}

#[test]
fn stubs_are_named_after_what_they_call() {
    let scratch = Scratch::new("stubs");
    let flags: [&[&str]; 3] =
        [&["-Wl,-z,lazy"], &["-Wl,-z,now", "-fno-plt"], &["-Wl,-z,lazy", "-fcf-protection=full"]];
    // `-fcf-protection` is an option of x86 alone.
    for flags in if cfg!(target_arch = "x86_64") { &flags[..] } else { &flags[..1] } {
        let program = scratch.compile("shapes", flags);
        let module = symbolizer(false).module(text(&program), None);
        let listing = run(Command::new("objdump")
            .args(["-d", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got"])
            .arg(&program));
        let mut num_stubs = 0;
        for line in listing.lines().filter(|line| line.ends_with("@plt>:")) {
            let (address, name) = line.split_once(' ').expect("an address and a name");
            let address = u64::from_str_radix(address, 16).expect("an address");
            let found = module.resolve(file_offset(&program, address));
            let expected = name.trim_start_matches('<').trim_end_matches(">:");
            assert_eq!(found.frames.first().map(raw_name), Some(expected), "{flags:?} {found:?}");
            num_stubs += 1;
        }
        assert!(num_stubs > 0, "{listing}");
    }
}

/// Addresses of instructions in a listing of `objdump -d`, with the last symbol before them and their text.
fn instructions(listing: &str) -> Vec<(u64, &str, &str)> {
    let mut symbol = "";
    let mut found = Vec::new();
    for line in listing.lines() {
        if let Some((_, name)) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            symbol = name;
        } else if let Some((address, text)) = line.trim_start().split_once(":\t") {
            found.push((u64::from_str_radix(address, 16).expect("an address"), symbol, text));
        }
    }
    found
}

#[cfg(target_arch = "x86_64")]
#[test]
fn every_instruction_of_a_stub_has_its_name() {
    let scratch = Scratch::new("stub-instructions");
    for flags in [&["-Wl,-z,lazy"][..], &["-Wl,-z,lazy,-z,ibtplt", "-fcf-protection=full"]] {
        let program = scratch.compile("shapes", flags);
        let module = symbolizer(false).module(text(&program), None);
        let sections = ["-d", "-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got"];
        let listing = run(Command::new("objdump").args(sections).arg(&program));
        let all = instructions(&listing);
        assert!(all.len() > 10, "{listing}");
        for (address, symbol, _) in all {
            let found = module.resolve(file_offset(&program, address));
            // What precedes the stubs, and passes the number of a function to the loader, has the name of the section, as in perf.
            let expected = if symbol.ends_with("@plt") { symbol } else { ".plt" };
            assert_eq!(found.frames.first().map(raw_name), Some(expected), "{flags:?} {address:x} {found:?}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn stubs_of_a_static_program_are_named_after_what_they_select() {
    let scratch = Scratch::new("static-stubs");
    let program = scratch.compile("shapes", &["-static"]);
    let module = symbolizer(false).module(text(&program), None);
    let listing = run(Command::new("objdump").args(["-d", "-j", ".plt"]).arg(&program));
    let relocations = run(Command::new("readelf").arg("-rW").arg(&program));
    let resolvers = relocations.lines().filter(|line| line.contains("R_X86_64_IRELATIV"));
    let resolvers = resolvers.map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let hexadecimal = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        (hexadecimal(words[0]), hexadecimal(words[words.len() - 1]))
    });
    let resolvers: HashMap<_, _> = resolvers.collect();
    let symbols = run(Command::new("nm").arg("--defined-only").arg(&program));
    let mut num_stubs = 0;
    for (address, _, code) in instructions(&listing) {
        let Some((_, slot)) = code.split_once("# ").filter(|_| code.contains("jmp")) else { continue };
        let slot = u64::from_str_radix(slot.split(' ').next().expect("an address"), 16).expect("an address");
        let resolver = resolvers[&slot];
        let at_resolver = symbols.lines().filter_map(|line| line.strip_prefix(&format!("{resolver:016x} ")));
        // The kind of the symbol, a blank, the name.
        let names: Vec<_> = at_resolver.map(|symbol| format!("{}@plt", &symbol[2..])).collect();
        for at in [address, address + 6] {
            let found = module.resolve(file_offset(&program, at));
            let name = found.frames.first().map(raw_name).unwrap_or_default();
            assert!(names.iter().any(|one| one == name), "{at:x}: {name:?}, not one of {names:?}");
        }
        num_stubs += 1;
    }
    assert!(num_stubs > 8, "{listing}");
}

#[inline(never)]
fn a_function_of_this_test(value: u64) -> u64 {
    std::hint::black_box(value) + 1
}

#[test]
fn functions_of_this_program_are_found() {
    let address = a_function_of_this_test as *const () as usize as u64;
    assert_eq!(a_function_of_this_test(1), 2);
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let hexadecimal = |digits| u64::from_str_radix(digits, 16).expect("a number");
    let found: Option<Resolved> = maps.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (start, end) = words[0].split_once('-')?;
        let (start, end) = (hexadecimal(start), hexadecimal(end));
        let module = (start..end).contains(&address).then(|| symbolizer(true).module(words[5], None))?;
        Some(module.resolve(module.position(address, start, hexadecimal(words[2]))))
    });
    let found = found.expect("a mapping");
    let frame = found.frames.first().unwrap_or_else(|| panic!("{found:?}"));
    assert!(frame.name.ends_with("truth::a_function_of_this_test"), "{frame:?}");
    assert!(frame.path.as_ref().is_some_and(|path| path.ends_with("tests/symbolize/truth.rs")), "{frame:?}");
}
