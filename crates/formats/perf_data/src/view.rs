//! Fields of every kind of record, as `perfuse records` prints them, in the order of the specification.

use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, FieldType, Layout, ParseError, RecordView, Value};

use super::attribute::{EventRecordLayout, flags_from_bottom};
use super::consts::{RecordType, misc};
use super::features::{BuildIdEntry, text};
use super::header::ATTR_SIZE_VER0;
use super::layout::*;
use super::reader::RecordFile;
use super::record::RawEvent;
use super::records::{MMAP2_FILE_BYTES, has_protection, mmap2_build_id};
use super::sample::{EventWords, SampleRecord, SampleRegisters};
use super::view_bodies::{
    bpf_metadata, callchain_deferred, counter_read, cpu_map, event_update, id_index, schedstat_cpu,
    schedstat_domain,
};

impl RecordFile {
    /// The first error in the body of a record; `None` where it can be decoded.
    pub fn body_error(&self, record: &RawEvent<'_>) -> Option<ParseError> {
        match record.record_type {
            RecordType::SAMPLE => self.sample(record).err(),
            _ => self.fields(record, &mut Vec::new()).err(),
        }
    }

    /// The record; where its name is wanted, with its fields up to the first one that cannot be decoded.
    pub fn view<'a>(&self, record: &RawEvent<'a>, wanted: &dyn Fn(&str) -> bool) -> RecordView<'a> {
        let name = record.record_type.name();
        let (mut timestamp, mut fields) = (None, Vec::new());
        if wanted(&name) {
            timestamp = self.time(record);
            fields.push(("misc", Value::Hex(u64::from(record.misc))));
            let _ = self.fields(record, &mut fields);
        }
        RecordView { index: record.index, offset: record.offset, size: record.size, name, timestamp, fields }
    }

    /// Decodes the fields of a record.
    fn fields<'a>(&self, record: &RawEvent<'a>, fields: &mut ViewFields<'a>) -> Result<(), ParseError> {
        if record.record_type == RecordType::SAMPLE {
            return self.sample(record).map(|sample| sample_fields(&sample, fields));
        }
        let offset = record.offset.saturating_add(EventHeader::SIZE);
        let sample_id = self.event_layout(record).filter(|_| !record.record_type.is_user());
        let (body, trailer) = record.without_sample_id(sample_id.map_or(0, |layout| layout.sample_id_bytes));
        let mut cursor = Cursor::new(body, offset, self.endian);
        match (record.record_type, sample_id) {
            (RecordType::READ, Some(layout)) => counter_read(&mut cursor, layout, fields)?,
            _ => body_fields(record, &mut cursor, fields)?,
        }
        if let Some(layout) = sample_id.filter(|_| !trailer.is_empty()) {
            let at = offset.saturating_add(body.len() as u64);
            let entry = sample_id_fields(&mut Cursor::new(trailer, at, self.endian), layout)?;
            fields.push(("sample_id", Value::Entries(vec![entry])));
        }
        Ok(())
    }
}

/// Names and values of fields.
type ViewFields<'a> = Vec<(&'static str, Value<'a>)>;

