//! Checks a file against its specification: headers, function entries, rows, and the files that contain the sections.

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, ErrorKind, Rule};

use super::SFrame;
use super::consts::{Abi, SFRAME_FDE_TYPE_FLEX, SFRAME_MAGIC, known_flags};
use super::container::{self, Section, SectionOrigin};
use super::layout::Header;
use super::reader::UnitView;
use super::records::Fde;
use super::row::Fre;
use super::rules::*;
use super::unit::StartBase;

/// A unit being checked, and the diagnostics that findings are added to.
struct UnitCheck<'a, 's> {
    view: UnitView<'a>,
    section: &'a Section,
    sink: &'s mut Diagnostics,
    /// Index of the current record.
    record: u64,
}

impl UnitCheck<'_, '_> {
    /// Adds a finding about the current record.
    fn report(
        &mut self,
        rule: &'static Rule,
        at: usize,
        field: &'static str,
        message: impl FnOnce() -> Cow<'static, str>,
    ) {
        // The offset may be past the end of a section that is cut short, but stays inside the file.
        let offset = self.view.offset(at.min(self.view.data.len()));
        self.sink.push(rule, offset, Some(self.record), field, message);
    }
}

/// Checks the whole file.
pub fn check(file: &SFrame, sink: &mut Diagnostics) {
    for (index, error) in file.unreadable() {
        let member = file.sections().get(*index).map_or("", |section| &section.member);
        let message = match member {
            "" => error.to_string(),
            member => format!("{member}: {error}"),
        };
        sink.push(&UNREAD, error.offset, None, error.field, || message.into());
    }
    for missing in container::missing_ends(file.file_source()) {
        let length = file.file_source().len();
        sink.push(&CUT, missing.offset as u64, None, "", || match (missing.member.as_str(), missing.end) {
            ("", None) => "no header of a member".into(),
            ("", Some(end)) => format!("the file has {length} bytes, its headers state {end}").into(),
            (member, end) => {
                format!("{member}: ends at {:#x}, the file at {length:#x}", end.unwrap_or(0)).into()
            }
        });
    }
    check_sections(file, sink);
    let mut record = 0u64;
    for view in file.views() {
        let Some(section) = file.sections().get(view.unit.section) else { continue };
        let mut unit_check = UnitCheck { view, section, sink, record };
        check_header(&mut unit_check);
        check_readers(&mut unit_check);
        unit_check.record = unit_check.record.saturating_add(1);
        check_functions(&mut unit_check);
        record = unit_check.record;
    }
}

/// Checks the header of a unit.
fn check_header(unit_check: &mut UnitCheck<'_, '_>) {
    let unit = unit_check.view.unit;
    let (header, at) = (unit.header, unit.at);
    let Some(entry_bytes) = unit.entry_bytes() else {
        let version = header.sfp_version;
        unit_check.report(&VERSION, at, "sfp_version", || format!("version {version}").into());
        return;
    };
    let unknown = header.sfp_flags & !known_flags(header.sfp_version);
    if unknown != 0 {
        unit_check.report(&FLAGS, at, "sfp_flags", || {
            format!("flags {unknown:#x} in version {}", header.sfp_version).into()
        });
    }
    match unit.abi().endian() {
        None => unit_check.report(&ABI, at, "sfh_abi_arch", || unit.abi().to_string().into()),
        Some(endian) if (endian != unit.endian) || magic_is_swapped(&unit_check.view) => {
            unit_check.report(&BYTE_ORDER, at, "sfp_magic", || {
                format!("{} in a section whose magic has the other byte order", unit.abi()).into()
            });
        }
        Some(_) => {}
    }
    if header.sfh_auxhdr_len != 0 {
        unit_check
            .report(&AUXILIARY, at, "sfh_auxhdr_len", || format!("{} bytes", header.sfh_auxhdr_len).into());
    }
    if header.sfh_num_fdes == 0 {
        unit_check.report(&EMPTY, at, "sfh_num_fdes", || "no functions".into());
    }
    if header.sfh_num_fdes > unit.num_functions {
        let available = unit.num_functions;
        unit_check.report(&ENTRIES_PAST_END, at, "sfh_num_fdes", || {
            format!("{} functions, of which {available} are present", header.sfh_num_fdes).into()
        });
    }
    let rows_there = unit.rows.len();
    if header.sfh_fre_len as usize > rows_there {
        unit_check.report(&ROWS_PAST_END, at, "sfh_fre_len", || {
            format!("{} bytes of rows, of which {rows_there} are present", header.sfh_fre_len).into()
        });
    }
    let entries = header.sfh_fdeoff as usize;
    let entries_end = entries.saturating_add((header.sfh_num_fdes as usize).saturating_mul(entry_bytes));
    let rows = header.sfh_freoff as usize;
    let rows_end = rows.saturating_add(header.sfh_fre_len as usize);
    if rows < entries_end && entries < rows_end && header.sfh_num_fdes != 0 && header.sfh_fre_len != 0 {
        unit_check.report(&ENTRIES_OVER_ROWS, at, "sfh_freoff", || {
            format!("entries up to {entries_end:#x}, rows from {rows:#x}").into()
        });
    } else if entries != 0 || rows != entries_end {
        unit_check.report(&GAP, at, "sfh_freoff", || {
            format!("entries from {entries:#x} up to {entries_end:#x}, rows from {rows:#x}").into()
        });
    }
}

