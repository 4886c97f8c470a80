//! Written files, read back.

use std::io::Cursor as InMemory;
use std::sync::Arc;

use perfuse_formats::jitdump::JitDump;
use perfuse_formats::jitdump::consts::RecordTag;
use perfuse_formats::jitdump::encode;
use perfuse_formats::jitdump::inline;
use perfuse_formats::jitdump::layout::Move;
use perfuse_formats::jitdump::reader::{RawRecord, Reader, ReaderStep};
use perfuse_formats::jitdump::records::{DebugInfoRecord, LoadRecord, UnwindingInfoRecord};
use perfuse_formats::jitdump::writer::{Header, Writer};
use perfuse_formats::mono::{MonoLog, convert as mono_log};
use perfuse_formats::perf_data::{PerfData, writer as perf_data_writer};
use perfuse_formats::registry::FORMATS;
use perfuse_formats::sframe::SFrame;
use perfuse_formats::sframe::writer::SectionContents;
use perfuse_formats::xray::{XRay, convert as xray_log};
use perfuse_formats::{Format, Position, Recording, Source};
use perfuse_wire::Endian;

use crate::open::open;

fn format(name: &str) -> &'static Format {
    FORMATS.iter().find(|format| format.name == name).expect("the registry has the format")
}

/// Writes each piece of an SFrame section.
///
/// # Panics
/// When a written piece cannot be read, or has other functions or rows.
pub(crate) fn sframe(bytes: &[u8]) {
    let Some(recording) = open(format("sframe"), bytes) else { return };
    let file = recording.as_any().downcast_ref::<SFrame>().expect("it was opened as SFrame");
    for view in file.views() {
        let contents = SectionContents::of(view);
        let Ok(section) = contents.encode(view.address) else { continue };
        let source = Source::from_bytes("written", section.clone()).expect("bytes are a source");
        let read = SFrame::open_at(Arc::new(source), Some(view.address)).expect("the section can be read");
        let again: Vec<_> = read.views().map(SectionContents::of).collect();
        let [again] = again.as_slice() else { panic!("{} pieces were read", again.len()) };
        let functions =
            |of: &SectionContents| of.functions.iter().map(|function| function.size).collect::<Vec<_>>();
        assert_eq!(functions(&contents), functions(again));
        for (before, after) in contents.functions.iter().zip(&again.functions) {
            assert_eq!(contents.rows(before), again.rows(after));
        }
        assert_eq!(again.encode(view.address).ok(), Some(section));
    }
}

/// Writes an XRay log with the options of its own header. Versions 1 to 3 do not state whether the bytes of an event follow it; where
/// the writer reports that readers have to guess, what they read is not compared.
///
/// # Panics
/// When the written log cannot be read or written, or writing it once more changes it.
pub(crate) fn xray(bytes: &[u8]) {
    again("xray", bytes, |recording, out| {
        let log = recording.as_any().downcast_ref::<XRay>().expect("it was opened as XRay");
        let done = xray_log::convert(&[log], &xray_log::Options::like(log), out);
        done.is_ok_and(|done| done.unsupported.ambiguous == 0)
    });
}

/// Writes a Mono log in its own version.
///
/// # Panics
/// When the written log cannot be read or written, or writing it once more changes it.
pub(crate) fn mono(bytes: &[u8]) {
    again("mono", bytes, |recording, out| {
        let log = recording.as_any().downcast_ref::<MonoLog>().expect("it was opened as a Mono log");
        mono_log::convert(&[log], &mono_log::Options::default(), out).is_ok()
    });
}

/// Writes a perf.data in file mode, as `repair` and `convert` do.
///
/// # Panics
/// When the written file cannot be read or written, or writing it once more changes it.
pub(crate) fn perf_data(bytes: &[u8]) {
    again("perf_data", bytes, |recording, out| {
        let perf = recording.as_any().downcast_ref::<PerfData>().expect("it was opened as perf.data");
        let mut file = InMemory::new(Vec::new());
        let written = perf_data_writer::write_readable(perf, &mut file).is_ok();
        *out = file.into_inner();
        written
    });
}

