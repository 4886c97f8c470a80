//! Checks a log or profile against its specification.

mod buffers;
mod calls;
pub mod grammar;
mod records;

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, Rule};
use perfuse_workers::{in_call, install};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rustc_hash::{FxHashMap, FxHashSet};

use super::block::FdrBlock;
use super::consts::{HEADER_BYTES, METADATA_BYTES};
use super::fdr::{FdrSurvey, ReadBatch, read_batches, thread_ids};
use super::header::Mode;
use super::layout::ProfileBlock;
use super::log::{LogContent, XRay, agrees};
use super::rate::RateEstimate;
use super::reader::BufferEnd;
use super::rules::*;
use super::{basic, profile};
use perfuse_recording::Recording;

pub use super::rules::RULES;

/// Reports every finding.
pub fn check(log: &XRay, sink: &mut Diagnostics) {
    check_header(log, sink);
    match log.content() {
        LogContent::Fdr(survey) => {
            buffers::report_gaps(survey, sink);
            append(sink, every_buffer(log, survey));
            check_order(log, survey, sink);
            calls::check_fdr_calls(log, survey, sink);
        }
        LogContent::Basic(survey) => {
            check_basic(survey, sink);
            check_basic_records(log, survey, sink);
            calls::check_basic_calls(log, survey, sink);
        }
        LogContent::Profile(survey) => check_profile(log, survey, sink),
    }
}

/// Reports what is known from the survey, without reading the records again.
pub fn findings(log: &XRay, sink: &mut Diagnostics) {
    check_header(log, sink);
    match log.content() {
        LogContent::Fdr(survey) => {
            buffers::report_gaps(survey, sink);
            for (index, block) in survey.blocks.iter().enumerate() {
                buffers::check_buffer(log, survey, index, block, sink);
                buffers::summarise_records(log, survey, index, block, sink);
            }
            check_order(log, survey, sink);
        }
        LogContent::Basic(survey) => {
            check_basic(survey, sink);
            summarise_basic_records(survey, sink);
        }
        LogContent::Profile(survey) => check_profile(log, survey, sink),
    }
}

/// Checks all buffers in parallel; findings are in file order.
fn every_buffer(log: &XRay, survey: &FdrSurvey) -> Diagnostics {
    let mut first_record = 0u64;
    let firsts: Vec<u64> = survey
        .blocks
        .iter()
        .map(|block| {
            let first = first_record;
            first_record = first_record.saturating_add(block.counts.total());
            first
        })
        .collect();
    let jobs = read_batches(&survey.blocks, |block| block.records.clone());
    let check_batch = |ReadBatch { items, bytes }| {
        let mut sink = Diagnostics::default();
        let first = items.start;
        let blocks = survey.blocks.get(items.clone()).unwrap_or_default().iter();
        let firsts = firsts.get(items).unwrap_or_default();
        for (index, (block, first_record)) in (first..).zip(blocks.zip(firsts)) {
            buffers::check_buffer(log, survey, index, block, &mut sink);
            records::check_records(log, survey, index, *first_record, &mut sink);
        }
        log.source().release(bytes);
        sink
    };
    install(|| {
        let results = jobs.into_par_iter().map(in_call(check_batch));
        results.reduce(Diagnostics::default, Diagnostics::followed_by)
    })
}

/// Appends diagnostics.
fn append(sink: &mut Diagnostics, more: Diagnostics) {
    *sink = std::mem::take(sink).followed_by(more);
}

/// Smallest relative difference of the rate that is reported; smaller ones do not show in reports.
const MIN_DIFFERENCE: f64 = 0.01;

/// Largest relative error of an estimate that is trusted.
pub const MAX_RELATIVE_ERROR: f64 = 0.05;

/// The rate estimated from the log, where the header states another one or none.
pub fn true_rate(log: &XRay) -> Option<RateEstimate> {
    differing_rate(log.header().file.cycle_frequency, log.estimate())
}