/// Whether the magic is in another byte order than the header.
pub fn magic_is_swapped(view: &UnitView<'_>) -> bool {
    let unit = view.unit;
    let magic = view.data.get(unit.at..).and_then(|rest| rest.first_chunk::<2>());
    let mut written = Vec::new();
    let header = Header { sfp_magic: SFRAME_MAGIC, ..unit.header };
    header.write(&mut written, unit.endian);
    magic.is_some_and(|magic| !written.starts_with(magic))
}

/// Checks what contains the sections: unmerged units, relocations, segments.
fn check_sections(file: &SFrame, sink: &mut Diagnostics) {
    for (index, section) in file.sections().iter().enumerate() {
        let start = section.range.start as u64;
        let units: Vec<_> = file.units().iter().filter(|unit| unit.section == index).collect();
        let trailing_bytes = file.trailing(index);
        if trailing_bytes > 0 && section.origin != SectionOrigin::Segment && !units.is_empty() {
            let offset = (section.range.end as u64).saturating_sub(trailing_bytes as u64);
            sink.push(&TRAILING, offset, None, "", || format!("{trailing_bytes} bytes").into());
        }
        if let [first, rest @ ..] = units.as_slice()
            && !rest.is_empty()
        {
            let num = units.len();
            sink.push(&NOT_MERGED, start, None, "", || format!("{num} headers in one section").into());
            let other =
                rest.iter().find(|unit| (unit.version(), unit.abi()) != (first.version(), first.abi()));
            if let Some(other) = other {
                let offset = start.saturating_add(other.at as u64);
                sink.push(&SEVERAL_VERSIONS, offset, None, "sfp_version", || {
                    let (was, is) = (first.version(), other.version());
                    format!("version {was} for {}, then version {is} for {}", first.abi(), other.abi()).into()
                });
            }
        }
        for unit in &units {
            if !unit.is_pcrel() && matches!(unit.starts, StartBase::FromField(_)) {
                let offset = start.saturating_add(unit.at as u64);
                sink.push(&UNSAID_BASE, offset, None, "sfp_flags", || unit.starts.reason().into());
            }
        }
        if let Some(segment) = section.segment_bytes.filter(|bytes| *bytes > section.range.len() as u64) {
            let available = section.range.len();
            sink.push(&SEGMENT_SIZE, start, None, "p_filesz", || {
                format!("a segment of {segment} bytes for a section of {available}").into()
            });
        }
        check_relocations(file, index, section, sink);
    }
}

/// Checks the relocations of a section in an object file.
fn check_relocations(file: &SFrame, index: usize, section: &Section, sink: &mut Diagnostics) {
    let Some(done) = &section.relocations else { return };
    let start = section.range.start as u64;
    let end = section.range.end as u64;
    for refused in &done.refused {
        sink.push(&RELOCATION, start.saturating_add(*refused).min(end), None, "r_offset", || {
            format!("a relocation at {refused:#x} that was not applied").into()
        });
    }
    for view in file.views().filter(|view| view.unit.section == index) {
        for function in view.functions() {
            if done.section_of(function.at as u64).is_none() {
                sink.push(&NOT_RELOCATED, view.offset(function.at), None, "sfde_func_start_address", || {
                    format!("function {} has no relocation", function.index).into()
                });
            }
        }
    }
}

/// Reports which readers refuse a unit of a linked file, and why.
fn check_readers(unit_check: &mut UnitCheck<'_, '_>) {
    if matches!(unit_check.section.origin, SectionOrigin::Object | SectionOrigin::Bare) {
        return;
    }
    let readers: [(&'static Rule, Vec<&'static str>); 3] = [
        (&LINUX_REFUSES, linux_reasons(unit_check)),
        (&GLIBC_REFUSES, glibc_reasons(unit_check)),
        (&LIBSFRAME_REFUSES, libsframe_reasons(unit_check)),
    ];
    for (rule, reasons) in readers {
        if !reasons.is_empty() {
            unit_check.report(rule, unit_check.view.unit.at, "", || reasons.join("; ").into());
        }
    }
}

