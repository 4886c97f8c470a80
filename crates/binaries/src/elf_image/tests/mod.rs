//! Images as readers that share nothing with the writer see them.

mod containers;
mod frames;
mod tables;
mod tools;

use std::io::Cursor;

use super::{CodeObject, CodePlacement, ImageSpec, ImageSummary, InlinedRange, LineRow, Writer};

fn x86_64() -> ImageSpec {
    ImageSpec {
        machine: 62,
        big_endian: false,
        is_64: true,
        title: "jit code of node (pid 4711)".into(),
        comp_dir: "/home/user/app".into(),
    }
}

/// The image of some code, and where each piece of it is.
fn image(spec: ImageSpec, codes: &[CodeObject<'_>]) -> (Vec<u8>, Vec<CodePlacement>, ImageSummary) {
    let mut file = Cursor::new(Vec::new());
    let mut writer = Writer::new(&mut file, spec).unwrap();
    let placed = codes.iter().map(|code| writer.add(code).unwrap()).collect();
    let summary = writer.finish().unwrap();
    (file.into_inner(), placed, summary)
}

const NOPS: [u8; 256] = [0x90; 256];

const RENDER_LINES: &[LineRow<'static>] = &[
    LineRow { offset: 0, path: "/app/render.js", line: 10, column: Some(17) },
    LineRow { offset: 5, path: "/app/render.js", line: 12, column: Some(3) },
    LineRow { offset: 40, path: "/app/vec.js", line: 4, column: Some(12) },
    LineRow { offset: 48, path: "/app/vec.js", line: 900, column: Some(1) },
    LineRow { offset: 52, path: "/app/math.js", line: 2, column: None },
    LineRow { offset: 90, path: "/app/vec.js", line: 6, column: Some(300) },
    LineRow { offset: 100, path: "/app/render.js", line: 13, column: Some(9) },
    LineRow { offset: 180, path: "", line: 0, column: None },
];

const RENDER_INLINES: &[InlinedRange<'static>] = &[
    InlinedRange {
        start: 40,
        size: 60,
        depth: 0,
        name: "scale",
        path: Some("/app/vec.js"),
        line: Some(3),
        call_path: Some("/app/render.js"),
        call_line: Some(12),
        call_column: Some(20),
    },
    InlinedRange {
        start: 52,
        size: 38,
        depth: 1,
        name: "Math.max λ",
        path: Some("/app/math.js"),
        line: Some(1),
        call_path: None,
        call_line: Some(5),
        call_column: Some(11),
    },
    InlinedRange {
        start: 120,
        size: 8,
        depth: 0,
        name: "scale",
        path: Some("/app/vec.js"),
        line: Some(3),
        call_path: Some("/app/render.js"),
        call_line: Some(13),
        call_column: Some(9),
    },
];

/// Code with everything: two tiers of one function at one address, inlined calls, a stub without lines, code without bytes.
fn sample() -> Vec<CodeObject<'static>> {
    let render = CodeObject {
        id: 7,
        name: "render frame",
        linkage_name: "JS:*render frame /app/render.js:10:17",
        path: Some("/app/render.js"),
        line: Some(10),
        column: Some(17),
        start_address: 0x7f00_1234_0000,
        size: 200,
        code: Some(&NOPS[..200]),
        lines: RENDER_LINES,
        inlines: RENDER_INLINES,
    };
    let baseline = CodeObject { id: 8, size: 256, code: Some(&NOPS), inlines: &[], ..render };
    let stub = CodeObject {
        id: 9,
        name: "Builtin:Übergang",
        linkage_name: "Builtin:Übergang",
        start_address: 0x7f00_9999_0000,
        size: 33,
        code: Some(&NOPS[..33]),
        ..CodeObject::default()
    };
    let absent = CodeObject { id: 10, code: None, start_address: 0x7f00_aaaa_0000, ..render };
    let empty =
        CodeObject { id: 11, name: "empty", linkage_name: "empty", code: Some(&[]), ..CodeObject::default() };
    vec![render, baseline, stub, absent, empty]
}
