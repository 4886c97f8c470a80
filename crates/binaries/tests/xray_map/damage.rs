//! Damaged maps: readable parts are read, the rest is reported.

use perfuse_binaries::eh_frame::{Coverage, EhFrame, cross_check};
use perfuse_binaries::symbolize::{Options, Symbolizer};
use perfuse_binaries::xray_map::{Error, InstrumentationMap, SledKind};

use crate::compiled::compile;
use crate::crafted::{MAP, Section, TEXT, elf, entry, index, map, offset_of, sections};
use crate::tools::{Scratch, have};

fn read(bytes: &[u8]) -> InstrumentationMap {
    InstrumentationMap::read(bytes, None).expect("a map")
}

/// Codes of findings, with their offsets and counts.
fn code_offset_counts(map: &InstrumentationMap) -> Vec<(&str, Option<u64>, u64)> {
    map.findings.iter().map(|finding| (finding.code, finding.offset, finding.count)).collect()
}

/// A program of three functions with one section changed.
fn with(name: &str, change: impl FnOnce(&mut Section)) -> (Vec<u8>, u64) {
    let mut all = sections(3);
    change(all.iter_mut().find(|section| section.name == name).expect("a section"));
    (elf(3, &all), offset_of(&all, name) as u64)
}

#[test]
fn the_crafted_program_is_sound() {
    let map = read(&elf(3, &sections(3)));
    assert_eq!((map.findings.len(), map.sleds.len(), map.functions.len()), (0, 6, 3));
    let starts: Vec<u64> =
        map.functions.iter().map(|function| function.location.expect("a location").address).collect();
    assert_eq!(starts, [TEXT, TEXT + 0x20, TEXT + 0x40]);
    assert_eq!(
        (map.versions(), map.function(3).map(|function| function.id), map.function(0)),
        (vec![2], Some(3), None)
    );
}

#[test]
fn a_partial_entry_is_left_out() {
    let (bytes, at) = with("xray_instr_map", |map| map.bytes.truncate(5 * 32 + 7));
    let map = read(&bytes);
    assert_eq!(map.sleds.len(), 5);
    assert_eq!(
        code_offset_counts(&map),
        [("XM001", Some(at + 5 * 32), 1), ("XM007", Some(at + 5 * 32 + 7 + 32), 1)]
    );
    assert!(map.findings[0].message.starts_with("7 bytes are left"), "{:?}", map.findings);
}

#[test]
fn a_map_beyond_the_file_is_read_as_far_as_there_is_one() {
    // The map comes last here, and its section states a greater size.
    let mut all = sections(3);
    all.swap(1, 2);
    let mut bytes = elf(3, &all);
    let at = offset_of(&all, "xray_instr_map");
    let header = bytes.len() - 2 * 64;
    let size = (bytes.len() - at + 64) as u64;
    bytes[header + 32..header + 40].copy_from_slice(&size.to_le_bytes());
    let map = read(&bytes);
    assert_eq!(map.findings[0].code, "XM002");
    assert!(
        map.findings[0]
            .message
            .contains(&format!("has {size} bytes, and the file has {} of them", size - 64))
    );
    assert!(map.sleds.len() >= 6);
    assert_eq!(map.functions[2].location.map(|location| location.address), Some(TEXT + 0x40));
}

#[test]
fn addresses_outside_of_code_are_reported() {
    let (bytes, at) =
        with("xray_instr_map", |map| map.bytes[..32].copy_from_slice(&entry(0, 0x7777, TEXT, 0, 2)));
    let map = read(&bytes);
    assert_eq!(code_offset_counts(&map), [("XM003", Some(at), 1)]);
    assert_eq!(map.findings[0].message, "the address of a sled, 0x7777, is in no section with code");
    assert_eq!(map.sleds[0].location.map(|location| location.address), Some(0x7777), "as it is in the file");
    let (bytes, _) = with(".text", |text| text.flags = 2);
    assert_eq!(read(&bytes).findings.last().map(|finding| finding.count), Some(3), "12 addresses, 10 places");
}

