//! Tables that are made of records other than samples, and `wake_ups`.

use std::sync::{Arc, PoisonError};

use arrow_array::RecordBatch;
use linux_perf_event_reader::constants as abi;
use perfuse_recording::{BatchStream, Placement, one_batch};
use perfuse_tables::{BATCH_ROWS, cgroups, kernel_symbols, namespaces, sched_states, text_pokes};
use rustc_hash::FxHashMap;

use super::consts::RecordType;
use super::features::text;
use super::layout::{Cgroup, Ksymbol, Namespaces, Section, TextPoke};
use super::order::{RecordFilter, TimeOrder};
use super::perf_file::PerfFile;
use super::record::RawEvent;
use super::records::UNREGISTER;
use super::sched::ThreadState;
use super::thread_counts;
use super::timed_passes::sched_states as states_of;
use super::tracepoints::Tracepoint;
use super::wake_ups;

/// Names of namespaces, in the order of a NAMESPACES record.
const NAMESPACES: [&str; 7] = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];
/// The tables of this module, each with the types of records that its rows are made of.
const TABLES: [(&str, &[RecordType]); 6] = [
    ("sched_states", &[RecordType::SWITCH, RecordType::SWITCH_CPU_WIDE]),
    ("thread_counts", &[RecordType::READ]),
    ("cgroups", &[RecordType::CGROUP]),
    ("namespaces", &[RecordType::NAMESPACES]),
    ("text_pokes", &[RecordType::TEXT_POKE]),
    ("kernel_symbols", &[RecordType::KSYMBOL]),
];

/// Whether a table has rows of a file; `None` for a table that is not of this module.
#[must_use]
pub fn fills(file: &PerfFile, name: &str) -> Option<bool> {
    match name {
        "wake_ups" => return Some(file.tracepoints().iter().any(Tracepoint::is_wake_up)),
        "sched_states" if file.switch_tracepoint().is_some() || file.switch_event().is_some() => {
            return Some(true);
        }
        _ => {}
    }
    let (_, kinds) = TABLES.iter().find(|(table, _)| *table == name)?;
    Some(kinds.iter().any(|kind| file.survey().counts.contains_key(kind)))
}

/// The table with a name; `None` for a table that is not of this module.
#[must_use]
pub fn table(file: &Arc<PerfFile>, name: &str, placement: &Placement) -> Option<BatchStream> {
    if !fills(file, name)? {
        return Some(Box::new(std::iter::empty()));
    }
    let batch = match name {
        "sched_states" => {
            return Some(Box::new(StateBatches {
                file: file.clone(),
                placement: placement.clone(),
                next: 0,
            }));
        }
        "wake_ups" => wake_ups::rows(file, placement),
        "thread_counts" => thread_counts::rows(file, placement),
        "cgroups" => cgroup_rows(file, placement),
        "namespaces" => namespace_rows(file, placement),
        "text_pokes" => text_poke_rows(file, placement),
        _ => kernel_symbol_rows(file, placement),
    };
    Some(one_batch(batch))
}

/// Calls `each` with every record that a filter selects and its time, in time order.
fn for_each(file: &PerfFile, filter: RecordFilter, mut each: impl FnMut(&RawEvent<'_>, u64)) {
    let mut order = TimeOrder::new(file, filter);
    while let Some(timed) = order.next(file) {
        if let Some(record) = file.at(timed.location) {
            each(&record, timed.time);
        }
    }
}

/// A time on the profile's clock; `None` for 0, which stands for the time before the recording.
fn since(placement: &Placement, time: u64) -> Option<i64> {
    (time != 0).then(|| placement.clock.ns(time))
}

/// Batches of table `sched_states`.
struct StateBatches {
    file: Arc<PerfFile>,
    placement: Placement,
    next: usize,
}

impl Iterator for StateBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let Self { file, placement, next } = self;
        let rows = states_of(file).get(*next..).filter(|rows| !rows.is_empty())?;
        let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = sched_states::Builder::new();
        for &ThreadState { pid, tid, state, start, end, cpu, location, sample, .. } in
            rows.iter().take(BATCH_ROWS)
        {
            *next = next.saturating_add(1);
            table.push(
                identities.thread(file.guests.identity(placement, pid), tid),
                placement.clock.ns(start),
                end.map(|end| placement.clock.ns(end)),
                state,
                cpu,
                sample.map(|(number, _)| placement.first.sample.saturating_add(number)),
                placement.source_id,
                file.at(location).map_or(0, |record| record.offset),
            );
        }
        Some(table.finish())
    }
}

