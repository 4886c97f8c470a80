//! Files with their functions, as simpleperf lists them in the features FILE and FILE2: those that samples are in; and the kernel's
//! symbols in its records.

use linux_perf_data::Feature;
use perfuse_addresses::recorded_symbols::{RecordedFile, RecordedSymbol, SymbolBase};
use perfuse_wire::{Cursor, ParseError};
use rustc_hash::FxHashSet;

use super::layout::EventHeader;
use super::perf_file::PerfFile;
use super::records::MappingRecord;

/// List of files, each a message of Protocol Buffers; replaces `SIMPLEPERF_FILE`.
const FILE2: Feature = Feature(132);

/// Path of the kernel.
const KERNEL: &str = "[kernel.kallsyms]";
/// Size of the last symbol of the kernel, which no list states.
const LAST_SYMBOL_BYTES: u64 = 4096;

/// `DSO_*`: what a file is. The kernel is 0.
mod kind {
    pub const KERNEL_MODULE: u64 = 1;
    pub const ELF_FILE: u64 = 2;
    pub const DEX_FILE: u64 = 3;
}

/// The files of the list; empty where the file has none.
#[must_use]
pub fn recorded_symbols(file: &PerfFile) -> Vec<RecordedFile> {
    let cursor = |feature| file.features.cursor(feature, &file.source, file.endian);
    // As simpleperf does: the older list where both exist.
    let mut files = match (cursor(Feature::SIMPLEPERF_FILE), cursor(FILE2)) {
        (Some(cursor), _) => listed(cursor, first_version).0,
        (None, Some(cursor)) => listed(cursor, second_version).0,
        (None, None) => Vec::new(),
    };
    let kernel = kernel_symbols(file);
    if !kernel.is_empty() {
        match files.iter_mut().find(|file| file.path == KERNEL) {
            Some(listed) => listed.symbols.extend(kernel),
            None => files.push(RecordedFile {
                path: KERNEL.to_owned(),
                symbols: kernel,
                ..RecordedFile::default()
            }),
        }
    }
    files.retain(|file| !file.symbols.is_empty());
    if !files.is_empty() {
        let in_memory = jit_files(file);
        for file in files.iter_mut().filter(|file| in_memory.contains(file.path.as_bytes())) {
            file.base = SymbolBase::Memory;
        }
    }
    files
}

/// What a list contains, as text.
///
/// # Errors
/// When a file of the list cannot be read.
pub fn describe(bit: u32, cursor: Cursor<'_>) -> Result<String, ParseError> {
    let (files, error) =
        if Feature(bit) == FILE2 { listed(cursor, second_version) } else { listed(cursor, first_version) };
    let symbols: usize = files.iter().map(|file| file.symbols.len()).sum();
    let plural = |number: usize| if number == 1 { "" } else { "s" };
    let num_files = files.len();
    match error {
        Some(error) => Err(error),
        None => Ok(format!("{num_files} file{}, {symbols} symbol{}", plural(num_files), plural(symbols))),
    }
}

/// The kernel's functions, in a record with the text of its `kallsyms`: lines of address, type and name.
fn kernel_symbols(file: &PerfFile) -> Vec<RecordedSymbol> {
    let parts = file.survey().kernel_symbols.iter().filter_map(|&part| file.at(part));
    let whole: Vec<u8> = parts.flat_map(|part| part.body.iter().copied()).collect();
    // Parts begin with the header of the record that was split.
    let header = if file.survey().kernel_symbols.len() > 1 { EventHeader::SIZE } else { 0 };
    let mut cursor = Cursor::new(&whole, 0, file.endian);
    let list = cursor.bytes(header, "header").and_then(|_| cursor.u32("size"));
    let list = list.and_then(|size| cursor.bytes(u64::from(size), "kallsyms")).unwrap_or_default();
    let mut all: Vec<(u64, bool, &[u8])> =
        list.split(|&byte| byte == b'\n').filter_map(kernel_symbol).collect();
    all.sort_by_key(|&(start, ..)| start);
    let ends: Vec<u64> = all.iter().skip(1).map(|&(start, ..)| start).collect();
    let ends = ends.into_iter().map(Some).chain([None]);
    let functions =
        all.into_iter().zip(ends).filter(|((start, is_function, _), _)| *start != 0 && *is_function);
    let symbol = |((start, _, name), end): ((u64, bool, &[u8]), Option<u64>)| RecordedSymbol {
        start,
        size: end.map_or(LAST_SYMBOL_BYTES, |end| end.saturating_sub(start)),
        name: String::from_utf8_lossy(name).into_owned(),
    };
    functions.map(symbol).collect()
}

/// Address of a symbol, whether it is a function, and its name.
fn kernel_symbol(line: &[u8]) -> Option<(u64, bool, &[u8])> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let start = u64::from_str_radix(std::str::from_utf8(words.next()?).ok()?, 16).ok()?;
    let kind = words.next()?;
    Some((start, matches!(kind, b"t" | b"T" | b"w" | b"W"), words.next()?))
}

/// Paths of the files that simpleperf wrote with code of JIT compilers: their symbols have addresses in memory.
fn jit_files(file: &PerfFile) -> FxHashSet<&[u8]> {
    let rows = file.tasks().mappings.iter().filter_map(|row| file.at(row.mapping));
    let mappings = rows.filter_map(|record| MappingRecord::read(&record, file.endian));
    mappings.filter(|mapping| mapping.is_jit_file).map(|mapping| mapping.path).collect()
}