#[test]
fn unknown_kinds_and_versions_are_retained() {
    let (bytes, at) = with("xray_instr_map", |map| {
        map.bytes[16] = 77;
        map.bytes[32 + 18] = 3;
        // Absolute, and marked with an unknown version.
        map.bytes[64..72].copy_from_slice(&(TEXT + 0x20).to_le_bytes());
        map.bytes[72..80].copy_from_slice(&(TEXT + 0x20).to_le_bytes());
        map.bytes[64 + 18] = 200;
    });
    let map = read(&bytes);
    assert_eq!(
        code_offset_counts(&map),
        [("XM004", Some(at + 16), 1), ("XM005", Some(at + 50), 1), ("XM005", Some(at + 82), 1)]
    );
    assert_eq!((map.sleds[0].kind, map.sleds[0].kind.to_string()), (SledKind(77), "unknown-77".to_owned()));
    assert_eq!((map.functions.len(), map.versions()), (3, vec![2, 3, 200]));
}

#[test]
fn version_0_with_relative_addresses_is_understood() {
    let (bytes, _) =
        with("xray_instr_map", |map| map.bytes[18..].iter_mut().step_by(32).for_each(|version| *version = 0));
    let map = read(&bytes);
    assert_eq!(map.findings, []);
    assert_eq!(map.functions[2].location.map(|location| location.address), Some(TEXT + 0x40));
}

#[test]
fn an_index_that_does_not_fit_is_not_used() {
    for (entries, expected) in [
        (&[(0, 2), (2, 2), (4, 3)][..], "entry 2 of xray_fn_idx is of no sleds in the map"),
        (&[(0, 2), (2, 0), (4, 2)], "entry 1 of xray_fn_idx is of no sleds in the map"),
        (&[(0, 2), (99, 1), (4, 2)], "entry 1 of xray_fn_idx is of no sleds in the map"),
        (&[(0, 2), (2, 2)], "sled 4 belongs to no function"),
        (&[(0, 2), (2, 2), (2, 2)], "sled 2 belongs to two functions"),
        (&[(0, 3), (3, 1), (4, 2)], "the function of sled 0 has sleds of another function"),
    ] {
        let (bytes, _) = with("xray_fn_idx", |section| section.bytes = index(entries));
        let map = read(&bytes);
        let [finding] = &map.findings[..] else { panic!("{:?}", map.findings) };
        assert_eq!(finding.code, "XM007");
        assert!(finding.message.starts_with(expected), "{}", finding.message);
        assert_eq!(map.functions.len(), 3);
    }
}

#[test]
fn an_index_with_another_order_is_the_runtimes() {
    // As where two functions have one address: by addresses they would be one.
    for (entries, first_differing) in
        [(&[(2, 2), (0, 2), (4, 2)][..], 1), (&[(0, 1), (1, 1), (2, 2), (4, 2)], 1)]
    {
        let (bytes, at) = with("xray_fn_idx", |section| section.bytes = index(entries));
        let map = read(&bytes);
        assert_eq!(code_offset_counts(&map), [("XM008", Some(at), 1)]);
        assert!(
            map.findings[0].message.contains(&format!("others from {first_differing} on")),
            "{:?}",
            map.findings
        );
        assert_eq!(map.functions.len(), entries.len());
        assert_eq!(map.functions[0].sleds.start as u64, entries[0].0);
    }
}

#[test]
fn an_index_of_absolute_addresses_is_recognized_by_its_values() {
    let absolute = |sleds: [(u64, u64); 3]| -> Vec<u8> {
        let address = |sled: u64| (MAP + 32 * sled).to_le_bytes();
        sleds.iter().flat_map(|&(first, end)| [address(first), address(end)].concat()).collect()
    };
    let (bytes, _) = with("xray_fn_idx", |section| section.bytes = absolute([(2, 4), (0, 2), (4, 6)]));
    let map = read(&bytes);
    assert_eq!(map.functions[0].location.map(|location| location.address), Some(TEXT + 0x20));
    let (bytes, at) = with("xray_fn_idx", |section| section.bytes = absolute([(0, 2), (2, 4), (4, 7)]));
    assert_eq!(code_offset_counts(&read(&bytes)), [("XM007", Some(at + 32), 1)]);
}

