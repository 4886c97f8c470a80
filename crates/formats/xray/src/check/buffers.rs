//! Checks buffers as a whole: their ends, copies, overwritten and truncated data.

use std::ops::Range;

use perfuse_wire::{Diagnostics, ErrorKind, ParseError, Rule};

use crate::block::FdrBlock;
use crate::consts::{METADATA_BYTES, MetadataKind};
use crate::fdr::FdrSurvey;
use crate::log::XRay;
use crate::reader::BufferEnd;
use crate::record_iter::UNWRITTEN;
use crate::records::{is_metadata, metadata_kind};
use crate::rules::*;
use perfuse_recording::Recording;

/// Reports bytes that are not part of any buffer.
pub fn report_gaps(survey: &FdrSurvey, sink: &mut Diagnostics) {
    for gap in &survey.gaps {
        let message = format!("{} bytes up to {:#x} are not part of a buffer", gap.len(), gap.end);
        sink.push(&LOST, gap.start as u64, None, "", || message.into());
    }
}

/// Reports what is known about a buffer without reading its records.
pub fn check_buffer(log: &XRay, survey: &FdrSurvey, index: usize, block: &FdrBlock, sink: &mut Diagnostics) {
    if is_empty(block) {
        return sink.push(&EMPTY_BUFFER, block.offset, None, "size", || "BufferExtents of 0 bytes".into());
    }
    check_stated_size(log, block, sink);
    check_end(log, block, sink);
    if let Some(original) = survey.copies.get(&index).and_then(|&original| survey.blocks.get(original)) {
        let message = format!(
            "{} bytes are equal to those of the buffer at {:#x}",
            block.records.len(),
            original.offset
        );
        sink.push(&COPY, block.offset, None, "", || message.into());
    }
    if block.tid.is_some_and(|tid| tid < 0) {
        let message = format!("tid is {}", block.tid.unwrap_or_default());
        sink.push(&NEGATIVE_TID, block.records.start as u64, None, "tid", || message.into());
    }
    if !block.payloads && block.event_bytes > 0 {
        let num = num_events(block);
        let message = format!("{num} events of {} bytes together", block.event_bytes);
        sink.push(&OVERWRITTEN, block.offset, None, "event", || message.into());
    }
    if is_typed_cut(log, block) {
        let (num, min_bytes) = (block.counts.of(MetadataKind::TYPED_EVENT_MARKER), cut_bytes(block));
        let message = format!("{num} typed events remain: at least {min_bytes} bytes are missing");
        sink.push(&TYPED_CUT, block.end as u64, None, "", || message.into());
    }
}

/// Reports violations that the record counts show; [`check_records`](super::records::check_records) reports each of
/// them.
pub fn summarise_records(
    log: &XRay,
    survey: &FdrSurvey,
    index: usize,
    block: &FdrBlock,
    sink: &mut Diagnostics,
) {
    let version = log.header().dialect().version;
    if is_empty(block) {
        return;
    }
    let offset = block.records.start as u64;
    let is_cut = block.broken.is_some() || block.missing > 0;
    if let Some((rule, name)) = missing_record(survey, index, block, version).filter(|_| !is_cut) {
        sink.push(rule, offset, None, "", || format!("there is no {name}").into());
    }
    let mut counted = |rule, count: u64, of: &str| {
        if count > 0 {
            sink.push(rule, offset, None, "", || format!("{count} {of}").into());
        }
    };
    let num_unknown =
        block.counts.functions.iter().skip(4).fold(0u64, |sum, count| sum.saturating_add(*count));
    counted(&UNKNOWN_ACTION, num_unknown, "function records of unknown action");
    counted(&UNKNOWN_KIND, block.counts.unknown, "metadata records of unknown kind");
    if block.is_later_part {
        counted(&SECOND_NEW_BUFFER, 1, "NewBuffer inside the previous buffer");
    }
    if version > 1 {
        counted(&END_OF_BUFFER, block.counts.of(MetadataKind::END_OF_BUFFER), "EndOfBuffer");
    }
}

