//! The output of `readelf --sframe`, as three of its versions write it, in linear time.
//!
//! The errors of those versions are reproduced, so that the texts can be compared: see [`Style`].

mod cells;

use std::sync::{Arc, Mutex, PoisonError};

use perfuse_wire::Endian;
use perfuse_workers::JobResults;

use super::SFrame;
use super::consts::{
    Abi, FLAGS, SFRAME_F_FDE_FUNC_START_PCREL, SFRAME_F_FDE_SORTED, SFRAME_FDE_TYPE_DEFAULT,
};
use super::reader::{UnitView, limit_readable_rows};
use super::records::Fde;
use super::recovery::{Base, Expression, InvalidRow, Recover, Recovery, RowContext};
use super::row::{Fre, FreIter};
use super::unit::{SFrameUnit, StartBase};
use cells::{ADDRESS_BYTES, CellCache, RowKey, decimal, hexadecimal};

/// A version of readelf. All versions show only the first header of a section. 2.40 and 2.44 do not apply
/// relocations, so they show functions of object files at address 0; 2.47 applies all of them, also those that `ld -r`
/// before binutils 2.45 writes into rows. Before 2.45 rows without words are not the outermost frame, s390x is unknown, and
/// the offsets of entries and rows in the header are ignored. Without the PCREL flag all of them take start addresses to be
/// relative to the section, which is wrong where a linker did not merge sections.
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

    /// The first style that shows a unit.
    #[must_use]
    pub fn for_unit(unit: &SFrameUnit) -> Option<&'static str> {
        let shows_all = |style: Self| matches!(style.content_of(unit), Ok(DumpContent::All));
        Self::ALL.into_iter().find(|(_, style)| shows_all(*style)).map(|(name, _)| name)
    }

    /// What this version of readelf shows of a unit, or its error message.
    fn content_of(self, unit: &SFrameUnit) -> Result<DumpContent, &'static str> {
        let (version, flags) = (unit.version(), unit.header.sfp_flags);
        let has_unknown_flags = flags & !self.known_flags(version) != 0;
        // readelf copies as many entries as the header states: it has no memory for them, or reads past the end.
        let lacks_functions = unit.header.sfh_num_fdes > unit.num_functions;
        let entry_bytes = unit.entry_bytes().unwrap_or(0) as u64;
        let claimed_bytes = u64::from(unit.header.sfh_num_fdes).saturating_mul(entry_bytes);
        if lacks_functions && !has_unknown_flags && claimed_bytes > u32::MAX.into() {
            return Err(OUT_OF_MEMORY);
        }
        let content = match (self, version) {
            (Self::Readelf247, 2 | 3) if !has_unknown_flags => DumpContent::All,
            (Self::Readelf247, _) => return Err(NO_SFRAME),
            (Self::Readelf240, 1) | (Self::Readelf244, 2) if !has_unknown_flags => DumpContent::All,
            (Self::Readelf244, 1) if !has_unknown_flags => DumpContent::Header,
            // The other byte order is converted first, and that fails in another way.
            _ if unit.endian == Endian::Big => return Err(NO_SFRAME),
            _ => return Err(OUT_OF_MEMORY),
        };
        if content == DumpContent::All && lacks_functions {
            return Err("its header counts more functions than it has, and readelf reads past its end");
        }
        Ok(content)
    }

    /// The flags this version of readelf accepts in a version of the format.
    fn known_flags(self, version: u8) -> u8 {
        match (self, version) {
            (Self::Readelf240 | Self::Readelf244, _) => 0x3,
            (Self::Readelf247, 3) => SFRAME_F_FDE_SORTED | SFRAME_F_FDE_FUNC_START_PCREL,
            (Self::Readelf247, _) => 0x3 | SFRAME_F_FDE_FUNC_START_PCREL,
        }
    }

    /// Whether it is a version before 2.45.
    fn is_before_245(self) -> bool {
        matches!(self, Self::Readelf240 | Self::Readelf244)
    }
}