#[test]
fn object_files_without_relocations_have_sleds_without_addresses() {
    let map = read(&elf(1, &sections(3)));
    assert_eq!((map.sleds.len(), map.functions.len()), (6, 1), "the functions cannot be distinguished");
    assert!(map.sleds.iter().all(|sled| sled.location.is_none() && sled.function.is_none()));
    assert_eq!(map.findings.iter().map(|finding| finding.count).sum::<u64>(), 12);
    assert!(map.findings.iter().all(|finding| finding.code == "XM006"));
}

#[test]
fn files_without_a_map_say_why() {
    let without: Vec<Section> = sections(1).into_iter().filter(|section| section.name == ".text").collect();
    let no_bytes = with("xray_instr_map", |map| map.kind = 8).0;
    let empty = with("xray_instr_map", |map| map.bytes.clear()).0;
    assert_eq!((read(&empty).sleds.len(), read(&empty).functions.len()), (0, 0));
    for (bytes, expected) in [
        (elf(3, &without), "there is no section xray_instr_map"),
        (no_bytes, "a separate debug file"),
        (b"#!/bin/sh\necho nothing to see here\n".to_vec(), "not a readable ELF or Mach-O file"),
        (Vec::new(), "not a readable ELF or Mach-O file"),
    ] {
        let error: Error = InstrumentationMap::read(&bytes, None).expect_err("no map");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// No answer is about what is not there, and none is larger than the file.
fn holds(bytes: &[u8], how: impl Fn() -> String) -> bool {
    let Ok(map) = InstrumentationMap::read(bytes, None) else { return false };
    assert!(map.sleds.len() <= bytes.len() / 16, "{}", how());
    assert!(map.functions.len() <= map.sleds.len(), "{}", how());
    let within = |offset: Option<u64>| offset.is_none_or(|offset| offset <= bytes.len() as u64);
    assert!(map.findings.iter().all(|finding| within(finding.offset)), "{}: {:?}", how(), map.findings);
    assert!(map.sleds.iter().all(|sled| within(Some(sled.offset))), "{}", how());
    true
}

/// Programs to be damaged: ours, and those of compilers that are here.
fn victims(scratch: &Scratch) -> Vec<Vec<u8>> {
    let mut all = vec![elf(3, &sections(3)), elf(1, &sections(3))];
    let targets = ["x86_64-linux-gnu", "armv7-linux-gnueabihf", "riscv64-linux-gnu", "x86_64-apple-macosx"];
    for target in targets.into_iter().filter(|_| have(&["clang-22"])) {
        let object =
            compile(scratch, "clang-22", "victim.o", &[&format!("--target={target}")]).expect("XRay");
        all.push(std::fs::read(object).expect("the object"));
    }
    all
}

#[test]
fn any_cut_and_any_flipped_byte_do_no_harm() {
    let scratch = Scratch::new("damage");
    for (victim, whole) in victims(&scratch).iter().enumerate() {
        let mut num_read = 0;
        for len in 0..whole.len() {
            num_read += usize::from(holds(&whole[..len], || format!("{victim} cut at {len}")));
        }
        for at in 0..whole.len() {
            for flipped in [0x01, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= flipped;
                num_read += usize::from(holds(&bytes, || format!("{victim} at {at} ^ {flipped:#x}")));
            }
        }
        assert!(num_read > whole.len(), "{victim}: {num_read} of the damaged ones could be read");
    }
}

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn many_changed_bytes_do_no_harm() {
    let scratch = Scratch::new("changed");
    for (victim, whole) in victims(&scratch).iter().enumerate() {
        let mut random = Random(victim as u64);
        for round in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..=random.below(12) {
                let at = random.below(bytes.len());
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random.below(256) as u8][random.below(6)];
            }
            holds(&bytes, || format!("{victim}, round {round}"));
        }
    }
}

