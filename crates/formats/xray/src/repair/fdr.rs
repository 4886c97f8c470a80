//! Repairs FDR logs, buffer by buffer.

use std::hash::RandomState;
use std::io::{self, Write};

use rustc_hash::FxHashSet;

use super::output::{RepairOutput, log_header};
use super::plan::{PlannedBuffer, plan};
use crate::block::{FdrBlock, RECORDS_PER_SLICE, TscState};
use crate::check::differing_rate;
use crate::check::grammar::{Grammar, RecordClass};
use crate::consts::{Action, FUNCTION_BYTES};
use crate::encode::has_kind;
use crate::event_payloads;
use crate::fdr::FdrSurvey;
use crate::log::{XRay, wall_ns};
use crate::rate::{self, ClockPair};
use crate::record_iter::{FunctionRun, RecordItem, RecordIter};
use crate::records::{Event, EventTime, Record, XRayDialect, metadata_kind};
use crate::rules::{COPY, FREQUENCY_WRONG, FREQUENCY_ZERO, OVERWRITTEN};
use perfuse_recording::{Change, Recording};

/// In version 1 the output is at most this many times the input plus a megabyte, so that padding does not fill a
/// disk.
const MAX_PADDING_RATIO: u64 = 16;

/// Largest `buffer_size` that is retained where the file is smaller.
const MAX_UNBACKED_BUFFER_BYTES: u64 = 1 << 20;

/// Writes an FDR log; returns changes that no finding announced.
///
/// # Errors
/// When writing fails.
pub fn write_fdr_log(log: &XRay, survey: &FdrSurvey, out: &mut dyn Write) -> io::Result<Vec<Change>> {
    let dialect = XRayDialect { payloads: true, ..log.header().dialect() };
    let mut changes = Vec::new();
    let buffers = measure_all(log, survey, dialect, &mut changes)?;
    let hz = written_rate(log, &buffers, &mut changes);
    if dialect.version == 1 {
        write_version_1(log, survey, &buffers, hz, out)?;
        return Ok(changes);
    }
    out.write_all(&log_header(log, hz, log.header().file.buffer_size))?;
    let mut out = RepairOutput::to(out, dialect);
    for buffer in &buffers {
        out.put(&Record::BufferExtents(buffer.bytes))?;
        write_buffer(log, survey, &buffer.planned, &mut out)?;
        release(log, survey, &buffer.planned);
    }
    out.flush()?;
    Ok(changes)
}

/// A buffer to write, and what will be written.
struct MeasuredBuffer {
    planned: PlannedBuffer,
    /// Size in bytes, without BufferExtents.
    bytes: u64,
    /// Wall time in nanoseconds and the counter after it.
    clock_pair: Option<ClockPair>,
}

/// The planned buffers with their sizes, without those that become equal to another one, since readers take them for copies.
fn measure_all(
    log: &XRay,
    survey: &FdrSurvey,
    dialect: XRayDialect,
    changes: &mut Vec<Change>,
) -> io::Result<Vec<MeasuredBuffer>> {
    let keys = [RandomState::new(), RandomState::new()];
    let mut seen = FxHashSet::default();
    let mut buffers = Vec::new();
    for mut planned in plan(log, survey) {
        planned.without_payloads = is_ambiguous(log, survey, &planned, dialect)?;
        if planned.without_payloads {
            let offset = survey.blocks.get(planned.index).map_or(0, |block| block.offset);
            let message =
                "readers would take the bytes of events for records: eight bytes 0 were written for each";
            changes.push(Change { rule: &OVERWRITTEN, offset, message: message.to_owned() });
        }
        let mut sum = RepairOutput::counting(dialect, &keys);
        write_buffer(log, survey, &planned, &mut sum)?;
        sum.flush()?;
        release(log, survey, &planned);
        let is_known = planned.wall != (0, 0);
        if is_known && !seen.insert(sum.hashes()) {
            let offset = survey.blocks.get(planned.index).map_or(0, |block| block.offset);
            let message = "with its corrections it equals another buffer, and was left out".to_owned();
            changes.push(Change { rule: &COPY, offset, message });
            continue;
        }
        let wall_ns = wall_ns(planned.wall).filter(|_| is_known);
        buffers.push(MeasuredBuffer { planned, bytes: sum.len, clock_pair: wall_ns.zip(sum.first_tsc) });
    }
    Ok(buffers)
}

