use perfuse_wire::Endian;
use proptest::prelude::*;

use super::*;
use crate::basic::BasicItem;
use crate::consts::{Action, FUNCTION_ID_BITS, MetadataKind};
use crate::encode::{EncodeError, has_kind};
use crate::layout::{BasicArgument, BasicRecord};
use crate::records::{Event, EventTime, Record};

const BEGINNING: BufferStart =
    BufferStart { thread_ids: (7, 9), wall: (3, 4), at: TscStamp { tsc: 0x100, cpu: 2 } };

fn spec(mode: Mode, version: u16, endian: Endian) -> LogSpec {
    let (cycle_frequency, buffer_size) = (1000, 0x100);
    LogSpec { mode, version, endian, cycle_frequency, tsc_flags: (true, false), buffer_size }
}

/// A metadata record that starts with these bytes.
fn metadata(begin: &[u8]) -> Vec<u8> {
    let mut bytes = begin.to_vec();
    bytes.resize(16, 0);
    bytes
}

fn written(spec: LogSpec, fill: impl FnOnce(&mut BufferWriter)) -> Vec<u8> {
    let mut writer = FdrWriter::new(Vec::new(), spec).unwrap();
    let mut buffer = BufferWriter::new(writer.dialect(), &BEGINNING);
    fill(&mut buffer);
    writer.write(&mut buffer).unwrap();
    writer.finish().unwrap()
}

