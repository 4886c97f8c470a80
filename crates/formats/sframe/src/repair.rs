//! Repairs a file: sections are rebuilt from the functions that are consistent.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use perfuse_wire::{Diagnostics, Rule, Severity};

use super::SFrame;
use super::check::magic_is_swapped;
use super::consts::known_flags;
use super::container::{Section, SectionOrigin};
use super::reader::UnitView;
use super::records::Fde;
use super::rules::*;
use super::writer::{OwnedFre, SectionContents, SectionFunction, merge, replace_section};
use perfuse_recording::{Change, Recording, Repaired, Source};

/// Errors of which the repair loses nothing: no address finds rows after the end of their function.
const WITHOUT_LOSS: [&Rule; 3] = [&NOT_SORTED, &FLAGS, &ROW_PAST_FUNCTION];

/// Writes the file with its sections repaired. Sections that need no repair are copied.
pub fn repair(file: &SFrame, out: &mut File) -> io::Result<Repaired> {
    let mut sink = Diagnostics::default();
    file.check(&mut sink);
    let mut done = Repaired::default();
    let found: Vec<_> = sink.into_rows();
    let needs_repair = found
        .iter()
        .any(|row| row.rule.severity >= Severity::Warning && !std::ptr::eq(row.rule, &LATE_FIRST_ROW));
    let mut bytes: Vec<u8> = file.source().to_vec();
    if needs_repair {
        for (index, section) in file.sections().iter().enumerate() {
            let views: Vec<_> = file.views().filter(|view| view.unit.section == index).collect();
            let mut section_done = Repaired::default();
            let Some(section_bytes) = rebuild_section(section, &views, &mut section_done) else { continue };
            let num_trailing = file.trailing(index);
            if num_trailing > 0 && section.origin != SectionOrigin::Segment {
                let offset = (section.range.end as u64).saturating_sub(num_trailing as u64);
                section_done.changes.push(change(
                    &TRAILING,
                    offset,
                    format!("{num_trailing} bytes left out"),
                ));
            }
            // Without a change the section stays as it is, although it could be written in other ways.
            if section_done.changes.is_empty() {
                continue;
            }
            let changed = replace_section(&bytes, section, &section_bytes)
                .map_err(|error| refused(section, &error.to_string()))?;
            let start = section.range.start;
            let end = start.saturating_add(section_bytes.len());
            if changed.get(start..end) != Some(section_bytes.as_slice()) {
                return Err(refused(section, "headers of the file are inside of it"));
            }
            if !is_readable(&changed, section) {
                return Err(refused(section, "with it, no section could be found in the file"));
            }
            bytes = changed;
            done.changes.append(&mut section_done.changes);
        }
    }
    out.write_all(&bytes)?;
    let losses = found.into_iter().filter(|row| row.rule.severity >= Severity::DataLoss);
    let changed = |rule: &Rule| done.changes.iter().any(|change| std::ptr::eq(change.rule, rule));
    let is_whole = |rule: &Rule| WITHOUT_LOSS.iter().any(|one| std::ptr::eq(*one, rule)) && changed(rule);
    done.lost = losses.filter(|row| !is_whole(row.rule)).collect();
    Ok(done)
}

/// Whether a file has a section that can be read where a section was replaced, at the same address: headers that are inside of the
/// section have changed with it.
fn is_readable(bytes: &[u8], replaced: &Section) -> bool {
    let opened =
        Source::from_bytes("", bytes.to_vec()).ok().and_then(|source| SFrame::open(Arc::new(source)).ok());
    let place = |section: &Section| (section.range.start, section.address);
    opened.is_some_and(|file| file.sections().iter().any(|section| place(section) == place(replaced)))
}