/// Whether a reader of the written buffer takes bytes of events for records. Versions 1 to 3 do not state that the bytes are
/// there, and records that a repair leaves out may have shown it.
fn is_ambiguous(
    log: &XRay,
    survey: &FdrSurvey,
    planned: &PlannedBuffer,
    dialect: XRayDialect,
) -> io::Result<bool> {
    let has_events = survey.blocks.get(planned.index).is_some_and(FdrBlock::has_events);
    if dialect.version > 3 || !has_events {
        return Ok(false);
    }
    let mut bytes = Vec::new();
    let mut out = RepairOutput::to(&mut bytes, dialect);
    write_buffer(log, survey, planned, &mut out)?;
    out.flush()?;
    Ok(event_payloads::is_ambiguous(&bytes, dialect))
}

/// The rate for the header: that which the wall times of the written buffers show where they show another than it states.
fn written_rate(log: &XRay, buffers: &[MeasuredBuffer], changes: &mut Vec<Change>) -> u64 {
    let stated = log.header().file.cycle_frequency;
    let mut pairs: Vec<ClockPair> = buffers.iter().filter_map(|buffer| buffer.clock_pair).collect();
    pairs.sort_unstable();
    let Some(found) = differing_rate(stated, rate::estimate(&pairs)) else { return stated };
    let hz = found.hz.round() as u64;
    let rule = if stated == 0 { &FREQUENCY_ZERO } else { &FREQUENCY_WRONG };
    let message = format!("the rate was {stated} Hz: the estimated rate of {hz} Hz was written");
    changes.push(Change { rule, offset: FREQUENCY_OFFSET, message });
    hz
}

/// Offset of `cycle_frequency` in the header.
const FREQUENCY_OFFSET: u64 = 8;

/// Writes a log of version 1, where buffers have equal distances.
fn write_version_1(
    log: &XRay,
    survey: &FdrSurvey,
    buffers: &[MeasuredBuffer],
    hz: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let dialect = XRayDialect { payloads: true, ..log.header().dialect() };
    let largest = buffers.iter().map(|buffer| buffer.bytes).max().unwrap_or(0);
    let len = log.source().len() as u64;
    let stated = log.header().file.buffer_size;
    // A last buffer with whose records the file ends stays as it is. Otherwise what is written decides, so that a second repair
    // does the same.
    let starts_at =
        |buffer: &MeasuredBuffer| Some(survey.blocks.get(buffer.planned.index)?.records.start as u64);
    let ends_the_file =
        |last: &MeasuredBuffer| starts_at(last).map(|at| at.saturating_add(last.bytes)) == Some(len);
    let num_padded = buffers.len().saturating_sub(usize::from(buffers.last().is_some_and(ends_the_file)));
    let written = buffers.iter().fold(0u64, |sum, buffer| sum.saturating_add(buffer.bytes));
    let max_bytes =
        len.max(written.saturating_mul(MAX_PADDING_RATIO).saturating_add(MAX_UNBACKED_BUFFER_BYTES));
    let fits = |stride: &u64| stride.saturating_mul(num_padded as u64) <= max_bytes;
    let is_backed = num_padded == 0 || stated <= len.max(MAX_UNBACKED_BUFFER_BYTES);
    let stated = is_backed.then_some(stated.max(largest));
    let stride = stated.filter(fits).or(Some(largest).filter(fits)).unwrap_or(0);
    out.write_all(&log_header(log, hz, stride))?;
    let mut out = RepairOutput::to(out, dialect);
    for (number, buffer) in buffers.iter().enumerate() {
        write_buffer(log, survey, &buffer.planned, &mut out)?;
        if number < num_padded {
            out.pad(stride.saturating_sub(buffer.bytes))?;
        }
        release(log, survey, &buffer.planned);
    }
    out.flush()
}

/// Releases the pages of a buffer.
fn release(log: &XRay, survey: &FdrSurvey, planned: &PlannedBuffer) {
    if let Some(block) = survey.blocks.get(planned.index) {
        log.source().release(block.records.clone());
    }
}

