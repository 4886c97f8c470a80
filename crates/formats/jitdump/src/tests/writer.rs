//! The writer: written dumps are read back, byte for byte.

use std::io::{self, Write};
use std::sync::Arc;

use perfuse_wire::{Endian, RecordView, Value};

use crate::JitDump;
use crate::code_lines::with_inline_tree;
use crate::consts::RecordTag;
use crate::encode::{self, WriteError};
use crate::inline::{self, DeclaredFunction, InlineCall, InlineTree, SourceLine};
use crate::layout::{self, DebugEntry as Entry, DebugInfo as DebugFixed, Move};
use crate::reader::{self, RawRecord, Reader, ReaderStep};
use crate::records::{DebugInfoEntry, DebugInfoRecord, LoadRecord, UnwindOrder, UnwindingInfoRecord};
use crate::writer::{Header, InlineDialect, Writer};
use perfuse_recording::{Position, Recording, Source};

const HEADER: Header = Header { elf_mach: 62, pid: 77, timestamp: 5, flags: 0 };

fn load_at(code_addr: u64) -> layout::Load {
    layout::Load { pid: 77, tid: 78, vma: code_addr, code_addr, code_size: 0, code_index: 3 }
}

fn entry(code_addr: u64, line: u32, name: &[u8]) -> DebugInfoEntry<'_> {
    DebugInfoEntry { fixed: Entry { code_addr, line, discrim: 9 }, name }
}

fn tree() -> InlineTree<'static> {
    let outer = DeclaredFunction { name: b"outer", path: b"a.js", line: 1, column: 1 };
    let function = DeclaredFunction { name: b"inner", path: b"b.js", line: 7, column: 2 };
    let call = InlineCall {
        start_offset: 1,
        size: 2,
        depth: 0,
        function,
        call_path: b"a.js",
        call_line: 2,
        call_column: 5,
    };
    let line = |code_offset, path, line| SourceLine { code_offset, path, line, column: 1 };
    InlineTree {
        outer,
        lines: vec![line(0, b"a.js", 1), line(1, b"b.js", 8), line(3, b"a.js", 3)],
        calls: vec![call],
    }
}

/// A dump with every kind of record.
fn all_records(endian: Endian, dialect: InlineDialect) -> Vec<u8> {
    let mut w = Writer::new(Vec::new(), &HEADER, endian).unwrap();
    w.embedded_source(10, b"a.js", b"let a = 1").unwrap();
    w.debug_info(11, 0x1000, &[entry(0x1000, 1, b"a.js"), entry(0x1001, 2, b"a.js")], true).unwrap();
    assert!(w.inline_info(12, 0x1000, &tree(), dialect).unwrap().is_empty());
    w.tier(13, 0x1000, 2, b"Ion").unwrap();
    w.unwinding_info(14, b"HDR", b"FRAME", 0, UnwindOrder::FrameFirst).unwrap();
    w.load(15, load_at(0x1000), b"outer", b"\x90\x90\x90\xc3").unwrap();
    let moved = Move {
        pid: 77,
        tid: 78,
        vma: 0x2000,
        old_code_addr: 0x1000,
        new_code_addr: 0x2000,
        code_size: 4,
        code_index: 3,
    };
    w.code_move(16, &moved).unwrap();
    w.raw(17, RecordTag(4711), b"anything").unwrap();
    w.close(18).unwrap();
    w.into_inner()
}

fn open(bytes: Vec<u8>) -> JitDump {
    JitDump::open(Arc::new(Source::from_bytes("x", bytes).unwrap())).unwrap()
}

fn views(dump: &JitDump) -> Vec<RecordView<'_>> {
    let mut at = Position::default();
    std::iter::from_fn(|| dump.next_record(&mut at)).collect()
}

#[test]
fn a_small_dump_has_these_bytes() {
    let mut w = Writer::new(Vec::new(), &HEADER, Endian::Little).unwrap();
    w.load(6, load_at(0x1000), b"f", b"\xc3").unwrap();
    w.close(7).unwrap();
    let expected = [
        &b"DTiJ\x01\0\0\0\x28\0\0\0\x3e\0\0\0\0\0\0\0\x4d\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"[..],
        b"\0\0\0\0\x3b\0\0\0\x06\0\0\0\0\0\0\0",
        b"\x4d\0\0\0\x4e\0\0\0\0\x10\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0f\0\xc3",
        b"\x03\0\0\0\x10\0\0\0\x07\0\0\0\0\0\0\0",
    ];
    assert_eq!(w.into_inner(), expected.concat());
}

