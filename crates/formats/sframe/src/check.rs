//! Holds a file against its specification: structure, bounds, and what it is in.

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, ErrorKind, Rule};

use super::SFrame;
use super::consts::{Abi, SFRAME_FDE_TYPE_FLEX, SFRAME_MAGIC, known_flags};
use super::container::{Holder, Section};
use super::layout::Header;
use super::reader::View;
use super::records::Function;
use super::row::Row;
use super::rules::*;
use super::unit::Starts;

/// A piece that is being checked, and where to tell what is found.
struct Checked<'a, 's> {
    view: View<'a>,
    section: &'a Section,
    sink: &'s mut Diagnostics,
    /// Index of the record that is looked at.
    record: u64,
}

impl Checked<'_, '_> {
    fn tell(
        &mut self,
        rule: &'static Rule,
        at: usize,
        field: &'static str,
        message: impl FnOnce() -> Cow<'static, str>,
    ) {
        // An offset into a section that is cut short still is one into the file.
        let offset = self.view.offset(at.min(self.view.data.len()));
        self.sink.push(rule, offset, Some(self.record), field, message);
    }
}

/// Every departure.
pub fn check(file: &SFrame, sink: &mut Diagnostics) {
    for (index, error) in file.unread() {
        let member = file.sections().get(*index).map_or("", |section| &section.member);
        let message = match member {
            "" => error.to_string(),
            member => format!("{member}: {error}"),
        };
        sink.push(&UNREAD, error.offset, None, error.field, || message.into());
    }
    check_holder(file, sink);
    let mut record = 0u64;
    for view in file.views() {
        let Some(section) = file.sections().get(view.piece.section) else { continue };
        let mut checked = Checked { view, section, sink, record };
        check_header(&mut checked);
        check_readers(&mut checked);
        checked.record = checked.record.saturating_add(1);
        check_functions(&mut checked);
        record = checked.record;
    }
}

fn check_header(checked: &mut Checked<'_, '_>) {
    let piece = checked.view.piece;
    let (header, at) = (piece.header, piece.at);
    let Some(entry_bytes) = piece.entry_bytes() else {
        let version = header.sfp_version;
        checked.tell(&VERSION, at, "sfp_version", || format!("version {version}").into());
        return;
    };
    let unknown = header.sfp_flags & !known_flags(header.sfp_version);
    if unknown != 0 {
        checked.tell(&FLAGS, at, "sfp_flags", || {
            format!("flags {unknown:#x} in version {}", header.sfp_version).into()
        });
    }
    match piece.abi().endian() {
        None => checked.tell(&ABI, at, "sfh_abi_arch", || piece.abi().to_string().into()),
        Some(endian) if (endian != piece.endian) || magic_is_swapped(checked) => {
            checked.tell(&BYTE_ORDER, at, "sfp_magic", || {
                format!("{} in a section that begins in the other byte order", piece.abi()).into()
            });
        }
        Some(_) => {}
    }
    if header.sfh_auxhdr_len != 0 {
        checked.tell(&AUXILIARY, at, "sfh_auxhdr_len", || format!("{} bytes", header.sfh_auxhdr_len).into());
    }
    if header.sfh_num_fdes == 0 {
        checked.tell(&EMPTY, at, "sfh_num_fdes", || "no functions".into());
    }
    if header.sfh_num_fdes > piece.num_functions {
        let there = piece.num_functions;
        checked.tell(&ENTRIES_PAST_END, at, "sfh_num_fdes", || {
            format!("{} functions, of which {there} are there", header.sfh_num_fdes).into()
        });
    }
    let rows_there = piece.rows.len();
    if header.sfh_fre_len as usize > rows_there {
        checked.tell(&ROWS_PAST_END, at, "sfh_fre_len", || {
            format!("{} bytes of rows, of which {rows_there} are there", header.sfh_fre_len).into()
        });
    }
    let entries = header.sfh_fdeoff as usize;
    let entries_end = entries.saturating_add((header.sfh_num_fdes as usize).saturating_mul(entry_bytes));
    let rows = header.sfh_freoff as usize;
    let rows_end = rows.saturating_add(header.sfh_fre_len as usize);
    if rows < entries_end && entries < rows_end && header.sfh_num_fdes != 0 && header.sfh_fre_len != 0 {
        checked.tell(&ENTRIES_OVER_ROWS, at, "sfh_freoff", || {
            format!("entries up to {entries_end:#x}, rows from {rows:#x}").into()
        });
    } else if entries != 0 || rows != entries_end {
        checked.tell(&GAP, at, "sfh_freoff", || {
            format!("entries from {entries:#x} up to {entries_end:#x}, rows from {rows:#x}").into()
        });
    }
}

fn magic_is_swapped(checked: &Checked<'_, '_>) -> bool {
    let piece = checked.view.piece;
    let magic = checked.view.data.get(piece.at..).and_then(|rest| rest.first_chunk::<2>());
    let mut written = Vec::new();
    let header = Header { sfp_magic: SFRAME_MAGIC, ..piece.header };
    header.write(&mut written, piece.endian);
    magic.is_some_and(|magic| !written.starts_with(magic))
}

