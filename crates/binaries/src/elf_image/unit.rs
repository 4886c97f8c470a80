//! Compilation units: the DWARF entries of functions next to each other in the image.

use std::io::Write;

use gimli::constants::{DW_INL_inlined, DW_UT_compile};
use rustc_hash::FxHashMap;

use super::abbreviations;
use super::debug_info::DwarfSections;
use super::files::UnitFiles;
use super::image::{CodeObject, Error, InlinedRange};
use super::line_program::LineProgram;
use super::nesting::{InlineScope, nest};
use super::section::{Encoding, SectionBuffer};

/// A unit is closed when it has this much: readers decode a whole unit for one address in it.
const MAX_FUNCTIONS: u64 = 512;
const MAX_LINE_PROGRAM: usize = 64 << 10;

/// The compilation unit being written: functions next to each other in the image, their lines and inlined calls.
#[derive(Debug)]
pub(super) struct CompilationUnit {
    /// Entries below the unit's own.
    entries: SectionBuffer,
    lines: LineProgram,
    files: UnitFiles,
    /// Functions that were inlined somewhere in this unit, by name, file and line: offset of their entry in the unit.
    abstract_functions: FxHashMap<(u32, Option<u32>, u32), u32>,
    scopes: Vec<InlineScope>,
    num_functions: u64,
    low_pc: u64,
    high_pc: u64,
}

/// Numbers of rows that a function added.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnitCounts {
    pub line_rows: u64,
    pub inlined_calls: u64,
}

impl CompilationUnit {
    pub fn new(encoding: Encoding, debug: &DwarfSections) -> Self {
        let mut files = UnitFiles::default();
        files.reset(debug.title_path);
        Self {
            entries: SectionBuffer::new(encoding),
            lines: LineProgram::new(encoding),
            files,
            abstract_functions: FxHashMap::default(),
            scopes: Vec::new(),
            num_functions: 0,
            low_pc: 0,
            high_pc: 0,
        }
    }

    /// Adds the code that was placed at `start`, `size` bytes of it.
    pub fn add(
        &mut self,
        code: &CodeObject<'_>,
        start: u64,
        size: u64,
        debug: &mut DwarfSections,
    ) -> Result<UnitCounts, Error> {
        if self.num_functions == 0 {
            self.low_pc = start;
        }
        self.high_pc = start.saturating_add(size);
        self.num_functions = self.num_functions.saturating_add(1);
        let line_rows = self.lines.sequence(start, size, code.lines, &mut self.files, &mut debug.paths)?;
        let mut scopes = std::mem::take(&mut self.scopes);
        nest(code.inlines, size, &mut scopes);
        let origins = scopes
            .iter()
            .filter_map(|scope| Some(self.abstract_function(code.inlines.get(scope.index)?, debug)));
        let origins = origins.collect::<Result<Vec<_>, _>>()?;
        self.subprogram(code, start, size, !scopes.is_empty(), debug)?;
        self.inlined_calls(code, start, &scopes, &origins, debug)?;
        let inlined_calls = scopes.len() as u64;
        self.scopes = scopes;
        if self.num_functions >= MAX_FUNCTIONS || self.lines.len() >= MAX_LINE_PROGRAM {
            self.flush(debug)?;
        }
        Ok(UnitCounts { line_rows, inlined_calls })
    }

    fn subprogram(
        &mut self,
        code: &CodeObject<'_>,
        start: u64,
        size: u64,
        children: bool,
        debug: &mut DwarfSections,
    ) -> Result<(), Error> {
        let linkage_name = code.linkage_name != code.name;
        self.entries.u8(abbreviations::subprogram(children, linkage_name, code.path.is_some()));
        self.entries.u32(debug.strings.intern(code.name)?);
        if linkage_name {
            self.entries.u32(debug.strings.intern(code.linkage_name)?);
        }
        self.position(code.path, code.line, code.column, debug)?;
        self.entries.word(start);
        self.entries.uleb(size);
        // Writing to memory does not fail.
        let _ = write!(self.entries.bytes, "code object {} at {:#x}\0", code.id, code.start_address);
        Ok(())
    }

    /// Writes file, line and column; 0 stands for a line or column that is not known. Nothing without a file.
    fn position(
        &mut self,
        path: Option<&str>,
        line: Option<u32>,
        column: Option<u32>,
        debug: &mut DwarfSections,
    ) -> Result<(), Error> {
        if let Some(path) = path {
            self.entries.uleb(self.files.index(path, &mut debug.paths)?.into());
            self.entries.uleb(line.unwrap_or(0).into());
            self.entries.uleb(column.unwrap_or(0).into());
        }
        Ok(())
    }

