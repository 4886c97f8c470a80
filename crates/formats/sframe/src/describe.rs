//! The records that `perfuse records` lists: each header, then each function with its rows.

use std::borrow::Cow;

use perfuse_wire::{RecordView, Value};

use super::SFrame;
use super::consts::{FLAGS, SFRAME_FDE_TYPE_DEFAULT, SFRAME_FDE_TYPE_FLEX};
use super::layout::{ATTRIBUTES, ENTRY, FuncDescAttrV3, HEADER, Header, INDEX, ROW};
use super::reader::UnitView;
use super::records::Fde;
use super::recovery::Recovery;
use super::row::Fre;
use super::unit::SFrameUnit;
use perfuse_recording::Position;

/// The record at a position. `offset` is that of the unit's header. `inner` is 0 for the header; else its upper half
/// is the function's index and its lower half, less one, is 0 for the entry, 1 for the attributes, and 2 plus the
/// row's index for a row.
pub fn next_record<'a>(file: &'a SFrame, at: &mut Position) -> Option<RecordView<'a>> {
    loop {
        let units = file.units();
        let unit_index = units.partition_point(|unit| file.view(unit).offset(unit.at) < at.offset);
        let view = file.view(units.get(unit_index)?);
        let record = match at.inner.checked_sub(1) {
            None => Some((header_record(view), 1)),
            Some(position) => function_record(file, unit_index, view, position),
        };
        let offset = view.offset(view.unit.at);
        if let Some((mut record, inner)) = record {
            record.index = at.index;
            *at = Position { offset, index: at.index.saturating_add(1), inner };
            return Some(record);
        }
        *at = Position { offset: offset.saturating_add(1), index: at.index, inner: 0 };
    }
}

/// The record of a function at a position, and the position after it; `None` after the last function.
fn function_record<'a>(
    file: &'a SFrame,
    unit_index: usize,
    view: UnitView<'a>,
    position: u64,
) -> Option<(RecordView<'a>, u64)> {
    let (mut index, mut step) = (u32::try_from(position >> 32).ok()?, position as u32);
    loop {
        let function = view.function(index).filter(|_| index < view.unit.num_functions)?;
        let next_position = |step: u32| (u64::from(index) << 32 | u64::from(step)).saturating_add(2);
        let record = match step {
            0 => Some(entry_record(view, &function)),
            1 => attributes_record(view, &function),
            _ => {
                let row =
                    file.row_survey().rows_from(unit_index, view, &function, step.saturating_sub(2)).next();
                row.and_then(Result::ok).map(|row| row_record(view, &function, &row))
            }
        };
        match record {
            Some(record) => return Some((record, next_position(step))),
            None if step == 1 => step = 2,
            None => (index, step) = (index.checked_add(1)?, 0),
        }
    }
}

fn record<'a>(
    view: UnitView<'a>,
    at: usize,
    size: u64,
    name: &'static str,
    fields: Vec<(&'static str, Value<'a>)>,
) -> RecordView<'a> {
    RecordView { index: 0, offset: view.offset(at), size, name: Cow::Borrowed(name), timestamp: None, fields }
}

