//! The line number program of a unit (DWARF 5, section 6.2).

use gimli::constants::{
    DW_FORM_line_strp, DW_FORM_udata, DW_LNCT_directory_index, DW_LNCT_path, DW_LNE_end_sequence,
    DW_LNE_set_address, DW_LNS_advance_line, DW_LNS_advance_pc, DW_LNS_const_add_pc, DW_LNS_copy,
    DW_LNS_set_column, DW_LNS_set_file, DW_LNS_set_prologue_end,
};

use super::files::UnitFiles;
use super::image::{Error, LineRow};
use super::section::{Encoding, SectionBuffer};
use super::strings::StringSection;

// The parameters GCC and LLVM use; a special opcode then steps over 17 bytes of code at most.
const LINE_BASE: i64 = -5;
const LINE_RANGE: u64 = 14;
/// Steps of the line number that a special opcode can represent.
const LINE_STEPS: std::ops::Range<i64> = LINE_BASE..LINE_BASE + LINE_RANGE as i64;
const OPCODE_BASE: u8 = 13;
const STANDARD_OPCODE_LENGTHS: [u8; 12] = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
const MAX_SPECIAL_STEP: u64 = (255 - OPCODE_BASE as u64) / LINE_RANGE;

/// The line number program of one unit (DWARF 5, section 6.2), encoded row by row.
#[derive(Debug)]
pub(super) struct LineProgram {
    opcodes: SectionBuffer,
}

/// The registers of the line number state machine.
struct LineRegisters {
    offset: u64,
    file: u32,
    line: u32,
    column: u32,
}

impl LineProgram {
    pub fn new(encoding: Encoding) -> Self {
        Self { opcodes: SectionBuffer::new(encoding) }
    }

    pub fn len(&self) -> usize {
        self.opcodes.len()
    }

