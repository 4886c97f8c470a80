//! The tools people have. One that is not installed is left out.

use std::path::PathBuf;
use std::process::Command;

use super::*;

struct ImageFile(PathBuf);

impl ImageFile {
    fn new(name: &str, spec: ImageSpec) -> (Self, Vec<CodePlacement>) {
        Self::of(name, spec, &sample())
    }

    fn of(name: &str, spec: ImageSpec, codes: &[CodeObject<'_>]) -> (Self, Vec<CodePlacement>) {
        let (bytes, placed, _) = image(spec, codes);
        let path = std::env::temp_dir().join(format!("perfuse-{name}-{}.elf", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        (Self(path), placed)
    }

    /// What a tool prints, both streams; `None` where it is not installed.
    fn shown_by(&self, tool: &str, arguments: &[&str]) -> Option<String> {
        let output =
            Command::new(tool).args(arguments).arg(&self.0).env("LC_ALL", "C.UTF-8").output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(output.status.success(), "{tool}: {text}");
        Some(text)
    }
}

impl Drop for ImageFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const MACHINES: [(&str, u16, bool, bool); 6] = [
    ("x86-64", 62, true, false),
    ("i386", 3, false, false),
    ("aarch64", 183, true, false),
    ("arm", 40, false, false),
    ("s390x", 22, true, true),
    ("ppc64le", 21, true, false),
];

#[test]
fn readelf_reports_no_problem() {
    for (name, machine, is_64, big_endian) in MACHINES {
        let (file, _) =
            ImageFile::new(&format!("readelf-{name}"), ImageSpec { machine, is_64, big_endian, ..x86_64() });
        let views = [
            "-aW",
            "--debug-dump=info,abbrev,aranges,str",
            "--debug-dump=rawline",
            "--debug-dump=decodedline",
        ];
        for view in views {
            let Some(text) = file.shown_by("readelf", &[view]) else { return };
            let lower = text.to_lowercase();
            assert!(!lower.contains("warning") && !lower.contains("error"), "{name} {view}: {text}");
        }
        let text = file.shown_by("readelf", &["-sW", "--debug-dump=info"]).unwrap();
        assert!(text.contains("JS:*render frame /app/render.js:10:17"), "{text}");
        assert!(text.contains("code object 7 at 0x7f0012340000"), "{text}");
    }
}

#[test]
fn llvm_verifies_the_debug_information() {
    for (name, machine, is_64, big_endian) in MACHINES {
        let (file, _) =
            ImageFile::new(&format!("llvm-{name}"), ImageSpec { machine, is_64, big_endian, ..x86_64() });
        let Some(text) = file.shown_by("llvm-dwarfdump", &["--verify"]) else { return };
        assert!(text.contains("No errors."), "{name}: {text}");
        assert!(!text.contains("warning"), "{name}: {text}");
    }
}

#[test]
fn code_without_lines_is_supported() {
    let (file, _) = ImageFile::of("lineless", x86_64(), &sample()[2..3]);
    for (tool, arguments) in
        [("readelf", ["-aW", "--debug-dump=decodedline"]), ("llvm-dwarfdump", ["--verify", "--quiet"])]
    {
        let Some(text) = file.shown_by(tool, &arguments) else { continue };
        assert!(!text.to_lowercase().contains("warning"), "{tool}: {text}");
    }
}

#[test]
fn objdump_disassembles_under_the_symbol() {
    let (file, placed) = ImageFile::new("objdump", x86_64());
    let Some(text) = file.shown_by("objdump", &["-dl"]) else { return };
    assert!(text.contains(&format!("{:016x} <Builtin:Übergang>:", placed[2].file_offset)), "{text}");
    assert!(text.contains("/app/vec.js:900"), "{text}");
    assert_eq!(text.matches("\tnop").count(), 200 + 256 + 33);
}

/// Innermost frame first: function, file and line, as both addr2lines print them.
#[test]
fn addr2line_prints_the_inlined_frames() {
    let (file, placed) = ImageFile::new("addr2line", x86_64());
    let at = |code: usize, offset: u64| format!("{:#x}", placed[code].file_offset + offset);
    let outer = "JS:*render frame /app/render.js:10:17\n/app/render.js";
    let max = format!("Math.max λ\n/app/math.js:2\nscale\n/app/vec.js:5\n{outer}:12\n");
    let cases = [
        (at(0, 7), format!("{outer}:12\n")),
        (at(0, 41), format!("scale\n/app/vec.js:4\n{outer}:12\n")),
        (at(0, 60), max.clone()),
        (at(0, 125), format!("scale\n/app/render.js:13\n{outer}:13\n")),
        (at(1, 60), "JS:*render frame /app/render.js:10:17\n/app/math.js:2\n".into()),
        (at(3, 60), max),
    ];
    for tool in ["addr2line", "llvm-addr2line"] {
        for (address, expected) in &cases {
            let Some(text) = file.shown_by(tool, &["-f", "-i", address, "-e"]) else { break };
            assert_eq!(&text, expected, "{tool} {address}");
        }
    }
}

#[test]
fn relative_paths_are_in_the_directory() {
    let lines = [LineRow { offset: 0, path: "node:fs", line: 3, column: None }];
    let code = CodeObject {
        name: "f",
        linkage_name: "f",
        size: 16,
        code: Some(&NOPS[..16]),
        lines: &lines,
        ..CodeObject::default()
    };
    for (comp_dir, expected) in [("/home/user", "/home/user/node:fs:3\n"), ("", "node:fs:3\n")] {
        let (file, placed) =
            ImageFile::of("relative", ImageSpec { comp_dir: comp_dir.into(), ..x86_64() }, &[code]);
        for tool in ["addr2line", "llvm-addr2line"] {
            let Some(text) = file.shown_by(tool, &[&format!("{:#x}", placed[0].file_offset), "-e"]) else {
                break;
            };
            assert_eq!(text, expected, "{tool} in {comp_dir:?}");
        }
    }
}

#[test]
fn llvm_symbolizer_prints_columns() {
    let (file, placed) = ImageFile::new("symbolizer", x86_64());
    let address = format!("{:#x}", placed[0].file_offset + 60);
    let Some(text) = file.shown_by("llvm-symbolizer", &[&address, "-e"]) else { return };
    let expected = "Math.max λ\n/app/math.js:2:0\nscale\n/app/vec.js:5:11\n\
                    JS:*render frame /app/render.js:10:17\n/app/render.js:12:20\n";
    assert_eq!(text.trim_end(), expected.trim_end());
}

#[test]
fn gdb_shows_lines_and_symbols() {
    let (file, placed) = ImageFile::new("gdb", x86_64());
    let address = placed[0].file_offset + 48;
    let line = format!("info line *{address:#x}");
    let symbol = format!("info symbol {:#x}", placed[2].file_offset + 3);
    let arguments = ["-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", &line, "-ex", &symbol];
    let Some(text) = file.shown_by("gdb", &arguments) else { return };
    assert!(text.contains("Line 900 of \"/app/vec.js\""), "{text}");
    assert!(text.contains("Builtin:Übergang + 3 in section .text"), "{text}");
    assert!(!text.to_lowercase().contains("warning"), "{text}");
}
