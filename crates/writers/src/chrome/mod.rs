//! Chrome's trace events as JSON, which chrome://tracing, Perfetto and speedscope open.
//!
//! Times are microseconds from the first event on: viewers keep them as doubles, which hold nanoseconds for some days only.

mod bundle;
mod calls;
mod event;
mod lanes;

use std::io::Write;

use super::counters::CounterValues;
use super::instants::Instants;
use super::{Error, Progress, Spool, Trace, drive};
use calls::ChromeCalls;
use event::EventWriter;
use perfuse_engine::calls::Calls;

/// Writes the events of a trace, with commas between them: names of processes and threads, slices other than calls, counters,
/// instants, calls as they end. `zero_ns` is the time that times are relative to.
///
/// # Errors
/// [`Error`]
pub fn write(
    trace: &Trace<'_>,
    zero_ns: i64,
    out: impl Write + Send + 'static,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let events = EventWriter::new(trace, zero_ns, Spool::new(out))?;
    let mut calls =
        Calls::new(ChromeCalls::new(events, trace), trace.selection.clone(), trace.survey.lost.clone());
    let result = write_events(trace, &mut calls, progress);
    // The writer thread has ended when this returns, also after an error.
    let written = calls.finish().0.finish().finish();
    result?;
    Ok(written?)
}

fn write_events(
    trace: &Trace<'_>,
    calls: &mut Calls<ChromeCalls>,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let events = calls.visitor().events();
    events.metadata(trace);
    lanes::write_spans(trace, events);
    for batch in (trace.tables.counter_samples)() {
        for count in CounterValues::new(&batch)?.selected(trace.selection) {
            if let Some(counter) = trace.survey.counters.get(&count.counter_id) {
                events.count(&counter.title, counter.unit.as_deref(), counter.pid, count.ts_ns, count.value);
            }
        }
    }
    for batch in (trace.tables.instants)() {
        let instants = Instants::new(&batch)?;
        for row in instants.selected(trace.selection) {
            if let Some(bytes) = instants.heap_bytes(row) {
                let pid = trace.tracks.get(instants.thread_id(row)).pid;
                events.heap(pid, instants.ts_ns(row), bytes);
            } else {
                events.instant(&instants, row);
            }
        }
    }
    drive((trace.tables.call_events)(), calls, progress, ChromeCalls::failed)
}