#[test]
fn every_kind_is_read_back_in_both_endians_and_dialects() {
    for endian in [Endian::Little, Endian::Big] {
        for dialect in [InlineDialect::DebugInfo2, InlineDialect::Frames] {
            let dump = open(all_records(endian, dialect));
            let views = views(&dump);
            let names: Vec<_> = views.iter().map(|view| (&*view.name, view.timestamp.unwrap())).collect();
            let expected = [
                ("SAMPLY_EMBEDDED_SOURCE_FILE", 10),
                ("JIT_CODE_DEBUG_INFO", 11),
                ("SAMPLY_JIT_CODE_DEBUG_INFO2", 12),
                ("SAMPLY_JIT_TIER", 13),
                ("JIT_CODE_UNWINDING_INFO", 14),
                ("JIT_CODE_LOAD", 15),
                ("JIT_CODE_MOVE", 16),
                ("Unknown RecordTag 4711", 17),
                ("JIT_CODE_CLOSE", 18),
            ];
            assert_eq!(names, expected);
            assert!(views[4].fields.contains(&("unwinding_data", Value::Bytes(b"FRAMEHDR"))));
            assert_eq!(views[7].fields, [("body", Value::Bytes(b"anything"))]);
            let code = dump.index().codes[0];
            assert_eq!(dump.index().functions.tier(code.name.tier), Some("Ion"));
            let same = with_inline_tree(dump.bytes(), dump.index(), &code, |_, read| read.clone() == tree());
            assert_eq!(same, Some(true), "{dialect:?}");
        }
    }
}

#[test]
fn a_repeated_name_takes_one_byte() {
    let bytes = all_records(Endian::Little, InlineDialect::Frames);
    let marker: &[u8] = b"a.js\0\x01\x10\0\0\0\0\0\0\x02\0\0\0\x09\0\0\0\xff\0";
    assert!(bytes.windows(marker.len()).any(|window| window == marker));
}

#[test]
fn debug_information_must_be_followed_by_its_load() {
    let mut w = Writer::new(Vec::new(), &HEADER, Endian::Little).unwrap();
    w.debug_info(1, 0x1000, &[], false).unwrap();
    let len = w.get_mut().len();
    let order = |error| matches!(error, Err(WriteError::Order { pending: 0x1000, code_addr: 0x2000 }));
    assert!(order(w.load(2, load_at(0x2000), b"f", b"")));
    assert!(order(w.debug_info(2, 0x2000, &[], false)));
    assert!(order(w.tier(2, 0x2000, 0, b"t")));
    assert!(order(w.inline_info(2, 0x2000, &tree(), InlineDialect::Frames).map(|_| ())));
    assert_eq!(w.get_mut().len(), len, "a rejected record is not written");
    w.load(2, load_at(0x1000), b"f", b"").unwrap();
    w.debug_info(3, 0x2000, &[], false).unwrap();
    assert!(matches!(w.close(4), Err(WriteError::Pending { code_addr: 0x2000 })));
    assert!(matches!(w.close(5), Err(WriteError::Closed)));
    assert!(matches!(w.load(5, load_at(0x2000), b"f", b""), Err(WriteError::Closed)));
}

#[test]
fn texts_with_a_nul_are_rejected() {
    let mut w = Writer::new(Vec::new(), &HEADER, Endian::Little).unwrap();
    let nul = |result: Result<(), WriteError>| matches!(result, Err(WriteError::Nul { .. }));
    assert!(nul(w.load(1, load_at(0), b"a\0b", b"")));
    assert!(nul(w.debug_info(1, 0, &[entry(0, 1, b"a\0")], false)));
    assert!(nul(w.tier(1, 0, 0, b"\0")));
    assert!(nul(w.embedded_source(1, b"a\0", b"")));
    let mut bad = tree();
    bad.calls[0].call_path = b"\0";
    assert!(nul(w.inline_info(1, 0, &bad, InlineDialect::DebugInfo2).map(|_| ())));
    assert_eq!(w.into_inner().len(), 40);
}

