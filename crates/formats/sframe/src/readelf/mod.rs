//! The output of `readelf --sframe`, as three of its versions write it, in linear time.
//!
//! The errors of those versions are reproduced, so that the texts can be compared: see [`Style`].

mod cells;

use std::sync::{Arc, Mutex, PoisonError};

use perfuse_wire::Endian;

use super::SFrame;
use super::consts::{Abi, FLAGS, SFRAME_F_FDE_FUNC_START_PCREL};
use super::prefetch::JobResults;
use super::reader::UnitView;
use super::records::Fde;
use super::recovery::{Base, Expression, Recover, Recovery, RowContext};
use super::row::{Fre, FreIter};
use super::unit::{SFrameUnit, StartBase};
use cells::{ADDRESS_BYTES, CellCache, RowKey, decimal, hexadecimal};

/// A version of readelf. All versions show only the first header of a section. 2.40 and 2.44 do not apply
/// relocations, so they show functions of object files at address 0. Without the PCREL flag all of them take start
/// addresses to be relative to the section, which is wrong where a linker did not merge sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Shows version 1; `u` for return addresses at a fixed offset; of several flags only the last.
    Readelf240,
    /// Shows version 2 without PCREL; of version 1 only the header.
    Readelf244,
    /// Shows versions 2 and 3, with relocations applied.
    Readelf247,
}

/// Why a version of readelf does not show a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpRefused {
    /// The message that follows `readelf: Error: `.
    pub message: &'static str,
    /// Name of the style that shows this section, where one does.
    pub shown_by: Option<&'static str>,
}

impl Style {
    /// The styles by their names on the command line.
    pub const ALL: [(&'static str, Self); 3] = [
        ("readelf-2.40", Self::Readelf240),
        ("readelf-2.44", Self::Readelf244),
        ("readelf-2.47", Self::Readelf247),
    ];

    /// The style with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(style_name, _)| *style_name == name).map(|(_, style)| style)
    }