/// Decodes the fields of a body, without the sample id.
fn body_fields<'a>(
    record: &RawEvent<'a>,
    cursor: &mut Cursor<'a>,
    fields: &mut ViewFields<'a>,
) -> Result<(), ParseError> {
    let layout = match record.record_type {
        RecordType::MMAP => &Mmap::LAYOUT,
        RecordType::MMAP2 => return mmap2_fields(record.misc, cursor, fields),
        RecordType::COMM => &Comm::LAYOUT,
        RecordType::FORK => &Fork::LAYOUT,
        RecordType::EXIT => &Exit::LAYOUT,
        RecordType::LOST => &Lost::LAYOUT,
        RecordType::LOST_SAMPLES => &LostSamples::LAYOUT,
        RecordType::THROTTLE => &Throttle::LAYOUT,
        RecordType::UNTHROTTLE => &Unthrottle::LAYOUT,
        RecordType::READ => &CounterRead::LAYOUT,
        RecordType::AUX => &Aux::LAYOUT,
        RecordType::ITRACE_START => &ItraceStart::LAYOUT,
        RecordType::SWITCH | RecordType::FINISHED_ROUND | RecordType::FINISHED_INIT => return Ok(()),
        RecordType::SWITCH_CPU_WIDE => &SwitchCpuWide::LAYOUT,
        RecordType::NAMESPACES => &Namespaces::LAYOUT,
        RecordType::KSYMBOL => &Ksymbol::LAYOUT,
        RecordType::BPF_EVENT => &BpfEvent::LAYOUT,
        RecordType::CGROUP => &Cgroup::LAYOUT,
        RecordType::TEXT_POKE => &TextPoke::LAYOUT,
        RecordType::AUX_OUTPUT_HW_ID => &AuxOutputHwId::LAYOUT,
        RecordType::CALLCHAIN_DEFERRED => return callchain_deferred(cursor, fields),
        RecordType::HEADER_ATTR => return attr_fields(cursor, fields),
        RecordType::HEADER_EVENT_TYPE => return event_type_fields(cursor, fields),
        RecordType::HEADER_TRACING_DATA => &TracingData::LAYOUT,
        RecordType::HEADER_BUILD_ID => return build_id_fields(record, cursor, fields),
        RecordType::ID_INDEX => return id_index(cursor, fields),
        RecordType::AUXTRACE_INFO => &AuxtraceInfo::LAYOUT,
        RecordType::AUXTRACE => &Auxtrace::LAYOUT,
        RecordType::AUXTRACE_ERROR => &AuxtraceError::LAYOUT,
        RecordType::THREAD_MAP => &ThreadMap::LAYOUT,
        RecordType::CPU_MAP => return cpu_map(cursor, fields),
        RecordType::STAT_CONFIG => &StatConfig::LAYOUT,
        RecordType::STAT => &Stat::LAYOUT,
        RecordType::STAT_ROUND => &StatRound::LAYOUT,
        RecordType::EVENT_UPDATE => return event_update(cursor, fields),
        RecordType::BPF_METADATA => return bpf_metadata(cursor, fields),
        RecordType::SCHEDSTAT_CPU => return schedstat_cpu(cursor, fields),
        RecordType::SCHEDSTAT_DOMAIN => return schedstat_domain(cursor, fields),
        RecordType::TIME_CONV => &TimeConv::LAYOUT,
        RecordType::HEADER_FEATURE => &HeaderFeature::LAYOUT,
        RecordType::COMPRESSED2 => &Compressed2::LAYOUT,
        RecordType::SIMPLEPERF_DSO => &SimpleperfDso::LAYOUT,
        RecordType::SIMPLEPERF_SYMBOL => &SimpleperfSymbol::LAYOUT,
        _ => {
            fields.push(("data", Value::Bytes(cursor.rest())));
            return Ok(());
        }
    };
    layout_fields(layout, cursor, fields)
}

/// Whether a field is printed in hexadecimal.
fn is_hex(name: &str) -> bool {
    matches!(name, "addr" | "len" | "pgoff" | "flags" | "prot" | "ip" | "cookie" | "config" | "aux_offset")
}

/// Decodes the fields of a layout.
fn layout_fields<'a>(
    layout: &Layout,
    cursor: &mut Cursor<'a>,
    fields: &mut ViewFields<'a>,
) -> Result<(), ParseError> {
    for field in layout.fields {
        let number = |value: u64| if is_hex(field.name) { Value::Hex(value) } else { Value::Unsigned(value) };
        let value = match field.ty {
            FieldType::U8 => Value::Unsigned(cursor.u8(field.name)?.into()),
            FieldType::I64 => Value::Signed(cursor.i64(field.name)?),
            FieldType::I8 => Value::Signed(cursor.i8(field.name)?.into()),
            FieldType::U16 => number(u64::from(cursor.u16(field.name)?)),
            FieldType::U32 => number(u64::from(cursor.u32(field.name)?)),
            FieldType::U64 => number(cursor.u64(field.name)?),
            FieldType::I32 => Value::Signed(i64::from(cursor.i32(field.name)?)),
            FieldType::CString => Value::Text(String::from_utf8_lossy(cursor.c_string(field.name)?)),
            FieldType::Bytes | FieldType::Encoded(_) => Value::Bytes(take_rest(cursor)),
            FieldType::Array => entries(layout, cursor, fields)?,
        };
        fields.push((field.name, value));
    }
    Ok(())
}