/// An estimate that is better than the rate in the header, where 0 is none.
pub fn differing_rate(stated: u64, found: Option<RateEstimate>) -> Option<RateEstimate> {
    let found = found.filter(|found| found.relative_error < MAX_RELATIVE_ERROR)?;
    let differs =
        |hz: u64| !agrees(hz, &found) && (hz as f64 / found.hz - 1.0).abs() > MIN_DIFFERENCE || hz == 0;
    // The header has whole numbers: a rate of few ticks per second is not better when it is rounded.
    (differs(stated) && !differs(found.hz.round() as u64)).then_some(found)
}

/// Checks the header.
fn check_header(log: &XRay, sink: &mut Diagnostics) {
    let header = log.header();
    if !header.is_known_version() {
        let (version, offset) = match header.profile {
            Some(profile) => (format!("{:#x}", profile.version), 8),
            None => (header.file.version.to_string(), 0),
        };
        sink.push(&VERSION, offset, None, "version", || format!("version is {version}").into());
    }
    if header.mode == Mode::Profile {
        return;
    }
    check_rate(log, sink);
    let file = &header.file;
    let size_is_garbage = header.mode == Mode::Basic && file.buffer_size != 0;
    let other_flags = file.flags & !header.tsc_flag_bits() != 0;
    if other_flags || size_is_garbage || file.reserved != 0 {
        let offset = if other_flags {
            4
        } else if size_is_garbage {
            16
        } else {
            24
        };
        let message = format!(
            "flags are {:#x}, bytes 16 to 31 {:#x} and {:#x}",
            file.flags, file.buffer_size, file.reserved
        );
        sink.push(&HEADER_GARBAGE, offset, None, "reserved", || message.into());
    }
    if log.source().len() <= HEADER_BYTES {
        sink.push(&NOTHING, 0, None, "", || "nothing follows the header".into());
    }
}

/// Compares the counter rate in the header with the estimate.
fn check_rate(log: &XRay, sink: &mut Diagnostics) {
    let stated = log.header().file.cycle_frequency;
    let shown = |found: &RateEstimate| {
        let (mhz, share) = (found.hz / 1e6, found.relative_error * 100.0);
        format!("wall times of {} buffers show {mhz:.3} MHz, within {share:.2} %", found.num_pairs)
    };
    match (stated, true_rate(log)) {
        (0, Some(found)) => {
            let message = format!("cycle_frequency is 0; {}", shown(&found));
            sink.push(&FREQUENCY_ZERO, 8, None, "cycle_frequency", || message.into());
        }
        (0, None) => {
            sink.push(&FREQUENCY_ZERO, 8, None, "cycle_frequency", || "cycle_frequency is 0".into());
        }
        (stated, Some(found)) => {
            let message = format!("the header states {:.3} MHz; {}", stated as f64 / 1e6, shown(&found));
            sink.push(&FREQUENCY_WRONG, 8, None, "cycle_frequency", || message.into());
        }
        _ => {}
    }
}

/// Lowest bit of the object number in a packed function id.
const OBJECT_SHIFT: u32 = 24;

/// Bytes that may be free in a buffer when its thread continues in another: a function record, with everything that
/// may have to precede it.
const ROOM_LEFT: u64 = 64;

/// Checks the order of buffers, and whether function ids are ambiguous.
fn check_order(log: &XRay, survey: &FdrSurvey, sink: &mut Diagnostics) {
    check_buffer_times(survey, sink);
    check_processes(survey, sink);
    check_unfilled_buffers(log, survey, sink);
    let objects = survey.function_ids.iter().map(|id| id >> OBJECT_SHIFT).filter(|&object| object > 0);
    if let Some(last) = objects.max() {
        let message = format!(
            "object numbers up to {last} occur in ids; numbers from 16 on are truncated to lower ones"
        );
        sink.push(&ALIASES, HEADER_BYTES as u64, None, "function_id", || message.into());
    }
}

/// How often the wall time decreases between consecutive buffers of a thread.
#[derive(Default)]
struct BackwardSteps {
    last: (i64, i32),
    num: u64,
}