/// Why a file cannot be repaired, and what to do.
fn refused(section: &Section, why: &str) -> io::Error {
    let (start, size) = (section.range.start, section.range.len());
    let message = format!(
        "the repaired section cannot be put into the file: {why}. \
         Copy its bytes to a file of their own, and repair that: the section has {size} bytes from offset {start}"
    );
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// The bytes of a rebuilt section; `None` where it cannot be or need not be rebuilt.
fn rebuild_section(section: &Section, views: &[UnitView<'_>], done: &mut Repaired) -> Option<Vec<u8>> {
    if section.origin == SectionOrigin::Object {
        return None;
    }
    let mut units = Vec::new();
    for view in views {
        units.push(rebuild_unit(*view, done)?);
    }
    let num = units.len();
    let section_offset = section.range.start as u64;
    let (unsorted, rule): (bool, &'static Rule) = match views.first() {
        Some(view) if view.unit.is_sorted() => (false, &NOT_SORTED),
        _ => (true, &UNSORTED),
    };
    let from_section = units.len() > 1 || !unsorted;
    let mut contents = match num {
        1 => units.pop()?,
        _ => merge(units).ok()?.contents,
    };
    if num > 1 {
        done.changes.push(change(&NOT_MERGED, section_offset, format!("{num} sections merged into one")));
    } else if unsorted || !contents.functions.is_sorted_by_key(|function| function.start) {
        done.changes.push(change(rule, section_offset, "functions sorted".to_owned()));
    }
    contents.from_field &= !from_section;
    contents.sort();
    if views.iter().any(magic_is_swapped) {
        done.changes.push(change(&BYTE_ORDER, section_offset, "the magic was written anew".to_owned()));
    }
    let known_flags_of_version = known_flags(contents.version);
    if contents.flags & !known_flags_of_version != 0 {
        done.changes.push(change(&FLAGS, section_offset, "unknown flags cleared".to_owned()));
        contents.flags &= known_flags_of_version;
    }
    contents.encode(section.address).ok()
}

fn change(rule: &'static Rule, offset: u64, message: String) -> Change {
    Change { rule, offset, message }
}

/// The contents of a unit without the functions that have defects.
fn rebuild_unit(view: UnitView<'_>, done: &mut Repaired) -> Option<SectionContents> {
    view.unit.entry_bytes()?;
    let mut contents = SectionContents::of(view);
    let header = &view.unit.header;
    if header.sfh_num_fdes > view.unit.num_functions {
        let message = format!("sfh_num_fdes is {}", view.unit.num_functions);
        done.changes.push(change(&ENTRIES_PAST_END, view.offset(view.unit.at), message));
    }
    if header.sfh_fre_len as usize > view.unit.rows.len() {
        done.changes.push(change(
            &ROWS_PAST_END,
            view.offset(view.unit.at),
            "sfh_fre_len is the number of bytes present".to_owned(),
        ));
    }
    if !contents.auxiliary.is_empty() {
        done.changes.push(change(&AUXILIARY, view.offset(view.unit.at), "left out".to_owned()));
        contents.auxiliary.clear();
    }
    let mut retained: Vec<SectionFunction> = Vec::with_capacity(contents.functions.len());
    let (mut num_rows, mut num_retained) = (0u64, 0u64);
    for (function, entry) in view.functions().zip(contents.functions.clone()) {
        num_rows = num_rows.saturating_add(contents.rows(&entry).len() as u64);
        let Some((rule, why)) = find_defect(view, &function) else {
            let entry = drop_rows_past_end(&function, entry, &mut contents.blocks, view, done);
            num_retained = num_retained.saturating_add(contents.rows(&entry).len() as u64);
            retained.push(entry);
            continue;
        };
        let message = format!("function {} at {:#x} left out: {why}", function.index, function.start);
        done.changes.push(change(rule, view.offset(function.at), message));
    }
    if num_rows != u64::from(header.sfh_num_fres) {
        done.changes.push(change(
            &NUM_ROWS,
            view.offset(view.unit.at),
            format!("sfh_num_fres is {num_retained}"),
        ));
    }
    contents.functions = retained;
    Some(contents)
}

/// Removes the rows that start after the end of their function, which no address finds.
fn drop_rows_past_end(
    function: &Fde,
    entry: SectionFunction,
    blocks: &mut Vec<Vec<OwnedFre>>,
    view: UnitView<'_>,
    done: &mut Repaired,
) -> SectionFunction {
    let limit = if function.info.repeats() { function.repeat_bytes.into() } else { function.size };
    let rows = blocks.get(entry.block).map_or(&[][..], Vec::as_slice);
    let inside = rows.iter().take_while(|row| row.start <= limit).count();
    if inside == rows.len() {
        return entry;
    }
    let message = format!(
        "{} rows of function {} start after its end, and were left out",
        rows.len().saturating_sub(inside),
        function.index
    );
    done.changes.push(change(&ROW_PAST_FUNCTION, view.offset(function.at), message));
    let rows = rows.iter().take(inside).cloned().collect();
    blocks.push(rows);
    SectionFunction { block: blocks.len().saturating_sub(1), ..entry }
}

/// The defect for which a function is removed: with what remains of it, stacks would be unwound wrongly.
fn find_defect(view: UnitView<'_>, function: &Fde) -> Option<(&'static Rule, &'static str)> {
    if function.rows_at.is_none() {
        return Some((&ROWS_OUTSIDE, "its rows are outside of the section"));
    }
    if function.info.row_start_bytes().is_none() {
        return Some((&FRE_TYPE, "its FRE type is unknown"));
    }
    if function.fde_type > 1 {
        return Some((&FDE_TYPE, "its FDE type is unknown"));
    }
    if function.info.repeats() && function.repeat_bytes == 0 {
        return Some((&NO_BLOCK, "its block that repeats has no size"));
    }
    if function.index >= view.unit.num_readable {
        return Some((&TOO_MANY_ROWS, "too many rows are claimed"));
    }
    let context = view.unit.context(function);
    let mut before = None;
    for row in view.rows(function) {
        let Ok(row) = row else { return Some((&ROW_PAST_END, "one of its rows cannot be read")) };
        if before.is_some_and(|before| row.start <= before) {
            return Some((&NOT_ASCENDING, "its rows are not in ascending order"));
        }
        if context.interpret(&row).is_err() {
            return Some((&MEANINGLESS, "one of its rows cannot be interpreted"));
        }
        before = Some(row.start);
    }
    None
}
