//! One pass over all records: counts, departures in records, and facts that reports and joins need.

use linux_perf_data::Feature;
use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Diagnostics, ErrorKind, ParseError};
use rustc_hash::FxHashMap;

use super::consts::{AUX_LOSSES, RecordType, misc};
use super::damage::SkippedBytes;
use super::deferred::{DeferredParts, cookie};
use super::features::{BuildIdEntry, text};
use super::guests::is_guest;
use super::layout::{Aux, AuxtraceError, Lost, LostSamples, Namespaces, Section, TimeConv};
use super::reader::{RecordFile, RecordPages};
use super::record::{RawEvent, RecordLocation, RecordsEnd};
use super::records::MappingRecord;
use super::rounds::{Rounds, SampleTimes, TimedRecord};
use super::rules::*;
use super::view_bodies::unknown_id;
use perfuse_recording::Position;

/// Index of the pid namespace among the entries of a NAMESPACES record.
const PID_NAMESPACE: usize = 3;

/// A mapping of a JITDUMP file, with which a runtime records the path of its dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitMarker {
    /// Process id in the pid namespace of the recorder.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Time on the recording's clock; 0 where not recorded.
    pub ts: u64,
    /// Path of the dump on the recorded machine.
    pub path: String,
    /// Address of the mapping.
    pub start_address: u64,
    /// Offset of its record.
    pub record_offset: u64,
}

/// The pid namespace of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PidNamespace {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// Time on the recording's clock.
    pub ts: u64,
    /// Inode of the namespace.
    pub inode: u64,
}

/// The results of the pass.
#[derive(Debug, Default)]
pub struct RecordSurvey {
    /// Number of records of each type.
    pub counts: FxHashMap<RecordType, u64>,
    /// Number of all records.
    pub num_records: u64,
    /// Smallest and largest time; `None` without times.
    pub span: Option<(u64, u64)>,
    /// Number of samples that can be decoded.
    pub num_samples: u64,
    /// Whether samples of an event state a period other than 0, by index.
    pub has_periods: Vec<bool>,
    /// Number of samples that contain a copy of the user stack.
    pub num_user_stacks: u64,
    /// Sum of the counts in LOST records.
    pub lost_records: u64,
    /// Sum of the counts in LOST_SAMPLES records.
    pub lost_samples: u64,
    /// Mappings of JITDUMP files.
    pub jit_markers: Vec<JitMarker>,
    /// Pid namespaces of threads.
    pub namespaces: Vec<PidNamespace>,
    /// Times of the first and the last sample of each process.
    pub sampled: FxHashMap<i32, (u64, u64)>,
    /// The TIME_CONV record: conversion of processor time stamps to times.
    pub time_conv: Option<TimeConv>,
    /// Build ids in HEADER_BUILD_ID records.
    pub build_ids: Vec<BuildIdEntry>,
    /// MMAP, MMAP2, COMM, FORK, EXIT, READ, NAMESPACES and KSYMBOL records, in time order.
    pub task_records: Vec<TimedRecord>,
    /// Number of records that occur later than the rounds of the file allow.
    pub num_late: u64,
    /// Times and locations of the samples; `None` where there are too many.
    pub samples: Option<SampleTimes>,
    /// User parts of call chains that were recorded after their samples.
    pub deferred: DeferredParts,
    /// Records of simpleperf with the kernel's symbols; the parts of one that was split.
    pub kernel_symbols: Vec<RecordLocation>,
    /// Records of simpleperf with a file or a function each.
    pub symbol_records: Vec<RecordLocation>,
    /// Parts of a record of simpleperf, up to its last one.
    split: Vec<RecordLocation>,
    /// Departures in records.
    pub record_findings: Diagnostics,
    /// Bytes that were skipped.
    pub damage: Vec<SkippedBytes>,
    /// Reason why the pass ended.
    pub end: RecordsEnd,
}

impl RecordSurvey {
    /// Reads all records of a file.
    pub fn new(file: &RecordFile) -> Self {
        let has_periods = vec![false; file.attributes.list().len()];
        let mut survey = Self { samples: Some(SampleTimes::default()), has_periods, ..Self::default() };
        let mut at = Position::default();
        let mut rounds = Rounds::default();
        let mut pages = RecordPages::default();
        survey.end = loop {
            perfuse_stopping::checkpoint();
            match file.next(&mut at) {
                Ok(record) => {
                    survey.add_record(file, &record, &mut rounds);
                    prefetch_later_record(file, &record);
                }
                Err(end) => break end,
            }
            pages.release_before(file, at);
        };
        survey.damage = file.damage.list();
        survey.task_records.sort_by_key(|key| key.time);
        survey.deferred.finish();
        survey.num_late = rounds.num_late;
        survey
    }