/// Why Linux (series of January 2026) refuses the unit.
fn linux_reasons(unit_check: &UnitCheck<'_, '_>) -> Vec<&'static str> {
    let unit = unit_check.view.unit;
    let header = &unit.header;
    let mut reasons = Vec::new();
    let mut require = |holds: bool, reason| {
        if !holds {
            reasons.push(reason);
        }
    };
    require(unit.version() == 3, "it reads version 3 only");
    require(unit.is_sorted(), "functions are not sorted");
    require(unit.is_pcrel(), "start addresses are not relative to their fields");
    require(header.sfh_auxhdr_len == 0, "bytes follow the header");
    require(header.sfh_num_fdes != 0 && header.sfh_num_fres != 0, "there are no functions or no rows");
    require(unit.at == 0, "only the first header of a section is read");
    require(unit.end <= unit_check.view.data.len(), "it goes past the end of the section");
    reasons
}

/// Why glibc 2.43 refuses the unit.
fn glibc_reasons(unit_check: &UnitCheck<'_, '_>) -> Vec<&'static str> {
    let unit = unit_check.view.unit;
    let mut reasons = Vec::new();
    if unit.version() != 2 {
        reasons.push("it reads version 2 only");
    }
    if unit.at != 0 {
        reasons.push("only the first header of a section is read");
    }
    if !matches!(
        unit.abi(),
        Abi::AMD64_ENDIAN_LITTLE
            | Abi::AARCH64_ENDIAN_LITTLE
            | Abi::AARCH64_ENDIAN_BIG
            | Abi::S390X_ENDIAN_BIG
    ) {
        reasons.push("its ABI is unknown");
    }
    reasons
}

/// Why libsframe 3 refuses the unit, or misreads it.
fn libsframe_reasons(unit_check: &UnitCheck<'_, '_>) -> Vec<&'static str> {
    let unit = unit_check.view.unit;
    let mut reasons = Vec::new();
    match unit.version() {
        2 if !unit.is_pcrel() => reasons
            .push("it reads start addresses as relative to their fields, and finds only some functions"),
        2 | 3 => {}
        _ => reasons.push("it reads versions 2 and 3"),
    }
    if unit.at != 0 {
        reasons.push("only the first header of a section is read");
    }
    reasons
}

