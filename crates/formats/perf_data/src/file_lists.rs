//! Lists of files with their functions, as simpleperf writes them in the features FILE and FILE2.

use linux_perf_data::Feature;
use perfuse_addresses::recorded_symbols::{RecordedFile, RecordedSymbol, SymbolBase};
use perfuse_wire::{Cursor, ParseError};

/// List of files, each a message of Protocol Buffers; replaces `SIMPLEPERF_FILE`.
pub const FILE2: Feature = Feature(132);

/// `DSO_*`: what a file is. The kernel is 0.
mod kind {
    pub const KERNEL_MODULE: u64 = 1;
    pub const ELF_FILE: u64 = 2;
    pub const DEX_FILE: u64 = 3;
}

/// The files of a list, up to the first that cannot be read.
#[must_use]
pub fn files(list: Feature, cursor: Cursor<'_>) -> Vec<RecordedFile> {
    listed(list, cursor).0
}

/// What a list contains, as text.
///
/// # Errors
/// When a file of the list cannot be read.
pub fn describe(bit: u32, cursor: Cursor<'_>) -> Result<String, ParseError> {
    let (files, error) = listed(Feature(bit), cursor);
    let symbols: usize = files.iter().map(|file| file.symbols.len()).sum();
    let plural = |number: usize| if number == 1 { "" } else { "s" };
    let num_files = files.len();
    match error {
        Some(error) => Err(error),
        None => Ok(format!("{num_files} file{}, {symbols} symbol{}", plural(num_files), plural(symbols))),
    }
}

/// Reads files up to the first that cannot be read.
fn listed(list: Feature, mut cursor: Cursor<'_>) -> (Vec<RecordedFile>, Option<ParseError>) {
    let read = if list == FILE2 { second_version } else { first_version };
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
            (1, MessageValue::Bytes(bytes)) => path = String::from_utf8_lossy(bytes.rest()).into_owned(),
            (2, MessageValue::Number(number)) => file_kind = number,
            (3, MessageValue::Number(number)) => min_vaddr = number,
            (4, MessageValue::Bytes(message)) => {
                let mut symbol = RecordedSymbol::default();
                each_field(message, |field| {
                    match field {
                        (1, MessageValue::Number(number)) => symbol.start = number,
                        (2, MessageValue::Number(number)) => symbol.size = number,
                        (3, MessageValue::Bytes(bytes)) => {
                            symbol.name = String::from_utf8_lossy(bytes.rest()).into_owned();
                        }
                        _ => {}
                    }
                    Ok(())
                })?;
                symbols.push(symbol);
            }
            (6 | 7, MessageValue::Bytes(message)) => {
                // The field of a message is absent where it is 0.
                offset = Some(0);
                each_field(message, |field| {
                    if let (1, MessageValue::Number(number)) = field {
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
pub fn file_of(
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
enum MessageValue<'a> {
    Number(u64),
    Bytes(Cursor<'a>),
}

/// Visits the fields of a message of Protocol Buffers, each with its number.
fn each_field<'a>(
    mut cursor: Cursor<'a>,
    mut visit: impl FnMut((u64, MessageValue<'a>)) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    while cursor.remaining() > 0 {
        let tag = cursor.uleb128("tag")?;
        let value = match tag & 7 {
            0 => MessageValue::Number(cursor.uleb128("value")?),
            1 => MessageValue::Number(cursor.u64("value")?),
            5 => MessageValue::Number(u64::from(cursor.u32("value")?)),
            2 => {
                let size = cursor.uleb128("length")?;
                MessageValue::Bytes(cursor.split(size, "message")?)
            }
            // Groups, which no message of today has: the rest is not readable.
            _ => return cursor.bytes(u64::MAX, "group").map(|_| ()),
        };
        visit((tag >> 3, value))?;
    }
    Ok(())
}
