//! Perfetto's own trace packets: <https://perfetto.dev/docs/reference/trace-packet-proto>.

mod calls;
mod clock;
mod fields;
mod interning;
mod packets;
mod samples;
mod tracks;

use std::io::Write;

use super::instants::Instants;
use super::ordered::Ordered;
use super::{Error, GoOn, Spool, Trace, drive};
use crate::calls::Calls;
use calls::PerfettoCalls;
use packets::Packets;
pub use samples::{Samples, write_samples};

/// Writes a trace: a track for each thread, with its calls in the order of their starts, and its instants. `clock` is the number
/// of the clock that times are of in Perfetto's `BuiltinClock`, where it is one of those.
///
/// # Errors
/// [`Error`]
pub fn write(
    trace: &Trace<'_>,
    clock: Option<u32>,
    out: impl Write + Send + 'static,
    go_on: &mut GoOn<'_>,
) -> Result<(), Error> {
    let mut packets = Packets::new(trace, Spool::new(out))?;
    packets.first(clock, trace.survey.first_ns.unwrap_or(0));
    packets.threads(trace);
    let ordered = Ordered::new(PerfettoCalls::new(packets), trace.selection);
    let mut calls = Calls::new(ordered, trace.selection.clone(), trace.survey.lost.clone());
    let told = tell(trace, &mut calls, go_on);
    // Whatever happened, nothing is written any more once this returns.
    let written = calls.finish().0.into_sink().finish();
    told?;
    Ok(written?)
}

fn tell(
    trace: &Trace<'_>,
    calls: &mut Calls<Ordered<PerfettoCalls>>,
    go_on: &mut GoOn<'_>,
) -> Result<(), Error> {
    for batch in (trace.tables.instants)() {
        let instants = Instants::new(&batch)?;
        for row in instants.selected(trace.selection) {
            calls.visitor().sink().packets().instant(&instants, row);
        }
    }
    drive((trace.tables.call_events)(), calls, go_on, Ordered::failed)
}