    /// Offset in the unit of the entry that stands for an inlined function; added where the unit has none yet.
    fn abstract_function(
        &mut self,
        inline: &InlinedRange<'_>,
        debug: &mut DwarfSections,
    ) -> Result<u32, Error> {
        let name = debug.strings.intern(inline.name)?;
        let file = inline.path.map(|path| self.files.index(path, &mut debug.paths)).transpose()?;
        let line = inline.line.unwrap_or(0);
        if let Some(&offset) = self.abstract_functions.get(&(name, file, line)) {
            return Ok(offset);
        }
        let offset = len_unit_header(self.entries.encoding)
            .checked_add(self.entries.offset(".debug_info")?)
            .ok_or(Error::TooLarge(".debug_info"))?;
        self.entries.u8(abbreviations::abstract_function(file.is_some()));
        self.entries.u32(name);
        // Without a linkage name binutils shows the symbol's, which is the outer function's.
        self.entries.u32(name);
        if let Some(file) = file {
            self.entries.uleb(file.into());
            self.entries.uleb(line.into());
        }
        self.entries.u8(DW_INL_inlined.0);
        self.abstract_functions.insert((name, file, line), offset);
        Ok(offset)
    }

    fn inlined_calls(
        &mut self,
        code: &CodeObject<'_>,
        start: u64,
        scopes: &[InlineScope],
        origins: &[u32],
        debug: &mut DwarfSections,
    ) -> Result<(), Error> {
        // Source files of the function and of the inlined calls around this point: a call without a path is in its caller's file.
        let mut callers = vec![code.path];
        for (index, (scope, &origin)) in scopes.iter().zip(origins).enumerate() {
            let Some(inline) = code.inlines.get(scope.index) else { continue };
            callers.truncate((scope.depth as usize).saturating_add(1));
            let path = inline.call_path.or(callers.last().copied().flatten());
            callers.push(inline.path);
            let next_depth = scopes.get(index.saturating_add(1)).map_or(0, |next| next.depth);
            self.entries.u8(abbreviations::inlined(next_depth > scope.depth, path.is_some()));
            self.entries.u32(origin);
            self.entries.word(start.saturating_add(scope.start));
            self.entries.uleb(scope.end.saturating_sub(scope.start));
            self.position(path, inline.call_line, inline.call_column, debug)?;
            for _ in next_depth..scope.depth {
                self.entries.u8(0);
            }
        }
        if !scopes.is_empty() {
            self.entries.u8(0);
        }
        Ok(())
    }

    /// Appends the unit to the sections and starts an empty one.
    ///
    /// # Errors
    /// [`Error::TooLarge`] where a section passes 4 GiB.
    pub fn flush(&mut self, debug: &mut DwarfSections) -> Result<(), Error> {
        if self.num_functions == 0 {
            return Ok(());
        }
        let encoding = self.entries.encoding;
        let (unit, lines) = (debug.info.offset(".debug_info")?, debug.line.offset(".debug_line")?);
        self.lines.flush(&self.files, debug.directory, &mut debug.line)?;
        self.entries.u8(0);
        let len_header = len_unit_header(encoding).saturating_sub(4);
        let len = len_header
            .checked_add(self.entries.offset(".debug_info")?)
            .ok_or(Error::TooLarge(".debug_info"))?;
        let info = &mut debug.info;
        info.u32(len);
        info.u16(5);
        info.u8(DW_UT_compile.0);
        info.u8(encoding.address_bytes());
        info.u32(0);
        info.u8(abbreviations::UNIT);
        info.u32(debug.title);
        info.u32(debug.producer);
        info.u32(debug.directory);
        info.u32(lines);
        info.word(self.low_pc);
        info.u64(self.high_pc.saturating_sub(self.low_pc));
        info.append(&self.entries.bytes);
        self.address_range(unit, &mut debug.aranges);

        self.entries.bytes.clear();
        self.files.reset(debug.title_path);
        self.abstract_functions.clear();
        self.num_functions = 0;
        Ok(())
    }

    /// Adds the address range of the unit to `.debug_aranges` (DWARF 5, section 6.1.2), which perf needs.
    fn address_range(&self, unit: u32, aranges: &mut SectionBuffer) {
        let address_bytes = aranges.encoding.address_bytes();
        aranges.u32(if aranges.encoding.is_64 { 12 + 4 * 8 } else { 12 + 4 * 4 });
        aranges.u16(2);
        aranges.u32(unit);
        aranges.u8(address_bytes);
        aranges.u8(0);
        aranges.u32(0);
        for word in [self.low_pc, self.high_pc.saturating_sub(self.low_pc), 0, 0] {
            aranges.word(word);
        }
    }
}

/// Bytes of a unit up to its first child entry.
fn len_unit_header(encoding: Encoding) -> u32 {
    if encoding.is_64 { 12 + 25 + 8 } else { 12 + 25 + 4 }
}