/// Checks the function entries of a unit and their rows.
fn check_functions(unit_check: &mut UnitCheck<'_, '_>) {
    let view = unit_check.view;
    let unit = view.unit;
    let mut before: Option<Fde> = None;
    let mut furthest_end: Option<Fde> = None;
    let mut num_rows = 0u64;
    let mut is_limit_reported = false;
    for function in view.functions() {
        if let Some(before) = before.filter(|before| before.start > function.start) {
            let (rule, is_object) = (
                if unit.is_sorted() { &NOT_SORTED } else { &UNSORTED },
                unit_check.section.origin == SectionOrigin::Object,
            );
            if unit.is_sorted() || !is_object {
                unit_check.report(rule, function.at, "start_address", || {
                    format!(
                        "function {} at {:#x} follows one at {:#x}",
                        function.index, function.start, before.start
                    )
                    .into()
                });
            }
        }
        // In an object file, functions of different sections all start at 0.
        if let Some(other) = furthest_end.filter(|other| {
            function.size != 0 && function.start < other.end() && function.start >= other.start
        }) && unit_check.section.origin != SectionOrigin::Object
        {
            unit_check.report(&OVERLAP, function.at, "start_address", || {
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
        if furthest_end.is_none_or(|other| function.end() > other.end()) {
            furthest_end = Some(function);
        }
        check_entry(unit_check, &function);
        if function.index >= unit.num_readable && !is_limit_reported {
            is_limit_reported = true;
            unit_check.report(&TOO_MANY_ROWS, function.at, "sfde_func_num_fres", || {
                format!("function {} and all after it", function.index).into()
            });
        }
        unit_check.record = unit_check.record.saturating_add(1);
        if unit.version() >= 3 && function.rows_at.is_some() {
            unit_check.record = unit_check.record.saturating_add(1);
        }
        num_rows = num_rows.saturating_add(check_rows(unit_check, &function));
        before = Some(function);
    }
    let claimed = u64::from(unit.header.sfh_num_fres);
    if claimed != num_rows && unit.entry_bytes().is_some() {
        unit_check.report(&NUM_ROWS, unit.at, "sfh_num_fres", || {
            format!("{claimed}, and there are {num_rows}").into()
        });
    }
}

/// Checks the fields of a function entry.
fn check_entry(unit_check: &mut UnitCheck<'_, '_>, function: &Fde) {
    let version = unit_check.view.unit.version();
    let (index, info, at) = (function.index, function.info, function.at);
    let Some(rows_at) = function.rows_at else {
        unit_check.report(&ROWS_OUTSIDE, at, "sfde_func_start_fre_off", || {
            format!("function {index}: {:#x}", function.start_fre_off).into()
        });
        return;
    };
    let info_at = if version >= 3 { rows_at.saturating_sub(3) } else { at.saturating_add(16) };
    if info.row_start_bytes().is_none() {
        unit_check.report(&FRE_TYPE, info_at, "sfde_func_info", || {
            format!("function {index}: type {}", info.fre_type()).into()
        });
    }
    if function.fde_type > SFRAME_FDE_TYPE_FLEX {
        unit_check.report(&FDE_TYPE, info_at, "sfda_func_info2", || {
            format!("function {index}: type {}", function.fde_type).into()
        });
    }
    let unused = info.0 & if version >= 3 { 0x40 } else { 0xc0 };
    if unused != 0 || function.unused_bits != 0 || function.padding != 0 {
        unit_check.report(&UNUSED_BITS, info_at, "sfde_func_info", || {
            format!("function {index}: {info}, {unused:#x}").into()
        });
    }
    if info.repeats() && function.repeat_bytes == 0 {
        unit_check.report(&NO_BLOCK, at, "sfde_func_rep_size", || format!("function {index}").into());
    }
    if function.size == 0 {
        unit_check.report(&NO_SIZE, at, "sfde_func_size", || {
            format!("function {index} at {:#x}", function.start).into()
        });
    }
    if function.num_rows == 0 && version < 3 {
        unit_check.report(&NO_ROWS, at, "sfde_func_num_fres", || {
            format!("function {index} at {:#x}", function.start).into()
        });
    }
    let code = &unit_check.section.code;
    let inside = code
        .iter()
        .any(|range| range.contains(&function.start) || (function.size == 0 && range.end == function.start));
    if !code.is_empty() && !inside && unit_check.section.origin != SectionOrigin::Object {
        unit_check.report(&OUTSIDE_CODE, at, "start_address", || {
            format!("function {index} at {:#x}", function.start).into()
        });
    }
}

/// Checks the rows of a function, and returns their number.
fn check_rows(unit_check: &mut UnitCheck<'_, '_>, function: &Fde) -> u64 {
    let view = unit_check.view;
    let (unit, index) = (view.unit, function.index);
    let context = unit.context(function);
    let limit = if function.info.repeats() { function.repeat_bytes.into() } else { u64::from(function.size) };
    let mut before: Option<Fre<'_>> = None;
    let mut num = 0u64;
    for row in view.rows(function) {
        let row = match row {
            Ok(row) => row,
            // The FRE type was reported with the entry.
            Err(error) if error.field == "fre_type" => break,
            Err(error) => {
                let rule =
                    if matches!(error.kind, ErrorKind::Invalid { .. }) { &WORD_SIZE } else { &ROW_PAST_END };
                let at = usize::try_from(error.offset.saturating_sub(view.file_offset)).unwrap_or(usize::MAX);
                unit_check.report(rule, at, error.field, || {
                    format!("row {num} of function {index}: {error}").into()
                });
                break;
            }
        };
        if let Some(before) = before {
            if row.start <= before.start {
                unit_check.report(&NOT_ASCENDING, row.at, "sfre_start_address", || {
                    format!(
                        "row {num} of function {index} starts at {:#x}, the one before it at {:#x}",
                        row.start, before.start
                    )
                    .into()
                });
            }
            if row.has_same_recovery(&before) {
                unit_check.report(&SAME_ROW, row.at, "sfre_words", || {
                    format!("row {num} of function {index}").into()
                });
            }
        } else if row.start != 0 {
            unit_check.report(&LATE_FIRST_ROW, row.at, "sfre_start_address", || {
                format!("function {index} from {:#x} on", row.start).into()
            });
        }
        // A row that starts at the end is written for what follows an empty function, and is harmless.
        if u64::from(row.start) > limit {
            unit_check.report(&ROW_PAST_FUNCTION, row.at, "sfre_start_address", || {
                format!("row {num} of function {index} starts at {:#x} of {limit:#x}", row.start).into()
            });
        }
        if row.info.num_words() == 0 && unit.version() == 1 {
            unit_check.report(&OUTERMOST_EARLY, row.at, "sfre_info", || {
                format!("row {num} of function {index}").into()
            });
        }
        if row.info.ra_mangled() && !unit.abi().has_pointer_authentication() && unit.abi().endian().is_some()
        {
            unit_check
                .report(&MANGLED, row.at, "sfre_info", || format!("row {num} of function {index}").into());
        }
        if let Err(why) = context.interpret(&row)
            && function.fde_type <= 1
        {
            unit_check.report(&MEANINGLESS, row.at, "sfre_words", || {
                format!("row {num} of function {index}: {why}").into()
            });
        }
        unit_check.record = unit_check.record.saturating_add(1);
        num = num.saturating_add(1);
        before = Some(row);
    }
    num
}