/// Reads files up to the first that cannot be read.
fn listed(
    mut cursor: Cursor<'_>,
    read: fn(Cursor<'_>) -> Result<RecordedFile, ParseError>,
) -> (Vec<RecordedFile>, Option<ParseError>) {
    let mut files = Vec::new();
    while cursor.remaining() > 0 {
        let body = cursor.u32("size").and_then(|size| cursor.split(u64::from(size), "file"));
        match body.and_then(read) {
            Ok(file) => files.push(file),
            Err(error) => return (files, Some(error)),
        }
    }
    (files, None)
}

/// A file of the list FILE: fields in a fixed order.
fn first_version(mut cursor: Cursor<'_>) -> Result<RecordedFile, ParseError> {
    let path = String::from_utf8_lossy(cursor.c_string("file_path")?).into_owned();
    let file_kind = u64::from(cursor.u32("file_type")?);
    let min_vaddr = cursor.u64("min_vaddr")?;
    let count = cursor.u32("symbol_count")?;
    let mut symbols = Vec::new();
    // A count larger than the file fails at its end.
    for _ in 0..count {
        let (start, size) = (cursor.u64("start_vaddr")?, cursor.u32("len")?);
        let name = String::from_utf8_lossy(cursor.c_string("symbol_name")?).into_owned();
        symbols.push(RecordedSymbol { start, size: u64::from(size), name });
    }
    let offset = match file_kind {
        // Older versions do not have it.
        kind::ELF_FILE | kind::KERNEL_MODULE if cursor.remaining() > 0 => {
            Some(cursor.u64("min_vaddr_offset")?)
        }
        _ => None,
    };
    Ok(file_of(path, file_kind, min_vaddr, offset, symbols))
}

/// A file of the list FILE2: `FileFeature` of simpleperf's `record_file.proto`.
fn second_version(cursor: Cursor<'_>) -> Result<RecordedFile, ParseError> {
    let (mut path, mut file_kind, mut min_vaddr, mut offset) = (String::new(), 0, 0, None);
    let mut symbols = Vec::new();
    each_field(cursor, |field| {
        match field {
            (1, Value::Bytes(bytes)) => path = String::from_utf8_lossy(bytes.rest()).into_owned(),
            (2, Value::Number(number)) => file_kind = number,
            (3, Value::Number(number)) => min_vaddr = number,
            (4, Value::Bytes(message)) => {
                let mut symbol = RecordedSymbol::default();
                each_field(message, |field| {
                    match field {
                        (1, Value::Number(number)) => symbol.start = number,
                        (2, Value::Number(number)) => symbol.size = number,
                        (3, Value::Bytes(bytes)) => {
                            symbol.name = String::from_utf8_lossy(bytes.rest()).into_owned();
                        }
                        _ => {}
                    }
                    Ok(())
                })?;
                symbols.push(symbol);
            }
            (6 | 7, Value::Bytes(message)) => {
                // The field of a message is absent where it is 0.
                offset = Some(0);
                each_field(message, |field| {
                    if let (1, Value::Number(number)) = field {
                        offset = Some(number);
                    }
                    Ok(())
                })?;
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(file_of(path, file_kind, min_vaddr, offset, symbols))
}

/// A file whose first executable byte has the address `min_vaddr`, and that offset in the file or, for a kernel module, in memory.
fn file_of(
    path: String,
    file_kind: u64,
    min_vaddr: u64,
    offset: Option<u64>,
    symbols: Vec<RecordedSymbol>,
) -> RecordedFile {
    let base = match (file_kind, offset) {
        (kind::KERNEL_MODULE, offset) => SymbolBase::Mapping(min_vaddr.wrapping_sub(offset.unwrap_or(0))),
        (kind::ELF_FILE, None) => SymbolBase::Mapping(min_vaddr),
        (kind::ELF_FILE, Some(offset)) => SymbolBase::File(min_vaddr.wrapping_sub(offset)),
        (kind::DEX_FILE, _) => SymbolBase::File(0),
        // The kernel, and lists of symbols of processes.
        _ => SymbolBase::Memory,
    };
    RecordedFile { path, base, has_call_addresses: file_kind == kind::DEX_FILE, symbols }
}

/// Value of a field of a message.
enum Value<'a> {
    Number(u64),
    Bytes(Cursor<'a>),
}

/// Visits the fields of a message of Protocol Buffers, each with its number.
fn each_field<'a>(
    mut cursor: Cursor<'a>,
    mut visit: impl FnMut((u64, Value<'a>)) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    while cursor.remaining() > 0 {
        let tag = cursor.uleb128("tag")?;
        let value = match tag & 7 {
            0 => Value::Number(cursor.uleb128("value")?),
            1 => Value::Number(cursor.u64("value")?),
            5 => Value::Number(u64::from(cursor.u32("value")?)),
            2 => {
                let size = cursor.uleb128("length")?;
                Value::Bytes(cursor.split(size, "message")?)
            }
            // Groups, which no message of today has: the rest is not readable.
            _ => return cursor.bytes(u64::MAX, "group").map(|_| ()),
        };
        visit((tag >> 3, value))?;
    }
    Ok(())
}