/// A call with an argument, then an event, by hand from the specification's tables.
#[test]
fn a_log_of_version_5_by_hand() {
    let bytes = written(spec(Mode::Fdr, 5, Endian::Little), |buffer| {
        let at = |tsc| TscStamp { tsc, cpu: 2 };
        buffer.call(at(0x105), Action::ENTRY, 3).unwrap();
        assert!(buffer.argument(0xabcd));
        buffer.event(at(0x107), None, b"hi").unwrap();
        buffer.call(at(0x110), Action::EXIT, 3).unwrap();
        assert!(!buffer.argument(1), "an argument of an exit");
    });
    let expected = [
        vec![
            5, 0, 1, 0, 1, 0, 0, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
        metadata(&[0x0f, 64 + 8 + 16 + 18 + 8]),
        metadata(&[0x01, 9]),
        metadata(&[0x09, 3, 0, 0, 0, 0, 0, 0, 0, 4]),
        metadata(&[0x13, 7]),
        metadata(&[0x05, 2, 0, 0, 1]),
        vec![0x36, 0, 0, 0, 5, 0, 0, 0],
        metadata(&[0x0d, 0xcd, 0xab]),
        metadata(&[0x0b, 2, 0, 0, 0, 2]),
        b"hi".to_vec(),
        vec![0x32, 0, 0, 0, 9, 0, 0, 0],
    ];
    assert_eq!(bytes, expected.concat());
}

/// Big-endian, without process, the argument after a plain entry, padded up to the next buffer.
#[test]
fn a_log_of_version_1_by_hand() {
    let bytes = written(spec(Mode::Fdr, 1, Endian::Big), |buffer| {
        buffer.call(TscStamp { tsc: 0x105, cpu: 2 }, Action::ENTRY_ARGS, 3).unwrap();
        assert!(buffer.argument(0xabcd));
        let typed = buffer.event(TscStamp { tsc: 0x106, cpu: 2 }, Some(1), b"");
        assert_eq!(typed, Err(EncodeError::Kind { kind: MetadataKind::TYPED_EVENT_MARKER, version: 1 }));
        buffer.event(TscStamp { tsc: 0x107, cpu: 2 }, None, b"hi").unwrap();
        buffer.call(TscStamp { tsc: 0x110, cpu: 2 }, Action::TAIL_EXIT, 3).unwrap();
    });
    let records = [
        vec![
            0, 1, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0xe8, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
            0, 0,
        ],
        metadata(&[0x80, 0, 0, 0, 9]),
        metadata(&[0x84, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4]),
        metadata(&[0x82, 0, 2, 0, 0, 0, 0, 0, 0, 1, 0]),
        vec![0, 0, 0, 3, 0, 0, 0, 5],
        metadata(&[0x86, 0, 0, 0, 0, 0, 0, 0xab, 0xcd]),
        metadata(&[0x85, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 7]),
        b"hi".to_vec(),
        // Events of this version do not affect what deltas are relative to.
        vec![0x20, 0, 0, 3, 0, 0, 0, 0xb],
        metadata(&[0x81]),
    ];
    let mut expected = records.concat();
    expected.resize(32 + 0x100, 0);
    assert_eq!(bytes, expected);
}

#[test]
fn a_basic_log_by_hand() {
    let mut writer = BasicWriter::new(Vec::new(), spec(Mode::Basic, 3, Endian::Little)).unwrap();
    let at = TscStamp { tsc: 0x0102, cpu: 0x103 };
    writer.call((7, 9), at, Action::ENTRY, -2).unwrap();
    assert!(!writer.argument((7, 8), 5), "of another thread");
    writer.call((7, 9), at, Action::ENTRY, -2).unwrap();
    assert!(writer.argument((7, 9), 5));
    assert!(!writer.argument((7, 9), 6), "a second one");
    let bytes = writer.finish().unwrap();
    let mut plain = vec![0, 0, 3, 0, 0xfe, 0xff, 0xff, 0xff, 2, 1, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 7];
    plain.resize(32, 0);
    let mut with_argument = plain.clone();
    with_argument[3] = 3;
    let mut argument = vec![1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 9, 0, 0, 0, 7, 0, 0, 0, 5];
    argument.resize(32, 0);
    assert_eq!(bytes[32..], [plain, with_argument, argument].concat());
    assert_eq!(bytes[16..24], [0; 8], "Basic mode has no buffer size");
}

#[test]
fn a_basic_log_of_version_1_has_entries_and_exits() {
    let mut writer = BasicWriter::new(Vec::new(), spec(Mode::Basic, 1, Endian::Little)).unwrap();
    writer.call((7, 9), TscStamp::default(), Action::ENTRY_ARGS, 1).unwrap();
    assert!(!writer.argument((7, 9), 5));
    writer.call((7, 9), TscStamp::default(), Action::TAIL_EXIT, 1).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!((bytes[32 + 3], bytes[64 + 3], bytes.len()), (0, 1, 96));
    assert_eq!(bytes[52..56], [0; 4], "no process");
}

#[test]
fn absolute_counters_are_written_where_deltas_are_too_small() {
    let records = |version, cpu, tsc| {
        let dialect = spec(Mode::Fdr, version, Endian::Little).dialect();
        let mut buffer = BufferWriter::new(dialect, &BEGINNING);
        let begin = buffer.bytes().len();
        buffer.call(TscStamp { tsc, cpu }, Action::ENTRY, 1).unwrap();
        buffer.bytes()[begin]
    };
    let largest = 0x100 + i32::MAX as u64;
    let (wrap, cpu, function) = (0x07, 0x05, 0x10);
    assert_eq!(records(5, 2, largest), function);
    assert_eq!(records(5, 2, largest + 1), wrap);
    assert_eq!(records(4, 2, largest + 1), function);
    assert_eq!(records(4, 2, 0x100 + u64::from(u32::MAX) + 1), wrap);
    assert_eq!(records(5, 2, 0xff), wrap, "time goes back");
    assert_eq!(records(5, 3, 0x101), cpu);
}

#[test]
fn what_no_version_has_is_refused() {
    for (mode, version) in [(Mode::Fdr, 0), (Mode::Fdr, 6), (Mode::Basic, 1), (Mode::Profile, 1)] {
        let refused = FdrWriter::new(Vec::new(), spec(mode, version, Endian::Little));
        assert!(matches!(refused, Err(WriteError::Version(m, v)) if (m, v) == (mode, version)));
    }
    assert!(BasicWriter::new(Vec::new(), spec(Mode::Basic, 4, Endian::Little)).is_err());
    let mut buffer = BufferWriter::new(spec(Mode::Fdr, 5, Endian::Little).dialect(), &BEGINNING);
    let id = 1 << FUNCTION_ID_BITS;
    assert_eq!(buffer.call(BEGINNING.at, Action::ENTRY, id), Err(EncodeError::FunctionId(id)));
    assert!(buffer.is_empty());
}

#[test]
fn a_buffer_too_large_for_version_1_is_refused() {
    let mut writer = FdrWriter::new(Vec::new(), spec(Mode::Fdr, 1, Endian::Little)).unwrap();
    let mut buffer = BufferWriter::new(writer.dialect(), &BEGINNING);
    buffer.event(BEGINNING.at, None, &[0; 0x100]).unwrap();
    let refused = writer.write(&mut buffer).unwrap_err().to_string();
    assert_eq!(refused, "a buffer of 352 bytes, where version 1 reserves 256 for each");
}

#[test]
fn an_event_is_written_as_its_version_has_it() {
    let event = |time, payload| Record::Custom(Event { size: 2, time, cpu: None, event_type: None, payload });
    let encode = |record: Record<'_>, version| {
        let mut out = Vec::new();
        let done = record.encode(spec(Mode::Fdr, version, Endian::Little).dialect(), &mut out);
        assert_eq!(out.is_empty(), done.is_err());
        done.map_err(|error| error.to_string())
    };
    assert_eq!(encode(event(EventTime::Delta(1), b"hi"), 5), Ok(()));
    assert_eq!(encode(event(EventTime::Tsc(1), b"hi"), 4), Ok(()));
    let other = |version, time, payload| encode(event(time, payload), version).unwrap_err();
    assert_eq!(other(5, EventTime::Tsc(1), b"hi"), "an event of version 5 has a delta, not the counter");
    assert_eq!(other(3, EventTime::Delta(1), b"hi"), "an event of version 3 has the counter, not a delta");
    assert_eq!(other(5, EventTime::Delta(1), b"h"), "an event of 1 bytes states 2");
    assert_eq!(encode(Record::Pid(1), 2).unwrap_err(), "version 2 has no Pid");
    assert_eq!(encode(Record::Unknown(MetadataKind(11)), 5).unwrap_err(), "version 5 has no Unknown Kind 11");
}

