//! Tables `counters` and `counter_samples`. Stored differences are added up.

use std::sync::Arc;

use perfuse_recording::{BatchStream, Placement, one_batch};
use perfuse_tables::{counter_samples, counters};
use rustc_hash::FxHashMap;

use crate::consts::{EventByte, KindSet, PERFCOUNTERS, counter, section_name, unit_name};
use crate::ingest::scan;
use crate::log::LogData;
use crate::records::{CounterPayload, EventBody};
use crate::survey::definitions::CounterRecord;

/// Bit of `variance`: the values never decrease.
const MONOTONIC: u64 = 1 << 28;

/// Name of the type of a counter.
fn kind_name(kind: u64) -> &'static str {
    match kind {
        counter::INT => "int",
        counter::UINT => "uint",
        counter::WORD => "word",
        counter::LONG => "long",
        counter::ULONG => "ulong",
        counter::DOUBLE => "double",
        counter::STRING => "string",
        counter::TIME_INTERVAL => "time_interval",
        _ => "unknown",
    }
}

/// Table `counters`.
pub fn counters(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    // In data versions 13 and 14, unit and variance are bytes, which cannot contain their bits 24 to 30.
    let has_units = !log.survey().dialect.has_byte_counter_fields();
    let mut table = counters::Builder::new();
    for (it, id) in log.survey().events.definitions.counters.iter().zip(placement.first.counter..) {
        let performance = it.section == PERFCOUNTERS;
        let section = if performance { Some(&*it.category) } else { section_name(it.section) };
        let unit = if has_units && !performance { unit_name(it.unit) } else { None };
        let monotonic = (has_units && !performance).then_some(it.variance & MONOTONIC != 0);
        table.push(
            id,
            &it.name,
            section,
            unit,
            kind_name(it.kind),
            monotonic,
            placement.source_id,
            it.offset,
        );
    }
    one_batch(table.finish())
}

/// A stored counter value.
struct StoredSample {
    time: u64,
    /// Milliseconds since the first values, before data version 13.
    ms: Option<u64>,
    index: u64,
    value: CounterPayload<'static>,
    text: Option<Box<str>>,
    offset: u64,
}

/// Table `counter_samples`.
pub fn counter_samples(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    let since_v13 = log.survey().dialect.since_v13();
    let stored =
        scan::collect_events(log, KindSet::of(&[EventByte::COUNTERS]), |at, buffer, event, found| {
            let EventBody::Counters { ms } = event.body else { return };
            // Mono 4.6 writes time 0 in the first COUNTERS event.
            let time = if at.time == 0 { buffer.header.time_base } else { at.time };
            let ms = (!since_v13).then_some(ms);
            for it in &event.values {
                let text = if let CounterPayload::Text(text) = it.value {
                    Some(String::from_utf8_lossy(text).into())
                } else {
                    None
                };
                let value = match it.value {
                    CounterPayload::Signed(number) => CounterPayload::Signed(number),
                    CounterPayload::Unsigned(number) => CounterPayload::Unsigned(number),
                    CounterPayload::Double(bits) => CounterPayload::Double(bits),
                    CounterPayload::Null | CounterPayload::Text(_) => CounterPayload::Null,
                };
                found.push(StoredSample { time, ms, index: it.index, value, text, offset: event.offset });
            }
        });
    let records = &log.survey().events.definitions.counters;
    let by_index: FxHashMap<u64, (u32, &CounterRecord)> =
        records.iter().zip(0..).map(|(it, at)| (it.index, (at, it))).collect();
    let begin = stored.first().map_or(0, |first| first.time);
    let end = log.survey().events.span.map_or(u64::MAX, |(_, last)| last);
    let mut sums: FxHashMap<u64, u64> = FxHashMap::default();
    let mut table = counter_samples::Builder::new();
    for it in &stored {
        // Without the counter's description it is unknown how to read the difference.
        let Some(&(number, counter)) = by_index.get(&it.index) else { continue };
        // The first values are later than the start of their buffer, and the others by as much; none is later than the end.
        let time = it.ms.map_or(it.time, |ms| begin.saturating_add(ms.saturating_mul(1_000_000)).min(end));
        let sum = sums.entry(it.index).or_insert(0);
        if counter.section == PERFCOUNTERS {
            *sum = 0;
        }
        let value = match it.value {
            CounterPayload::Signed(difference) => {
                *sum = sum.wrapping_add_signed(difference);
                Some(if counter.kind == counter::INT { f64::from(*sum as i32) } else { *sum as i64 as f64 })
            }
            CounterPayload::Unsigned(difference) => {
                *sum = sum.wrapping_add(difference);
                Some(if counter.kind == counter::UINT { f64::from(*sum as u32) } else { *sum as f64 })
            }
            CounterPayload::Double(bits) => Some(f64::from_bits(bits)),
            CounterPayload::Null | CounterPayload::Text(_) => None,
        };
        let id = placement.first.counter.saturating_add(number);
        let ts_ns = placement.clock.ns(time);
        table.push(id, ts_ns, value, it.text.as_deref(), placement.source_id, it.offset);
    }
    one_batch(table.finish())
}
