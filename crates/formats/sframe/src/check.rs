//! Holds a file against its specification: structure, bounds, and what it is in.

mod functions;
mod holder;
mod readers;
mod rows;

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, Rule};

use super::SFrame;
use super::consts::{SFRAME_MAGIC, known_flags};
use super::container::Section;
use super::layout::Header;
use super::reader::View;
use super::rules::*;

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
    holder::check(file, sink);
    let mut record = 0u64;
    for view in file.views() {
        let Some(section) = file.sections().get(view.piece.section) else { continue };
        let mut checked = Checked { view, section, sink, record };
        header(&mut checked);
        readers::check(&mut checked);
        checked.record = checked.record.saturating_add(1);
        functions::check(&mut checked);
        record = checked.record;
    }
}

fn header(checked: &mut Checked<'_, '_>) {
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
