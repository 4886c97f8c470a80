//! Lines and cells of the text.

use perfuse_wire::Endian;

use super::Style;
use super::cells::{ADDRESS_BYTES, Key, Known, decimal, hexadecimal};
use crate::consts::{Abi, FLAGS};
use crate::reader::{Piece, View};
use crate::records::Function;
use crate::recovery::{Base, Context, Expression, Recover, Recovery};
use crate::row::{Row, Rows};

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
    known: Known,
}

impl<'a> Lines<'a> {
    /// Behind a text that is there already.
    pub(super) fn new(style: Style, view: View<'a>, text: Vec<u8>) -> Self {
        Self { style, view, text, known: Known::new() }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.text
    }

    pub(super) fn function(&mut self, function: &Function) {
        self.text.extend_from_slice(b"\n    func idx [");
        decimal(&mut self.text, function.index.into());
        self.text.extend_from_slice(b"]: pc = 0x");
        let digits = hexadecimal(function.start);
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        self.text.extend_from_slice(digits.get(zeros.min(15)..).unwrap_or_default());
        self.text.extend_from_slice(b", size = ");
        decimal(&mut self.text, function.size.into());
        self.text.extend_from_slice(b" bytes");
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
        let mut rows = self.view.rows(function);
        if self.view.piece.endian == Endian::Little {
            match function.info.row_start_bytes() {
                Some(1) => self.rows::<1>(&mut rows, base, &context),
                Some(2) => self.rows::<2>(&mut rows, base, &context),
                Some(4) => self.rows::<4>(&mut rows, base, &context),
                _ => {}
            }
        }
        for row in rows.map_while(Result::ok) {
            self.row(&row, base, &context);
        }
    }

    /// Rows up to the first that cannot be told by its key.
    #[inline]
    fn rows<const START: u32>(&mut self, rows: &mut Rows<'_>, base: u64, context: &Context) {
        while let Some((start, info, behind)) = rows.peek::<START>() {
            let Some((key, bytes)) = Key::of(info, context.fde_type, behind) else { return };
            if let Some(cells) = self.known.get(key) {
                cells.line(base.wrapping_add(start.into()), &mut self.text);
                rows.pass(bytes.wrapping_add(START as usize).wrapping_add(1));
                continue;
            }
            let Some(Ok(row)) = rows.next() else { return };
            let line = self.text.len();
            self.row(&row, base, context);
            let cells = line.saturating_add(ADDRESS_BYTES);
            self.known.keep(key, self.text.get(cells..).unwrap_or_default());
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
        self.text.extend_from_slice(&hexadecimal(base.wrapping_add(row.start.into())));
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