    /// The first style that shows a section of this version with these flags.
    #[must_use]
    pub fn for_section(version: u8, flags: u8) -> Option<&'static str> {
        let shows_all = |style: Self| matches!(style.content_of(version, flags), Ok(DumpContent::All));
        Self::ALL.into_iter().find(|(_, style)| shows_all(*style)).map(|(name, _)| name)
    }

    /// What this version of readelf shows of a section, or its error message.
    fn content_of(self, version: u8, flags: u8) -> Result<DumpContent, &'static str> {
        const OUT_OF_MEMORY: &str = "SFrame decode failure: Out of Memory.";
        let has_unknown_flags = flags & !self.known_flags() != 0;
        match (self, version) {
            (Self::Readelf247, 2 | 3) if !has_unknown_flags => Ok(DumpContent::All),
            (Self::Readelf247, _) => Err("SFrame decode failure: Buffer does not contain SFrame data."),
            (Self::Readelf240, 1) | (Self::Readelf244, 2) if !has_unknown_flags => Ok(DumpContent::All),
            (Self::Readelf244, 1) if !has_unknown_flags => Ok(DumpContent::Header),
            _ => Err(OUT_OF_MEMORY),
        }
    }

    /// The flags this version of readelf accepts.
    fn known_flags(self) -> u8 {
        match self {
            Self::Readelf240 | Self::Readelf244 => 0x3,
            Self::Readelf247 => 0x3 | SFRAME_F_FDE_FUNC_START_PCREL,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DumpContent {
    Header,
    All,
}

/// Number of functions in a block, which one thread writes.
const FUNCTIONS_PER_BLOCK: u32 = 1024;

/// The text of a file's first section, as an iterator over blocks.
pub struct Dump {
    head: Option<Vec<u8>>,
    blocks: JobResults<u32, Vec<u8>>,
    pool: BlockPool,
}

/// Used blocks, to be filled again: new memory of the process costs as much as writing the text.
type BlockPool = Arc<Mutex<Vec<Vec<u8>>>>;

impl Dump {
    /// Begins a text.
    ///
    /// # Errors
    /// When that version of readelf does not show the section.
    pub fn of(file: &SFrame, style: Style) -> Result<Self, DumpRefused> {
        let first = file.units().iter().find(|unit| unit.section == 0 && unit.at == 0);
        let Some(unit) = first.cloned() else {
            let message = "SFrame decode failure: Buffer does not contain SFrame data.";
            return Err(DumpRefused { message, shown_by: None });
        };
        let (version, flags) = (unit.version(), unit.header.sfp_flags);
        let content = style.content_of(version, flags);
        let content = content
            .map_err(|message| DumpRefused { message, shown_by: Style::for_section(version, flags) })?;
        let mut head = header_text(&unit, style);
        let num = match content {
            DumpContent::All => unit.num_functions,
            DumpContent::Header => {
                head.extend_from_slice(
                    b"\n No further information can be displayed.  SFrame version not supported\n",
                );
                0
            }
        };
        if content == DumpContent::All {
            head.extend_from_slice(b"\n  Function Index :\n");
        }
        let starts = if unit.is_pcrel() { StartBase::FromField("") } else { StartBase::FromSection("") };
        let (file, unit) = (file.clone(), SFrameUnit { starts, ..unit });
        let pool = BlockPool::default();
        let empty = Arc::clone(&pool);
        let blocks =
            JobResults::new((0..num).step_by(FUNCTIONS_PER_BLOCK as usize).collect(), move |first| {
                let block = empty.lock().unwrap_or_else(PoisonError::into_inner).pop();
                functions_text(&file, &unit, style, first, block.unwrap_or_default())
            });
        Ok(Self { head: Some(head), blocks, pool })
    }

    /// Returns a used block, to be filled again.
    pub fn reuse(&self, mut block: Vec<u8>) {
        block.clear();
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).push(block);
    }
}

/// Writes a block of functions.
fn functions_text(file: &SFrame, unit: &SFrameUnit, style: Style, first: u32, block: Vec<u8>) -> Vec<u8> {
    let view = match style {
        Style::Readelf247 => file.view(unit),
        Style::Readelf240 | Style::Readelf244 => file.raw_view(unit),
    };
    let mut lines = DumpWriter::new(style, view, block);
    let functions =
        (first..first.saturating_add(FUNCTIONS_PER_BLOCK)).map_while(|index| view.function(index));
    functions.for_each(|function: Fde| lines.write_function(&function));
    lines.finish()
}

impl Iterator for Dump {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(head) = self.head.take() {
            return Some(head);
        }
        self.blocks.next()
    }
}

const COLUMNS: &[u8] = b"STARTPC         CFA       FP        RA           \n";
const COLUMNS_OF_BLOCK: &[u8] = b"STARTPC[m]      CFA       FP        RA           \n";

/// The text before the functions.
fn header_text(unit: &SFrameUnit, style: Style) -> Vec<u8> {
    let header = &unit.header;
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

/// Writes the lines of functions.
struct DumpWriter<'a> {
    style: Style,
    view: UnitView<'a>,
    text: Vec<u8>,
    cache: CellCache,
}

impl<'a> DumpWriter<'a> {
    /// A writer that appends to `text`.
    fn new(style: Style, view: UnitView<'a>, text: Vec<u8>) -> Self {
        Self { style, view, text, cache: CellCache::new() }
    }

    fn finish(self) -> Vec<u8> {
        self.text
    }

    /// Writes a function with its rows.
    fn write_function(&mut self, function: &Fde) {
        self.text.extend_from_slice(b"\n    func idx [");
        decimal(&mut self.text, function.index.into());
        self.text.extend_from_slice(b"]: pc = 0x");
        let digits = hexadecimal(function.start);
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        self.text.extend_from_slice(digits.get(zeros.min(15)..).unwrap_or_default());
        self.text.extend_from_slice(b", size = ");
        decimal(&mut self.text, function.size.into());
        self.text.extend_from_slice(b" bytes");
        if self.view.unit.version() >= 3 {
            self.write_attributes(function);
        }
        if function.info.pauth_key_b() && self.view.unit.abi().has_pointer_authentication() {
            self.text.extend_from_slice(b", pauth = B key");
        }
        self.text.extend_from_slice(b"\n    ");
        self.text.extend_from_slice(if function.info.repeats() { COLUMNS_OF_BLOCK } else { COLUMNS });
        let base = if function.info.repeats() { 0 } else { function.start };
        let context = self.view.unit.context(function);
        let mut rows = self.view.rows(function);
        if self.view.unit.endian == Endian::Little {
            match function.info.row_start_bytes() {
                Some(1) => self.write_rows::<1>(&mut rows, base, &context),
                Some(2) => self.write_rows::<2>(&mut rows, base, &context),
                Some(4) => self.write_rows::<4>(&mut rows, base, &context),
                _ => {}
            }
        }
        for row in rows.map_while(Result::ok) {
            self.write_row(&row, base, &context);
        }
    }