fn take_rest<'a>(cursor: &mut Cursor<'a>) -> &'a [u8] {
    cursor.bytes(cursor.remaining() as u64, "data").unwrap_or_default()
}

/// Entries of 64-bit words; the previous field contains their number.
fn entries<'a>(
    layout: &Layout,
    cursor: &mut Cursor<'a>,
    fields: &ViewFields<'a>,
) -> Result<Value<'a>, ParseError> {
    let count = match fields.last() {
        Some((_, Value::Unsigned(count))) => *count,
        _ => 0,
    };
    let mut rows = Vec::new();
    for _ in 0..count {
        let mut row = Vec::new();
        if layout.name == ThreadMap::LAYOUT.name {
            row.push(("pid", Value::Unsigned(cursor.u64("pid")?)));
            row.push(("comm", Value::Text(text(cursor.bytes(16, "comm")?))));
        } else {
            let names: &[&'static str] = match layout.name {
                name if name == Namespaces::LAYOUT.name => &["dev", "ino"],
                _ => &["tag", "val"],
            };
            for name in names {
                row.push((*name, Value::Unsigned(cursor.u64(name)?)));
            }
        }
        rows.push(row);
    }
    Ok(Value::Entries(rows))
}

fn mmap2_fields<'a>(
    flags: u16,
    cursor: &mut Cursor<'a>,
    fields: &mut ViewFields<'a>,
) -> Result<(), ParseError> {
    let shared = Mmap::LAYOUT.fields.split_last().map_or(Mmap::LAYOUT.fields, |(_, fixed)| fixed);
    layout_fields(&Layout { fields: shared, ..Mmap::LAYOUT }, cursor, fields)?;
    if flags & misc::MMAP_BUILD_ID != 0 {
        let identity = cursor.bytes(MMAP2_FILE_BYTES, "build_id")?;
        fields.push(("build_id", Value::Bytes(mmap2_build_id(identity).unwrap_or(identity))));
    } else {
        layout_fields(&Mmap2Inode::LAYOUT, cursor, fields)?;
    }
    if has_protection(cursor.rest(), cursor.endian()) {
        return layout_fields(&Mmap2Protection::LAYOUT, cursor, fields);
    }
    fields.push(("filename", Value::Text(String::from_utf8_lossy(cursor.c_string("filename")?))));
    Ok(())
}

/// The name of an event: padded to eight bytes, without a NUL where its length is a multiple of these.
fn event_type_fields<'a>(cursor: &mut Cursor<'a>, fields: &mut ViewFields<'a>) -> Result<(), ParseError> {
    let EventType { event_id } = EventType::read(cursor)?;
    fields.push(("event_id", Value::Unsigned(event_id)));
    fields.push(("name", Value::Text(text(take_rest(cursor)))));
    Ok(())
}

fn attr_fields<'a>(cursor: &mut Cursor<'a>, fields: &mut ViewFields<'a>) -> Result<(), ParseError> {
    let size = cursor
        .rest()
        .get(4..)
        .map_or(0, |rest| Cursor::new(rest, 0, cursor.endian()).u32("size").map_or(0, u64::from));
    let size = if size == 0 { ATTR_SIZE_VER0 } else { size };
    let mut attr = cursor.split(size, "attr")?;
    let start = fields.len();
    let read = layout_fields(&EventAttr::LAYOUT, &mut attr, fields);
    for (name, value) in fields.iter_mut().skip(start) {
        if let ("flags", Value::Hex(flags)) = (*name, value) {
            *flags = flags_from_bottom(*flags, cursor.endian());
        }
    }
    if size >= EventAttr::SIZE {
        // Earlier versions have fewer fields.
        read?;
    }
    let ids = std::iter::from_fn(|| cursor.u64("id").ok());
    let rows = ids.map(|id| vec![("id", Value::Unsigned(id))]).collect();
    fields.push(("ids", Value::Entries(rows)));
    Ok(())
}