    /// Adds one function as a sequence of its own, closed at its end so that its last row covers code; returns the
    /// number of its rows. Rows after the end, rows that another row at the same offset replaces and rows that change nothing are
    /// left out.
    pub fn sequence(
        &mut self,
        start: u64,
        size: u64,
        lines: &[LineRow<'_>],
        files: &mut UnitFiles,
        paths: &mut StringSection,
    ) -> Result<u64, Error> {
        let sorted;
        let lines = if lines.is_sorted_by_key(|line| line.offset) {
            lines
        } else {
            let mut copy = lines.to_vec();
            copy.sort_by_key(|line| line.offset);
            sorted = copy;
            &sorted
        };
        let mut num_rows = 0_u64;
        // The file is always set: binutils (2.40) starts with file 0 where DWARF 5 specifies 1.
        let mut row = LineRegisters { offset: 0, file: u32::MAX, line: 1, column: 0 };
        for (index, line) in lines.iter().enumerate() {
            if line.offset >= size {
                break;
            }
            if lines.get(index.saturating_add(1)).is_some_and(|next| next.offset == line.offset) {
                continue;
            }
            let (file, column) = (files.index(line.path, paths)?, line.column.unwrap_or(0));
            if num_rows == 0 {
                self.set_address(start);
            } else if (file, line.line, column) == (row.file, row.line, row.column) {
                continue;
            }
            self.row(&row, file, column, line);
            row = LineRegisters { offset: line.offset, file, line: line.line, column };
            num_rows = num_rows.saturating_add(1);
        }
        if num_rows > 0 {
            self.end_sequence(size.saturating_sub(row.offset));
        }
        Ok(num_rows)
    }

    fn set_address(&mut self, address: u64) {
        self.extended(DW_LNE_set_address, self.opcodes.encoding.address_bytes());
        self.opcodes.word(address);
    }

    fn end_sequence(&mut self, advance: u64) {
        self.opcodes.u8(DW_LNS_advance_pc.0);
        self.opcodes.uleb(advance);
        self.extended(DW_LNE_end_sequence, 0);
    }

    fn extended(&mut self, opcode: gimli::DwLne, len_operand: u8) {
        self.opcodes.u8(0);
        self.opcodes.u8(len_operand.saturating_add(1));
        self.opcodes.u8(opcode.0);
    }

    #[inline]
    fn row(&mut self, last: &LineRegisters, file: u32, column: u32, line: &LineRow<'_>) {
        let out = &mut self.opcodes;
        if file != last.file {
            out.u8(DW_LNS_set_file.0);
            out.uleb(file.into());
        }
        if column != last.column {
            out.u8(DW_LNS_set_column.0);
            out.uleb(column.into());
        }
        // The difference of two 32-bit numbers.
        let mut line_step = i64::from(line.line).wrapping_sub(last.line.into());
        if !LINE_STEPS.contains(&line_step) {
            out.u8(DW_LNS_advance_line.0);
            out.sleb(line_step);
            line_step = 0;
        }
        // Rows are sorted by offset.
        let mut step = line.offset.saturating_sub(last.offset);
        if step > MAX_SPECIAL_STEP && step <= 2 * MAX_SPECIAL_STEP {
            out.u8(DW_LNS_const_add_pc.0);
            step = step.saturating_sub(MAX_SPECIAL_STEP);
        } else if step > MAX_SPECIAL_STEP {
            out.u8(DW_LNS_advance_pc.0);
            out.uleb(step);
            step = 0;
        }
        // `line_step` is within the range of lines, and `step` at most `MAX_SPECIAL_STEP`: the sum is below 2^16.
        let special = (line_step.wrapping_sub(LINE_BASE) as u64)
            .wrapping_add(LINE_RANGE.wrapping_mul(step))
            .wrapping_add(OPCODE_BASE.into());
        match u8::try_from(special) {
            Ok(opcode) => out.u8(opcode),
            Err(_) => {
                out.u8(DW_LNS_advance_line.0);
                out.sleb(line_step);
                out.u8(DW_LNS_advance_pc.0);
                out.uleb(step);
                out.u8(DW_LNS_copy.0);
            }
        }
    }

    /// Appends header and program to `.debug_line` and starts an empty program.
    ///
    /// # Errors
    /// [`Error::TooLarge`] where the section passes 4 GiB.
    pub fn flush(
        &mut self,
        files: &UnitFiles,
        directory: u32,
        section: &mut SectionBuffer,
    ) -> Result<(), Error> {
        if self.opcodes.len() == 0 {
            // Changes nothing, but a table of files with no program after it is corrupt to readelf (2.40).
            self.opcodes.u8(DW_LNS_set_prologue_end.0);
        }
        let mut header = SectionBuffer::new(section.encoding);
        header.append(&[1, 1, 1, LINE_BASE as i8 as u8, LINE_RANGE as u8, OPCODE_BASE]);
        header.append(&STANDARD_OPCODE_LENGTHS);
        header.u8(1);
        header.uleb(DW_LNCT_path.0.into());
        header.uleb(DW_FORM_line_strp.0.into());
        header.uleb(1);
        header.u32(directory);
        header.u8(2);
        header.uleb(DW_LNCT_path.0.into());
        header.uleb(DW_FORM_line_strp.0.into());
        header.uleb(DW_LNCT_directory_index.0.into());
        header.uleb(DW_FORM_udata.0.into());
        header.uleb(files.paths().len() as u64);
        for &path in files.paths() {
            header.u32(path);
            header.u8(0);
        }
        let len_header = header.offset(".debug_line")?;
        let len_unit = header
            .len()
            .checked_add(self.opcodes.len())
            .and_then(|len| u32::try_from(len.checked_add(8)?).ok());
        section.u32(len_unit.ok_or(Error::TooLarge(".debug_line"))?);
        section.u16(5);
        section.u8(section.encoding.address_bytes());
        section.u8(0);
        section.u32(len_header);
        section.append(&header.bytes);
        section.append(&self.opcodes.bytes);
        self.opcodes.bytes.clear();
        Ok(())
    }
}
