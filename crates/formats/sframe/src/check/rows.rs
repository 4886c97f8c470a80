//! Rows of a function.

use perfuse_wire::ErrorKind;

use super::Checked;
use crate::records::Function;
use crate::row::Row;
use crate::rules::*;

/// Every departure of a function's rows; how many there are.
pub(super) fn check(checked: &mut Checked<'_, '_>, function: &Function) -> u64 {
    let view = checked.view;
    let (piece, index) = (view.piece, function.index);
    let context = piece.context(function);
    let limit = if function.info.repeats() { function.repeat_bytes.into() } else { u64::from(function.size) };
    let mut before: Option<Row<'_>> = None;
    let mut num = 0u64;
    for row in view.rows(function) {
        let row = match row {
            Ok(row) => row,
            // The type of starts was told with the entry.
            Err(error) if error.field == "fre_type" => break,
            Err(error) => {
                let rule =
                    if matches!(error.kind, ErrorKind::Invalid { .. }) { &WORD_SIZE } else { &ROW_PAST_END };
                let at = usize::try_from(error.offset.saturating_sub(view.file_offset)).unwrap_or(usize::MAX);
                checked
                    .tell(rule, at, error.field, || format!("row {num} of function {index}: {error}").into());
                break;
            }
        };
        if let Some(before) = before {
            if row.start <= before.start {
                checked.tell(&NOT_ASCENDING, row.at, "sfre_start_address", || {
                    format!(
                        "row {num} of function {index} starts at {:#x}, the one before it at {:#x}",
                        row.start, before.start
                    )
                    .into()
                });
            }
            if row.says_the_same(&before) {
                checked.tell(&SAME_ROW, row.at, "sfre_words", || {
                    format!("row {num} of function {index}").into()
                });
            }
        } else if row.start != 0 {
            checked.tell(&LATE_FIRST_ROW, row.at, "sfre_start_address", || {
                format!("function {index} from {:#x} on", row.start).into()
            });
        }
        // A row that starts with the end is written for what follows an empty function, and harms nobody.
        if u64::from(row.start) > limit {
            checked.tell(&ROW_PAST_FUNCTION, row.at, "sfre_start_address", || {
                format!("row {num} of function {index} starts at {:#x} of {limit:#x}", row.start).into()
            });
        }
        if row.info.num_words() == 0 && piece.version() == 1 {
            checked.tell(&OUTERMOST_EARLY, row.at, "sfre_info", || {
                format!("row {num} of function {index}").into()
            });
        }
        if row.info.ra_mangled()
            && !piece.abi().has_pointer_authentication()
            && piece.abi().endian().is_some()
        {
            checked.tell(&MANGLED, row.at, "sfre_info", || format!("row {num} of function {index}").into());
        }
        if let Err(why) = context.meaning(&row)
            && function.fde_type <= 1
        {
            checked.tell(&MEANINGLESS, row.at, "sfre_words", || {
                format!("row {num} of function {index}: {why}").into()
            });
        }
        checked.record = checked.record.saturating_add(1);
        num = num.saturating_add(1);
        before = Some(row);
    }
    num
}
