//! Perfetto's own trace packets: <https://perfetto.dev/docs/reference/trace-packet-proto>.

mod calls;
mod clock;
mod fields;
mod heap;
mod heap_graph;
mod interning;
mod lanes;
mod packets;
mod samples;
mod tracks;

use std::collections::BTreeSet;
use std::io::Write;

use super::counters::CounterValues;
use super::instants::Instants;
use super::ordered::OrderedCalls;
use super::{Error, Progress, Spool, Trace, drive};
use calls::PerfettoCalls;
pub use clock::TraceClock;
pub use heap::{Count, Heap};
pub use heap_graph::{HeapGraph, write_heap_graph};
use packets::Packets;
use perfuse_engine::calls::Calls;
pub use samples::{SampleForm, Samples, write_samples};
use tracks::{counter_track, heap_track};

/// Writes a trace: a track for each thread, with its calls in the order of their starts, and its instants; slices that are no
/// calls, and counters. `clock` is the clock that times are of, where Perfetto has it.
///
/// # Errors
/// [`Error`]
pub fn write(
    trace: &Trace<'_>,
    clock: Option<TraceClock>,
    out: impl Write + Send + 'static,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let mut packets = Packets::new(trace, Spool::new(out))?;
    packets.first(clock, trace.survey.first_ns.unwrap_or(0));
    packets.tracks(trace);
    lanes::write_spans(trace, &mut packets);
    let ordered = OrderedCalls::new(PerfettoCalls::new(packets), trace.selection);
    let mut calls = Calls::new(ordered, trace.selection.clone(), trace.survey.lost.clone());
    let result = write_events(trace, &mut calls, progress);
    // The writer thread has ended when this returns, also after an error.
    let written = calls.finish().0.into_sink().finish();
    result?;
    Ok(written?)
}

fn write_events(
    trace: &Trace<'_>,
    calls: &mut Calls<OrderedCalls<PerfettoCalls>>,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let packets = calls.visitor().sink().packets();
    for batch in (trace.tables.counter_samples)() {
        for count in CounterValues::new(&batch)?.selected(trace.selection) {
            if trace.survey.counters.contains_key(&count.counter_id) {
                packets.count(counter_track(count.counter_id), count.ts_ns, count.value);
            }
        }
    }
    let mut heaps = BTreeSet::new();
    for batch in (trace.tables.instants)() {
        let instants = Instants::new(&batch)?;
        for row in instants.selected(trace.selection) {
            let Some(bytes) = instants.heap_bytes(row) else {
                packets.instant(&instants, row);
                continue;
            };
            let pid = trace.tracks.get(instants.thread_id(row)).pid;
            if heaps.insert(pid) {
                packets.heap(pid);
            }
            packets.count(heap_track(pid), instants.ts_ns(row), bytes);
        }
    }
    drive((trace.tables.call_events)(), calls, progress, OrderedCalls::failed)
}
