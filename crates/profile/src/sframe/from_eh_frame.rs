//! Sections made of `.eh_frame`, and the functions that have no place in them.

use std::sync::Arc;

use perfuse_binaries::eh_frame::{EhFrame, Error, PltRule, RowRule, UnwindFunction, UnwindRow, UnwindTable};
use perfuse_formats::jitdump::{self, JitDump};
use perfuse_formats::sframe::consts::{Abi, VERSION_1_REPEAT_BYTES};
use perfuse_formats::sframe::recovery::Recovery;
use perfuse_formats::sframe::writer::{NewFunction, SectionContents};
use perfuse_formats::{Sniff, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::jit_code;
use super::section::SFrameSection;
use crate::errors::{io_error, lacking, unreadable};

/// `(function, row, what, left out)`.
pub type LeftOut = (Option<u64>, Option<u32>, String, bool);

/// A section of a finished file's `.eh_frame`, or of what a JITDUMP has of it, and what has no place in it.
#[pyfunction]
pub fn sframe_from_eh_frame(
    py: Python<'_>,
    path: &str,
    version: u8,
) -> PyResult<(SFrameSection, Vec<LeftOut>)> {
    if !(1..=3).contains(&version) {
        return Err(PyValueError::new_err("SFrame has versions 1, 2 and 3"));
    }
    let source = py.detach(|| Source::open(path)).map_err(|error| io_error(py, path, &error))?;
    if (jitdump::FORMAT.sniff)(source.get(..SNIFFED).unwrap_or(&source)) == Sniff::Certain {
        return of_dump(py, path, source, version);
    }
    let made = py.detach(|| EhFrame::of_elf(&source).map(|eh_frame| of_eh_frame(&eh_frame, version)));
    let (contents, left_out) = made.map_err(|error| {
        let hint = match error {
            Error::NotElf(_) => "give a program, a library or an object file",
            Error::Machine => "SFrame is defined for x86_64, aarch64 and s390x",
            Error::NoSection => "compile with -fasynchronous-unwind-tables",
        };
        lacking(py, path, error, hint)
    })?;
    Ok((SFrameSection::of(contents), left_out))
}

/// First bytes that tell a format.
const SNIFFED: usize = 64;

fn of_dump(
    py: Python<'_>,
    path: &str,
    source: Source,
    version: u8,
) -> PyResult<(SFrameSection, Vec<LeftOut>)> {
    let dump = JitDump::open(Arc::new(source));
    let dump = dump.map_err(|error| unreadable(py, path, &error, "a JITDUMP begins with JiTD"))?;
    let made = py.detach(|| jit_code::of_dump(&dump, version));
    let (contents, left_out) = made.ok_or_else(|| {
        lacking(py, path, Error::Machine, "SFrame is defined for x86_64, aarch64 and s390x")
    })?;
    Ok((SFrameSection::of(contents), left_out))
}

/// A section of all functions of a table that a version has words for.
pub fn of_table(table: &UnwindTable, arch: &str, version: u8) -> (SectionContents, Vec<LeftOut>) {
    let abi = Abi::ALL.into_iter().find(|abi| abi.arch() == Some(arch));
    let mut made =
        Made { contents: SectionContents::new(version, abi.unwrap_or(Abi(0))), left_out: Vec::new() };
    table.functions.iter().for_each(|function| made.function(table, function));
    (made.contents, made.left_out)
}

fn of_eh_frame(eh_frame: &EhFrame, version: u8) -> (SectionContents, Vec<LeftOut>) {
    let (contents, left_out) = of_table(&eh_frame.table, eh_frame.arch, version);
    let mut made = Made { contents, left_out };
    for unread in &eh_frame.unread {
        let start = unread.function.map(|(start, _)| start);
        made.left_out.push((start, None, format!("an entry that cannot be read: {}", unread.why), true));
    }
    made.left_out.sort_by_key(|(function, row, ..)| (*function, *row));
    (made.contents, made.left_out)
}

/// Why a version has no words for a function.
pub fn why_not(table: &UnwindTable, function: &UnwindFunction, version: u8, abi: Abi) -> Option<String> {
    let mut made = Made { contents: SectionContents::new(version, abi), left_out: Vec::new() };
    made.function(table, function);
    made.left_out.into_iter().find(|(.., left_out)| *left_out).map(|(_, _, what, _)| what)
}

struct Made {
    contents: SectionContents,
    left_out: Vec<LeftOut>,
}

impl Made {
    /// Adds a function, in parts where a PLT's rows are one expression. All of it has a place, or none.
    fn function(&mut self, table: &UnwindTable, function: &UnwindFunction) {
        let version = self.contents.version;
        let before = self.contents.checkpoint();
        let start = Some(function.start);
        for part in parts(function, table.rows(function)) {
            if let Err((row, what)) = self.part(function, &part) {
                self.contents.roll_back(before);
                let row = row.map(|row| (row + part.first_row) as u32);
                return self.left_out.push((start, row, what.to_owned(), true));
            }
        }
        if function.is_signal && version < 3 {
            self.left_out.push((start, None, "that the kernel enters it for a signal".to_owned(), false));
        }
    }

    fn part(
        &mut self,
        function: &UnwindFunction,
        part: &Part<'_>,
    ) -> Result<(), (Option<usize>, &'static str)> {
        let version = self.contents.version;
        let mut added = NewFunction {
            start: function.start + u64::from(part.from),
            size: part.to - part.from,
            repeat_bytes: 0,
            is_signal: function.is_signal && version >= 3,
            is_key_b: function.is_key_b,
        };
        if let Some(stub) = part.stub {
            let Some(bytes) = stub.mask.checked_add(1).filter(|bytes| bytes.is_power_of_two()) else {
                return Err((Some(0), "a block that repeats and is no power of two"));
            };
            if !added.start.is_multiple_of(bytes.into()) {
                return Err((Some(0), "a block that repeats and begins within another"));
            }
            if version < 2 && bytes != VERSION_1_REPEAT_BYTES {
                return Err((Some(0), "a block that repeats and is not 16 bytes"));
            }
            added.repeat_bytes = bytes;
            let rows = [(0, stub.recovery(false)), (stub.moves_at.into(), stub.recovery(true))];
            return self.contents.add(added, &rows[..if stub.moves_at < bytes { 2 } else { 1 }]);
        }
        let rows = part.rows.iter().enumerate().map(|(index, row)| match row.rule {
            RowRule::Recovery(recovery) => Ok((row.start - part.from, recovery)),
            RowRule::Plt(_) => Err((Some(index), "an expression of a PLT")),
            RowRule::Unrepresentable(why) => Err((Some(index), why.text())),
        });
        let rows = rows.collect::<Result<Vec<(u32, Recovery)>, _>>()?;
        self.contents.add(added, &rows)
    }
}

/// A stretch of a function: rows, or an expression that says them for each block of a PLT.
struct Part<'a> {
    from: u32,
    to: u32,
    first_row: usize,
    rows: &'a [UnwindRow],
    stub: Option<PltRule>,
}

fn parts<'a>(function: &UnwindFunction, rows: &'a [UnwindRow]) -> Vec<Part<'a>> {
    let is_stub = |row: &UnwindRow| matches!(row.rule, RowRule::Plt(_));
    let mut parts: Vec<Part<'a>> = Vec::new();
    for rows in rows.chunk_by(|row, next| !is_stub(row) && !is_stub(next)) {
        let stub = match rows {
            [UnwindRow { rule: RowRule::Plt(stub), .. }] => Some(*stub),
            _ => None,
        };
        let first_row = parts.iter().map(|part| part.rows.len()).sum();
        let from = rows.first().map_or(0, |row| row.start);
        if let Some(before) = parts.last_mut() {
            before.to = from;
        }
        parts.push(Part { from, to: function.size, first_row, rows, stub });
    }
    if parts.is_empty() {
        parts.push(Part { from: 0, to: function.size, first_row: 0, rows, stub: None });
    }
    parts
}
