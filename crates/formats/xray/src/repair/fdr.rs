//! Logs of FDR mode, buffer by buffer.

use std::io::{self, Write};

use super::output::{Output, log_header};
use super::plan::{Planned, plan};
use crate::block::{Block, Clock, RECORDS_A_UNIT};
use crate::check::grammar::{Grammar, Place};
use crate::consts::{Action, FUNCTION_BYTES};
use crate::encode::has_kind;
use crate::fdr::Survey;
use crate::log::XRay;
use crate::record_iter::{FunctionRun, Step, Walk};
use crate::records::{Dialect, Event, EventTime, Record, metadata_kind};
use perfuse_recording::Recording;

/// In version 1 no more is written than so many times what was read, and a megabyte: padding must not fill a disk.
const MOST_PADDING: u64 = 16;

/// Largest `buffer_size` that is kept where the file is smaller than it.
const USUAL_BUFFER: u64 = 1 << 20;

/// Writes a log; how many records.
///
/// # Errors
/// What the output says.
pub fn write_fdr_log(log: &XRay, survey: &Survey, out: &mut dyn Write) -> io::Result<u64> {
    let dialect = Dialect { payloads: true, ..log.header().dialect() };
    let plan = plan(log, survey);
    if dialect.version == 1 {
        return first_version(log, survey, &plan, out);
    }
    out.write_all(&log_header(log, log.header().file.buffer_size))?;
    let mut out = Output::to(out, dialect);
    for planned in &plan {
        let size = measure(log, survey, planned, dialect)?;
        out.put(&Record::BufferExtents(size))?;
        write_buffer(log, survey, planned, &mut out)?;
        release(log, survey, planned);
    }
    out.flush()?;
    Ok(out.records)
}

/// In version 1 buffers lie at equal distances.
fn first_version(log: &XRay, survey: &Survey, plan: &[Planned], out: &mut dyn Write) -> io::Result<u64> {
    let dialect = Dialect { payloads: true, ..log.header().dialect() };
    let mut largest = 0;
    for planned in plan {
        largest = measure(log, survey, planned, dialect)?.max(largest);
    }
    let len = log.source().len() as u64;
    let stated = log.header().file.buffer_size;
    let stride = if stated <= len.max(USUAL_BUFFER) { stated.max(largest) } else { largest };
    let padded = stride.saturating_mul(plan.len() as u64);
    let most = len.saturating_mul(MOST_PADDING).saturating_add(USUAL_BUFFER);
    let stride = if padded > most { 0 } else { stride };
    out.write_all(&log_header(log, stride))?;
    let mut out = Output::to(out, dialect);
    for planned in plan {
        let size = measure(log, survey, planned, dialect)?;
        write_buffer(log, survey, planned, &mut out)?;
        out.pad(stride.saturating_sub(size))?;
        release(log, survey, planned);
    }
    out.flush()?;
    Ok(out.records)
}

fn measure(log: &XRay, survey: &Survey, planned: &Planned, dialect: Dialect) -> io::Result<u64> {
    let mut sum = Output::counting(dialect);
    write_buffer(log, survey, planned, &mut sum)?;
    sum.flush()?;
    Ok(sum.len)
}

fn release(log: &XRay, survey: &Survey, planned: &Planned) {
    if let Some(block) = survey.blocks.get(planned.index) {
        log.source().release(block.records.clone());
    }
}

/// What an event has instead of bytes that are gone, or never were: as many as keep function records at multiples of their
/// size, since llvm-xray reads the padding of version 1 for such.
const NO_BYTES: [u8; FUNCTION_BYTES] = [0; FUNCTION_BYTES];

/// Writes a buffer, BufferExtents left to the caller.
///
/// # Errors
/// What the output says.
fn write_buffer(log: &XRay, survey: &Survey, planned: &Planned, out: &mut Output<'_>) -> io::Result<()> {
    let Some(block) = survey.blocks.get(planned.index) else { return Ok(()) };
    let dialect = Dialect { payloads: block.payloads, ..log.header().dialect() };
    let mut grammar = Grammar::new(dialect.version);
    grammar.before = if dialect.version == 1 { Place::Start } else { Place::Extents };
    let mut body = Body {
        data: log.source(),
        dialect,
        grammar,
        clock: planned.clock,
        is_carried: planned.is_carried,
        has_cpu: false,
        skipped: false,
        out,
    };
    body.preamble(block, planned.wall)?;
    body.records(block)
}

struct Body<'a, 'o, 'w> {
    data: &'a [u8],
    dialect: Dialect,
    grammar: Grammar,
    clock: Clock,
    is_carried: bool,
    /// Whether a NewCPUId was written: nothing of the body may come before it.
    has_cpu: bool,
    /// Whether a record that moved the counter was left out.
    skipped: bool,
    out: &'o mut Output<'w>,
}

