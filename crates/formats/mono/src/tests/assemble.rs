//! Assembles logs byte by byte.

use std::sync::Arc;

use perfuse_recording::{Recording, Source};
use perfuse_wire::{Diagnostic, Diagnostics};

use crate::recording::MonoLog;

/// Thread of a [`buffer`].
pub const THREAD: u64 = 0x7f00_0000_0100;
/// Creation time of a [`buffer`].
pub const TIME: u64 = 1000;

pub fn uleb(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return out;
        }
        out.push(byte | 0x80);
    }
}

pub fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

/// The header of a log of data version 17 by profiler 3.0, on a 64-bit machine.
pub fn header() -> Vec<u8> {
    let mut out = b"\x01ZPM\x03\x00\x11\x08".to_vec();
    out.extend(1_700_000_000_000u64.to_le_bytes());
    out.extend(900u64.to_le_bytes());
    out.extend([25u32, 0, 4242].map(u32::to_le_bytes).concat());
    out.extend(5555u16.to_le_bytes());
    for text in [&b"log\0"[..], b"x86-64\0", b"linux\0"] {
        out.extend((text.len() as u32).to_le_bytes());
        out.extend(text);
    }
    out
}

/// The header of a log of a data version up to 12: 32 bytes.
pub fn old_header(version: u8) -> Vec<u8> {
    let minor = if version < 4 { 2 } else { 4 };
    let mut out = vec![1, b'Z', b'P', b'M', 0, minor, version, 8];
    out.extend(1_289_149_508_000u64.to_le_bytes());
    out.extend([25u32, 0, 4242, 0].map(u32::to_le_bytes).concat());
    out
}

/// A buffer of [`THREAD`], created at [`TIME`]; the base of pointers and methods is 0x1000, that of objects 0x8000.
pub fn buffer(events: &[Vec<u8>]) -> Vec<u8> {
    buffer_of(THREAD, TIME, events)
}

pub fn buffer_of(thread: u64, time: u64, events: &[Vec<u8>]) -> Vec<u8> {
    let events = events.concat();
    let mut out = b"\x01LPM".to_vec();
    out.extend((events.len() as u32).to_le_bytes());
    out.extend([time, 0x1000, 0x8000 >> 3, thread, 0x1000].map(u64::to_le_bytes).concat());
    out.extend(events);
    out
}

/// A log of data version 17.
pub fn log(buffers: &[Vec<u8>]) -> MonoLog {
    open([header(), buffers.concat()].concat())
}

pub fn open(bytes: Vec<u8>) -> MonoLog {
    MonoLog::open(Arc::new(Source::from_bytes("log", bytes).unwrap())).unwrap()
}

/// An event 1 ns after the previous one: its event byte, then its fields.
pub fn event(byte: u8, fields: &[&[u8]]) -> Vec<u8> {
    [&[byte, 1][..], &fields.concat()].concat()
}

pub fn checked(log: &MonoLog) -> Vec<Diagnostic> {
    let mut sink = Diagnostics::default();
    log.check(&mut sink);
    sink.into_rows()
}

pub fn codes(log: &MonoLog) -> Vec<&'static str> {
    checked(log).iter().map(|found| found.rule.code).collect()
}

/// The bytes `repair` writes.
pub fn repaired(log: &MonoLog) -> Vec<u8> {
    let name = format!("perfuse-mono-{}-{:?}.mlpd", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    log.repair(&mut std::fs::File::create(&path).unwrap()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    bytes
}

/// Small real logs and hand-made ones of every data version.
pub fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/testdata");
    let entries = [folder.join("crafted"), folder].into_iter().flat_map(|folder| folder.read_dir().unwrap());
    let logs = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "mlpd"));
    let mut logs: Vec<_> = logs
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap()))
        .collect();
    logs.sort();
    assert!(logs.len() > 20);
    logs
}
