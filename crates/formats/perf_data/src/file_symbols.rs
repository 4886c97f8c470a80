//! Files with their functions, as simpleperf lists them in the features FILE and FILE2, or in records of their own: those that samples
//! are in; the kernel's symbols in its records; and code that the kernel added, such as BPF programs.

use linux_perf_data::Feature;
use perfuse_addresses::recorded_symbols::{RecordedFile, RecordedSymbol, SymbolBase};
use perfuse_wire::Cursor;
use rustc_hash::{FxHashMap, FxHashSet};

use super::consts::RecordType;
use super::file_lists::{FILE2, file_of, files};
use super::layout::{EventHeader, SimpleperfDso, SimpleperfSymbol};
use super::perf_file::PerfFile;
use super::records::MappingRecord;

/// Path of the kernel.
const KERNEL: &str = "[kernel.kallsyms]";
/// Size of the last symbol of the kernel, which no list states.
const LAST_SYMBOL_BYTES: u64 = 4096;

/// The files of the list; empty where the file has none.
#[must_use]
pub fn recorded_symbols(file: &PerfFile) -> Vec<RecordedFile> {
    let cursor = |feature| file.features.cursor(feature, &file.source, file.endian);
    // As simpleperf does: the older list where both exist.
    let mut found = match (cursor(Feature::SIMPLEPERF_FILE), cursor(FILE2)) {
        (Some(cursor), _) => files(Feature::SIMPLEPERF_FILE, cursor),
        (None, Some(cursor)) => files(FILE2, cursor),
        (None, None) => files_in_records(file),
    };
    let kernel = kernel_symbols(file);
    if !kernel.is_empty() {
        match found.iter_mut().find(|file| file.path == KERNEL) {
            Some(listed) => listed.symbols.extend(kernel),
            None => found.push(RecordedFile {
                path: KERNEL.to_owned(),
                symbols: kernel,
                ..RecordedFile::default()
            }),
        }
    }
    found.extend(added_code(file));
    found.retain(|file| !file.symbols.is_empty());
    if !found.is_empty() {
        let in_memory = jit_files(file);
        for file in found.iter_mut().filter(|file| in_memory.contains(file.path.as_bytes())) {
            file.base = SymbolBase::Memory;
        }
    }
    found
}

/// The files of records DSO, each with the functions of the records SYMBOL that have its number.
fn files_in_records(file: &PerfFile) -> Vec<RecordedFile> {
    let mut found = Vec::new();
    let mut places: FxHashMap<u64, usize> = FxHashMap::default();
    let mut symbols: FxHashMap<u64, Vec<RecordedSymbol>> = FxHashMap::default();
    for record in file.survey().symbol_records.iter().filter_map(|&location| file.at(location)) {
        let mut cursor = record.cursor(file.endian);
        if record.record_type == RecordType::SIMPLEPERF_DSO {
            let Ok(SimpleperfDso { dso_type, dso_id, min_vaddr }) = SimpleperfDso::read(&mut cursor) else {
                continue;
            };
            let Ok(path) = cursor.c_string("dso_name") else { continue };
            let path = String::from_utf8_lossy(path).into_owned();
            places.insert(dso_id, found.len());
            found.push(file_of(path, dso_type, min_vaddr, None, Vec::new()));
        } else {
            let Ok(SimpleperfSymbol { addr, len, dso_id }) = SimpleperfSymbol::read(&mut cursor) else {
                continue;
            };
            let Ok(name) = cursor.c_string("name") else { continue };
            let name = String::from_utf8_lossy(name).into_owned();
            symbols.entry(dso_id).or_default().push(RecordedSymbol { start: addr, size: len, name });
        }
    }
    for (dso_id, of_file) in symbols {
        if let Some(file) = places.get(&dso_id).and_then(|&place| found.get_mut(place)) {
            file.symbols = of_file;
        }
    }
    found
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

/// Code that the kernel added: each name is a file with the symbols of that name.
fn added_code(file: &PerfFile) -> Vec<RecordedFile> {
    let mut found: Vec<RecordedFile> = Vec::new();
    let mut places: FxHashMap<String, usize> = FxHashMap::default();
    for row in file.tasks().mappings.iter().filter(|row| row.pid == -1) {
        let record = file.at(row.mapping).filter(|record| record.record_type == RecordType::KSYMBOL);
        let Some(code) = record.and_then(|record| MappingRecord::read(&record, file.endian)) else {
            continue;
        };
        let name = String::from_utf8_lossy(code.path).into_owned();
        let place = *places.entry(name.clone()).or_insert(found.len());
        if place == found.len() {
            found.push(RecordedFile { path: name.clone(), ..RecordedFile::default() });
        }
        if let Some(named) = found.get_mut(place) {
            named.symbols.push(RecordedSymbol { start: code.start_address, size: code.size, name });
        }
    }
    found
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
