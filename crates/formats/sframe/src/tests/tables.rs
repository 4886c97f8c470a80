//! Table `unwind_rows` has what the rows of the file mean, each interpreted on its own.

use arrow_array::types::{Int64Type, UInt64Type};
use perfuse_tables::access::{booleans, nullable, numbers, text};

use super::corpus::{bytes, files, open};
use crate::recovery::{Expression, Recovery};
use perfuse_recording::{Placement, Recording, TableRequest};

/// Start, the three rules, `ra_mangled`, `outermost`, record offset.
type RowValues = (u64, [Option<(String, i64, bool)>; 3], bool, bool, u64);

#[test]
fn tables_have_what_rows_say() {
    let picked = |path: &str| path.ends_with(".sframe") && !path.contains("/large/");
    for path in files(picked) {
        let file = open(bytes(&path), Some(0x1000));
        let mut expected: Vec<RowValues> = Vec::new();
        for view in file.views() {
            for function in view.functions() {
                let context = view.unit.context(&function);
                for row in view.rows(&function).map_while(Result::ok) {
                    let recovery = context.interpret(&row).ok();
                    let (rules, mangled) = match recovery {
                        Some(Recovery::Caller { cfa, fp, ra, ra_mangled }) => {
                            ([Some(cfa), fp.expression(), ra.expression()], ra_mangled)
                        }
                        _ => ([None; 3], false),
                    };
                    let rule =
                        |Expression { base, offset, deref }: Expression| (base.to_string(), offset, deref);
                    let rules = rules.map(|it| it.map(rule));
                    let outermost = recovery == Some(Recovery::Outermost);
                    expected.push((row.start.into(), rules, mangled, outermost, view.offset(row.at)));
                }
            }
        }
        let batches = file.table("unwind_rows", &Placement::alone(&file), &TableRequest::default());
        let mut found: Vec<RowValues> = Vec::new();
        for batch in batches.expect("is filled") {
            let rule = |row: usize, [base, offset, deref]: [&'static str; 3]| {
                let base = text(&batch, base).unwrap().get(row)?.to_owned();
                let offset = nullable(numbers::<Int64Type>(&batch, offset).unwrap(), row)?;
                Some((base, offset, booleans(&batch, deref).unwrap().value(row)))
            };
            let number = |row, name| numbers::<UInt64Type>(&batch, name).unwrap().value(row);
            let truth = |row, name| booleans(&batch, name).unwrap().value(row);
            found.extend((0..batch.num_rows()).map(|row| {
                let rules = [
                    ["cfa_base", "cfa_offset", "cfa_deref"],
                    ["fp_base", "fp_offset", "fp_deref"],
                    ["ra_base", "ra_offset", "ra_deref"],
                ];
                let rules = rules.map(|names| rule(row, names));
                let (mangled, outermost) = (truth(row, "ra_mangled"), truth(row, "outermost"));
                (number(row, "start_offset"), rules, mangled, outermost, number(row, "record_offset"))
            }));
        }
        assert!(found == expected, "{}", path.display());
    }
}
