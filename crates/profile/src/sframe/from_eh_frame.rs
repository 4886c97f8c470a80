//! SFrame sections made from `.eh_frame` of a file and from the unwinding records of a JITDUMP, and the functions that cannot
//! be represented in them.

use std::fmt;
use std::sync::Arc;

use perfuse_binaries::eh_frame::{
    self, DwarfRegisters, EhFrame, Error, PltRule, RowRule, SectionBytes, UnwindFunction, UnwindRow,
    UnwindTable,
};
use perfuse_formats::jitdump::consts::RecordTag;
use perfuse_formats::jitdump::records::UnwindingInfoRecord;
use perfuse_formats::jitdump::{self, JitDump};
use perfuse_formats::sframe::consts::{Abi, VERSION_1_REPEAT_BYTES};
use perfuse_formats::sframe::recovery::Recovery;
use perfuse_formats::sframe::writer::{NewFunction, SectionContents, Unsupported};
use perfuse_formats::{Position, Recording, Sniff, Source};
use perfuse_wire::{Endian, ParseError};

/// A function, or a property of it, that is missing in a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OmittedFunction {
    /// Its address; `None` where unknown.
    pub start: Option<u64>,
    /// Index of the row that cannot be represented.
    pub row: Option<u32>,
    /// Code of the reason, for which Python has a text.
    pub reason: &'static str,
    /// What that text contains; may be empty.
    pub detail: String,
    /// Whether the whole function is missing.
    pub is_omitted: bool,
}

/// Why no section can be made.
#[derive(Debug)]
pub enum FromEhFrameError {
    /// The file has no `.eh_frame` that can be read.
    EhFrame(Error),
    /// The file is a JITDUMP that cannot be read.
    Dump(ParseError),
}

impl fmt::Display for FromEhFrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EhFrame(error) => error.fmt(f),
            Self::Dump(error) => error.fmt(f),
        }
    }
}

/// Makes a section of a version from the `.eh_frame` of a program, library or object file, or from the unwinding records of a
/// JITDUMP.
///
/// # Errors
/// [`FromEhFrameError`]
pub fn section_from_eh_frame(
    source: &Arc<Source>,
    version: u8,
) -> Result<(SectionContents, Vec<OmittedFunction>), FromEhFrameError> {
    if (jitdump::FORMAT.sniff)(source.get(..NUM_SNIFFED_BYTES).unwrap_or(source)) == Sniff::Certain {
        let dump = JitDump::open(Arc::clone(source)).map_err(FromEhFrameError::Dump)?;
        return section_of_dump(&dump, version).ok_or(FromEhFrameError::EhFrame(Error::Machine));
    }
    let eh_frame = EhFrame::of_elf(source).map_err(FromEhFrameError::EhFrame)?;
    let (contents, mut omitted) = section_of_table(&eh_frame.table, eh_frame.arch, version);
    omitted.extend(eh_frame.unread.iter().map(|unread| OmittedFunction {
        start: unread.function.map(|(start, _)| start),
        row: None,
        reason: "unreadable_entry",
        detail: unread.why.clone(),
        is_omitted: true,
    }));
    omitted.sort_by_key(|function| (function.start, function.row));
    Ok((contents, omitted))
}

/// Number of first bytes by which a JITDUMP is recognized.
const NUM_SNIFFED_BYTES: usize = 64;

/// A section of all functions of a table that a version can represent.
fn section_of_table(table: &UnwindTable, arch: &str, version: u8) -> (SectionContents, Vec<OmittedFunction>) {
    let abi = Abi::ALL.into_iter().find(|abi| abi.arch() == Some(arch));
    let mut section = NewSection::new(version, abi.unwrap_or(Abi(0)));
    table.functions.iter().for_each(|function| section.add(table, function));
    (section.contents, section.omitted)
}

/// Why a version cannot represent a function; `None` where it can.
pub(super) fn reason_not_representable(
    table: &UnwindTable,
    function: &UnwindFunction,
    version: u8,
    abi: Abi,
) -> Option<Reason> {
    let mut section = NewSection::new(version, abi);
    section.add(table, function);
    section
        .omitted
        .into_iter()
        .find(|omitted| omitted.is_omitted)
        .map(|omitted| (omitted.reason, omitted.detail))
}