fn header_record(view: UnitView<'_>) -> RecordView<'_> {
    let unit = view.unit;
    let size = Header::SIZE.saturating_add(unit.header.sfh_auxhdr_len.into());
    record(view, unit.at, size, HEADER, header(unit))
}

/// The fields of a header, in the order of the specification.
pub(super) fn header(unit: &SFrameUnit) -> Vec<(&'static str, Value<'static>)> {
    let header = &unit.header;
    vec![
        ("sfp_magic", Value::Hex(header.sfp_magic.into())),
        ("sfp_version", Value::Unsigned(header.sfp_version.into())),
        ("sfp_flags", Value::Text(flags(header.sfp_flags).into())),
        ("sfh_abi_arch", Value::Text(unit.abi().to_string().into())),
        ("sfh_cfa_fixed_fp_offset", Value::Signed(header.sfh_cfa_fixed_fp_offset.into())),
        ("sfh_cfa_fixed_ra_offset", Value::Signed(header.sfh_cfa_fixed_ra_offset.into())),
        ("sfh_auxhdr_len", Value::Unsigned(header.sfh_auxhdr_len.into())),
        ("sfh_num_fdes", Value::Unsigned(header.sfh_num_fdes.into())),
        ("sfh_num_fres", Value::Unsigned(header.sfh_num_fres.into())),
        ("sfh_fre_len", Value::Unsigned(header.sfh_fre_len.into())),
        ("sfh_fdeoff", Value::Unsigned(header.sfh_fdeoff.into())),
        ("sfh_freoff", Value::Unsigned(header.sfh_freoff.into())),
    ]
}

/// Names of the flags; unnamed bits in hexadecimal.
pub(super) fn flags(flags: u8) -> String {
    let named = FLAGS.iter().filter(|(bit, _)| flags & bit != 0);
    let mut words: Vec<_> = named.map(|(_, name)| (*name).to_owned()).collect();
    let rest = FLAGS.iter().fold(flags, |rest, (bit, _)| rest & !bit);
    if rest != 0 || words.is_empty() {
        words.push(format!("{rest:#x}"));
    }
    words.join(" | ")
}

/// The record of a function entry.
fn entry_record<'a>(view: UnitView<'a>, function: &Fde) -> RecordView<'a> {
    let size = view.unit.entry_bytes().unwrap_or(0) as u64;
    let start = Value::Signed(function.start_field);
    let address = Value::Hex(function.start);
    let (func_size, fre_off) =
        (Value::Unsigned(function.size.into()), Value::Unsigned(function.start_fre_off.into()));
    if view.unit.version() >= 3 {
        let fields = vec![
            ("sfdi_func_start_offset", start),
            ("start_address", address),
            ("sfdi_func_size", func_size),
            ("sfdi_func_start_fre_off", fre_off),
        ];
        return record(view, function.at, size, INDEX, fields);
    }
    let mut fields = vec![
        ("sfde_func_start_address", start),
        ("start_address", address),
        ("sfde_func_size", func_size),
        ("sfde_func_start_fre_off", fre_off),
        ("sfde_func_num_fres", Value::Unsigned(function.num_rows.into())),
        ("sfde_func_info", Value::Text(function.info.to_string().into())),
    ];
    if view.unit.version() == 2 {
        fields.push(("sfde_func_rep_size", Value::Unsigned(function.repeat_bytes.into())));
        fields.push(("sfde_func_padding2", Value::Unsigned(function.padding.into())));
    }
    record(view, function.at, size, ENTRY, fields)
}

/// The record of the attributes of a function of version 3.
fn attributes_record<'a>(view: UnitView<'a>, function: &Fde) -> Option<RecordView<'a>> {
    let at =
        function.rows_at.filter(|_| view.unit.version() >= 3)?.checked_sub(FuncDescAttrV3::SIZE as usize)?;
    let fde_type = match function.fde_type {
        SFRAME_FDE_TYPE_DEFAULT => Cow::Borrowed("DEFAULT"),
        SFRAME_FDE_TYPE_FLEX => Cow::Borrowed("FLEX"),
        other => Cow::Owned(format!("Unknown FDE type {other}")),
    };
    let fields = vec![
        ("start_address", Value::Hex(function.start)),
        ("sfda_func_num_fres", Value::Unsigned(function.num_rows.into())),
        ("sfda_func_info", Value::Text(function.info.to_string().into())),
        ("sfda_func_info2", Value::Text(fde_type)),
        ("sfda_func_rep_size", Value::Unsigned(function.repeat_bytes.into())),
    ];
    Some(record(view, at, FuncDescAttrV3::SIZE, ATTRIBUTES, fields))
}

/// The record of a row, with its interpretation.
fn row_record<'a>(view: UnitView<'a>, function: &Fde, row: &Fre<'a>) -> RecordView<'a> {
    let words: Vec<_> = row.words().map(|word| word.to_string()).collect();
    let mut fields = vec![
        ("start_address", Value::Hex(function.start.wrapping_add(row.start.into()))),
        ("sfre_start_address", Value::Unsigned(row.start.into())),
        ("sfre_info", Value::Text(row.info.to_string().into())),
        ("sfre_words", Value::Text(words.join(", ").into())),
    ];
    match view.unit.context(function).interpret(row) {
        Ok(Recovery::Outermost) => fields.push(("cfa", Value::Text("outermost".into()))),
        Ok(Recovery::Caller { cfa, fp, ra, .. }) => {
            fields.push(("cfa", Value::Text(cfa.to_string().into())));
            fields.push(("fp", Value::Text(fp.to_string().into())));
            fields.push(("ra", Value::Text(ra.to_string().into())));
        }
        Err(why) => fields.push(("cfa", Value::Text(format!("none: {why}").into()))),
    }
    record(view, row.at, row.size as u64, ROW, fields)
}