/// Decodes and encodes each record of a JITDUMP, then writes a dump of the other byte order with its loads and lines.
///
/// # Panics
/// When an encoded record has other bytes than the one that was decoded, or a written load or line is read differently.
pub(crate) fn jitdump(bytes: &[u8]) {
    let Some(recording) = open(format("jitdump"), bytes) else { return };
    let dump = recording.as_any().downcast_ref::<JitDump>().expect("it was opened as JITDUMP");
    let start = dump.start();
    let other = if start.endian == Endian::Little { Endian::Big } else { Endian::Little };
    let header = Header { elf_mach: 62, pid: 1, timestamp: 0, flags: 0 };
    let mut writer = Writer::new(Vec::new(), &header, other).expect("memory can be written");
    let mut written = Vec::new();
    for record in records_of(bytes, start.endian, start.first_record) {
        if let Some(body) = encoded(&record, start.endian) {
            let mut whole = Vec::new();
            encode::record(record.tag(), record.prefix.timestamp, &body, start.endian, &mut whole)
                .expect("it is as large as it was");
            let at = record.offset as usize;
            let end = at + record.prefix.total_size as usize;
            assert!(whole == bytes[at..end], "{:?} at {at:#x} has other bytes", record.tag());
        }
        if let Some(text) = rewritten(&record, &mut writer) {
            written.push(text);
        }
    }
    let copy = writer.into_inner();
    let read: Vec<_> = records_of(&copy, other, 40).iter().filter_map(contents).collect();
    assert_eq!(read, written);
}

fn records_of(bytes: &[u8], endian: Endian, first: u64) -> Vec<RawRecord<'_>> {
    let steps = Reader::new(bytes, endian, first, 0);
    steps.filter_map(|step| if let ReaderStep::Record(record) = step { Some(record) } else { None }).collect()
}

/// The body of a record, decoded and encoded; `None` where its fields cannot be read.
fn encoded(record: &RawRecord<'_>, endian: Endian) -> Option<Vec<u8>> {
    Some(match record.tag() {
        RecordTag::JIT_CODE_LOAD => LoadRecord::decode(record.cursor()).ok()?.encode(endian),
        RecordTag::JIT_CODE_DEBUG_INFO => DebugInfoRecord::decode(record.cursor()).ok()?.encode(endian),
        RecordTag::JIT_CODE_UNWINDING_INFO => {
            UnwindingInfoRecord::decode(record.cursor()).ok()?.encode(endian)
        }
        RecordTag::JIT_CODE_MOVE => {
            let (mut cursor, mut out) = (record.cursor(), Vec::new());
            Move::read(&mut cursor).ok()?.write(&mut out, endian);
            out.extend(cursor.rest());
            out
        }
        _ => inline::extension(record)?.encode(endian),
    })
}

/// What a load or lines say, in any byte order; `None` for others, and where fields cannot be read.
fn contents(record: &RawRecord<'_>) -> Option<String> {
    let timestamp = record.prefix.timestamp;
    if record.tag() == RecordTag::JIT_CODE_LOAD {
        let load = LoadRecord::decode(record.cursor()).ok()?;
        return Some(format!("{timestamp} {:?} {:?} {:?}", load.fixed, load.name, load.code));
    }
    let info = DebugInfoRecord::decode(record.cursor()).ok()?;
    let rows: Vec<_> = info.iter_entries().map_while(Result::ok).map(|row| (row.fixed, row.name)).collect();
    Some(format!("{timestamp} {:?} {rows:?}", info.fixed))
}

/// Writes a record that is a load or lines, and returns its contents; `None` where it is neither, or is refused.
fn rewritten(record: &RawRecord<'_>, writer: &mut Writer<Vec<u8>>) -> Option<String> {
    let timestamp = record.prefix.timestamp;
    match record.tag() {
        RecordTag::JIT_CODE_LOAD => {
            let load = LoadRecord::decode(record.cursor()).ok()?;
            let whole = !load.wide_tid && load.code.len() as u64 == load.fixed.code_size;
            (whole && writer.load(timestamp, load.fixed, load.name, load.code).is_ok()).then_some(())?;
        }
        RecordTag::JIT_CODE_DEBUG_INFO => {
            let info = DebugInfoRecord::decode(record.cursor()).ok()?;
            let rows = info.iter_entries().collect::<Result<Vec<_>, _>>().ok()?;
            let whole = rows.len() as u64 == info.fixed.nr_entry;
            (whole && writer.debug_info(timestamp, info.fixed.code_addr, &rows, true).is_ok())
                .then_some(())?;
        }
        _ => return None,
    }
    contents(record)
}

fn again(name: &str, bytes: &[u8], write: impl Fn(&dyn Recording, &mut Vec<u8>) -> bool) {
    let Some(recording) = open(format(name), bytes) else { return };
    let mut once = Vec::new();
    if !write(&*recording, &mut once) {
        return;
    }
    let Some(read) = open(format(name), &once) else { panic!("the written log cannot be read") };
    let mut twice = Vec::new();
    assert!(write(&*read, &mut twice), "the written log cannot be written");
    assert!(once == twice, "written logs of {} and {} bytes differ", once.len(), twice.len());
    let mut at = Position::default();
    while read.next_record(&mut at).is_some() {}
}