const NO_SFRAME: &str = "SFrame decode failure: Buffer does not contain SFrame data.";
const OUT_OF_MEMORY: &str = "SFrame decode failure: Out of Memory.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DumpContent {
    Header,
    All,
}

/// Number of functions in a block, which one thread writes.
const FUNCTIONS_PER_BLOCK: u32 = 1024;

/// The text of a section of a file, as an iterator over blocks.
pub struct Dump {
    head: Option<Vec<u8>>,
    blocks: JobResults<u32, Vec<u8>>,
    pool: BlockPool,
}

/// Used blocks, to be filled again: new memory of the process costs as much as writing the text.
type BlockPool = Arc<Mutex<Vec<Vec<u8>>>>;

impl Dump {
    /// Begins the text of the section with this index.
    ///
    /// # Errors
    /// When that version of readelf does not show the section.
    pub fn of(file: &SFrame, style: Style, section: usize) -> Result<Self, DumpRefused> {
        let first = file.units().iter().find(|unit| unit.section == section && unit.at == 0);
        let Some(unit) = first else {
            return Err(DumpRefused { message: NO_SFRAME, shown_by: None });
        };
        let unit = if style.is_before_245() { with_adjacent_parts(file, unit) } else { unit.clone() };
        let content = style.content_of(&unit);
        let content = content.map_err(|message| DumpRefused { message, shown_by: Style::for_unit(&unit) })?;
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
        let relocated = if style.is_before_245() { None } else { file.fully_relocated(section) };
        let pool = BlockPool::default();
        let empty = Arc::clone(&pool);
        let blocks =
            JobResults::new((0..num).step_by(FUNCTIONS_PER_BLOCK as usize).collect(), move |first| {
                let block = empty.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let view = match (&relocated, style.is_before_245()) {
                    (Some(data), _) => UnitView { data, ..file.view(&unit) },
                    (None, false) => file.view(&unit),
                    (None, true) => file.raw_view(&unit),
                };
                functions_text(view, style, first, block.unwrap_or_default())
            });
        Ok(Self { head: Some(head), blocks, pool })
    }

    /// Returns a used block, to be filled again.
    pub fn reuse(&self, mut block: Vec<u8>) {
        block.clear();
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).push(block);
    }
}

/// The unit as readelf before 2.45 finds its parts: entries directly after the header, and rows directly after entries.
fn with_adjacent_parts(file: &SFrame, unit: &SFrameUnit) -> SFrameUnit {
    let data = file.raw_view(unit).data;
    if unit.header.sfh_fdeoff as usize > data.len() {
        return unit.clone();
    }
    let mut units = [unit.with_adjacent_parts(data.len())];
    limit_readable_rows(data, &mut units);
    let [unit] = units;
    unit
}