/// Every departure of what is around the sections.
fn check_holder(file: &SFrame, sink: &mut Diagnostics) {
    for (index, section) in file.sections().iter().enumerate() {
        let start = section.place.start as u64;
        let pieces: Vec<_> = file.pieces().iter().filter(|piece| piece.section == index).collect();
        let behind = file.trailing(index);
        if behind > 0 && section.holder != Holder::Segment && !pieces.is_empty() {
            let offset = (section.place.end as u64).saturating_sub(behind as u64);
            sink.push(&TRAILING, offset, None, "", || format!("{behind} bytes").into());
        }
        if let [first, rest @ ..] = pieces.as_slice()
            && !rest.is_empty()
        {
            let num = pieces.len();
            sink.push(&NOT_MERGED, start, None, "", || format!("{num} headers in one section").into());
            let other =
                rest.iter().find(|piece| (piece.version(), piece.abi()) != (first.version(), first.abi()));
            if let Some(other) = other {
                let offset = start.saturating_add(other.at as u64);
                sink.push(&SEVERAL_VERSIONS, offset, None, "sfp_version", || {
                    let (was, is) = (first.version(), other.version());
                    format!("version {was} for {}, then version {is} for {}", first.abi(), other.abi()).into()
                });
            }
        }
        for piece in &pieces {
            if !piece.is_pcrel() && matches!(piece.starts, Starts::FromField(_)) {
                let offset = start.saturating_add(piece.at as u64);
                sink.push(&UNSAID_BASE, offset, None, "sfp_flags", || piece.starts.reason().into());
            }
        }
        if let Some(segment) = section.segment_bytes.filter(|bytes| *bytes > section.place.len() as u64) {
            let there = section.place.len();
            sink.push(&SEGMENT_SIZE, start, None, "p_filesz", || {
                format!("a segment of {segment} bytes for a section of {there}").into()
            });
        }
        check_relocations(file, index, section, sink);
    }
}

fn check_relocations(file: &SFrame, index: usize, section: &Section, sink: &mut Diagnostics) {
    let Some(done) = &section.relocated else { return };
    let start = section.place.start as u64;
    let end = section.place.end as u64;
    for refused in &done.refused {
        sink.push(&RELOCATION, start.saturating_add(*refused).min(end), None, "r_offset", || {
            format!("a relocation at {refused:#x} that was not applied").into()
        });
    }
    for view in file.views().filter(|view| view.piece.section == index) {
        for function in view.functions() {
            if done.section_of(function.at as u64).is_none() {
                sink.push(&NOT_RELOCATED, view.offset(function.at), None, "sfde_func_start_address", || {
                    format!("function {} has no relocation", function.index).into()
                });
            }
        }
    }
}

/// Tells of each reader that refuses a piece of a finished file.
fn check_readers(checked: &mut Checked<'_, '_>) {
    if matches!(checked.section.holder, Holder::Object | Holder::Bare) {
        return;
    }
    let readers: [(&'static Rule, Vec<&'static str>); 3] = [
        (&LINUX_REFUSES, linux(checked)),
        (&GLIBC_REFUSES, glibc(checked)),
        (&LIBSFRAME_REFUSES, libsframe(checked)),
    ];
    for (rule, reasons) in readers {
        if !reasons.is_empty() {
            checked.tell(rule, checked.view.piece.at, "", || reasons.join("; ").into());
        }
    }
}

fn linux(checked: &Checked<'_, '_>) -> Vec<&'static str> {
    let piece = checked.view.piece;
    let header = &piece.header;
    let mut reasons = Vec::new();
    let mut unless = |holds: bool, reason| {
        if !holds {
            reasons.push(reason);
        }
    };
    unless(piece.version() == 3, "it reads version 3 only");
    unless(piece.is_sorted(), "functions are not sorted");
    unless(piece.is_pcrel(), "starts do not count from their fields");
    unless(header.sfh_auxhdr_len == 0, "bytes follow the header");
    unless(header.sfh_num_fdes != 0 && header.sfh_num_fres != 0, "there are no functions or no rows");
    unless(piece.at == 0, "it stands behind another, which alone is seen");
    unless(piece.end <= checked.view.data.len(), "it goes past the end of the section");
    reasons
}

fn glibc(checked: &Checked<'_, '_>) -> Vec<&'static str> {
    let piece = checked.view.piece;
    let mut reasons = Vec::new();
    if piece.version() != 2 {
        reasons.push("it reads version 2 only");
    }
    if piece.at != 0 {
        reasons.push("it stands behind another, which alone is seen");
    }
    if !matches!(
        piece.abi(),
        Abi::AMD64_ENDIAN_LITTLE
            | Abi::AARCH64_ENDIAN_LITTLE
            | Abi::AARCH64_ENDIAN_BIG
            | Abi::S390X_ENDIAN_BIG
    ) {
        reasons.push("its ABI is not known");
    }
    reasons
}

fn libsframe(checked: &Checked<'_, '_>) -> Vec<&'static str> {
    let piece = checked.view.piece;
    let mut reasons = Vec::new();
    match piece.version() {
        2 if !piece.is_pcrel() => {
            reasons.push("it takes starts to count from their fields, and finds only some functions")
        }
        2 | 3 => {}
        _ => reasons.push("it reads versions 2 and 3"),
    }
    if piece.at != 0 {
        reasons.push("it stands behind another, which alone is seen");
    }
    reasons
}

/// Every departure of the functions of a piece, and of their rows.
fn check_functions(checked: &mut Checked<'_, '_>) {
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
        check_entry(checked, &function);
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
        num_rows = num_rows.saturating_add(check_rows(checked, &function));
        before = Some(function);
    }
    let claimed = u64::from(piece.header.sfh_num_fres);
    if claimed != num_rows && piece.entry_bytes().is_some() {
        checked.tell(&NUM_ROWS, piece.at, "sfh_num_fres", || {
            format!("{claimed}, and there are {num_rows}").into()
        });
    }
}

fn check_entry(checked: &mut Checked<'_, '_>, function: &Function) {
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

/// Every departure of a function's rows; how many there are.
fn check_rows(checked: &mut Checked<'_, '_>, function: &Function) -> u64 {
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
