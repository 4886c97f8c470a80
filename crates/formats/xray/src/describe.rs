//! The records that `perfuse records` lists.

use std::borrow::Cow;

use perfuse_wire::{RecordView, Value};

use super::basic;
use super::consts::{Action, BASIC_BYTES, HEADER_BYTES};
use super::fdr::FdrSurvey;
use super::header::Header;
use super::log::{LogContent, XRay};
use super::profile::{self, read_path};
use super::record_iter::{RecordItem, RecordIter};
use super::records::{Event, EventTime, Record, XRayDialect};
use perfuse_recording::{Position, Recording};

type RecordFields<'a> = Vec<(&'static str, Value<'a>)>;

/// The fields of the header.
#[must_use]
pub fn header(header: &Header) -> RecordFields<'static> {
    if let Some(profile) = header.profile {
        return vec![
            ("version", Value::Hex(profile.version)),
            ("timestamp", Value::Unsigned(profile.timestamp)),
            ("pid", Value::Unsigned(profile.pid)),
        ];
    }
    let file = header.file;
    let (constant_tsc, nonstop_tsc) = header.tsc_flags();
    vec![
        ("version", Value::Unsigned(file.version.into())),
        ("type", Value::Unsigned(file.r#type.into())),
        ("constant_tsc", Value::Unsigned(constant_tsc.into())),
        ("nonstop_tsc", Value::Unsigned(nonstop_tsc.into())),
        ("cycle_frequency", Value::Unsigned(file.cycle_frequency)),
        ("buffer_size", Value::Unsigned(file.buffer_size)),
    ]
}

/// The record at a position, in file order; the fields of function records only where their name is wanted.
pub fn read_record<'a>(
    log: &'a XRay,
    at: &mut Position,
    wanted: &dyn Fn(&str) -> bool,
) -> Option<RecordView<'a>> {
    let (name, offset, size, timestamp, fields) = match log.content() {
        LogContent::Fdr(survey) => next_fdr_record(log, survey, at, wanted)?,
        LogContent::Basic(survey) => next_basic_record(log, survey, at)?,
        LogContent::Profile(survey) => next_profile_record(log, survey, at)?,
    };
    let index = at.index;
    at.index = index.saturating_add(1);
    at.offset = offset.saturating_add(size);
    Some(RecordView { index, offset, size, name, timestamp, fields })
}

type ShownRecord<'a> = (Cow<'a, str>, u64, u64, Option<u64>, RecordFields<'a>);

/// The record of an FDR log at a position; `at.inner` is the index of the block.
fn next_fdr_record<'a>(
    log: &'a XRay,
    survey: &'a FdrSurvey,
    at: &mut Position,
    wanted: &dyn Fn(&str) -> bool,
) -> Option<ShownRecord<'a>> {
    let mut dialect = log.header().dialect();
    loop {
        let block = survey.blocks.get(usize::try_from(at.inner).ok()?)?;
        dialect.payloads = block.payloads;
        if at.offset <= block.offset && block.offset < block.records.start as u64 {
            return read_shown(log, block.offset as usize..block.records.start, dialect, wanted);
        }
        let from = usize::try_from(at.offset).ok()?.max(block.records.start);
        if let Some(shown) = read_shown(log, from..block.records.end, dialect, wanted) {
            return Some(shown);
        }
        at.inner = at.inner.saturating_add(1);
    }
}

/// The first record of a range.
fn read_shown<'a>(
    log: &'a XRay,
    range: std::ops::Range<usize>,
    dialect: XRayDialect,
    wanted: &dyn Fn(&str) -> bool,
) -> Option<ShownRecord<'a>> {
    let source: &'a [u8] = log.source();
    match RecordIter::new(source, range, dialect).next()? {
        RecordItem::Function { offset, action, function_id, tsc_delta } => {
            let name = action_name(action);
            let fields = match wanted(&name) {
                true => vec![
                    ("function_id", Value::Unsigned(function_id.into())),
                    ("tsc_delta", Value::Unsigned(tsc_delta.into())),
                ],
                false => Vec::new(),
            };
            Some((name, offset as u64, 8, None, fields))
        }
        RecordItem::Metadata { offset, size, record } => {
            let (name, timestamp, fields) = metadata(&record);
            Some((name, offset as u64, size as u64, timestamp, fields))
        }
        RecordItem::Broken(_) => None,
    }
}

/// Name of an action, or its number if unknown.
fn action_name(action: Action) -> Cow<'static, str> {
    action.name().map_or_else(|| Cow::Owned(action.to_string()), Cow::Borrowed)
}

