//! Logs of FDR mode, buffer by buffer.

use std::io::{self, Write};

use super::super::log::XRay;
use super::super::records::{Dialect, Record};
use super::super::survey::Survey;
use super::body::write_buffer;
use super::output::Output;
use super::plan::{Planned, plan};
use perfuse_recording::Recording;

/// In version 1 no more is written than so many times what was read, and a megabyte: padding must not fill a disk.
const MOST_PADDING: u64 = 16;

/// Largest `buffer_size` that is kept where the file is smaller than it.
const USUAL_BUFFER: u64 = 1 << 20;

/// Writes a log; how many records.
///
/// # Errors
/// What the output says.
pub fn write(log: &XRay, survey: &Survey, out: &mut dyn Write) -> io::Result<u64> {
    let dialect = Dialect { payloads: true, ..log.header().dialect() };
    let plan = plan(log, survey);
    if dialect.version == 1 {
        return first_version(log, survey, &plan, out);
    }
    out.write_all(&super::header(log, log.header().file.buffer_size))?;
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
    out.write_all(&super::header(log, stride))?;
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