    /// Writes rows up to the first that has no key.
    #[inline]
    fn write_rows<const START: u32>(&mut self, rows: &mut FreIter<'_>, base: u64, context: &RowContext) {
        while let Some((start, info, words)) = rows.peek::<START>() {
            let Some((key, bytes)) = RowKey::of(info, context.fde_type, words) else { return };
            if let Some(cells) = self.cache.get(key) {
                cells.write_line(base.wrapping_add(start.into()), &mut self.text);
                rows.pass(bytes.wrapping_add(START as usize).wrapping_add(1));
                continue;
            }
            let Some(Ok(row)) = rows.next() else { return };
            let line = self.text.len();
            self.write_row(&row, base, context);
            let cells = line.saturating_add(ADDRESS_BYTES);
            self.cache.insert(key, self.text.get(cells..).unwrap_or_default());
        }
    }

    /// Writes the attributes of a function of version 3.
    fn write_attributes(&mut self, function: &Fde) {
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

    /// Writes a row without the cache.
    fn write_row(&mut self, row: &Fre<'_>, base: u64, context: &RowContext) {
        self.text.extend_from_slice(b"    ");
        self.text.extend_from_slice(&hexadecimal(base.wrapping_add(row.start.into())));
        self.text.extend_from_slice(b"  ");
        let version = context.version;
        match context.interpret(row) {
            Ok(Recovery::Outermost) => self.text.extend_from_slice(b"RA undefined"),
            Ok(Recovery::Caller { cfa, fp, ra, ra_mangled }) => {
                self.write_cell(10, |text| write_expression(text, &cfa, version, true));
                self.write_cell(10, |text| write_register(text, &fp, version, b"u", b"f"));
                let fixed: &[u8] = if self.style == Style::Readelf240 { b"u" } else { b"f" };
                let padded = ra_is_padded(row, context);
                self.write_cell(13, |text| {
                    match padded {
                        true => text.push(b'U'),
                        false => write_register(text, &ra, version, b"u", fixed),
                    }
                    text.extend_from_slice(if ra_mangled { b"[s]" } else { b"" });
                });
            }
            Err(_) => self.text.extend_from_slice(b"?"),
        }
        self.text.push(b'\n');
    }

    /// Writes a cell, padded to a width.
    fn write_cell(&mut self, width: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let end = self.text.len().saturating_add(width);
        write(&mut self.text);
        if self.text.len() < end {
            self.text.resize(end, b' ');
        }
    }
}

/// Whether the words of the return address are placeholders, written so that the word of the frame pointer can
/// follow.
fn ra_is_padded(row: &Fre<'_>, context: &RowContext) -> bool {
    if context.fde_type == 0 {
        return context.abi == Abi::S390X_ENDIAN_BIG && context.fixed_ra == 0 && row.word(1) == Some(0);
    }
    row.control(2) == Some(0)
}

/// Writes how a register is recovered.
fn write_register(text: &mut Vec<u8>, rule: &Recover, version: u8, same: &[u8], fixed: &[u8]) {
    match rule {
        Recover::Same => text.extend_from_slice(same),
        Recover::Fixed(_) => text.extend_from_slice(fixed),
        Recover::At(expression) => write_expression(text, expression, version, false),
    }
}

/// Writes `sp+8`, `c-16` or `(fp-8)`. A value saved at an offset from the CFA has no parentheses, though memory is
/// read there.
fn write_expression(text: &mut Vec<u8>, expression: &Expression, version: u8, is_cfa: bool) {
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
            // In version 2 (s390x) a register can be saved in a register, without an offset.
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
