//! Writes logs of FDR and Basic mode, of any version and byte order, in the form the versions should have: correct
//! extents, a processor and counter at the start of every buffer, unused bytes 0.

mod basic;
mod buffer;
mod fdr;
mod sink;
mod yaml;

use std::io::Write;

use super::header::Mode;

pub use basic::{BasicSink, BasicWriter};
pub use buffer::BufferWriter;
pub use fdr::{FdrSink, FdrWriter};
pub use sink::{
    BUFFER_BYTES, BufferStart, FinishLog, LogSink, LogSpec, ThreadEvent, ThreadIds, TscStamp,
    UnsupportedItems, WriteError, WriteSummary,
};
pub use yaml::YamlSink;

/// Writes the events of threads, those of each thread in order of time. In FDR mode they are gathered into buffers.
#[derive(Debug)]
pub enum LogWriter<W: Write> {
    /// An FDR log.
    Fdr(Box<FdrSink<W>>),
    /// A Basic mode log.
    Basic(Box<BasicSink<W>>),
}

impl<W: Write> LogWriter<W> {
    /// Starts a log with its header. `is_monotonic` states that the counter counts from the start of CLOCK_MONOTONIC;
    /// then buffers get wall times.
    ///
    /// # Errors
    /// When the version does not exist, or writing fails.
    pub fn new(out: W, spec: LogSpec, is_monotonic: bool) -> Result<Self, WriteError> {
        if spec.mode == Mode::Basic {
            let writer = BasicWriter::new(out, spec)?;
            return Ok(Self::Basic(Box::new(BasicSink::new(writer, spec.version))));
        }
        let fdr = FdrSink::new(FdrWriter::new(out, spec)?, spec);
        let hz = if is_monotonic { spec.cycle_frequency } else { 0 };
        Ok(Self::Fdr(Box::new(fdr.with_monotonic_ticks(hz))))
    }

    /// The output of bytes.
    pub fn get_mut(&mut self) -> &mut W {
        match self {
            Self::Fdr(fdr) => fdr.get_mut(),
            Self::Basic(basic) => basic.get_mut(),
        }
    }
}

impl<W: Write> LogSink for LogWriter<W> {
    fn begin(&mut self, start: &BufferStart) {
        match self {
            Self::Fdr(fdr) => fdr.begin(start),
            Self::Basic(basic) => basic.begin(start),
        }
    }

    fn end(&mut self, even_empty: bool) -> Result<(), WriteError> {
        match self {
            Self::Fdr(fdr) => fdr.end(even_empty),
            Self::Basic(basic) => basic.end(even_empty),
        }
    }

    fn new_cpu(&mut self, at: TscStamp) {
        match self {
            Self::Fdr(fdr) => fdr.new_cpu(at),
            Self::Basic(basic) => basic.new_cpu(at),
        }
    }

    fn wrap(&mut self, tsc: u64) {
        match self {
            Self::Fdr(fdr) => fdr.wrap(tsc),
            Self::Basic(basic) => basic.wrap(tsc),
        }
    }

    fn write_event(&mut self, thread_ids: ThreadIds, at: TscStamp, event: ThreadEvent<'_>) {
        match self {
            Self::Fdr(fdr) => fdr.write_event(thread_ids, at, event),
            Self::Basic(basic) => basic.write_event(thread_ids, at, event),
        }
    }

    fn check(&mut self) -> Result<(), WriteError> {
        match self {
            Self::Fdr(fdr) => fdr.check(),
            Self::Basic(basic) => basic.check(),
        }
    }
}

impl<W: Write> FinishLog for LogWriter<W> {
    fn finish(&mut self) -> Result<WriteSummary, WriteError> {
        match self {
            Self::Fdr(fdr) => fdr.finish(),
            Self::Basic(basic) => basic.finish(),
        }
    }
}

#[cfg(test)]
mod tests;