impl Body<'_, '_, '_> {
    fn preamble(&mut self, block: &Block, (seconds, microseconds): (i64, i32)) -> io::Result<()> {
        self.out.put(&Record::NewBuffer { tid: block.tid.unwrap_or(0) })?;
        self.out.put(&Record::WallTime { seconds, microseconds })?;
        if self.dialect.version >= 3 {
            self.out.put(&Record::Pid(block.pid.unwrap_or(0)))?;
        }
        Ok(())
    }

    fn records(&mut self, block: &Block) -> io::Result<()> {
        let mut walk = Walk::new(self.data, block.records.clone(), self.dialect);
        loop {
            let run = walk.functions(RECORDS_A_UNIT);
            if !run.is_empty() {
                self.functions(&run)?;
                continue;
            }
            match walk.next() {
                Some(Step::Metadata { record: Record::EndOfBuffer, .. }) if self.dialect.version == 1 => {
                    break;
                }
                Some(Step::Metadata { offset, record, .. }) => self.metadata(offset, &record)?,
                Some(Step::Function { .. } | Step::Broken(_)) | None => break,
            }
        }
        self.begin(self.clock.tsc)?;
        if self.dialect.version == 1 {
            self.out.put(&Record::EndOfBuffer)?;
        }
        Ok(())
    }

    /// Copies a run; only a record that needs something before it, or may not stay, is taken on its own.
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
            self.grammar.before = Place::of_action(action);
        }
        self.copy(copied..offset)
    }

    fn copy(&mut self, range: std::ops::Range<usize>) -> io::Result<()> {
        let bytes = self.data.get(range).unwrap_or_default();
        let records = bytes.len().checked_div(FUNCTION_BYTES).unwrap_or(0);
        self.out.put_bytes(bytes, records as u64)
    }

    fn function(&mut self, action: Action, function_id: u32, now: u64) -> io::Result<()> {
        self.begin(now)?;
        if action.name().is_none() {
            (self.clock.tsc, self.skipped) = (now, true);
            return Ok(());
        }
        let tsc_delta = u32::try_from(self.step_to(now)?).unwrap_or(0);
        self.out.put(&Record::Function { action, function_id, tsc_delta })
    }

    fn needs_wrap(&self, now: u64) -> bool {
        self.skipped || now < self.clock.tsc
    }

    /// Writes NewCPUId before the first record of the body, which is of the time `now`.
    fn begin(&mut self, now: u64) -> io::Result<()> {
        if self.has_cpu {
            return Ok(());
        }
        if self.is_carried {
            self.clock.tsc = now;
        }
        self.has_cpu = true;
        self.out.put(&Record::NewCpuId { cpu: self.clock.cpu.unwrap_or(0), tsc: self.clock.tsc })
    }

    /// The delta of a record of the time `now`: 0 behind a TSCWrap, where no other leads there.
    fn step_to(&mut self, now: u64) -> io::Result<u64> {
        let before = std::mem::replace(&mut self.clock.tsc, now);
        if std::mem::take(&mut self.skipped) || now < before {
            self.out.put(&Record::TscWrap { tsc: now })?;
            return Ok(0);
        }
        Ok(now.wrapping_sub(before))
    }

    fn metadata(&mut self, offset: usize, record: &Record<'_>) -> io::Result<()> {
        let Some(&first) = self.data.get(offset) else { return Ok(()) };
        let kind = metadata_kind(first, self.dialect.endian);
        let Some(place) = Place::of_kind(kind) else { return Ok(()) };
        if !has_kind(self.dialect.version, kind) || self.grammar.is_passed_over(place) {
            return Ok(());
        }
        let _ = self.grammar.step(place);
        match *record {
            Record::NewCpuId { cpu, tsc } => {
                if self.has_cpu && tsc < self.clock.tsc {
                    self.out.put(&Record::TscWrap { tsc })?;
                }
                self.clock.metadata(record);
                (self.has_cpu, self.skipped) = (true, false);
                self.out.put(&Record::NewCpuId { cpu, tsc })
            }
            Record::TscWrap { tsc } => {
                self.begin(tsc)?;
                self.clock.metadata(record);
                self.skipped = false;
                self.out.put(record)
            }
            Record::Custom(event) => {
                Ok(Record::Custom(self.event(event)?)).and_then(|event| self.out.put(&event))
            }
            Record::Typed(event) => {
                Ok(Record::Typed(self.event(event)?)).and_then(|event| self.out.put(&event))
            }
            Record::CallArgument(_) => self.out.put(record),
            // The preamble has them.
            _ => Ok(()),
        }
    }

    /// An event with a time that needs nothing more before it, and with bytes: llvm-xray wants some.
    fn event<'e>(&mut self, event: Event<'e>) -> io::Result<Event<'e>> {
        let mut event = event;
        match &mut event.time {
            EventTime::Delta(delta) => {
                let now = self.clock.tsc.wrapping_add_signed(i64::from(*delta));
                self.begin(now)?;
                *delta = i32::try_from(self.step_to(now)?).unwrap_or(0);
            }
            EventTime::Tsc(_) => self.begin(self.clock.tsc)?,
        }
        if event.payload.is_empty() {
            (event.size, event.payload) = (NO_BYTES.len() as i32, &NO_BYTES);
        }
        Ok(event)
    }
}
