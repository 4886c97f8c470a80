//! Builds dumps byte by byte, without the layouts and the writer under test.

use std::sync::Arc;

use perfuse_wire::{Diagnostic, Diagnostics};

use crate::JitDump;
use perfuse_recording::{Recording, Source};

/// Fields of a file header.
pub struct Header {
    pub version: u32,
    pub total_size: u32,
    pub elf_mach: u32,
    pub pad1: u32,
    pub timestamp: u64,
    pub flags: u64,
}

impl Default for Header {
    fn default() -> Self {
        Self { version: 1, total_size: 40, elf_mach: 62, pad1: 0, timestamp: 1000, flags: 0 }
    }
}

pub const PID: u32 = 77;

/// Bytes of a little-endian header.
pub fn header(header: &Header) -> Vec<u8> {
    let mut out = b"DTiJ".to_vec();
    for word in [header.version, header.total_size, header.elf_mach, header.pad1, PID] {
        out.extend(word.to_le_bytes());
    }
    out.extend(header.timestamp.to_le_bytes());
    out.extend(header.flags.to_le_bytes());
    out
}

/// Bytes of a record with a body.
pub fn record(id: u32, timestamp: u64, body: &[u8]) -> Vec<u8> {
    let size = 16 + body.len() as u32;
    [&id.to_le_bytes()[..], &size.to_le_bytes(), &timestamp.to_le_bytes(), body].concat()
}

/// The body of a JIT_CODE_LOAD.
pub fn load_body(address: u64, size: u64, index: u64, name: &[u8], code: &[u8]) -> Vec<u8> {
    let mut out = [PID.to_le_bytes(), 78u32.to_le_bytes()].concat();
    for field in [address, address, size, index] {
        out.extend(field.to_le_bytes());
    }
    [&out, name, &[0], code].concat()
}

/// A JIT_CODE_LOAD of `size` bytes of code.
pub fn load(timestamp: u64, address: u64, size: usize, index: u64, name: &str) -> Vec<u8> {
    record(0, timestamp, &load_body(address, size as u64, index, name.as_bytes(), &vec![0xcc; size]))
}

/// A JIT_CODE_DEBUG_INFO of entries `(address, line, discrim, file)`.
pub fn debug(timestamp: u64, address: u64, entries: &[(u64, u32, u32, &[u8])]) -> Vec<u8> {
    let mut body = [address.to_le_bytes(), (entries.len() as u64).to_le_bytes()].concat();
    for (address, line, discrim, file) in entries {
        body.extend(address.to_le_bytes());
        body.extend(line.to_le_bytes());
        body.extend(discrim.to_le_bytes());
        body.extend(*file);
        body.push(0);
    }
    record(2, timestamp, &body)
}

/// Opens a dump of a default header and some records.
pub fn dump(records: &[Vec<u8>]) -> JitDump {
    open([header(&Header::default()), records.concat()].concat())
}

/// Opens a dump.
pub fn open(bytes: Vec<u8>) -> JitDump {
    open_with_path("jit-77.dump", bytes)
}

/// Opens a dump with a path.
pub fn open_with_path(path: &str, bytes: Vec<u8>) -> JitDump {
    JitDump::open(Arc::new(Source::from_bytes(path, bytes).unwrap())).unwrap()
}

/// All diagnostics of the checker.
pub fn diagnostics(dump: &JitDump) -> Vec<Diagnostic> {
    let mut sink = Diagnostics::default();
    dump.check(&mut sink);
    sink.into_rows()
}

/// The distinct codes of the checker's diagnostics.
pub fn codes(dump: &JitDump) -> Vec<&'static str> {
    let mut codes: Vec<_> = diagnostics(dump).iter().map(|d| d.rule.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// `(code_object_id, offset, line, column, file)` of every line row.
pub fn lines(dump: &JitDump) -> Vec<(u32, u64, u32, Option<u32>, String)> {
    use arrow_array::types::{UInt32Type, UInt64Type};
    use perfuse_recording::{Placement, TableRequest};
    use perfuse_tables::access::{nullable, numbers, text};
    let mut rows = Vec::new();
    for batch in dump.table("line_rows", &Placement::alone(dump), &TableRequest::default()).unwrap() {
        let ids = numbers::<UInt32Type>(&batch, "code_object_id").unwrap();
        let offsets = numbers::<UInt64Type>(&batch, "code_offset").unwrap();
        let line_numbers = numbers::<UInt32Type>(&batch, "line").unwrap();
        let columns = numbers::<UInt32Type>(&batch, "column").unwrap();
        let files = text(&batch, "path").unwrap();
        for row in 0..batch.num_rows() {
            let file = files.get(row).unwrap().to_owned();
            rows.push((
                ids.value(row),
                offsets.value(row),
                line_numbers.value(row),
                nullable(columns, row),
                file,
            ));
        }
    }
    rows
}
