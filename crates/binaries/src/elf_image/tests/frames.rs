use addr2line::Context;
use gimli::{DwarfSections, EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection};
use proptest::prelude::*;

use super::*;

type Frame = (String, Option<(String, u32, u32)>);

/// What the addr2line crate returns for each address, innermost frame first.
fn frames(image: &[u8], addresses: impl Iterator<Item = u64>) -> Vec<Vec<Frame>> {
    let file = object::File::parse(image).unwrap();
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let sections = DwarfSections::load(|id| {
        Ok::<_, gimli::Error>(
            file.section_by_name(id.name()).map_or(&[][..], |section| section.data().unwrap()),
        )
    });
    let dwarf = sections.unwrap().borrow(|bytes| EndianSlice::new(bytes, endian));
    let context = Context::from_dwarf(dwarf).unwrap();
    let mut all = Vec::new();
    for address in addresses {
        let mut found = Vec::new();
        let mut frames = context.find_frames(address).skip_all_loads().unwrap();
        while let Some(frame) = frames.next().unwrap() {
            let name = frame.function.map(|f| f.raw_name().unwrap().into_owned()).unwrap_or_default();
            // The reader gives no line for line 0, but returns its file.
            let place = frame
                .location
                .and_then(|place| Some((place.file?.to_owned(), place.line?, place.column.unwrap_or(0))));
            found.push((name, place));
        }
        all.push(found);
    }
    all
}

/// The same, from the rows that went in.
fn expected(code: &CodeObject<'_>, offset: u64) -> Vec<Frame> {
    let row = code.lines.iter().rfind(|line| line.offset <= offset);
    let mut place =
        row.filter(|row| row.line > 0).map(|row| (row.path.into(), row.line, row.column.unwrap_or(0)));
    let covers = |inline: &&InlinedRange<'_>| inline.start <= offset && offset < inline.start + inline.size;
    let calls: Vec<_> = code.inlines.iter().filter(covers).collect();
    let mut frames = Vec::new();
    for (index, call) in calls.iter().enumerate().rev() {
        frames.push((call.name.into(), place));
        let caller = if index == 0 { code.path } else { calls[index - 1].path };
        let path: &str = call.call_path.or(caller).unwrap();
        place = Some((path.into(), call.call_line.unwrap(), call.call_column.unwrap_or(0)));
    }
    frames.push((code.linkage_name.into(), place));
    frames
}

fn every_offset_resolves(spec: ImageSpec, codes: &[CodeObject<'_>]) {
    let (image, placed, _) = image(spec, codes);
    for (code, placed) in codes.iter().zip(placed) {
        let found = frames(&image, (0..code.size).map(|offset| placed.file_offset + offset));
        for (offset, found) in found.into_iter().enumerate() {
            assert_eq!(found, expected(code, offset as u64), "offset {offset} of code object {}", code.id);
        }
    }
}

#[test]
fn every_offset_resolves_to_its_frames() {
    every_offset_resolves(x86_64(), &sample());
    every_offset_resolves(ImageSpec { machine: 40, is_64: false, ..x86_64() }, &sample());
    every_offset_resolves(ImageSpec { machine: 22, big_endian: true, ..x86_64() }, &sample());
}

#[test]
fn units_are_closed_and_opened_without_a_seam() {
    let names: Vec<String> = (0..1300).map(|id| format!("f{id}")).collect();
    let paths: Vec<String> = (0..1300).map(|id| format!("/app/{}.js", id % 7)).collect();
    let lines: Vec<[LineRow<'_>; 2]> = (0..1300)
        .map(|id| {
            let line = |offset, line| LineRow { offset, path: &paths[id], line, column: Some(id as u32 + 1) };
            [line(0, id as u32 + 1), line(16, 5000)]
        })
        .collect();
    let codes: Vec<_> = (0..1300)
        .map(|id| CodeObject {
            id: id as u32,
            name: &names[id],
            linkage_name: &names[id],
            size: 20,
            code: Some(&NOPS[..20]),
            lines: &lines[id],
            inlines: &RENDER_INLINES[..0],
            ..CodeObject::default()
        })
        .collect();
    every_offset_resolves(x86_64(), &codes);
}

#[test]
fn lines_may_come_unsorted_doubled_and_past_the_end() {
    let line = |offset, line| LineRow { offset, path: "/a.js", line, column: None };
    let lines = [line(9, 3), line(0, 1), line(4, 7), line(4, 2), line(300, 9), line(u64::MAX, 9)];
    let code = CodeObject {
        name: "f",
        linkage_name: "f",
        size: 16,
        code: Some(&NOPS[..16]),
        ..CodeObject::default()
    };
    let (image, placed, summary) = image(x86_64(), &[CodeObject { lines: &lines, ..code }]);
    let at = placed[0].file_offset;
    let found = frames(&image, [0, 3, 4, 8, 9, 15].into_iter().map(|offset| at + offset));
    let found: Vec<u32> = found.into_iter().map(|frames| frames[0].1.as_ref().unwrap().1).collect();
    assert_eq!(found, [1, 1, 2, 2, 3, 3]);
    assert_eq!(summary.num_line_rows, 3);
}

#[test]
fn false_sizes_take_no_room() {
    let code = CodeObject {
        name: "f",
        linkage_name: "f",
        size: u64::MAX,
        code: Some(&NOPS),
        ..CodeObject::default()
    };
    let inlines = [InlinedRange { size: u64::MAX, name: "g", ..InlinedRange::default() }];
    let code = CodeObject { inlines: &inlines, ..code };
    let (file, placed, summary) = image(x86_64(), &[code, code, code]);
    assert!(file.len() < 16 << 10, "{} bytes", file.len());
    assert_eq!(summary.size_bytes, file.len() as u64);
    assert!(placed.iter().all(|placed| placed.size == 1 << 32 && placed.file_offset >= 1 << 40));
    let innermost = &frames(&file, std::iter::once(placed[2].file_offset + 77))[0][0];
    assert_eq!(innermost, &("g".into(), None));
}

#[test]
fn a_full_image_is_an_error() {
    let spec = ImageSpec { machine: 40, is_64: false, ..x86_64() };
    let mut file = Cursor::new(Vec::new());
    let mut writer = Writer::new(&mut file, spec).unwrap();
    let code = CodeObject { name: "f", linkage_name: "f", size: u64::MAX, ..CodeObject::default() };
    let error = (0..9).find_map(|_| writer.add(&code).err()).unwrap();
    assert_eq!(error.to_string(), "too much code for one image: .text.absent is full");
}

proptest! {
    #[test]
    fn any_lines_resolve(
        steps in prop::collection::vec((1u64..400, 0u32..3, 1u32..5000, prop::option::of(1u32..300)), 1..60),
    ) {
        let mut offset = 0;
        let paths = ["/a.js", "/b.js", "/c.js"];
        let lines: Vec<_> = steps.iter().map(|&(step, path, line, column)| {
            let row = LineRow { offset, path: paths[path as usize], line, column };
            offset += step;
            row
        }).collect();
        let code = vec![0x90; offset as usize];
        let name = "f";
        every_offset_resolves(x86_64(), &[CodeObject {
            name, linkage_name: name, size: offset, code: Some(&code), lines: &lines, ..CodeObject::default()
        }]);
    }
}