fn any_record<'a>(version: u16, payload: &'a [u8]) -> impl Strategy<Value = Record<'a>> {
    let size = payload.len() as i32;
    let event = move |typed: bool, tsc: u64, delta: i32, number: u16| {
        let time = if version < 5 { EventTime::Tsc(tsc) } else { EventTime::Delta(delta) };
        let cpu = (version == 4 && !typed).then_some(number);
        let event = Event { size, time, cpu, event_type: typed.then_some(number), payload };
        if typed { Record::Typed(event) } else { Record::Custom(event) }
    };
    let fields = (0..11u8, any::<(u64, u64, i32, u16, u8)>());
    let record = fields.prop_map(move |(kind, (a, b, c, d, e))| match MetadataKind(kind) {
        MetadataKind::NEW_BUFFER => Record::NewBuffer { tid: c },
        MetadataKind::END_OF_BUFFER => Record::EndOfBuffer,
        MetadataKind::NEW_CPU_ID => Record::NewCpuId { cpu: d, tsc: a },
        MetadataKind::TSC_WRAP => Record::TscWrap { tsc: a },
        MetadataKind::WALL_TIME_MARKER => Record::WallTime { seconds: a as i64, microseconds: c },
        MetadataKind::CUSTOM_EVENT_MARKER => event(false, a, c, d),
        MetadataKind::CALL_ARGUMENT => Record::CallArgument(a),
        MetadataKind::BUFFER_EXTENTS => Record::BufferExtents(a),
        MetadataKind::TYPED_EVENT_MARKER => event(true, a, c, d),
        MetadataKind::PID => Record::Pid(c),
        _ => {
            let (action, function_id, tsc_delta) = (Action(e & 7), a as u32 & 0x0fff_ffff, b as u32);
            Record::Function { action, function_id, tsc_delta }
        }
    });
    record.prop_filter("the version has it", move |record| match record {
        Record::EndOfBuffer => has_kind(version, MetadataKind::END_OF_BUFFER),
        Record::BufferExtents(_) => has_kind(version, MetadataKind::BUFFER_EXTENTS),
        Record::Typed(_) => has_kind(version, MetadataKind::TYPED_EVENT_MARKER),
        Record::Pid(_) => has_kind(version, MetadataKind::PID),
        _ => true,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decoding_undoes_encoding(
        (version, is_big, record) in (1..=5u16, any::<bool>())
            .prop_flat_map(|(version, big)| (Just(version), Just(big), any_record(version, b"payload"))),
        following in any::<[u8; 3]>(),
    ) {
        let endian = if is_big { Endian::Big } else { Endian::Little };
        let dialect = spec(Mode::Fdr, version, endian).dialect();
        let mut bytes = Vec::new();
        record.encode(dialect, &mut bytes).unwrap();
        let size = bytes.len();
        bytes.extend(following);
        prop_assert_eq!(Record::read(&bytes, 0, dialect), Ok((record, size)));
    }

    #[test]
    fn decoding_undoes_encoding_of_basic_records(
        (cpu, kind, function_id, tsc, tid, pid) in any::<(u8, u8, i32, u64, u32, u32)>(),
        is_big in any::<bool>(),
    ) {
        let endian = if is_big { Endian::Big } else { Endian::Little };
        let normal = BasicRecord { record_type: 0, cpu, kind, function_id, tsc, tid, pid, reserved: 0 };
        let argument =
            BasicArgument { record_type: 1, padding: 0, function_id, tid, pid, argument: tsc, reserved: 0 };
        for entry in [BasicItem::Function(normal), BasicItem::Argument(argument), BasicItem::Unknown(cpu.max(2).into())] {
            let mut bytes = Vec::new();
            entry.encode(endian, &mut bytes);
            prop_assert_eq!(bytes.len(), 32);
            prop_assert_eq!(BasicItem::read(&bytes, 0, endian), Some(entry));
        }
    }
}