/// Sections that all claim the same bytes, so that a small file could make much of itself.
#[test]
fn sections_that_share_their_bytes_are_read_once() {
    for e_type in [1, 3] {
        let all: Vec<Section> = (0..4000).map(|_| sections(3).swap_remove(1)).collect();
        let mut bytes = elf(e_type, &all);
        let whole = bytes.len() as u64;
        let headers = bytes.len() - 64 * (all.len() + 2);
        for section in 1..=all.len() {
            let at = headers + 64 * section;
            bytes[at + 24..at + 40].copy_from_slice(&[0, whole].map(u64::to_le_bytes).concat());
        }
        let map = read(&bytes);
        assert!(map.sleds.len() <= bytes.len() / 32, "{} sleds of {} bytes", map.sleds.len(), bytes.len());
        assert!(map.findings.iter().any(|finding| finding.code == "XM009"), "{:?}", map.findings);
    }
    assert_eq!(map(1).len(), 64);
}

/// An `.eh_frame` of one common entry and one function of 16 bytes at `TEXT`, for a section at an address.
fn eh_frame(address: u64) -> Vec<u8> {
    // Length 20, id 0, version 1, "zR", code factor 1, data factor -8, return column 16, pcrel|sdata4, CFA = rsp + 8, rip at CFA - 8.
    let mut section =
        vec![20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0];
    let start = (TEXT as i64 - (address as i64 + section.len() as i64 + 8)) as i32;
    let instructions = [0x0a, 0x41, 0x0e, 16, 0x0f, 3, 0x76, 0x78, 0x06, 0x0b, 0];
    section.extend((4 + 4 + 4 + 1 + instructions.len() as u32).to_le_bytes());
    section.extend((section.len() as u32).to_le_bytes());
    section.extend(start.to_le_bytes());
    section.extend(16u32.to_le_bytes());
    section.push(0);
    section.extend(instructions);
    section
}

/// Every reader of a file, on each of its cuts and with each of its bytes changed: an answer or an error.
#[test]
fn each_cut_and_each_changed_byte_of_a_file_is_read_without_a_panic() {
    let scratch = Scratch::new("readers");
    let path = scratch.0.join("damaged");
    let intact = |e_type| {
        let mut all = sections(2);
        all.push(Section { name: ".eh_frame", kind: 1, flags: 2, address: 0x4000, bytes: eh_frame(0x4000) });
        let plt = [&[0xff, 0x25, 0x0a, 0, 0, 0][..], &[0x90; 10]].concat();
        all.push(Section { name: ".plt", kind: 1, flags: 6, address: 0x5000, bytes: plt });
        elf(e_type, &all)
    };
    let whole = EhFrame::of_elf(&intact(3)).expect("an .eh_frame");
    assert_eq!(
        whole.table.functions.first().map(|function| (function.start, function.size)),
        Some((TEXT, 16))
    );
    let read_all = |bytes: &[u8]| {
        if let Ok(found) = EhFrame::of_elf(bytes) {
            let _ = Coverage::of(bytes, &found, &whole.table);
            let _ = (cross_check(&whole.table, &found.table), cross_check(&found.table, &whole.table));
        }
        let _ = InstrumentationMap::read(bytes, None);
        std::fs::write(&path, bytes).expect("a damaged file");
        let module = Symbolizer::new(Options { live_kernel: false, ..Options::default() }).file(&path);
        let _ = (module.resolve_many(&[0, 64, 0x5008]), module.functions_at(&[Some(TEXT), Some(u64::MAX)]));
    };
    for e_type in [1, 3] {
        let file = intact(e_type);
        (0..file.len()).for_each(|len| read_all(&file[..len]));
        for at in 0..file.len() {
            for change in [1, 0x80, 0xff] {
                let mut bytes = file.clone();
                bytes[at] ^= change;
                read_all(&bytes);
            }
        }
    }
}