/// Reports buffers of a thread that are not in order of time.
fn check_buffer_times(survey: &FdrSurvey, sink: &mut Diagnostics) {
    let mut threads: FxHashMap<(i32, i32), BackwardSteps> = FxHashMap::default();
    let mut first: Option<&FdrBlock> = None;
    for (index, block) in survey.blocks.iter().enumerate() {
        let Some(wall) = block.wall.filter(|_| !survey.copies.contains_key(&index)) else { continue };
        let thread = threads.entry(thread_ids(block)).or_insert(BackwardSteps { last: wall, num: 0 });
        if wall < thread.last {
            thread.num = thread.num.saturating_add(1);
            let _ = first.get_or_insert(block);
        }
        thread.last = wall;
    }
    let Some(first) = first else { return };
    let back = threads.values().filter(|thread| thread.num > 0).count();
    if threads.values().all(|thread| thread.num <= 1) {
        let message =
            format!("the oldest remaining buffer starts here; time decreases once in {back} threads");
        sink.push(&ROTATED, first.offset, None, "", || message.into());
    } else {
        let num = threads.values().fold(0u64, |sum, thread| sum.saturating_add(thread.num));
        let message = format!("time decreases {num} times in {back} threads");
        sink.push(&UNORDERED, first.offset, None, "", || message.into());
    }
}

/// A process writes one log. Buffers of another process are of one that forked it, and precede its own.
fn check_processes(survey: &FdrSurvey, sink: &mut Diagnostics) {
    let ordered = survey.order.iter().filter_map(|&index| survey.blocks.get(index));
    let mut processes =
        ordered.filter_map(|block| block.pid.map(|pid| (pid, block.offset))).collect::<Vec<_>>();
    processes.dedup_by_key(|(pid, _)| *pid);
    let distinct: FxHashSet<i32> = processes.iter().map(|(pid, _)| *pid).collect();
    // Those that ran at the same time are of logs that were put together.
    if let [earlier @ .., (parent, _), (pid, offset)] = processes.as_slice()
        && distinct.len() == earlier.len().saturating_add(2)
    {
        let message = format!("buffers of process {parent} precede those of process {pid}");
        sink.push(&FORKED, *offset, None, "pid", || message.into());
    }
}

/// A thread takes another buffer when its own is full; free space means that something between them is missing.
fn check_unfilled_buffers(log: &XRay, survey: &FdrSurvey, sink: &mut Diagnostics) {
    let size = log.header().file.buffer_size;
    let has_extents = log.header().dialect().version > 1;
    let mut last: FxHashMap<(i32, i32), &FdrBlock> = FxHashMap::default();
    for block in survey.order.iter().filter_map(|&index| survey.blocks.get(index)) {
        let Some(before) = last.insert(thread_ids(block), block) else { continue };
        // From its first record, also where records are those of another log.
        let extents = if has_extents && !before.is_later_part { METADATA_BYTES as u64 } else { 0 };
        let used = (before.end as u64).saturating_sub(before.offset).saturating_sub(extents);
        let room = size.saturating_sub(used);
        if before.bound == BufferEnd::Stated
            && !before.has_events()
            && !block.has_events()
            && room > ROOM_LEFT
        {
            let message = format!("{room} of {size} bytes were free");
            sink.push(&HALF_EMPTY, before.offset, None, "size", || message.into());
        }
    }
}

/// Reports findings about a Basic mode log as a whole.
fn check_basic(survey: &basic::BasicSurvey, sink: &mut Diagnostics) {
    if let (num, Some(first)) = survey.copies {
        sink.push(&BASIC_COPIES, first, None, "", || format!("{num} records are duplicates").into());
    } else if let Some(first) = survey.first_backward {
        sink.push(&BASIC_BACK, first, None, "tsc", || {
            "the time is before that of the thread's last record".into()
        });
    }
    if let (num, Some(first)) = survey.unwritten {
        sink.push(&BASIC_UNWRITTEN, first, None, "", || {
            format!("{num} of {} records are zeros: they were not written", survey.num_records).into()
        });
    }
    if survey.tail > 0 {
        let offset = basic::record_offset(survey.num_records) as u64;
        sink.push(&BASIC_TAIL, offset, None, "", || {
            format!("{} bytes remain, a record needs 32", survey.tail).into()
        });
    }
}

