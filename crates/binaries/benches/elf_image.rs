//! Writes the image of a large process: `cargo bench -p perfuse-binaries --bench elf_image [FILE]`.
//!
//! 100,000 functions, 6.5 million line rows, 150 MB of code, the proportions of a long-running node.

use std::fs::File;
use std::time::Instant;

use perfuse_binaries::elf_image::{CodeObject, ImageSpec, InlinedRange, LineRow, Writer};

const NUM_FUNCTIONS: u32 = 100_000;
const NUM_LINES: u32 = 65;
const LEN_CODE: usize = 1500;

fn main() {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let path = given.clone().map_or_else(|| std::env::temp_dir().join("perfuse-bench.elf"), Into::into);
    let mut code = [0x90; LEN_CODE];
    code[LEN_CODE - 1] = 0xc3;
    let paths: Vec<String> =
        (0..400).map(|module| format!("/srv/app/node_modules/m{module}/lib/index.js")).collect();

    let start = Instant::now();
    let spec = ImageSpec {
        machine: 62,
        big_endian: false,
        is_64: true,
        title: "jit code of node".into(),
        comp_dir: "/srv/app".into(),
    };
    let mut writer = Writer::new(File::create(&path).expect("a writable file"), spec).expect("a new image");
    let mut lines = Vec::new();
    for id in 0..NUM_FUNCTIONS {
        let path = &*paths[id as usize / 250];
        let name = format!("function_{id}");
        let linkage_name = format!("JS:*function_{id} {path}:{}:17", id % 250 * 40 + 1);
        lines.clear();
        let mut offset = 0;
        for row in 0..NUM_LINES {
            // A fixed scatter of steps and lines, so that runs compare.
            let scatter = (id.wrapping_mul(2_654_435_761) ^ row.wrapping_mul(40_503)) >> 7;
            let line = id % 250 * 40 + 1 + scatter % 30;
            lines.push(LineRow { offset, path, line, column: Some(1 + scatter % 70) });
            offset += 4 + u64::from(scatter % 38);
        }
        let inline = InlinedRange {
            start: 100,
            size: 300,
            name: "helper",
            path: Some(path),
            line: Some(3),
            call_line: Some(7),
            ..InlinedRange::default()
        };
        let inlines = [inline, InlinedRange { start: 150, size: 80, depth: 1, name: "inner", ..inline }];
        let added = writer.add(&CodeObject {
            id,
            name: &name,
            linkage_name: &linkage_name,
            path: Some(path),
            line: Some(id % 250 * 40 + 1),
            column: Some(17),
            start_address: 0x7f00_0000_0000 + u64::from(id) * 2048,
            size: LEN_CODE as u64,
            code: Some(&code),
            lines: &lines,
            inlines: if id % 4 == 0 { &inlines } else { &[] },
        });
        added.expect("room on the disk");
    }
    let summary = writer.finish().expect("room on the disk");
    let seconds = start.elapsed().as_secs_f64();
    if given.is_none() {
        std::fs::remove_file(&path).expect("the file just written");
    }

    println!("{} functions, {} line rows in {seconds:.2} s", summary.num_functions, summary.num_line_rows);
    println!("{:.1} MB written; largest resident size {}", summary.size_bytes as f64 / 1e6, peak_rss());
    for (name, size) in summary.sections {
        println!("{name:20} {size:>12}");
    }
}

fn peak_rss() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "not known here".into(), |size| size.trim().into())
}
