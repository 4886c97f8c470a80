//! Logs assembled byte by byte, without the layouts and the writer under test.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_tables::CallEvent;
use perfuse_tables::access::{choices, nullable, numbers};
use perfuse_wire::{Diagnostic, Diagnostics, Severity};

use crate::fdr::thread_ids;
use crate::{LogContent, XRay};
use perfuse_recording::{ClockMap, Placement, Recording, Source, TableRequest};

/// Counter rate in hand-made headers, in ticks per second.
pub const HZ: u64 = 1_000_000_000;

/// A little-endian header of a log.
pub fn header_of(version: u16, kind: u16, hz: u64, buffer_size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(version.to_le_bytes());
    out.extend(kind.to_le_bytes());
    out.extend(3u32.to_le_bytes());
    out.extend(hz.to_le_bytes());
    out.extend(buffer_size.to_le_bytes());
    out.extend([0; 8]);
    out
}

/// The header of an FDR log.
pub fn header(version: u16) -> Vec<u8> {
    header_of(version, 1, HZ, 256)
}

/// A metadata record.
pub fn metadata(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![(kind << 1) | 1];
    fields.iter().for_each(|field| out.extend(*field));
    out.resize(16, 0);
    out
}

pub fn new_buffer(tid: i32) -> Vec<u8> {
    metadata(0, &[&tid.to_le_bytes()])
}

pub fn end_of_buffer() -> Vec<u8> {
    metadata(1, &[])
}

pub fn cpu(cpu: u16, tsc: u64) -> Vec<u8> {
    metadata(2, &[&cpu.to_le_bytes(), &tsc.to_le_bytes()])
}

pub fn wrap(tsc: u64) -> Vec<u8> {
    metadata(3, &[&tsc.to_le_bytes()])
}

pub fn wall(seconds: i64, microseconds: i32) -> Vec<u8> {
    metadata(4, &[&seconds.to_le_bytes(), &microseconds.to_le_bytes()])
}

pub fn argument(value: u64) -> Vec<u8> {
    metadata(6, &[&value.to_le_bytes()])
}

pub fn extents(size: u64) -> Vec<u8> {
    metadata(7, &[&size.to_le_bytes()])
}

pub fn pid(pid: i32) -> Vec<u8> {
    metadata(9, &[&pid.to_le_bytes()])
}

/// A custom event of version 5.
pub fn custom(delta: i32, bytes: &[u8]) -> Vec<u8> {
    let size = bytes.len() as i32;
    [metadata(5, &[&size.to_le_bytes(), &delta.to_le_bytes()]), bytes.to_vec()].concat()
}

/// The marker of a custom event of versions 1 to 3; its bytes are appended by the caller.
pub fn custom_marker(size: i32, tsc: u64) -> Vec<u8> {
    metadata(5, &[&size.to_le_bytes(), &tsc.to_le_bytes()])
}

/// A typed event of version 5.
pub fn typed(delta: i32, kind: u16, bytes: &[u8]) -> Vec<u8> {
    let size = bytes.len() as i32;
    [metadata(8, &[&size.to_le_bytes(), &delta.to_le_bytes(), &kind.to_le_bytes()]), bytes.to_vec()].concat()
}

/// A function record: 0 entry, 1 exit, 2 tail exit, 3 entry with arguments.
pub fn function(action: u32, id: u32, delta: u32) -> Vec<u8> {
    [((id << 4) | (action << 1)).to_le_bytes(), delta.to_le_bytes()].concat()
}

pub fn enter(id: u32, delta: u32) -> Vec<u8> {
    function(0, id, delta)
}

pub fn exit(id: u32, delta: u32) -> Vec<u8> {
    function(1, id, delta)
}

/// The first records of a buffer of version 3 or later.
pub fn preamble(tid: i32, microseconds: i32, tsc: u64) -> Vec<u8> {
    [new_buffer(tid), wall(1, microseconds), pid(100), cpu(0, tsc)].concat()
}

/// Records in a buffer with BufferExtents.
pub fn buffer(records: &[Vec<u8>]) -> Vec<u8> {
    let records = records.concat();
    [extents(records.len() as u64), records].concat()
}

/// A buffer with a preamble and these records.
pub fn block(tid: i32, microseconds: i32, tsc: u64, body: &[Vec<u8>]) -> Vec<u8> {
    buffer(&[preamble(tid, microseconds, tsc), body.concat()])
}

