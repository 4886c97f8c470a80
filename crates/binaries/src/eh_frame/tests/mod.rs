//! Rows of this program's own `.eh_frame`, and of sections made by hand.

mod tables;

use gimli::RunTimeEndian;
use perfuse_tables::{Base, Expression, Recover, Recovery};

use super::{DwarfRegisters, EhFrame, RowRule, SectionBytes, Unrepresentable, read};

/// A section of one common entry and one function of 16 bytes at 0x1000, loaded to 0x2000.
fn section(letters: &[u8], instructions: &[u8]) -> Vec<u8> {
    let mut cie = vec![0, 0, 0, 0, 1];
    cie.extend_from_slice(letters);
    // NUL, code factor 1, data factor -8, return column 16; augmentation: pcrel, sdata4; cfa = rsp + 8; rip at cfa - 8.
    cie.extend_from_slice(&[0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1]);
    cie.resize(cie.len().next_multiple_of(4), 0);
    let mut section = (cie.len() as u32).to_le_bytes().to_vec();
    section.extend_from_slice(&cie);
    let back = section.len() as u32 + 4;
    let mut fde = back.to_le_bytes().to_vec();
    let field = 0x2000 + section.len() as i32 + 8;
    fde.extend_from_slice(&(0x1000 - field).to_le_bytes());
    fde.extend_from_slice(&16u32.to_le_bytes());
    fde.push(0);
    fde.extend_from_slice(instructions);
    fde.resize(fde.len().next_multiple_of(4), 0);
    section.extend_from_slice(&(fde.len() as u32).to_le_bytes());
    section.extend_from_slice(&fde);
    section
}

fn rows(letters: &[u8], instructions: &[u8]) -> Vec<(u32, RowRule)> {
    let data = section(letters, instructions);
    let registers = DwarfRegisters::X86_64;
    let (table, unread) =
        read(SectionBytes { data: &data, address: 0x2000, endian: RunTimeEndian::Little, registers });
    assert_eq!(unread, []);
    let [function] = table.functions.as_slice() else { panic!("{table:?}") };
    assert_eq!((function.start, function.size), (0x1000, 16));
    table.rows(function).iter().map(|row| (row.start, row.rule)).collect()
}

const RA: Recover = Recover::At(Expression { base: Base::Cfa, offset: -8, deref: true });

fn caller(base: Base, offset: i64, deref: bool, fp: Recover) -> RowRule {
    let cfa = Expression { base, offset, deref };
    RowRule::Recovery(Recovery::Caller { cfa, fp, ra: RA, ra_mangled: false })
}

#[test]
fn states_are_remembered_within_others() {
    // remember; advance 1; cfa + 8; remember; advance 1; cfa + 8; restore; advance 1; restore; advance 1.
    let nested = [0x0a, 0x41, 0x0e, 16, 0x0a, 0x41, 0x0e, 24, 0x41, 0x0b, 0x41, 0x0b];
    let sp = |offset| caller(Base::Sp, offset, false, Recover::Same);
    assert_eq!(rows(b"zR", &nested), [(0, sp(8)), (1, sp(16)), (2, sp(24)), (3, sp(16)), (4, sp(8))]);
    let data = section(b"zR", &nested);
    let registers = DwarfRegisters::X86_64;
    let (table, _) =
        read(SectionBytes { data: &data, address: 0x2000, endian: RunTimeEndian::Little, registers });
    assert!(table.functions[0].nests_states);
}

#[test]
fn expressions_that_name_a_register_are_values() {
    // cfa = *(rbp - 8); rbp at *(rbp + 0).
    let aligned = [0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0];
    let fp = Recover::At(Expression { base: Base::Fp, offset: 0, deref: true });
    assert_eq!(rows(b"zR", &aligned), [(0, caller(Base::Fp, -8, true, fp))]);
    // cfa = rsp + rbp.
    let sum = [0x0f, 5, 0x77, 0, 0x76, 0, 0x22];
    assert_eq!(rows(b"zR", &sum), [(0, RowRule::Unrepresentable(Unrepresentable::CfaExpression))]);
    // rbp = cfa - 16, not what is there.
    let value = [0x14, 6, 2];
    assert_eq!(rows(b"zR", &value), [(0, RowRule::Unrepresentable(Unrepresentable::FpValue))]);
}

#[test]
fn the_expression_of_a_plt_is_known() {
    let plt = [0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    let [(0, rule)] = rows(b"zR", &plt)[..] else { panic!() };
    let sp = |offset| {
        let cfa = Expression { base: Base::Sp, offset, deref: false };
        Ok(Recovery::Caller { cfa, fp: Recover::Same, ra: RA, ra_mangled: false })
    };
    assert_eq!((rule.at(0x100a), rule.at(0x100b), rule.at(0x1010)), (sp(8), sp(16), sp(8)));
}

#[test]
fn key_b_is_no_signal() {
    let data = section(b"zRB", &[]);
    let registers = DwarfRegisters::X86_64;
    let (table, unread) =
        read(SectionBytes { data: &data, address: 0x2000, endian: RunTimeEndian::Little, registers });
    assert_eq!(unread, []);
    assert!(table.functions[0].is_key_b && !table.functions[0].is_signal);
}

#[test]
fn any_cut_and_any_flipped_byte_is_survived() {
    let whole = section(b"zRB", &[0x0a, 0x41, 0x0e, 16, 0x0a, 0x41, 0x0e, 24, 0x0f, 3, 0x76, 0x78, 0x06]);
    let read = |data: &[u8]| {
        let registers = DwarfRegisters::AARCH64;
        read(SectionBytes { data, address: 0x2000, endian: RunTimeEndian::Little, registers })
    };
    for cut in 0..whole.len() {
        let (table, _) = read(&whole[..cut]);
        assert!(table.functions.is_empty());
    }
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let (table, unread) = read(&bytes);
            assert!(table.functions.len() + unread.len() <= 2);
        }
    }
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn this_program_has_rows_for_its_code() {
    let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let eh_frame = EhFrame::of_elf(&file).unwrap();
    assert!(eh_frame.bases.is_none());
    let here = eh_frame.table.functions.iter().filter(|function| function.num_rows > 0).count();
    assert_eq!(here, eh_frame.table.functions.len());
    let table = &eh_frame.table;
    let sized = table.functions.iter().filter(|function| function.size > 0);
    sized.for_each(|function| {
        let last = function.end() - 1;
        let row = table.row_at(table.find(last).unwrap(), last).unwrap();
        assert!(!matches!(row.rule, RowRule::Unrepresentable(Unrepresentable::Invalid)));
    });
}