#[test]
fn errors_of_the_output_are_returned() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert!(matches!(Writer::new(Full, &HEADER, Endian::Little), Err(WriteError::Io(_))));
}

/// The body of a record, decoded and encoded; unchanged for a record without a type.
fn encoded(record: &RawRecord<'_>, endian: Endian) -> Vec<u8> {
    match record.tag() {
        RecordTag::JIT_CODE_LOAD => LoadRecord::decode(record.cursor()).unwrap().encode(endian),
        RecordTag::JIT_CODE_DEBUG_INFO => DebugInfoRecord::decode(record.cursor()).unwrap().encode(endian),
        RecordTag::JIT_CODE_UNWINDING_INFO => {
            UnwindingInfoRecord::decode(record.cursor()).unwrap().encode(endian)
        }
        RecordTag::JIT_CODE_MOVE => {
            let mut out = Vec::new();
            Move::read(&mut record.cursor()).unwrap().write(&mut out, endian);
            out
        }
        _ => inline::extension(record)
            .map_or_else(|| record.body.to_vec(), |extension| extension.encode(endian)),
    }
}

/// Decodes and encodes every record of a file and compares the bytes. Returns the number of records.
fn count_identical_records(data: &[u8]) -> usize {
    let Ok(start) = reader::read_start(data) else { return 0 };
    let mut records = 0;
    for step in Reader::new(data, start.endian, start.first_record, 0) {
        let ReaderStep::Record(record) = step else { continue };
        let mut out = Vec::new();
        encode::record(
            record.tag(),
            record.prefix.timestamp,
            &encoded(&record, start.endian),
            start.endian,
            &mut out,
        )
        .unwrap();
        let at = record.offset as usize;
        assert_eq!(out, data[at..at + record.prefix.total_size as usize], "{:?} at {at:#x}", record.tag());
        records += 1;
    }
    records
}

#[test]
fn records_are_encoded_byte_for_byte() {
    assert_eq!(count_identical_records(include_bytes!("../testdata/llvm14-mcjit.dump")), 6);
    for endian in [Endian::Little, Endian::Big] {
        assert_eq!(count_identical_records(&all_records(endian, InlineDialect::Frames)), 9);
    }
}

#[test]
fn a_64_bit_thread_id_keeps_its_size() {
    let mut body = Vec::new();
    for field in [77u64, 0x1_0000_0002, 0x1000, 0x1000, 1, 3] {
        body.extend(field.to_le_bytes());
    }
    body.extend(b"f\0\xc3");
    let mut file = all_records(Endian::Little, InlineDialect::Frames)[..40].to_vec();
    encode::record(RecordTag::JIT_CODE_LOAD, 1, &body, Endian::Little, &mut file).unwrap();
    assert_eq!(count_identical_records(&file), 1);
}

#[test]
fn encoding_debug_info_for_the_other_byte_order_keeps_its_entries() {
    let mut body = Vec::new();
    DebugFixed { code_addr: 0x1000, nr_entry: 2 }.write(&mut body, Endian::Big);
    entry(0x1000, 1, b"").fixed.write(&mut body, Endian::Big);
    body.extend(b"a.c\0");
    entry(0x1004, 2, b"").fixed.write(&mut body, Endian::Big);
    body.extend(b"\xff\0pad");
    let info = DebugInfoRecord::decode(perfuse_wire::Cursor::new(&body, 0, Endian::Big)).unwrap();
    assert_eq!(info.encode(Endian::Big), body);
    let little = info.encode(Endian::Little);
    let again = DebugInfoRecord::decode(perfuse_wire::Cursor::new(&little, 0, Endian::Little)).unwrap();
    let rows: Vec<_> =
        again.iter_entries().map(|row| row.map(|row| (row.fixed.line, row.name)).unwrap()).collect();
    assert_eq!(rows, [(1, &b"a.c"[..]), (2, b"a.c")]);
}

#[test]
fn every_dump_of_the_corpus_is_encoded_byte_for_byte() {
    let files = perfuse_corpus::files(&["jitdump/produced", "jitdump/fetched", "jitdump/crafted"]);
    let files: Vec<_> = files.into_iter().filter(|path| path.to_string_lossy().contains(".dump")).collect();
    let records: usize = files
        .iter()
        .map(|path| count_identical_records(&Source::open(&path.to_string_lossy()).unwrap()))
        .sum();
    assert_eq!(records > 80_000, !files.is_empty(), "{records} records of {} files", files.len());
    println!("{records} records of {} files", files.len());
}