/// A log of version 5 with these buffers.
pub fn log(buffers: &[Vec<u8>]) -> XRay {
    open([header(5), buffers.concat()].concat())
}

/// A record of a Basic mode log of version 3.
pub fn basic(kind: u8, id: i32, tsc: u64, tid: u32) -> Vec<u8> {
    let mut out = vec![0, 0, 0, kind];
    out.extend(id.to_le_bytes());
    out.extend(tsc.to_le_bytes());
    out.extend(tid.to_le_bytes());
    out.extend(100u32.to_le_bytes());
    out.extend([0; 8]);
    out
}

/// An argument in a Basic mode log of version 3.
pub fn basic_argument(id: i32, tid: u32, value: u64) -> Vec<u8> {
    let mut out = vec![1, 0, 0, 0];
    out.extend(id.to_le_bytes());
    out.extend(tid.to_le_bytes());
    out.extend(100u32.to_le_bytes());
    out.extend(value.to_le_bytes());
    out.extend([0; 8]);
    out
}

/// A Basic mode log.
pub fn basic_log(records: &[Vec<u8>]) -> XRay {
    open([header_of(3, 0, HZ, 0), records.concat()].concat())
}

/// An open log.
pub fn open(bytes: Vec<u8>) -> XRay {
    XRay::open(Arc::new(Source::from_bytes("xray-log.test", bytes).unwrap())).unwrap()
}

/// All findings of a check.
pub fn checked(log: &XRay) -> Vec<Diagnostic> {
    let mut sink = Diagnostics::default();
    log.check(&mut sink);
    sink.into_rows()
}

/// The findings that need no further pass.
pub fn found(log: &XRay) -> Vec<Diagnostic> {
    let mut sink = Diagnostics::default();
    log.findings(&mut sink);
    sink.into_rows()
}

/// The codes of findings, without repetition.
pub fn codes(findings: &[Diagnostic]) -> Vec<&'static str> {
    let mut codes: Vec<_> = findings.iter().map(|d| d.rule.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// The codes of findings that are at least warnings.
pub fn serious(findings: &[Diagnostic]) -> Vec<&'static str> {
    let findings: Vec<Diagnostic> =
        findings.iter().filter(|d| d.rule.severity > Severity::Info).cloned().collect();
    codes(&findings)
}

/// The repaired log.
pub fn repaired(log: &XRay) -> XRay {
    let name = format!("perfuse-xray-{}-{:?}", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    log.repair(&mut std::fs::File::create(&path).unwrap()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    open(bytes)
}

/// `(tid, ticks, kind, function id, value)` of every row of `call_events`.
pub type Call = (i32, i64, CallEvent, u32, Option<u64>);

/// The rows of `call_events`, times in ticks.
pub fn calls(log: &XRay) -> Vec<Call> {
    let placement = Placement { clock: ClockMap::default(), ..Placement::alone(log) };
    let mut rows = Vec::new();
    let ids = log.function_ids();
    let tids = tids(log, &placement);
    for batch in log.table("call_events", &placement, &TableRequest::default()).unwrap() {
        let times = numbers::<Int64Type>(&batch, "ts_ns").unwrap();
        let threads = numbers::<UInt32Type>(&batch, "thread_id").unwrap();
        let kinds = choices::<CallEvent>(&batch, "kind").unwrap();
        let functions = numbers::<UInt32Type>(&batch, "function_id").unwrap();
        let values = numbers::<UInt64Type>(&batch, "value").unwrap();
        for row in 0..batch.num_rows() {
            let id = ids[functions.value(row) as usize];
            let tid = tids[&threads.value(row)];
            rows.push((tid, times.value(row), kinds.get(row), id, nullable(values, row)));
        }
    }
    rows
}

/// The thread id of each key; asking for an existing thread returns its key.
fn tids(log: &XRay, placement: &Placement) -> HashMap<u32, i32> {
    let owners: Vec<(i32, i32)> = match log.content() {
        LogContent::Fdr(survey) => survey.blocks.iter().map(thread_ids).collect(),
        LogContent::Basic(survey) => survey.owners.clone(),
        LogContent::Profile(_) => Vec::new(),
    };
    let mut identities = placement.identities.lock().unwrap();
    owners.into_iter().map(|(pid, tid)| (identities.thread(pid.into(), tid), tid)).collect()
}

/// The same, thread by thread.
pub fn calls_by_thread(log: &XRay) -> Vec<Call> {
    let mut rows = calls(log);
    rows.sort_by_key(|(tid, ..)| *tid);
    rows
}