/// Name, time stamp and fields of a metadata record.
fn metadata<'a>(record: &Record<'a>) -> (Cow<'a, str>, Option<u64>, RecordFields<'a>) {
    let unsigned = |value: u64| Value::Unsigned(value);
    let signed = |value: i64| Value::Signed(value);
    match *record {
        Record::Function { .. } => ("Function".into(), None, Vec::new()),
        Record::NewBuffer { tid } => ("NewBuffer".into(), None, vec![("tid", signed(tid.into()))]),
        Record::EndOfBuffer => ("EndOfBuffer".into(), None, Vec::new()),
        Record::NewCpuId { cpu, tsc } => {
            let fields = vec![("cpu_id", unsigned(cpu.into())), ("absolute_tsc", unsigned(tsc))];
            ("NewCPUId".into(), Some(tsc), fields)
        }
        Record::TscWrap { tsc } => ("TSCWrap".into(), Some(tsc), vec![("absolute_tsc", unsigned(tsc))]),
        Record::WallTime { seconds, microseconds } => {
            let fields = vec![("seconds", signed(seconds)), ("microseconds", signed(microseconds.into()))];
            ("WallTimeMarker".into(), None, fields)
        }
        Record::Custom(event) => shown_event("CustomEventMarker", event),
        Record::Typed(event) => shown_event("TypedEventMarker", event),
        Record::CallArgument(argument) => {
            ("CallArgument".into(), None, vec![("argument", Value::Hex(argument))])
        }
        Record::BufferExtents(size) => ("BufferExtents".into(), None, vec![("size", unsigned(size))]),
        Record::Pid(pid) => ("Pid".into(), None, vec![("pid", signed(pid.into()))]),
        Record::Unknown(kind) => (kind.to_string().into(), None, Vec::new()),
    }
}

/// Name, time stamp and fields of an event.
fn shown_event<'a>(name: &'static str, event: Event<'a>) -> (Cow<'a, str>, Option<u64>, RecordFields<'a>) {
    let mut fields = vec![("event_size", Value::Signed(event.size.into()))];
    let timestamp = match event.time {
        EventTime::Tsc(tsc) => {
            fields.push(("absolute_tsc", Value::Unsigned(tsc)));
            Some(tsc)
        }
        EventTime::Delta(delta) => {
            fields.push(("tsc_delta", Value::Signed(delta.into())));
            None
        }
    };
    fields.extend(event.cpu.map(|cpu| ("cpu_id", Value::Unsigned(cpu.into()))));
    fields.extend(event.event_type.map(|number| ("event_type", Value::Unsigned(number.into()))));
    fields.push(("event", text_or_bytes(event.payload)));
    (name.into(), timestamp, fields)
}

/// The bytes of an event: as text where they are printable UTF-8.
fn text_or_bytes(bytes: &[u8]) -> Value<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => Value::Text(text.into()),
        _ => Value::Bytes(bytes),
    }
}

/// The record of a Basic mode log at a position; `at.inner` is its index.
fn next_basic_record<'a>(
    log: &'a XRay,
    survey: &basic::BasicSurvey,
    at: &mut Position,
) -> Option<ShownRecord<'a>> {
    let index = usize::try_from(at.inner).ok().filter(|&index| index < survey.num_records)?;
    at.inner = at.inner.saturating_add(1);
    let offset = basic::record_offset(index) as u64;
    let has_pid = log.header().dialect().version >= 3;
    let entry = basic::read_item(log.source(), index, log.header().endian)?;
    let (name, timestamp, mut fields): (Cow<'_, str>, _, RecordFields<'_>) = match entry {
        basic::BasicItem::Function(record) => {
            let fields = vec![
                ("cpu", Value::Unsigned(record.cpu.into())),
                ("function_id", Value::Signed(record.function_id.into())),
                ("tsc", Value::Unsigned(record.tsc)),
                ("tid", Value::Unsigned(record.tid.into())),
                ("pid", Value::Unsigned(record.pid.into())),
            ];
            (action_name(Action(record.kind)), Some(record.tsc), fields)
        }
        basic::BasicItem::Argument(argument) => {
            let fields = vec![
                ("function_id", Value::Signed(argument.function_id.into())),
                ("tid", Value::Unsigned(argument.tid.into())),
                ("pid", Value::Unsigned(argument.pid.into())),
                ("argument", Value::Hex(argument.argument)),
            ];
            ("ArgPayload".into(), None, fields)
        }
        basic::BasicItem::Unknown(record_type) => {
            (format!("Unknown Record {record_type}").into(), None, Vec::new())
        }
        basic::BasicItem::Unwritten => ("Unwritten".into(), None, Vec::new()),
    };
    fields.retain(|(name, _)| has_pid || *name != "pid");
    Some((name, offset, BASIC_BYTES as u64, timestamp, fields))
}

/// The block header or call path of a profile at a position; `at.inner` is the index of the block.
fn next_profile_record<'a>(
    log: &'a XRay,
    survey: &'a profile::ProfileSurvey,
    at: &mut Position,
) -> Option<ShownRecord<'a>> {
    loop {
        let block = survey.blocks.get(usize::try_from(at.inner).ok()?)?;
        let begin = block.records.start as u64;
        if at.offset.max(HEADER_BYTES as u64) <= block.offset {
            let fields = vec![
                ("size", Value::Unsigned(block.header.size.into())),
                ("number", Value::Unsigned(block.header.number.into())),
                ("thread", Value::Unsigned(block.header.thread)),
            ];
            return Some(("Block".into(), block.offset, begin.saturating_sub(block.offset), None, fields));
        }
        let mut cursor = block.cursor(log.source(), log.header().endian);
        let skipped = at.offset.saturating_sub(begin);
        if cursor.bytes(skipped, "records").is_ok()
            && cursor.remaining() > 0
            && let Ok(found) = read_path(&mut cursor)
        {
            let ids: Vec<String> = found.functions.iter().map(ToString::to_string).collect();
            let fields = vec![
                ("function_ids", Value::Text(ids.join(" ").into())),
                ("call_count", Value::Unsigned(found.calls)),
                ("cumulative_local_time", Value::Signed(found.ticks)),
            ];
            return Some(("Path".into(), found.offset, found.size, None, fields));
        }
        at.inner = at.inner.saturating_add(1);
    }
}