/// The first missing record of the preamble.
fn missing_record(
    survey: &FdrSurvey,
    index: usize,
    block: &FdrBlock,
    version: u16,
) -> Option<(&'static Rule, &'static str)> {
    if block.tid.is_none() {
        Some((&NO_NEW_BUFFER, "NewBuffer"))
    } else if block.wall.is_none() {
        Some((&NO_WALL_TIME, "WallTimeMarker"))
    } else if block.pid.is_none() && version >= 3 {
        Some((&NO_PID, "Pid"))
    } else if block.first_cpu.is_some() {
        None
    } else if is_carried(survey, index, block, version) {
        Some((&CARRIED, "NewCPUId"))
    } else {
        Some((&NO_CPU, "NewCPUId"))
    }
}

/// Whether the initial state of the buffer is the last state of the thread's previous buffer.
pub fn is_carried(survey: &FdrSurvey, index: usize, block: &FdrBlock, version: u16) -> bool {
    survey.carried.contains_key(&index) || version == 1 && block.slices.is_empty()
}

/// Whether the buffer consists of BufferExtents only.
pub fn is_empty(block: &FdrBlock) -> bool {
    block.records.is_empty() && block.broken.is_none()
}

/// Number of custom and typed events.
fn num_events(block: &FdrBlock) -> u64 {
    let (custom, typed) = (
        block.counts.of(MetadataKind::CUSTOM_EVENT_MARKER),
        block.counts.of(MetadataKind::TYPED_EVENT_MARKER),
    );
    custom.saturating_add(typed)
}

/// Compares the stated size with the actual end.
fn check_stated_size(log: &XRay, block: &FdrBlock, sink: &mut Diagnostics) {
    if block.is_later_part {
        return;
    }
    let header = log.header();
    let available = block.end.saturating_sub(block.records.start);
    match block.bound {
        BufferEnd::Stated => {}
        // Reported with the last part of the buffer.
        BufferEnd::Cut(_) => {}
        BufferEnd::TooLong(size) => {
            let message = format!("size is {size}; the next buffer starts after {available} bytes");
            sink.push(&EXTENTS_LONG, block.offset, None, "size", || message.into());
        }
        BufferEnd::TooShort(size) => {
            let message = format!("size is {size}; records continue for {available} bytes");
            sink.push(&EXTENTS_SHORT, block.offset, None, "size", || message.into());
        }
        BufferEnd::Unstated if header.dialect().version == 1 => {
            let message = format!("buffer_size is {}", header.file.buffer_size);
            sink.push(&STRIDE, block.offset, None, "buffer_size", || message.into());
        }
        BufferEnd::Unstated => {
            sink.push(&NO_EXTENTS, block.offset, None, "", || "there is no BufferExtents before it".into());
        }
    }
}

/// Checks the end of the buffer beyond its stated size.
fn check_end(log: &XRay, block: &FdrBlock, sink: &mut Diagnostics) {
    let header = log.header();
    let (end, len) = (block.end, log.source().len());
    if let Some(error) = block.broken.as_deref().filter(|error| error.field == UNWRITTEN) {
        let zeros = (end as u64).saturating_sub(error.offset);
        let message = format!("{zeros} bytes up to {end:#x} were not written: they begin with zeros");
        sink.push(&LOST, error.offset, None, "", || message.into());
    }
    if block.missing > 0 {
        let (available, missing) = (end.saturating_sub(block.records.start), block.missing);
        let message = format!("{available} bytes are present, {missing} are missing");
        return sink.push(&TRUNCATED, end as u64, None, "", || message.into());
    }
    if header.dialect().version == 1 && block.counts.of(MetadataKind::END_OF_BUFFER) == 0 {
        let available = end.saturating_sub(block.records.start) as u64;
        let is_cut = end == len && block.bound == BufferEnd::Stated && available < header.file.buffer_size;
        return if is_cut {
            let missing = header.file.buffer_size.saturating_sub(available);
            sink.push(&TRUNCATED, end as u64, None, "", || {
                format!("{missing} bytes are missing, and EndOfBuffer").into()
            });
        } else {
            sink.push(&NO_END, end as u64, None, "", || {
                "records continue up to the end of the buffer".into()
            });
        };
    }
    match &block.broken {
        Some(error) if error.field == UNWRITTEN => {}
        Some(error) if is_typed_cut(log, block) && is_short(error) => {}
        Some(error) if block.bound == BufferEnd::Unstated && end == len => {
            sink.push(&TRUNCATED, error.offset, None, error.field, || error.to_string().into());
        }
        Some(error) if error.field == "event" => {
            sink.push(&EVENT_SIZE, error.offset, None, "event_size", || event_size(error).into());
        }
        Some(error) => sink.push(&CUT_RECORD, error.offset, None, error.field, || error.to_string().into()),
        None => {}
    }
}

