//! What rows mean, where functions start, and which row applies at an address.

use super::corpus::{bytes, files, open};
use super::hand_made;
use crate::SFrame;
use crate::recovery::{Base, Expression, Recover, Recovery};
use crate::unit::StartBase;
use perfuse_recording::Recording;

fn at(base: Base, offset: i64, deref: bool) -> Expression {
    Expression { base, offset, deref }
}

fn recovery(file: &SFrame, pc: u64) -> Recovery {
    let found = file.find(pc).expect("is in a function");
    found.recovery.expect("has a row").expect("is interpreted")
}

#[test]
fn rows_of_version_3_say_what_they_say() {
    let file = open(hand_made::version3(), Some(0));
    let fixed = Recover::Fixed(-8);
    let caller = |cfa, fp, ra| Recovery::Caller { cfa, fp, ra, ra_mangled: false };
    assert_eq!(recovery(&file, 0x1000), caller(at(Base::Sp, 8, false), Recover::Same, fixed));
    let saved = Recover::At(at(Base::Cfa, -16, true));
    assert_eq!(recovery(&file, 0x102f), caller(at(Base::Sp, 16, false), saved, fixed));
    assert_eq!(recovery(&file, 0x1040), caller(at(Base::Register(10), 0, false), Recover::Same, fixed));
    let in_frame = Recover::At(at(Base::Fp, 0, true));
    assert_eq!(recovery(&file, 0x1044), caller(at(Base::Fp, -8, true), in_frame, fixed));
    assert_eq!(recovery(&file, 0x1080), Recovery::Outermost);
    // Addresses in a block that repeats are taken modulo its size.
    assert_eq!(recovery(&file, 0x10c0 + 16 + 10), caller(at(Base::Sp, 8, false), Recover::Same, fixed));
    assert_eq!(recovery(&file, 0x10c0 + 16 + 11), caller(at(Base::Sp, 16, false), Recover::Same, fixed));
    assert!(file.find(0x1030).is_none(), "between functions");
    assert!(file.find(0xfff).is_none());
}

#[test]
fn a_segment_is_enough() {
    let file = open(hand_made::elf(&hand_made::version3()), None);
    assert_eq!(file.find(0x3000).map(|found| found.function.index), Some(0));
    let counts = file.summary().counts;
    assert!(counts.contains(&("sframe_frame_row_entry".to_owned(), 7)), "{counts:?}");
}

#[test]
fn long_functions_are_searched_by_strides() {
    let file = open(hand_made::version2(1, 1000), Some(0));
    assert_eq!(file.find(0x1000 + 15).and_then(|found| found.row).map(|row| row.start), Some(15));
}

#[test]
fn starts_count_from_where_each_producer_counts() {
    let expected = [
        ("v1/x86_64/small_omitfp.elf", false),
        ("v1/x86_64/small_omitfp.o", true),
        ("v1/x86_64/small_nopie.elf", false),
        ("v2/x86_64/small_omitfp.elf", false),
        ("v2/x86_64/small_llvm22.o", true),
        ("v3/x86_64/small_omitfp.elf", true),
        ("concat/lld_v1.so", true),
        ("concat/gold_v2.so", true),
    ];
    for path in files(|path| expected.iter().any(|(name, _)| path.ends_with(name))) {
        let file = open(bytes(&path), None);
        let name = path.to_string_lossy().into_owned();
        let from_field = expected.iter().any(|(known, field)| name.ends_with(known) && *field);
        let section = &file.sections()[0];
        for view in file.views() {
            assert_eq!(matches!(view.unit.starts, StartBase::FromField(_)), from_field, "{name}");
            for function in view.functions() {
                let inside = section.code.iter().any(|code| code.contains(&function.start));
                assert!(inside, "{name}: {:#x}", function.start);
            }
        }
    }
}

#[test]
fn lookups_find_what_a_walk_finds() {
    for path in files(|path| path.ends_with("libsqlite.so") || path.ends_with("v3/s390x/fp.so")) {
        let file = open(bytes(&path), None);
        for view in file.views() {
            for function in view.functions().filter(|function| function.size > 0 && !function.info.repeats())
            {
                for row in view.rows(&function).flatten() {
                    let found = file.find(function.start + u64::from(row.start)).expect("is in a function");
                    let last = view.rows(&function).flatten().filter(|other| other.start == row.start).last();
                    assert_eq!(found.row.map(|row| row.at), last.map(|row| row.at));
                }
            }
        }
    }
}