#[test]
fn inlined_functions_fill_the_tables() {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{UInt32Type, UInt64Type};
    use perfuse_recording::{Placement, TableRequest};

    let dump = open(all_records(Endian::Little, InlineDialect::Frames));
    let table =
        |name| dump.table(name, &Placement::alone(&dump), &TableRequest::default()).unwrap().next().unwrap();
    assert_eq!(dump.extent().function, 2);
    let functions = &dump.index().functions;
    let inner = functions.get(0).unwrap();
    let function = (inner.name(), inner.path(), inner.line, inner.column);
    assert_eq!(function, ("inner", Some("b.js"), Some(7), Some(2)));
    let calls = table("inline_calls");
    let column = |name: &str| calls.column_by_name(name).unwrap().clone();
    assert_eq!(column("start_offset").as_primitive::<UInt64Type>().values(), &[1]);
    assert_eq!(column("size_bytes").as_primitive::<UInt64Type>().values(), &[2]);
    assert_eq!(column("function_id").as_primitive::<UInt32Type>().values(), &[0]);
    assert_eq!(column("call_line").as_primitive::<UInt32Type>().values(), &[2]);
    let lines = table("line_rows");
    let line = lines.column_by_name("line").unwrap().as_primitive::<UInt32Type>().clone();
    assert_eq!(line.values(), &[1, 8, 3], "lines of the inline record replace the plain ones");
    assert_eq!(table("embedded_files").num_rows(), 1);
}

#[test]
fn stacks_of_single_addresses_become_calls() {
    let stack = |address: u64, names: &[&str]| {
        let mut body = [address.to_le_bytes(), (names.len() as u64).to_le_bytes()].concat();
        for name in names {
            body.extend([7u32.to_le_bytes(), 1u32.to_le_bytes()].concat());
            body.extend(format!("{name}\0{name}.js\0").bytes());
        }
        body
    };
    let mut w = Writer::new(Vec::new(), &HEADER, Endian::Little).unwrap();
    for (address, names) in
        [(0x1000, &["outer"][..]), (0x1002, &["inner", "outer"]), (0x9000, &["other", "code"])]
    {
        w.raw(1, RecordTag::JIT_CODE_INLINE_INFO, &stack(address, names)).unwrap();
    }
    w.load(2, load_at(0x1000), b"outer", b"\x90\x90\x90\xc3").unwrap();
    let dump = open(w.into_inner());
    let code = dump.index().codes[0];
    let calls = with_inline_tree(dump.bytes(), dump.index(), &code, |_, tree| {
        tree.calls.iter().map(|c| (c.start_offset, c.size)).collect()
    });
    assert_eq!(calls, Some(vec![(2, 2)]));
    assert_eq!(views(&dump)[0].name, "JIT_CODE_INLINE_INFO");
}

#[test]
fn the_checker_reports_dialects_damage_and_foreign_payloads() {
    let mut w = Writer::new(Vec::new(), &HEADER, Endian::Little).unwrap();
    w.inline_info(1, 0x1000, &tree(), InlineDialect::DebugInfo2).unwrap();
    w.load(2, load_at(0x1000), b"f", b"\xc3").unwrap();
    w.raw(3, RecordTag::SAMPLY_JIT_CODE_DEBUG_INFO2, &[0xff; 64]).unwrap();
    w.raw(4, RecordTag::SAMPLY_JIT_TIER, b"another layout").unwrap();
    w.raw(5, RecordTag::SAMPLY_EMBEDDED_SOURCE_FILE, b"FSFP\x01\0\0\0 cut").unwrap();
    let mut sink = perfuse_wire::Diagnostics::default();
    open(w.into_inner()).check(&mut sink);
    let found = sink.rows().iter().filter(|row| row.rule.section == "samply");
    let found: Vec<_> = found.map(|row| (row.rule.code, row.record_index.unwrap())).collect();
    assert_eq!(found, [("JD081", 0), ("JD080", 2), ("JD082", 3), ("JD080", 4)]);
}