fn cgroup_rows(file: &PerfFile, placement: &Placement) -> RecordBatch {
    let mut counts: FxHashMap<u64, u64> = FxHashMap::default();
    if file.attributes.list().iter().any(|attribute| attribute.layout.has(abi::PERF_SAMPLE_CGROUP)) {
        let is_sample: RecordFilter = |record, _| record.record_type == RecordType::SAMPLE;
        for_each(file, is_sample, |record, _| {
            if let Some(group) = file.sample(record).ok().and_then(|sample| sample.cgroup) {
                let count = counts.entry(group).or_default();
                *count = count.saturating_add(1);
            }
        });
    }
    let mut table = cgroups::Builder::new();
    for_each(
        file,
        |record, _| record.record_type == RecordType::CGROUP,
        |record, time| {
            let mut cursor = record.cursor(file.endian);
            let Ok(Cgroup { id }) = Cgroup::read(&mut cursor) else { return };
            let num_samples = counts.get(&id).copied().unwrap_or(0);
            let path = text(cursor.rest());
            table.push(id, &path, since(placement, time), num_samples, placement.source_id, record.offset);
        },
    );
    table.finish()
}

fn namespace_rows(file: &PerfFile, placement: &Placement) -> RecordBatch {
    let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
    let mut table = namespaces::Builder::new();
    for_each(
        file,
        |record, _| record.record_type == RecordType::NAMESPACES,
        |record, time| {
            let mut cursor = record.cursor(file.endian);
            let Ok(Namespaces { pid, tid, nr_namespaces }) = Namespaces::read(&mut cursor) else { return };
            let thread_id =
                identities.thread(file.guests.identity(placement, file.process_number(record, pid)), tid);
            for number in 0..nr_namespaces {
                // Device and inode are two words, like the fields of a section.
                let Ok(Section { offset: device, size: inode }) = Section::read(&mut cursor) else { return };
                let number_text = number.to_string();
                let name = usize::try_from(number).ok().and_then(|number| NAMESPACES.get(number));
                let name = name.copied().unwrap_or(&number_text);
                let at = since(placement, time);
                table.push(thread_id, at, name, device, inode, placement.source_id, record.offset);
            }
        },
    );
    table.finish()
}

fn text_poke_rows(file: &PerfFile, placement: &Placement) -> RecordBatch {
    let mut table = text_pokes::Builder::new();
    for_each(
        file,
        |record, _| record.record_type == RecordType::TEXT_POKE,
        |record, time| {
            let mut cursor = record.cursor(file.endian);
            let Ok(TextPoke { addr, old_len, new_len }) = TextPoke::read(&mut cursor) else { return };
            let (Ok(old), Ok(new)) =
                (cursor.bytes(u64::from(old_len), "bytes"), cursor.bytes(u64::from(new_len), "bytes"))
            else {
                return;
            };
            table.push(since(placement, time), addr, old, new, placement.source_id, record.offset);
        },
    );
    table.finish()
}

fn kernel_symbol_rows(file: &PerfFile, placement: &Placement) -> RecordBatch {
    let mut table = kernel_symbols::Builder::new();
    for_each(
        file,
        |record, _| record.record_type == RecordType::KSYMBOL,
        |record, time| {
            let mut cursor = record.cursor(file.endian);
            let Ok(Ksymbol { addr, len, ksym_type, flags }) = Ksymbol::read(&mut cursor) else { return };
            let kind = match ksym_type {
                1 => Some("bpf"),
                2 => Some("out_of_line"),
                _ => None,
            };
            table.push(
                since(placement, time),
                addr,
                u64::from(len),
                kind,
                flags & UNREGISTER != 0,
                &text(cursor.rest()),
                placement.source_id,
                record.offset,
            );
        },
    );
    table.finish()
}
