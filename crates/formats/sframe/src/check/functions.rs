//! Function entries.

use super::{Checked, rows};
use crate::consts::SFRAME_FDE_TYPE_FLEX;
use crate::container::Holder;
use crate::records::Function;
use crate::rules::*;

/// Every departure of the functions of a piece, and of their rows.
pub(super) fn check(checked: &mut Checked<'_, '_>) {
    let view = checked.view;
    let piece = view.piece;
    let mut before: Option<Function> = None;
    let mut furthest: Option<Function> = None;
    let mut num_rows = 0u64;
    let mut told = false;
    for function in view.functions() {
        if let Some(before) = before.filter(|before| before.start > function.start) {
            let (rule, is_object) = (
                if piece.is_sorted() { &NOT_SORTED } else { &UNSORTED },
                checked.section.holder == Holder::Object,
            );
            if piece.is_sorted() || !is_object {
                checked.tell(rule, function.at, "start_address", || {
                    format!(
                        "function {} at {:#x} behind one at {:#x}",
                        function.index, function.start, before.start
                    )
                    .into()
                });
            }
        }
        // In an object file functions of different sections all begin at 0.
        if let Some(other) = furthest.filter(|other| {
            function.size != 0 && function.start < other.end() && function.start >= other.start
        }) && checked.section.holder != Holder::Object
        {
            checked.tell(&OVERLAP, function.at, "start_address", || {
                format!(
                    "function {} at {:#x} begins within function {}, which ends at {:#x}",
                    function.index,
                    function.start,
                    other.index,
                    other.end()
                )
                .into()
            });
        }
        if furthest.is_none_or(|other| function.end() > other.end()) {
            furthest = Some(function);
        }
        entry(checked, &function);
        if function.index >= piece.num_walked && !told {
            told = true;
            checked.tell(&TOO_MANY_ROWS, function.at, "sfde_func_num_fres", || {
                format!("function {} and those behind it", function.index).into()
            });
        }
        checked.record = checked.record.saturating_add(1);
        if piece.version() >= 3 && function.rows_at.is_some() {
            checked.record = checked.record.saturating_add(1);
        }
        num_rows = num_rows.saturating_add(rows::check(checked, &function));
        before = Some(function);
    }
    let claimed = u64::from(piece.header.sfh_num_fres);
    if claimed != num_rows && piece.entry_bytes().is_some() {
        checked.tell(&NUM_ROWS, piece.at, "sfh_num_fres", || {
            format!("{claimed}, and there are {num_rows}").into()
        });
    }
}

fn entry(checked: &mut Checked<'_, '_>, function: &Function) {
    let version = checked.view.piece.version();
    let (index, info, at) = (function.index, function.info, function.at);
    let Some(rows_at) = function.rows_at else {
        checked.tell(&ROWS_OUTSIDE, at, "sfde_func_start_fre_off", || {
            format!("function {index}: {:#x}", function.start_fre_off).into()
        });
        return;
    };
    let info_at = if version >= 3 { rows_at.saturating_sub(3) } else { at.saturating_add(16) };
    if info.row_start_bytes().is_none() {
        checked.tell(&FRE_TYPE, info_at, "sfde_func_info", || {
            format!("function {index}: type {}", info.fre_type()).into()
        });
    }
    if function.fde_type > SFRAME_FDE_TYPE_FLEX {
        checked.tell(&FDE_TYPE, info_at, "sfda_func_info2", || {
            format!("function {index}: type {}", function.fde_type).into()
        });
    }
    let unused = info.0 & if version >= 3 { 0x40 } else { 0xc0 };
    if unused != 0 || function.unused_bits != 0 || function.padding != 0 {
        checked.tell(&UNUSED_BITS, info_at, "sfde_func_info", || {
            format!("function {index}: {info}, {unused:#x}").into()
        });
    }
    if info.repeats() && function.repeat_bytes == 0 {
        checked.tell(&NO_BLOCK, at, "sfde_func_rep_size", || format!("function {index}").into());
    }
    if function.size == 0 {
        checked.tell(&NO_SIZE, at, "sfde_func_size", || {
            format!("function {index} at {:#x}", function.start).into()
        });
    }
    if function.num_rows == 0 && version < 3 {
        checked.tell(&NO_ROWS, at, "sfde_func_num_fres", || {
            format!("function {index} at {:#x}", function.start).into()
        });
    }
    let code = &checked.section.code;
    let inside = code
        .iter()
        .any(|range| range.contains(&function.start) || (function.size == 0 && range.end == function.start));
    if !code.is_empty() && !inside && checked.section.holder != Holder::Object {
        checked.tell(&OUTSIDE_CODE, at, "start_address", || {
            format!("function {index} at {:#x}", function.start).into()
        });
    }
}