    /// Counts a record, checks it and adds its facts.
    fn add_record(&mut self, file: &RecordFile, record: &RawEvent<'_>, rounds: &mut Rounds) {
        self.num_records = self.num_records.saturating_add(1);
        let count = self.counts.entry(record.record_type).or_default();
        *count = count.saturating_add(1);
        if record.record_type != RecordType::SAMPLE {
            check_record(file, record, &mut self.record_findings);
        }
        if record.record_type.is_user() {
            return self.add_user_record(file, record, rounds);
        }
        let time = file.time(record).unwrap_or(0);
        // simpleperf gives mappings of JIT code the times at which the runtime made it, maybe hours before.
        let is_mapping = matches!(record.record_type, RecordType::MMAP | RecordType::MMAP2);
        let is_older = is_mapping && file.features.has(Feature::SIMPLEPERF_META_INFO);
        if time != 0 && !is_older && file.is_time(record, time) {
            let (first, last) = self.span.unwrap_or((time, time));
            self.span = Some((first.min(time), last.max(time)));
        }
        // Other records without a time describe the state before the recording, in any round.
        if time != 0 || record.record_type == RecordType::SAMPLE {
            rounds.add(time);
        }
        let mut cursor = record.cursor(file.endian);
        match record.record_type {
            RecordType::SAMPLE => {
                self.samples = self
                    .samples
                    .take()
                    .and_then(|times| times.with(TimedRecord { time, location: record.location }));
                return self.add_sample(file, record, time);
            }
            RecordType::LOST => {
                let lost = Lost::read(&mut cursor).map_or(0, |record| record.lost);
                self.lost_records = self.lost_records.saturating_add(lost);
            }
            RecordType::LOST_SAMPLES if record.misc & misc::LOST_SAMPLES_BPF == 0 => {
                let lost = LostSamples::read(&mut cursor).map_or(0, |record| record.lost);
                self.lost_samples = self.lost_samples.saturating_add(lost);
            }
            RecordType::NAMESPACES => self.add_namespaces(file, record, time),
            RecordType::CALLCHAIN_DEFERRED => self.deferred.add(file, record, time),
            RecordType::MMAP | RecordType::MMAP2 => self.add_jit_marker(file, record, time),
            _ => {}
        }
        if matches!(
            record.record_type,
            RecordType::MMAP
                | RecordType::MMAP2
                | RecordType::COMM
                | RecordType::FORK
                | RecordType::EXIT
                | RecordType::READ
                | RecordType::NAMESPACES
                | RecordType::KSYMBOL
        ) {
            self.task_records.push(TimedRecord { time, location: record.location });
        }
    }

    /// Adds the facts of a record that perf wrote.
    fn add_user_record(&mut self, file: &RecordFile, record: &RawEvent<'_>, rounds: &mut Rounds) {
        let mut cursor = record.cursor(file.endian);
        match record.record_type {
            RecordType::FINISHED_ROUND => {
                rounds.finish();
                self.samples.as_mut().map(SampleTimes::finish_round);
            }
            RecordType::SIMPLEPERF_KERNEL_SYMBOL => self.kernel_symbols = vec![record.location],
            RecordType::SIMPLEPERF_DSO | RecordType::SIMPLEPERF_SYMBOL => {
                self.symbol_records.push(record.location);
            }
            RecordType::SIMPLEPERF_SPLIT => self.split.push(record.location),
            RecordType::SIMPLEPERF_SPLIT_END => {
                let parts = std::mem::take(&mut self.split);
                let first = parts.first().and_then(|&part| file.at(part));
                let kind = first.and_then(|first| first.cursor(file.endian).u32("type").ok());
                if kind == Some(RecordType::SIMPLEPERF_KERNEL_SYMBOL.0) {
                    self.kernel_symbols = parts;
                }
            }
            RecordType::TIME_CONV => self.time_conv = TimeConv::read(&mut cursor).ok(),
            RecordType::HEADER_BUILD_ID => {
                self.build_ids.extend(BuildIdEntry::read(&mut cursor, record.misc));
            }
            _ => {}
        }
    }

    /// Checks a sample and adds its facts.
    fn add_sample(&mut self, file: &RecordFile, record: &RawEvent<'_>, time: u64) {
        let found = file.attributes.find(record.record_type, record.body, file.endian);
        if let Some((_, false)) = found {
            let (field, text) =
                match file.attributes.is_id_unknown(record.record_type, record.body, file.endian) {
                    true => ("id", "no attribute has this event id"),
                    false => ("sample_type", "samples of several events have no event id"),
                };
            self.record_findings
                .push(&UNKNOWN_EVENT, record.offset, Some(record.index), field, || text.into());
        }
        let sample = file.sample(record);
        if let Err(error) = &sample {
            push_body_error(record, error, &mut self.record_findings);
        }
        let Some((index, _)) = found else { return };
        let Some(attribute) = file.attributes.list().get(index) else { return };
        let head = match &sample {
            Ok(sample) => Some(file.own_head(record, attribute, sample.head)),
            Err(_) => file.sample_head(record),
        };
        let Some(head) = head else { return };
        if cookie(&head).is_some() {
            self.deferred.num_samples = self.deferred.num_samples.saturating_add(1);
        }
        self.num_samples = self.num_samples.saturating_add(1);
        let has_stack = attribute.layout.has(abi::PERF_SAMPLE_STACK_USER)
            && sample.map_or_else(|_| file.has_stack_copy(record), |sample| sample.user.has_stack());
        self.num_user_stacks = self.num_user_stacks.saturating_add(u64::from(has_stack));
        if let Some(has_periods) = self.has_periods.get_mut(index) {
            *has_periods |= head.period.is_some_and(|period| period > 0);
        }
        if let Some(pid) = head.pid {
            let (first, last) = self.sampled.entry(pid).or_insert((time, time));
            *first = time.min(*first);
            *last = time.max(*last);
        }
    }