struct NewSection {
    contents: SectionContents,
    omitted: Vec<OmittedFunction>,
}

impl NewSection {
    fn new(version: u8, abi: Abi) -> Self {
        Self { contents: SectionContents::new(version, abi), omitted: Vec::new() }
    }

    /// Adds a whole function, or none of it. A function whose rows are partly the expression of a PLT becomes several.
    fn add(&mut self, table: &UnwindTable, function: &UnwindFunction) {
        let version = self.contents.version;
        let before = self.contents.checkpoint();
        let start = Some(function.start);
        for part in split_at_stubs(function, table.rows(function)) {
            if let Err((row, (reason, detail))) = self.add_part(function, &part) {
                self.contents.roll_back(before);
                let row = row.map(|row| row.saturating_add(part.first_row) as u32);
                return self.omitted.push(OmittedFunction { start, row, reason, detail, is_omitted: true });
            }
        }
        if function.is_signal && version < 3 {
            let (reason, detail) = (Unsupported::SignalFrame.code(), String::new());
            self.omitted.push(OmittedFunction { start, row: None, reason, detail, is_omitted: false });
        }
    }

    fn add_part(
        &mut self,
        function: &UnwindFunction,
        part: &FunctionPart<'_>,
    ) -> Result<(), (Option<usize>, Reason)> {
        let version = self.contents.version;
        let mut added = NewFunction {
            start: function.start.wrapping_add(u64::from(part.from)),
            size: part.to.saturating_sub(part.from),
            repeat_bytes: 0,
            is_signal: function.is_signal && version >= 3,
            is_key_b: function.is_key_b,
        };
        if let Some(stub) = part.stub {
            let Some(bytes) = stub.mask.checked_add(1).filter(|bytes| bytes.is_power_of_two()) else {
                return Err((Some(0), ("repeat_power", String::new())));
            };
            if !added.start.is_multiple_of(bytes.into()) {
                return Err((Some(0), ("repeat_start", String::new())));
            }
            if version < 2 && bytes != VERSION_1_REPEAT_BYTES {
                return Err((Some(0), ("repeat_size", String::new())));
            }
            added.repeat_bytes = bytes;
            let rows = [(0, stub.recovery(false)), (stub.moves_at.into(), stub.recovery(true))];
            let [first, _] = rows;
            return match stub.moves_at < bytes {
                true => self.contents.add(added, &rows).map_err(with_code),
                false => self.contents.add(added, &[first]).map_err(with_code),
            };
        }
        let rows = part.rows.iter().enumerate().map(|(index, row)| match row.rule {
            RowRule::Recovery(recovery) => Ok((row.start.saturating_sub(part.from), recovery)),
            RowRule::Plt(_) => Err((Some(index), ("plt_expression", String::new()))),
            RowRule::Unrepresentable(why) => Err((Some(index), ("eh_frame_rule", why.to_string()))),
        });
        let rows = rows.collect::<Result<Vec<(u32, Recovery)>, _>>()?;
        self.contents.add(added, &rows).map_err(with_code)
    }
}

/// Code of a reason, for which Python has a text, and what that text contains.
pub(super) type Reason = (&'static str, String);

/// The index of a row and what is not supported there.
fn with_code((row, unsupported): (Option<usize>, Unsupported)) -> (Option<usize>, Reason) {
    (row, (unsupported.code(), String::new()))
}

/// A range of a function: rows, or an expression for each block of a PLT.
struct FunctionPart<'a> {
    from: u32,
    to: u32,
    first_row: usize,
    rows: &'a [UnwindRow],
    stub: Option<PltRule>,
}

