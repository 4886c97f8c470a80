//! Bodies of records whose fields depend on a number in them, as `perfuse records` prints them.

use perfuse_wire::{Cursor, ParseError, Value};

use super::attribute::EventRecordLayout;
use super::consts::RecordType;
use super::counter_read::{ReadValue, ReadValues};
use super::feature_values::{BPF_METADATA_ENTRY_BYTES, bpf_metadata_entry};
use super::features::text;
use super::layout::{CallchainDeferred, CounterRead, CpuMap, EventHeader, EventUpdate, IdIndex};
use super::reader::RecordFile;
use super::record::RawEvent;
use super::sample::EventWords;

/// Names and values of fields.
type ViewFields<'a> = Vec<(&'static str, Value<'a>)>;

/// Unit, scale, name or processors of an event.
pub fn event_update<'a>(cursor: &mut Cursor<'a>, fields: &mut ViewFields<'a>) -> Result<(), ParseError> {
    let EventUpdate { type_, id } = EventUpdate::read(cursor)?;
    fields.extend([("type_", Value::Unsigned(type_)), ("id", Value::Unsigned(id))]);
    match type_ {
        0 => fields.push(("unit", Value::Text(text(cursor.rest())))),
        1 => {
            let scale = f64::from_bits(cursor.u64("scale")?);
            fields.push(("scale", Value::Text(scale.to_string().into())));
        }
        2 => fields.push(("name", Value::Text(text(cursor.rest())))),
        3 => return cpu_map(cursor, fields),
        _ => fields.push(("data", Value::Bytes(cursor.rest()))),
    }
    Ok(())
}

/// Values that events counted in a task, in the layout of `read_format`.
pub fn counter_read<'a>(
    cursor: &mut Cursor<'a>,
    layout: &EventRecordLayout,
    fields: &mut ViewFields<'a>,
) -> Result<(), ParseError> {
    let CounterRead { pid, tid } = CounterRead::read(cursor)?;
    fields.extend([("pid", Value::Signed(pid.into())), ("tid", Value::Signed(tid.into()))]);
    let ReadValues { values, enabled, running } = ReadValues::read(cursor, layout)?;
    let times = [("time_enabled", enabled), ("time_running", running)];
    fields.extend(times.into_iter().filter_map(|(name, time)| Some((name, Value::Unsigned(time?)))));
    let row = |ReadValue { value, id, lost }| {
        let numbers = [("value", Some(value)), ("id", id), ("lost", lost)];
        numbers.into_iter().filter_map(|(name, number)| Some((name, Value::Unsigned(number?)))).collect()
    };
    fields.push(("values", Value::Entries(values.into_iter().map(row).collect())));
    Ok(())
}

/// Processors: a list, a mask or a range.
pub fn cpu_map<'a>(cursor: &mut Cursor<'a>, fields: &mut ViewFields<'a>) -> Result<(), ParseError> {
    let CpuMap { type_ } = CpuMap::read(cursor)?;
    let row = |cpu: u64| vec![("cpu", Value::Unsigned(cpu))];
    let mut rows = Vec::new();
    match type_ {
        0 => {
            for _ in 0..cursor.u16("nr")? {
                rows.push(row(u64::from(cursor.u16("cpu")?)));
            }
        }
        1 => {
            let (count, long_bytes) = (cursor.u16("nr")?, cursor.u16("long_size")?);
            if long_bytes == 8 {
                cursor.u32("padding")?;
            }
            let mut first = 0u64;
            for _ in 0..count {
                let (word, bits) = if long_bytes == 8 {
                    (cursor.u64("mask")?, 64)
                } else {
                    (u64::from(cursor.u32("mask")?), 32)
                };
                rows.extend(
                    (0..bits)
                        .filter(|bit| word.wrapping_shr(*bit) & 1 != 0)
                        .map(|bit| row(first.saturating_add(bit.into()))),
                );
                first = first.saturating_add(bits.into());
            }
        }
        2 => {
            let (any, _) = (cursor.u8("any_cpu")?, cursor.u8("pad")?);
            let (start, end) = (cursor.u16("start_cpu")?, cursor.u16("end_cpu")?);
            fields.push(("any_cpu", Value::Unsigned(any.into())));
            fields.push(("start_cpu", Value::Unsigned(start.into())));
            fields.push(("end_cpu", Value::Unsigned(end.into())));
            return Ok(());
        }
        _ => {
            fields.push(("data", Value::Bytes(cursor.rest())));
            return Ok(());
        }
    }
    fields.push(("cpus", Value::Entries(rows)));
    Ok(())
}

/// Processor and task of each event id, then the guest that it was recorded in.
pub fn id_index<'a>(cursor: &mut Cursor<'a>, fields: &mut ViewFields<'a>) -> Result<(), ParseError> {
    let IdIndex { nr } = IdIndex::read(cursor)?;
    fields.push(("nr", Value::Unsigned(nr)));
    let mut rows = Vec::new();
    for _ in 0..nr {
        let mut row = Vec::new();
        for name in ["id", "idx", "cpu", "tid"] {
            row.push((name, Value::Unsigned(cursor.u64(name)?)));
        }
        rows.push(row);
    }
    if cursor.remaining() as u64 == nr.saturating_mul(16) {
        for row in &mut rows {
            row.push(("machine_pid", Value::Unsigned(cursor.u64("machine_pid")?)));
            row.push(("vcpu", Value::Unsigned(cursor.u64("vcpu")?)));
        }
    }
    fields.push(("entries", Value::Entries(rows)));
    Ok(())
}