/// Reports the number of invalid records of each kind.
fn summarise_basic_records(survey: &basic::BasicSurvey, sink: &mut Diagnostics) {
    let num_unknown = survey.kinds.last().copied().unwrap_or(0);
    let mut report = |rule, num: u64, first: Option<u64>, field| {
        if let Some(first) = first {
            sink.push(rule, first, None, field, || format!("{num} of {} records", survey.num_records).into());
        }
    };
    report(&BASIC_TYPE, survey.unknown.0, survey.unknown.1, "record_type");
    report(&BASIC_KIND, num_unknown, survey.first_unknown_kind, "kind");
    report(&BASIC_ORPHAN, survey.orphan_arguments, survey.first_orphan, "function_id");
}

/// Reports each invalid record.
fn check_basic_records(log: &XRay, survey: &basic::BasicSurvey, sink: &mut Diagnostics) {
    let header = log.header();
    let mut last_entry = None;
    for index in 0..survey.num_records {
        let offset = basic::record_offset(index) as u64;
        let Some(entry) = basic::read_item(log.source(), index, header.endian) else { continue };
        let mut report = |rule: &'static Rule, field, message: String| {
            sink.push(rule, offset, Some(index as u64), field, || Cow::Owned(message));
        };
        let reserved = match entry {
            basic::BasicItem::Function(record) => {
                if record.kind > 3 {
                    report(&BASIC_KIND, "kind", format!("kind is {}", record.kind));
                }
                record.reserved
            }
            basic::BasicItem::Argument(argument) => {
                if !argument.is_of(last_entry) {
                    report(
                        &BASIC_ORPHAN,
                        "function_id",
                        format!("no entry of {} before it", argument.function_id),
                    );
                }
                argument.reserved | u64::from(argument.padding)
            }
            basic::BasicItem::Unknown(record_type) => {
                report(&BASIC_TYPE, "record_type", format!("record_type is {record_type}"));
                0
            }
            basic::BasicItem::Unwritten => 0,
        };
        if reserved != 0 {
            report(&RESERVED, "reserved", "reserved bytes are not 0".to_owned());
        }
        if let basic::BasicItem::Function(record) = entry {
            last_entry = Some(record);
        }
    }
}

/// Checks a profile; the survey has read all call paths.
fn check_profile(log: &XRay, survey: &profile::ProfileSurvey, sink: &mut Diagnostics) {
    if survey.num_paths == 0 && survey.broken.is_none() {
        sink.push(&NOTHING, 0, None, "", || "there is no call path".into());
    }
    for block in &survey.blocks {
        let size = u64::from(block.header.size);
        if size < ProfileBlock::SIZE {
            sink.push(&PROFILE_BLOCK, block.offset, None, "size", || format!("size is {size}").into());
        }
        if let Some(error) = &block.broken {
            sink.push(&PROFILE_CUT, error.offset, None, error.field, || error.to_string().into());
        } else if block.offset.saturating_add(size) > log.source().len() as u64 {
            let have = (log.source().len() as u64).saturating_sub(block.offset);
            sink.push(&PROFILE_CUT, block.offset, None, "size", || {
                format!("size is {size}, {have} bytes are present").into()
            });
        }
        if block.num_short > 0 {
            let message = format!(
                "{} of {} paths of thread {} have less time than the paths they call",
                block.num_short, block.num_paths, block.header.thread
            );
            sink.push(&PROFILE_SHORT, block.offset, None, "cumulative_local_time", || message.into());
        }
    }
    if let Some(error) = &survey.broken {
        sink.push(&PROFILE_CUT, error.offset, None, error.field, || error.to_string().into());
    }
}