    /// Adds a mapping if it is one of a JITDUMP file.
    fn add_jit_marker(&mut self, file: &RecordFile, record: &RawEvent<'_>, ts: u64) {
        let Some(mapping) = MappingRecord::read(record, file.endian) else { return };
        if mapping.is_jit_marker() && !is_guest(record.misc) {
            self.jit_markers.push(JitMarker {
                pid: mapping.pid,
                tid: mapping.tid,
                ts,
                path: text(mapping.path).into_owned(),
                start_address: mapping.start_address,
                record_offset: record.offset,
            });
        }
    }

    /// Adds the pid namespace of a thread.
    fn add_namespaces(&mut self, file: &RecordFile, record: &RawEvent<'_>, ts: u64) {
        let mut cursor = record.cursor(file.endian);
        let Ok(Namespaces { pid, tid, nr_namespaces }) = Namespaces::read(&mut cursor) else { return };
        let entries = usize::try_from(nr_namespaces).unwrap_or(usize::MAX);
        // Device and inode are two words, like the fields of a section.
        let mut links = std::iter::from_fn(|| Section::read(&mut cursor).ok()).take(entries);
        if let Some(Section { size: inode, .. }) = links.nth(PID_NAMESPACE) {
            self.namespaces.push(PidNamespace { pid, tid, ts, inode });
        }
    }
}

/// Prefetches a later record, at the offset that it has if the records up to it are as large as this one.
#[inline]
fn prefetch_later_record(file: &RecordFile, record: &RawEvent<'_>) {
    if record.size >= LARGE_BYTES && record.location.position().inner == 0 {
        let guess = record.offset.saturating_add(record.size.saturating_mul(PREFETCH_RECORDS));
        file.prefetch_sample(guess);
    }
}

/// Smallest size of records for which prefetching is useful, in bytes.
const LARGE_BYTES: u64 = 2048;
/// Distance of the prefetched record, in records.
const PREFETCH_RECORDS: u64 = 4;

/// Reports departures in a record that is not a sample.
fn check_record(file: &RecordFile, record: &RawEvent<'_>, sink: &mut Diagnostics) {
    let kind = record.record_type;
    let (offset, index) = (record.offset, Some(record.index));
    let mut cursor = record.cursor(file.endian);
    match kind {
        RecordType::LOST => {
            let lost = Lost::read(&mut cursor).map_or(0, |record| record.lost);
            sink.push(&LOST_RECORDS, offset, index, "lost", || format!("{lost} records lost").into());
        }
        RecordType::LOST_SAMPLES => {
            let lost = LostSamples::read(&mut cursor).map_or(0, |record| record.lost);
            let rule = match record.misc & misc::LOST_SAMPLES_BPF {
                0 => &LOST_SAMPLES,
                _ => &FILTERED_SAMPLES,
            };
            sink.push(rule, offset, index, "lost", || format!("{lost} samples dropped").into());
        }
        RecordType::AUX => {
            let flags = Aux::read(&mut cursor).map_or(0, |record| record.flags);
            for (_, loss) in AUX_LOSSES.iter().filter(|(bit, _)| flags & bit != 0) {
                sink.push(&AUX_LOST, offset, index, "flags", || (*loss).into());
            }
        }
        RecordType::AUXTRACE_ERROR => {
            let _ = AuxtraceError::read(&mut cursor);
            sink.push(&TRACE_ERROR, offset, index, "msg", || text(cursor.rest()).into_owned().into());
        }
        RecordType::THROTTLE => {
            sink.push(&THROTTLED, offset, index, "", || "sampling was stopped for a while".into());
        }
        RecordType::ID_INDEX => {
            if let Some(id) = unknown_id(file, record) {
                sink.push(&UNKNOWN_EVENT, offset, index, "entries", || {
                    format!("no attribute has event id {id}").into()
                });
            }
        }
        _ if kind.known_name().is_none() => {
            sink.push(&UNKNOWN_RECORD, offset, index, "type", || {
                format!("{} of {} bytes", kind.name(), record.size).into()
            });
            return;
        }
        _ => {}
    }
    if let Some(error) = file.body_error(record) {
        push_body_error(record, &error, sink);
    }
}

/// Reports the body of a record that cannot be decoded.
fn push_body_error(record: &RawEvent<'_>, error: &ParseError, sink: &mut Diagnostics) {
    let rule = if error.kind == ErrorKind::NoTerminator { &UNTERMINATED } else { &BAD_BODY };
    sink.push(rule, error.offset, Some(record.index), error.field, || {
        format!("{}: {error}", record.record_type.name()).into()
    });
}