fn split_at_stubs<'a>(function: &UnwindFunction, rows: &'a [UnwindRow]) -> Vec<FunctionPart<'a>> {
    let is_stub = |row: &UnwindRow| matches!(row.rule, RowRule::Plt(_));
    let mut parts: Vec<FunctionPart<'a>> = Vec::new();
    let mut first_row = 0usize;
    for rows in rows.chunk_by(|row, next| !is_stub(row) && !is_stub(next)) {
        let stub = match rows {
            [UnwindRow { rule: RowRule::Plt(stub), .. }] => Some(*stub),
            _ => None,
        };
        let from = rows.first().map_or(0, |row| row.start);
        if let Some(previous) = parts.last_mut() {
            previous.to = from;
        }
        parts.push(FunctionPart { from, to: function.size, first_row, rows, stub });
        first_row = first_row.saturating_add(rows.len());
    }
    if parts.is_empty() {
        parts.push(FunctionPart { from: 0, to: function.size, first_row: 0, rows, stub: None });
    }
    parts
}

/// A section of the code that exists at the end of a dump, by the unwinding records that precede it. `None` for a machine that
/// SFrame is not defined for.
fn section_of_dump(dump: &JitDump, version: u8) -> Option<(SectionContents, Vec<OmittedFunction>)> {
    let index = dump.index();
    let (arch, registers) = match (index.header.elf_mach, index.endian) {
        // CPython writes no machine; it writes unwinding records on amd64 only.
        (0 | 62, Endian::Little) => ("x86_64", DwarfRegisters::X86_64),
        (183, Endian::Little) => ("aarch64", DwarfRegisters::AARCH64),
        (183, Endian::Big) => ("aarch64_be", DwarfRegisters::AARCH64),
        (22, Endian::Big) => ("s390x", DwarfRegisters::S390X),
        _ => return None,
    };
    let endian = match index.endian {
        Endian::Little => eh_frame::RunTimeEndian::Little,
        Endian::Big => eh_frame::RunTimeEndian::Big,
    };
    let mut table = UnwindTable::default();
    let mut omitted = Vec::new();
    let records = unwinding_records(dump);
    for code in index.codes.iter().filter(|code| code.retired == u64::MAX) {
        let num_before = records.partition_point(|(offset, _)| *offset < code.offset);
        let Some(&(offset, record)) = num_before.checked_sub(1).and_then(|at| records.get(at)) else {
            continue;
        };
        // A record describes the code that follows it, and no other.
        let num_codes = index.codes.partition_point(|other| other.offset < code.offset);
        let previous = num_codes.checked_sub(1).and_then(|at| index.codes.get(at));
        if previous.is_some_and(|previous| previous.offset > offset) {
            continue;
        }
        let Some(raw) = index.record_at(dump.source(), offset, record) else { continue };
        let Ok(info) = UnwindingInfoRecord::decode(raw.cursor()) else { continue };
        let (read, unread) =
            eh_frame::read(SectionBytes { data: info.parts().1, address: 0, endian, registers });
        omitted.extend(unread.into_iter().map(|unread| OmittedFunction {
            start: Some(code.start),
            row: None,
            reason: "unreadable_entry",
            detail: unread.why,
            is_omitted: true,
        }));
        add_code(&mut table, &read, code.start, code.size);
    }
    let (contents, more) = section_of_table(&table, arch, version);
    omitted.extend(more);
    omitted.sort_by_key(|function| (function.start, function.row));
    Some((contents, omitted))
}

/// Offset and index of each JIT_CODE_UNWINDING_INFO.
fn unwinding_records(dump: &JitDump) -> Vec<(u64, u64)> {
    let name = RecordTag::JIT_CODE_UNWINDING_INFO.name();
    let mut at = Position::default();
    let records = std::iter::from_fn(|| dump.next_record(&mut at));
    records.filter(|record| Some(&*record.name) == name).map(|record| (record.offset, record.index)).collect()
}

/// Adds the functions read from the record of a code object. Producers differ in the addresses they write, so the first
/// function is put at the start of the code.
fn add_code(table: &mut UnwindTable, read: &UnwindTable, start: u64, size: u64) {
    let Some(first) = read.functions.first().map(|function| function.start) else { return };
    for function in &read.functions {
        let offset = function.start.wrapping_sub(first);
        if let Some(rest) = size.checked_sub(offset).filter(|rest| *rest > 0) {
            let size = function.size.min(u32::try_from(rest).unwrap_or(u32::MAX));
            let moved = UnwindFunction { start: start.wrapping_add(offset), size, ..*function };
            table.push(moved, read.rows(function).iter().copied().filter(|row| row.start < size));
        }
    }
}