/// The message for an event that exceeds its buffer.
fn event_size(error: &ParseError) -> String {
    match error.kind {
        ErrorKind::Short { need, have } if need <= i32::MAX as u64 => {
            format!("event_size is {need}, {have} bytes remain")
        }
        _ => "event_size is negative".to_owned(),
    }
}

/// Whether bytes are missing.
fn is_short(error: &ParseError) -> bool {
    matches!(error.kind, ErrorKind::Short { .. })
}

/// The smallest number of bytes that typed events cut off the end of a buffer, from the number that remains.
pub fn cut_bytes(block: &FdrBlock) -> u64 {
    block.counts.of(MetadataKind::TYPED_EVENT_MARKER).saturating_mul(METADATA_BYTES as u64)
}

/// Whether typed events cut bytes off the end of the buffer: where the cut is inside a record, or where reserved
/// bytes of the preamble are not 0, as LLVM's runtime leaves them, unlike writers without this defect.
pub fn is_typed_cut(log: &XRay, block: &FdrBlock) -> bool {
    let version = log.header().dialect().version;
    if version < 5 || block.bound != BufferEnd::Stated || cut_bytes(block) == 0 {
        return false;
    }
    match block.broken.as_deref() {
        Some(ParseError { kind: ErrorKind::Short { need, have }, .. }) => {
            // The last marker read may be one more.
            need.saturating_sub(*have) <= cut_bytes(block).saturating_add(METADATA_BYTES as u64)
        }
        Some(_) => false,
        None => preamble_has_garbage(log, block),
    }
}

/// Whether reserved bytes of the preamble are not 0.
fn preamble_has_garbage(log: &XRay, block: &FdrBlock) -> bool {
    let dialect = log.header().dialect();
    let begin = usize::try_from(block.offset).unwrap_or(usize::MAX);
    let bytes = log.source().get(begin..block.records.end).unwrap_or_default();
    let (records, _) = bytes.as_chunks::<METADATA_BYTES>();
    let preamble = records.iter().take_while(|[first, ..]| {
        is_metadata(*first, dialect.endian)
            && metadata_kind(*first, dialect.endian) != MetadataKind::CUSTOM_EVENT_MARKER
            && metadata_kind(*first, dialect.endian) != MetadataKind::TYPED_EVENT_MARKER
    });
    preamble.take(5).any(|record| {
        let [first, ..] = *record;
        has_garbage(record, metadata_kind(first, dialect.endian), dialect.version)
    })
}

/// Whether bytes of a metadata record outside of its fields are not 0.
pub fn has_garbage(record: &[u8], kind: MetadataKind, version: u16) -> bool {
    let fields = crate::layout::field_bytes(kind, version).unwrap_or(METADATA_BYTES as u64);
    let rest: Range<usize> = usize::try_from(fields).unwrap_or(METADATA_BYTES)..METADATA_BYTES;
    record.get(rest).is_some_and(|rest| rest.iter().any(|byte| *byte != 0))
}