/// The first id in a record of event ids that no attribute has.
pub fn unknown_id(file: &RecordFile, record: &RawEvent<'_>) -> Option<u64> {
    if record.record_type != RecordType::ID_INDEX {
        return None;
    }
    let mut cursor = Cursor::new(record.body, record.offset.saturating_add(EventHeader::SIZE), file.endian);
    let IdIndex { nr } = IdIndex::read(&mut cursor).ok()?;
    for _ in 0..nr {
        let id = cursor.u64("id").ok()?;
        cursor.bytes(24, "entries").ok()?;
        if file.attributes.index_of(id).is_none() {
            return Some(id);
        }
    }
    None
}

/// The user part of earlier call chains.
pub fn callchain_deferred<'a>(
    cursor: &mut Cursor<'a>,
    fields: &mut ViewFields<'a>,
) -> Result<(), ParseError> {
    let CallchainDeferred { cookie, nr } = CallchainDeferred::read(cursor)?;
    fields.extend([("cookie", Value::Hex(cookie)), ("nr", Value::Unsigned(nr))]);
    let words = EventWords::read(cursor, nr, "ips")?;
    fields.push(("ips", Value::Entries(words.iter().map(|ip| vec![("ip", Value::Hex(ip))]).collect())));
    Ok(())
}

/// Variables of a BPF program. The size of its name is what the entries leave.
pub fn bpf_metadata<'a>(cursor: &mut Cursor<'a>, fields: &mut ViewFields<'a>) -> Result<(), ParseError> {
    // The name has 512 bytes, or as many as the recording kernel's symbols.
    let mut name_bytes = 512;
    for size in [512u64, 256, 128] {
        let mut rest = *cursor;
        let entries = rest.bytes(size, "prog_name").and_then(|_| rest.u64("nr_entries"));
        let expected = entries.ok().map(|count| count.saturating_mul(BPF_METADATA_ENTRY_BYTES));
        if expected == Some(rest.remaining() as u64) {
            name_bytes = size;
            break;
        }
    }
    fields.push(("prog_name", Value::Text(text(cursor.bytes(name_bytes, "prog_name")?))));
    let count = cursor.u64("nr_entries")?;
    fields.push(("nr_entries", Value::Unsigned(count)));
    let mut rows = Vec::new();
    for _ in 0..count {
        let (key, value) = bpf_metadata_entry(cursor)?;
        rows.push(vec![("key", Value::Text(key)), ("value", Value::Text(value))]);
    }
    fields.push(("entries", Value::Entries(rows)));
    Ok(())
}

/// Scheduler statistics of a processor.
pub fn schedstat_cpu<'a>(cursor: &mut Cursor<'a>, fields: &mut ViewFields<'a>) -> Result<(), ParseError> {
    fields.push(("timestamp", Value::Unsigned(cursor.u64("timestamp")?)));
    fields.push(("cpu", Value::Unsigned(cursor.u32("cpu")?.into())));
    fields.push(("version", Value::Unsigned(cursor.u16("version")?.into())));
    cursor.u16("padding")?;
    for name in ["yld_count", "array_exp", "sched_count", "sched_goidle", "ttwu_count", "ttwu_local"] {
        fields.push((name, Value::Unsigned(cursor.u32(name)?.into())));
    }
    for name in ["rq_cpu_time", "run_delay", "pcount"] {
        fields.push((name, Value::Unsigned(cursor.u64(name)?)));
    }
    Ok(())
}

/// Counters of load balancing, in blocks; version 17 splits the imbalance.
const BALANCING: [&str; 8] =
    ["count", "balanced", "failed", "imbalance", "gained", "hot_gained", "nobusyq", "nobusyg"];
const BALANCING_17: [&str; 11] = [
    "count",
    "balanced",
    "failed",
    "imbalance_load",
    "imbalance_util",
    "imbalance_task",
    concat!("imbalance_mis", "fit"),
    "gained",
    "hot_gained",
    "nobusyq",
    "nobusyg",
];
/// Counters after those.
const DOMAIN: [&str; 12] = [
    "alb_count",
    "alb_failed",
    "alb_pushed",
    "sbe_count",
    "sbe_balanced",
    "sbe_pushed",
    "sbf_count",
    "sbf_balanced",
    "sbf_pushed",
    "ttwu_wake_remote",
    "ttwu_move_affine",
    "ttwu_move_balance",
];

/// Scheduler statistics of a domain of processors.
pub fn schedstat_domain<'a>(cursor: &mut Cursor<'a>, fields: &mut ViewFields<'a>) -> Result<(), ParseError> {
    fields.push(("timestamp", Value::Unsigned(cursor.u64("timestamp")?)));
    fields.push(("cpu", Value::Unsigned(cursor.u32("cpu")?.into())));
    let version = cursor.u16("version")?;
    fields.push(("version", Value::Unsigned(version.into())));
    fields.push(("domain", Value::Unsigned(cursor.u16("domain")?.into())));
    let names: &[&'static str] = if version >= 17 { &BALANCING_17 } else { &BALANCING };
    // Version 16 puts the busy processors first.
    let blocks = if version == 15 { ["idle", "busy", "newidle"] } else { ["busy", "idle", "newidle"] };
    let mut rows = Vec::new();
    for block in blocks {
        let mut row = vec![("processors", Value::Text(block.into()))];
        for name in names {
            row.push((name, Value::Unsigned(cursor.u32(name)?.into())));
        }
        rows.push(row);
    }
    fields.push(("balancing", Value::Entries(rows)));
    for name in DOMAIN {
        fields.push((name, Value::Unsigned(cursor.u32(name)?.into())));
    }
    Ok(())
}
