use object::{
    Architecture, BinaryFormat, Object, ObjectKind, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind,
};

use super::*;

fn architectures() -> [(ImageSpec, Architecture); 6] {
    let with = |machine, is_64, big_endian| ImageSpec { machine, is_64, big_endian, ..x86_64() };
    [
        (with(62, true, false), Architecture::X86_64),
        (with(3, false, false), Architecture::I386),
        (with(183, true, false), Architecture::Aarch64),
        (with(40, false, false), Architecture::Arm),
        (with(22, true, true), Architecture::S390x),
        (with(20, false, true), Architecture::PowerPc),
    ]
}

#[test]
fn an_elf_reader_finds_code_symbols_and_build_id() {
    for (spec, architecture) in architectures() {
        let (bytes, placed, summary) = image(spec.clone(), &sample());
        let file = object::File::parse(&*bytes).unwrap();
        assert_eq!((file.format(), file.kind()), (BinaryFormat::Elf, ObjectKind::Dynamic));
        assert_eq!(file.architecture(), architecture);
        assert_eq!((file.is_64(), file.is_little_endian()), (spec.is_64, !spec.big_endian));
        assert_eq!(file.build_id().unwrap(), Some(&summary.build_id[..]));
        let symbols: Vec<_> = file.symbols().collect();
        for ((code, placed), symbol) in sample().iter().zip(placed).zip(&symbols) {
            assert_eq!(symbol.name(), Ok(code.linkage_name));
            assert_eq!((symbol.address(), symbol.size()), (placed.file_offset, code.size));
            assert_eq!((symbol.kind(), symbol.is_definition()), (SymbolKind::Text, true));
            let section = file.section_by_index(symbol.section_index().unwrap()).unwrap();
            assert_eq!(section.name(), Ok(if code.code.is_some() { ".text" } else { ".text.absent" }));
            if let Some(code) = code.code {
                assert_eq!(&bytes[placed.file_offset as usize..][..code.len()], code);
            }
        }
        assert_eq!(symbols.len(), sample().len());
    }
}

#[test]
fn addresses_are_file_offsets() {
    let (bytes, placed, _) = image(x86_64(), &sample());
    let file = object::File::parse(&*bytes).unwrap();
    for segment in file.segments() {
        assert_eq!(segment.address(), segment.file_range().0);
    }
    for placed in placed {
        let inside =
            |range: (u64, u64)| range.0 <= placed.file_offset && placed.file_offset + placed.size <= range.1;
        assert!(
            file.segments().any(|segment| inside((segment.address(), segment.address() + segment.size())))
        );
        assert_eq!(placed.file_offset % 16, 0);
    }
}

#[test]
fn sections_do_not_overlap_and_fill_the_file() {
    let (bytes, _, summary) = image(x86_64(), &sample());
    let file = object::File::parse(&*bytes).unwrap();
    let mut end = 64;
    for section in file.sections() {
        let name = section.name().unwrap();
        assert_eq!(
            summary.sections.iter().find(|(other, _)| *other == name).map(|(_, size)| *size),
            Some(section.size())
        );
        if let Some((offset, size)) = section.file_range() {
            assert!(offset >= end, "{name} starts before the preceding section ends");
            end = offset + size;
        }
    }
    assert_eq!(summary.size_bytes, bytes.len() as u64);
    assert_eq!(summary.size_bytes, end.next_multiple_of(8) + 64 * (summary.sections.len() as u64 + 1));
}

#[test]
fn the_same_code_gives_the_same_image_and_other_code_another_build_id() {
    let (first, _, summary) = image(x86_64(), &sample());
    let (second, ..) = image(x86_64(), &sample());
    assert!(first == second);
    let mut other = sample();
    other[1].code = Some(&[0xcc; 256]);
    assert_ne!(image(x86_64(), &other).2.build_id, summary.build_id);
    other = sample();
    other[2].linkage_name = "Builtin:Anders";
    assert_ne!(image(x86_64(), &other).2.build_id, summary.build_id);
}

#[test]
fn an_image_without_functions_is_valid() {
    let (bytes, _, summary) = image(x86_64(), &[]);
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(file.symbols().count(), 0);
    assert_eq!(summary.num_functions, 0);
    assert!(file.section_by_name(".text.absent").is_none());
}