fn build_id_fields<'a>(
    record: &RawEvent<'a>,
    cursor: &mut Cursor<'a>,
    fields: &mut ViewFields<'a>,
) -> Result<(), ParseError> {
    let entry = BuildIdEntry::read(&mut cursor.clone(), record.misc)?;
    let pid = cursor.i32("pid")?;
    let stored = cursor.bytes(24, "build_id")?;
    fields.push(("pid", Value::Signed(i64::from(pid))));
    fields.push(("build_id", Value::Bytes(stored.get(..entry.id.len()).unwrap_or_default())));
    fields.push(("filename", Value::Text(text(cursor.rest()))));
    Ok(())
}

fn sample_id_fields(
    cursor: &mut Cursor<'_>,
    layout: &EventRecordLayout,
) -> Result<ViewFields<'static>, ParseError> {
    let mut fields = Vec::new();
    if layout.has(abi::PERF_SAMPLE_TID) {
        fields.push(("pid", Value::Signed(i64::from(cursor.i32("pid")?))));
        fields.push(("tid", Value::Signed(i64::from(cursor.i32("tid")?))));
    }
    for (bit, name) in [
        (abi::PERF_SAMPLE_TIME, "time"),
        (abi::PERF_SAMPLE_ID, "id"),
        (abi::PERF_SAMPLE_STREAM_ID, "stream_id"),
    ] {
        if layout.has(bit) {
            fields.push((name, Value::Unsigned(cursor.u64(name)?)));
        }
    }
    if layout.has(abi::PERF_SAMPLE_CPU) {
        fields.push(("cpu", Value::Unsigned(u64::from(cursor.u32("cpu")?))));
        cursor.u32("res")?;
    }
    if layout.has(abi::PERF_SAMPLE_IDENTIFIER) {
        fields.push(("identifier", Value::Unsigned(cursor.u64("identifier")?)));
    }
    Ok(fields)
}

fn sample_fields<'a>(sample: &SampleRecord<'a>, fields: &mut ViewFields<'a>) {
    let head = &sample.head;
    let hex = |value: Option<u64>| value.map(Value::Hex);
    let number = |value: Option<u64>| value.map(Value::Unsigned);
    let signed = |value: Option<i32>| value.map(|value| Value::Signed(i64::from(value)));
    let registers =
        |registers: Option<SampleRegisters<'a>>| registers.map(|set| word_rows("value", set.values));
    let values = [
        ("id", number(head.id)),
        ("ip", hex(head.ip)),
        ("pid", signed(head.pid)),
        ("tid", signed(head.tid)),
        ("time", number(head.time)),
        ("addr", hex(head.addr)),
        ("stream_id", number(head.stream_id)),
        ("cpu", head.cpu.map(|cpu| Value::Unsigned(u64::from(cpu)))),
        ("period", number(head.period)),
        ("read", head.read.map(|words| word_rows("value", words))),
        ("callchain", head.callchain.map(|words| word_rows("ip", words))),
        ("raw", sample.raw.map(Value::Bytes)),
        ("branch_hw_index", number(sample.branch_hw_index)),
        ("branch_stack", sample.branch_stack.map(branch_rows)),
        ("branch_counters", sample.branch_counters.map(|words| word_rows("value", words))),
        ("user_regs", registers(sample.user.registers)),
        ("user_stack", sample.user.stack.map(Value::Bytes)),
        ("weight", number(sample.weight)),
        ("data_src", hex(sample.data_src)),
        ("transaction", hex(sample.transaction)),
        ("intr_regs", registers(sample.intr_regs)),
        ("phys_addr", hex(sample.phys_addr)),
        ("cgroup", number(sample.cgroup)),
        ("data_page_size", number(sample.data_page_size)),
        ("code_page_size", number(sample.code_page_size)),
        ("aux", sample.aux.map(Value::Bytes)),
    ];
    fields.extend(values.into_iter().filter_map(|(name, value)| Some((name, value?))));
}

fn word_rows(name: &'static str, words: EventWords<'_>) -> Value<'static> {
    Value::Entries(words.iter().map(|word| vec![(name, Value::Hex(word))]).collect())
}

fn branch_rows(words: EventWords<'_>) -> Value<'static> {
    let mut words = words.iter();
    let rows = std::iter::from_fn(|| {
        let (from, to, flags) = (words.next()?, words.next()?, words.next()?);
        Some(vec![("from", Value::Hex(from)), ("to", Value::Hex(to)), ("flags", Value::Hex(flags))])
    });
    Value::Entries(rows.collect())
}
