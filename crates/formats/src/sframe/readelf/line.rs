//! Lines and cells of the text.

use std::io::Write;

use super::Style;
use crate::sframe::consts::{Abi, FLAGS};
use crate::sframe::reader::{Piece, View};
use crate::sframe::records::Function;
use crate::sframe::recovery::{Base, Context, Expression, Recover, Recovery};
use crate::sframe::row::Row;

const COLUMNS: &[u8] = b"STARTPC         CFA       FP        RA           \n";
const COLUMNS_OF_BLOCK: &[u8] = b"STARTPC[m]      CFA       FP        RA           \n";

/// Everything before the functions.
pub(super) fn header(piece: &Piece, style: Style) -> Vec<u8> {
    let header = &piece.header;
    let named = FLAGS.iter().filter(|(bit, _)| header.sfp_flags & bit != 0).map(|(_, name)| *name);
    let flags: Vec<_> = named.collect();
    let flags = match (flags.as_slice(), style) {
        ([], _) => "NONE".to_owned(),
        ([.., last], Style::Readelf240 | Style::Readelf244) => (*last).to_owned(),
        (all, Style::Readelf247) => all.join(",\n           "),
    };
    let mut text = format!(
        "Contents of the SFrame section .sframe:\n  Header :\n\n    Version: SFRAME_VERSION_{}\n    Flags: {flags}\n",
        header.sfp_version
    );
    if style != Style::Readelf240 {
        for (offset, name) in [(header.sfh_cfa_fixed_fp_offset, "FP"), (header.sfh_cfa_fixed_ra_offset, "RA")]
        {
            if offset != 0 {
                text.push_str(&format!("    CFA fixed {name} offset: {offset}\n"));
            }
        }
    }
    text.push_str(&format!("    Num FDEs: {}\n    Num FREs: {}\n", header.sfh_num_fdes, header.sfh_num_fres));
    text.into_bytes()
}

/// Gathers lines.
pub(super) struct Lines<'a> {
    style: Style,
    view: View<'a>,
    text: Vec<u8>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(style: Style, view: View<'a>) -> Self {
        Self { style, view, text: Vec::with_capacity(1 << 19) }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.text
    }

    pub(super) fn function(&mut self, function: &Function) {
        let (index, start, size) = (function.index, function.start, function.size);
        // Writing to a vector does not fail.
        let _ = write!(self.text, "\n    func idx [{index}]: pc = {start:#x}, size = {size} bytes");
        if self.view.piece.version() >= 3 {
            self.attributes(function);
        }
        if function.info.pauth_key_b() && self.view.piece.abi().has_pointer_authentication() {
            self.text.extend_from_slice(b", pauth = B key");
        }
        self.text.extend_from_slice(b"\n    ");
        self.text.extend_from_slice(if function.info.repeats() { COLUMNS_OF_BLOCK } else { COLUMNS });
        let base = if function.info.repeats() { 0 } else { function.start };
        let context = self.view.piece.context(function);
        for row in self.view.rows(function).map_while(Result::ok) {
            self.row(&row, base, &context);
        }
    }

    fn attributes(&mut self, function: &Function) {
        let attributes = match (function.info.is_signal(), function.is_flex()) {
            (false, false) => return,
            (true, false) => "S",
            (false, true) => "F",
            (true, true) => "SF",
        };
        self.text.extend_from_slice(b", attr = \"");
        self.text.extend_from_slice(attributes.as_bytes());
        self.text.push(b'"');
    }

    fn row(&mut self, row: &Row<'_>, base: u64, context: &Context) {
        self.text.extend_from_slice(b"    ");
        hexadecimal(&mut self.text, base.wrapping_add(row.start.into()));
        self.text.extend_from_slice(b"  ");
        let version = context.version;
        match context.meaning(row) {
            Ok(Recovery::Outermost) => self.text.extend_from_slice(b"RA undefined"),
            Ok(Recovery::Caller { cfa, fp, ra, ra_mangled }) => {
                self.cell(10, |text| place(text, &cfa, version, true));
                self.cell(10, |text| recover(text, &fp, version, b"u", b"f"));
                let fixed: &[u8] = if self.style == Style::Readelf240 { b"u" } else { b"f" };
                let padded = ra_is_padded(row, context);
                self.cell(13, |text| {
                    match padded {
                        true => text.push(b'U'),
                        false => recover(text, &ra, version, b"u", fixed),
                    }
                    text.extend_from_slice(if ra_mangled { b"[s]" } else { b"" });
                });
            }
            Err(_) => self.text.extend_from_slice(b"?"),
        }
        self.text.push(b'\n');
    }

    fn cell(&mut self, width: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let end = self.text.len().saturating_add(width);
        write(&mut self.text);
        if self.text.len() < end {
            self.text.resize(end, b' ');
        }
    }
}

/// Whether the return address's words say that there is nothing to say, so that the frame pointer's can follow.
fn ra_is_padded(row: &Row<'_>, context: &Context) -> bool {
    if context.fde_type == 0 {
        return context.abi == Abi::S390X_ENDIAN_BIG && context.fixed_ra == 0 && row.word(1) == Some(0);
    }
    row.control(2) == Some(0)
}

fn recover(text: &mut Vec<u8>, rule: &Recover, version: u8, same: &[u8], fixed: &[u8]) {
    match rule {
        Recover::Same => text.extend_from_slice(same),
        Recover::Fixed(_) => text.extend_from_slice(fixed),
        Recover::At(expression) => place(text, expression, version, false),
    }
}

/// `sp+8`, `c-16`, `(fp-8)`. What is saved at an offset from the CFA has no parentheses, though memory is read there.
fn place(text: &mut Vec<u8>, expression: &Expression, version: u8, is_cfa: bool) {
    let Expression { base, offset, deref } = *expression;
    let parentheses = deref && (is_cfa || base != Base::Cfa);
    if parentheses {
        text.push(b'(');
    }
    match base {
        Base::Sp => text.extend_from_slice(b"sp"),
        Base::Fp => text.extend_from_slice(b"fp"),
        Base::Cfa => text.push(b'c'),
        Base::Register(number) => {
            text.push(b'r');
            decimal(text, number.into());
            // Version 2 has registers that keep a value, for s390x, and no offset beside them.
            if version == 2 {
                return;
            }
        }
    }
    text.push(if offset < 0 { b'-' } else { b'+' });
    decimal(text, offset.unsigned_abs());
    if parentheses {
        text.push(b')');
    }
}

fn decimal(text: &mut Vec<u8>, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut len = 0usize;
    for digit in digits.iter_mut().rev() {
        *digit = b'0'.saturating_add((number % 10) as u8);
        number /= 10;
        len = len.saturating_add(1);
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(digits.get(20usize.saturating_sub(len)..).unwrap_or_default());
}

fn hexadecimal(text: &mut Vec<u8>, number: u64) {
    let digits = number.to_be_bytes();
    for byte in digits {
        for nibble in [byte >> 4, byte & 0xf] {
            text.push(nibble.saturating_add(if nibble < 10 { b'0' } else { b'a'.saturating_sub(10) }));
        }
    }
}