/// Replaces the bytes of an event that has none. Their number keeps function records at multiples of their size, as
/// llvm-xray reads the padding of version 1 as such.
const PLACEHOLDER_EVENT: [u8; FUNCTION_BYTES] = [0; FUNCTION_BYTES];

/// Writes a buffer without BufferExtents.
///
/// # Errors
/// When writing fails.
fn write_buffer(
    log: &XRay,
    survey: &FdrSurvey,
    planned: &PlannedBuffer,
    out: &mut RepairOutput<'_>,
) -> io::Result<()> {
    let Some(block) = survey.blocks.get(planned.index) else { return Ok(()) };
    let dialect = XRayDialect { payloads: block.payloads, ..log.header().dialect() };
    let mut grammar = Grammar::new(dialect.version);
    grammar.before = if dialect.version == 1 { RecordClass::Start } else { RecordClass::Extents };
    let mut body = BufferRepair {
        data: log.source(),
        dialect,
        grammar,
        clock: planned.clock,
        is_carried: planned.is_carried,
        has_cpu: false,
        skipped_from: None,
        without_payloads: planned.without_payloads,
        out,
    };
    body.preamble(block, planned.wall)?;
    body.records(block)
}

struct BufferRepair<'a, 'o, 'w> {
    data: &'a [u8],
    dialect: XRayDialect,
    grammar: Grammar,
    clock: TscState,
    is_carried: bool,
    /// Whether NewCPUId was written; it precedes all other records after the preamble.
    has_cpu: bool,
    /// The counter before records that advanced it were left out.
    skipped_from: Option<u64>,
    /// Whether events are written without their bytes.
    without_payloads: bool,
    out: &'o mut RepairOutput<'w>,
}

