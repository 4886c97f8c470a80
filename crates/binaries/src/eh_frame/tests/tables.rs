//! Tables made by hand, compared with each other.

use perfuse_tables::{Base, Expression, Recover, Recovery};

use crate::eh_frame::{
    Difference, Disagreement, PltRule, RowRule, Unrepresentable, UnwindFunction, UnwindRow, UnwindTable,
    cross_check,
};

const RA: Recover = Recover::At(Expression { base: Base::Cfa, offset: -8, deref: true });

fn sp(offset: i64) -> Recovery {
    let cfa = Expression { base: Base::Sp, offset, deref: false };
    Recovery::Caller { cfa, fp: Recover::Same, ra: RA, ra_mangled: false }
}

fn function(start: u64, size: u32) -> UnwindFunction {
    UnwindFunction {
        start,
        size,
        repeat_bytes: 0,
        is_signal: false,
        is_key_b: false,
        nests_states: false,
        entry_offset: 0,
        first_row: 0,
        num_rows: 0,
    }
}

fn table(functions: &[(UnwindFunction, &[(u32, RowRule)])]) -> UnwindTable {
    let mut table = UnwindTable::default();
    for (function, rows) in functions {
        table.push(*function, rows.iter().map(|(start, rule)| UnwindRow { start: *start, rule: *rule }));
    }
    table.sort();
    table
}

fn differences(left: &UnwindTable, right: &UnwindTable) -> Vec<(Difference, Option<u32>, u64, u64)> {
    let found = cross_check(left, right);
    assert!(found.is_complete);
    let parts = |d: &Disagreement| (d.difference, d.row, d.address, d.count);
    found.disagreements.iter().map(parts).collect()
}

#[test]
fn rows_are_compared_at_each_change_of_either_table() {
    let rule = |offset| RowRule::Recovery(sp(offset));
    let left = table(&[(function(0x100, 16), &[(0, rule(8)), (4, rule(16))])]);
    // The same, in two functions and with a row that changes nothing.
    let split = table(&[
        (function(0x100, 4), &[(0, rule(8)), (2, rule(8))]),
        (function(0x104, 20), &[(0, rule(16)), (12, rule(24))]),
    ]);
    assert_eq!(differences(&left, &split), []);
    let late = table(&[(function(0x100, 16), &[(0, rule(8)), (5, rule(16))])]);
    assert_eq!(differences(&left, &late), [(Difference::Cfa, Some(1), 0x104, 1)]);
}

#[test]
fn each_rule_that_differs_is_named() {
    let Recovery::Caller { cfa, fp, ra, .. } = sp(8) else { unreachable!() };
    let saved = Recover::At(Expression { base: Base::Cfa, offset: -16, deref: true });
    let fixed = Recover::Fixed(-8);
    let caller = |fp, ra, ra_mangled| RowRule::Recovery(Recovery::Caller { cfa, fp, ra, ra_mangled });
    let left = |rule| table(&[(function(0x100, 16), &[(0, rule)])]);
    let cases = [
        (caller(saved, ra, false), Difference::Fp),
        (caller(fp, saved, false), Difference::Ra),
        (caller(fp, ra, true), Difference::RaMangled),
        (RowRule::Recovery(Recovery::Outermost), Difference::Outermost),
        (RowRule::Unrepresentable(Unrepresentable::CfaExpression), Difference::Unrepresentable),
    ];
    for (other, differs) in cases {
        assert_eq!(
            differences(&left(RowRule::Recovery(sp(8))), &left(other)),
            [(differs, Some(0), 0x100, 1)]
        );
    }
    // Where the header states the same address.
    assert_eq!(differences(&left(caller(fp, fixed, false)), &left(caller(fp, RA, false))), []);
    let no_row = table(&[(function(0x100, 16), &[])]);
    assert_eq!(differences(&no_row, &left(RowRule::Recovery(sp(8)))), [(Difference::NoRow, None, 0x100, 1)]);
    let signal = table(&[(
        UnwindFunction { is_signal: true, is_key_b: true, ..function(0x100, 16) },
        &[(0, RowRule::Recovery(sp(8)))],
    )]);
    let found = differences(&left(RowRule::Recovery(sp(8))), &signal);
    assert_eq!(found, [(Difference::Signal, None, 0x100, 1)]);
}

#[test]
fn blocks_that_repeat_are_compared_with_the_expression_of_a_plt() {
    let stub = PltRule { offset: 8, mask: 15, moves_at: 11, step: 8, ra: RA, fp: Recover::Same };
    let plt = table(&[(function(0x100, 64), &[(0, RowRule::Plt(stub))])]);
    let repeats = UnwindFunction { repeat_bytes: 16, ..function(0x100, 64) };
    let rows = |at| table(&[(repeats, &[(0, RowRule::Recovery(sp(8))), (at, RowRule::Recovery(sp(16)))])]);
    assert_eq!(differences(&rows(11), &plt), []);
    // Once per block: reported once, with its number.
    assert_eq!(differences(&rows(9), &plt), [(Difference::Cfa, Some(1), 0x109, 4)]);
}

#[test]
fn code_that_eh_frame_has_not_is_counted() {
    let rule = RowRule::Recovery(sp(8));
    let left = table(&[(function(0x100, 16), &[(0, rule)]), (function(0x200, 16), &[(0, rule)])]);
    let found = cross_check(&left, &table(&[(function(0x108, 4), &[(0, rule)])]));
    assert_eq!((found.num_functions, found.num_bytes, found.num_bytes_alone), (1, 4, 28));
}

#[test]
fn comparing_ends() {
    let rule = RowRule::Recovery(sp(8));
    let endless = UnwindFunction { repeat_bytes: 1, ..function(0, u32::MAX) };
    let left = table(&[(endless, &[(0, rule)])]);
    let found = cross_check(&left, &table(&[(function(0, u32::MAX), &[(0, rule)])]));
    assert!(!found.is_complete);
}

/// Rows of a damaged table are not sorted: one that starts before the address it was found for once made the length of a range
/// negative.
#[test]
fn rows_that_are_not_sorted_are_compared() {
    let rule = |offset| RowRule::Recovery(sp(offset));
    let starts = [0, 8, 3, 200, 1, u32::MAX, 4];
    let rows: Vec<(u32, RowRule)> = starts.iter().map(|&start| (start, rule(8))).collect();
    for repeat_bytes in [0, 1, 16, 255] {
        for start in [0x100, u64::MAX - 8] {
            let damaged = UnwindFunction { repeat_bytes, ..function(start, 16) };
            let left = table(&[(damaged, &rows)]);
            let stub = PltRule { offset: 8, mask: 0xaa, moves_at: 255, step: 8, ra: RA, fp: Recover::Same };
            for right in [rule(8), RowRule::Plt(stub)] {
                let found = cross_check(&left, &table(&[(function(start, 16), &[(0, right), (6, right)])]));
                assert!(found.is_complete && found.num_bytes <= 16);
            }
        }
    }
}