/// Writes a block of functions.
fn functions_text(view: UnitView<'_>, style: Style, first: u32, block: Vec<u8>) -> Vec<u8> {
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
    // readelf prints the counts as signed numbers.
    let (num_fdes, num_fres) = (header.sfh_num_fdes.cast_signed(), header.sfh_num_fres.cast_signed());
    text.push_str(&format!("    Num FDEs: {num_fdes}\n    Num FREs: {num_fres}\n"));
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
        // readelf prints sizes as signed numbers.
        let size = function.size.cast_signed();
        if size < 0 {
            self.text.push(b'-');
        }
        decimal(&mut self.text, size.unsigned_abs().into());
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
        let mut context = self.view.unit.context(function);
        // readelf takes unknown types for DEFAULT.
        if !function.is_flex() {
            context.fde_type = SFRAME_FDE_TYPE_DEFAULT;
        }
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
        if self.style.is_before_245() {
            self.write_words(row, context);
        } else {
            self.write_recovery(row, context);
        }
        self.text.push(b'\n');
    }

    /// Writes the words of a row as versions before 2.45 do: the same for all ABIs, with -1 for a CFA without a word.
    fn write_words(&mut self, row: &Fre<'_>, context: &RowContext) {
        let is_244 = self.style == Style::Readelf244;
        let (fixed_fp, fixed_ra) = (context.fixed_fp, context.fixed_ra);
        let base: &[u8] = if row.info.cfa_from_sp() { b"sp" } else { b"fp" };
        self.write_cell(10, |text| {
            text.extend_from_slice(base);
            write_added(text, row.word(0).unwrap_or(-1));
        });
        let fp = match fixed_fp {
            0 => row.word(if fixed_ra == 0 { 2 } else { 1 }),
            fixed => is_244.then(|| fixed.into()),
        };
        self.write_cell(10, |text| write_saved(text, fp, b"u"));
        let ra = if fixed_ra == 0 { row.word(1) } else { None };
        self.write_cell(13, |text| {
            write_saved(text, ra, if is_244 && fixed_ra != 0 { b"f" } else { b"u" });
            text.extend_from_slice(if row.info.ra_mangled() { b"[s]" } else { b"" });
        });
    }

    /// Writes the meaning of a row as version 2.47 does.
    fn write_recovery(&mut self, row: &Fre<'_>, context: &RowContext) {
        let version = context.version;
        let recovery = match context.interpret(row) {
            // Further words are ignored.
            Err(InvalidRow::ExtraWords) if context.fde_type == SFRAME_FDE_TYPE_DEFAULT => {
                let in_row = [context.fixed_ra, context.fixed_fp].iter().filter(|fixed| **fixed == 0).count();
                context.interpret(&row.with_num_words(1u8.saturating_add(in_row as u8)))
            }
            recovery => recovery,
        };
        match recovery {
            Ok(Recovery::Outermost) => self.text.extend_from_slice(b"RA undefined"),
            Ok(Recovery::Caller { cfa, fp, ra, ra_mangled }) => {
                let is_default = context.fde_type == SFRAME_FDE_TYPE_DEFAULT;
                self.write_cell(10, |text| match (is_default, cfa.base, i32::try_from(cfa.offset)) {
                    (true, Base::Sp | Base::Fp, Ok(offset)) => {
                        text.extend_from_slice(if cfa.base == Base::Sp { b"sp" } else { b"fp" });
                        write_added(text, offset);
                    }
                    _ => write_expression(text, &cfa, version, true),
                });
                self.write_cell(10, |text| match fp {
                    Recover::Fixed(offset) => write_saved(text, Some(offset.into()), b"u"),
                    _ => write_register(text, &fp, version),
                });
                let padded = ra_is_padded(row, context);
                self.write_cell(13, |text| {
                    match (padded, &ra) {
                        (true, _) => text.push(b'U'),
                        (false, Recover::Fixed(_)) => text.push(b'f'),
                        (false, ra) => write_register(text, ra, version),
                    }
                    text.extend_from_slice(if ra_mangled { b"[s]" } else { b"" });
                });
            }
            Err(_) => self.text.extend_from_slice(b"?"),
        }
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
fn write_register(text: &mut Vec<u8>, rule: &Recover, version: u8) {
    match rule {
        Recover::At(expression) => write_expression(text, expression, version, false),
        Recover::Same | Recover::Fixed(_) => text.push(b'u'),
    }
}

/// Writes `c-16`, or the text for a register that is not saved.
fn write_saved(text: &mut Vec<u8>, offset: Option<i32>, unsaved: &[u8]) {
    let Some(offset) = offset else { return text.extend_from_slice(unsaved) };
    text.push(b'c');
    write_signed(text, offset.into());
}

/// Writes `+8` or `-16`.
fn write_signed(text: &mut Vec<u8>, number: i64) {
    text.push(if number < 0 { b'-' } else { b'+' });
    decimal(text, number.unsigned_abs());
}

/// Writes `+8`, and `+-8` for a negative number.
fn write_added(text: &mut Vec<u8>, number: i32) {
    text.extend_from_slice(if number < 0 { b"+-" } else { b"+" });
    decimal(text, number.unsigned_abs().into());
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
    write_signed(text, offset);
    if parentheses {
        text.push(b')');
    }
}