impl BufferRepair<'_, '_, '_> {
    /// Writes the preamble up to Pid.
    fn preamble(&mut self, block: &FdrBlock, (seconds, microseconds): (i64, i32)) -> io::Result<()> {
        self.out.put(&Record::NewBuffer { tid: block.tid.unwrap_or(0) })?;
        self.out.put(&Record::WallTime { seconds, microseconds })?;
        if self.dialect.version >= 3 {
            self.out.put(&Record::Pid(block.pid.unwrap_or(0)))?;
        }
        Ok(())
    }

    /// Writes the records after the preamble.
    fn records(&mut self, block: &FdrBlock) -> io::Result<()> {
        let mut records = RecordIter::new(self.data, block.records.clone(), self.dialect);
        loop {
            let run = records.functions(RECORDS_PER_SLICE);
            if !run.is_empty() {
                self.functions(&run)?;
                continue;
            }
            match records.next() {
                Some(RecordItem::Metadata { record: Record::EndOfBuffer, .. })
                    if self.dialect.version == 1 =>
                {
                    break;
                }
                Some(RecordItem::Metadata { offset, record, .. }) => self.metadata(offset, &record)?,
                Some(RecordItem::Function { .. } | RecordItem::Broken(_)) | None => break,
            }
        }
        self.ensure_new_cpu(self.clock.tsc)?;
        if self.dialect.version == 1 {
            self.out.put(&Record::EndOfBuffer)?;
        }
        Ok(())
    }

    /// Copies a run of function records. Only those that need another record before them, or are left out, are
    /// handled one by one.
    fn functions(&mut self, run: &FunctionRun<'_>) -> io::Result<()> {
        let (mut copied, mut offset) = (run.offset, run.offset);
        let mut written = Ok(());
        run.for_each(|action, function_id, delta| {
            let here = offset;
            offset = offset.saturating_add(FUNCTION_BYTES);
            let now = self.clock.tsc.wrapping_add(u64::from(delta));
            if action.name().is_some() && self.has_cpu && !self.needs_wrap(now) {
                self.clock.tsc = now;
            } else if written.is_ok() {
                written = self.copy(copied..here).and_then(|()| self.function(action, function_id, now));
                copied = offset;
            }
        });
        written?;
        if let Some((action, _)) = run.last() {
            self.grammar.before = RecordClass::of_action(action);
        }
        self.copy(copied..offset)
    }

    /// Copies function records of the source.
    fn copy(&mut self, range: std::ops::Range<usize>) -> io::Result<()> {
        let bytes = self.data.get(range).unwrap_or_default();
        self.out.put_bytes(bytes)
    }

    /// Writes a function record at the time `now`; one of undefined action is left out.
    fn function(&mut self, action: Action, function_id: u32, now: u64) -> io::Result<()> {
        self.ensure_new_cpu(now)?;
        if action.name().is_none() {
            let before = std::mem::replace(&mut self.clock.tsc, now);
            self.skipped_from.get_or_insert(before);
            return Ok(());
        }
        let tsc_delta = u32::try_from(self.advance_to(now)?).unwrap_or(0);
        self.out.put(&Record::Function { action, function_id, tsc_delta })
    }

    /// Whether a TSCWrap is needed before a record at the time `now`.
    fn needs_wrap(&self, now: u64) -> bool {
        self.skipped_from.is_some() || now < self.clock.tsc
    }

    /// Writes NewCPUId before the first record after the preamble, whose time is `now`.
    fn ensure_new_cpu(&mut self, now: u64) -> io::Result<()> {
        if self.has_cpu {
            return Ok(());
        }
        if self.is_carried {
            self.clock.tsc = now;
        }
        self.has_cpu = true;
        self.out.put(&Record::NewCpuId { cpu: self.clock.cpu.unwrap_or(0), tsc: self.clock.tsc })
    }

    /// The delta of a record at the time `now`; 0 after a TSCWrap, which is written where a delta cannot represent
    /// the step.
    fn advance_to(&mut self, now: u64) -> io::Result<u64> {
        let before = std::mem::replace(&mut self.clock.tsc, now);
        if self.skipped_from.take().is_some() || now < before {
            self.out.put(&Record::TscWrap { tsc: now })?;
            return Ok(0);
        }
        Ok(now.wrapping_sub(before))
    }

    /// Writes a metadata record, unless it is misplaced or part of the preamble.
    fn metadata(&mut self, offset: usize, record: &Record<'_>) -> io::Result<()> {
        let Some(&first) = self.data.get(offset) else { return Ok(()) };
        let kind = metadata_kind(first, self.dialect.endian);
        let Some(class) = RecordClass::of_kind(kind) else { return Ok(()) };
        if !has_kind(self.dialect.version, kind) || self.grammar.is_passed_over(class) {
            return Ok(());
        }
        let _ = self.grammar.step(class);
        match *record {
            Record::NewCpuId { cpu, tsc } => {
                // A reader has not seen how records that are left out advanced the counter, past 2^64 at worst.
                let before = self.skipped_from.take().unwrap_or(self.clock.tsc);
                if self.has_cpu && tsc < before {
                    self.out.put(&Record::TscWrap { tsc })?;
                }
                self.clock.metadata(record);
                self.has_cpu = true;
                self.out.put(&Record::NewCpuId { cpu, tsc })
            }
            Record::TscWrap { tsc } => {
                self.ensure_new_cpu(tsc)?;
                self.clock.metadata(record);
                self.skipped_from = None;
                self.out.put(record)
            }
            Record::Custom(event) => {
                Ok(Record::Custom(self.event(event)?)).and_then(|event| self.out.put(&event))
            }
            Record::Typed(event) => {
                Ok(Record::Typed(self.event(event)?)).and_then(|event| self.out.put(&event))
            }
            Record::CallArgument(_) => self.out.put(record),
            // Already written with the preamble.
            _ => Ok(()),
        }
    }

    /// Returns the event with a time that follows the previous record, and with at least one byte, which llvm-xray
    /// requires.
    fn event<'e>(&mut self, event: Event<'e>) -> io::Result<Event<'e>> {
        let mut event = event;
        match &mut event.time {
            EventTime::Delta(delta) => {
                let now = self.clock.tsc.wrapping_add_signed(i64::from(*delta));
                self.ensure_new_cpu(now)?;
                *delta = i32::try_from(self.advance_to(now)?).unwrap_or(0);
            }
            EventTime::Tsc(_) => self.ensure_new_cpu(self.clock.tsc)?,
        }
        if event.payload.is_empty() || self.without_payloads {
            (event.size, event.payload) = (PLACEHOLDER_EVENT.len() as i32, &PLACEHOLDER_EVENT);
        }
        Ok(event)
    }
}
