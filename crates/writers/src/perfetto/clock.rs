//! The clock of time stamps.

use super::fields::{clock_snapshot, trace_packet, trace_packet_defaults};
use crate::protobuf::Encoder;

/// Perfetto's number of the clock of the day.
const REALTIME: u32 = 1;

/// The clock that times of a trace are of.
#[derive(Clone, Copy, Debug)]
pub struct TraceClock {
    /// Its number in Perfetto's `BuiltinClock`.
    pub number: u32,
    /// What its times lack to nanoseconds since 1970, where known.
    pub realtime_offset_ns: Option<i64>,
}

/// Declares in the first packet of a sequence the clock of its times and of the trace, with the time of day at one time, and
/// what is common to its packets. Of two messages of defaults in a packet, the trace processor reads the last.
pub fn describe_sequence(
    packet: &mut Encoder,
    clock: Option<TraceClock>,
    first_ns: i64,
    defaults: impl FnOnce(&mut Encoder),
) {
    if let Some(clock) = clock {
        snapshot(packet, clock, first_ns);
    }
    packet.message(trace_packet::TRACE_PACKET_DEFAULTS, |common| {
        if let Some(TraceClock { number, .. }) = clock {
            common.uint(trace_packet_defaults::TIMESTAMP_CLOCK_ID, number.into());
        }
        defaults(common);
    });
}

fn snapshot(packet: &mut Encoder, clock: TraceClock, first_ns: i64) {
    let TraceClock { number, realtime_offset_ns } = clock;
    let realtime = realtime_offset_ns.filter(|_| number != REALTIME);
    let realtime = realtime.map(|offset_ns| (REALTIME, first_ns.saturating_add(offset_ns)));
    packet.message(trace_packet::CLOCK_SNAPSHOT, |snapshot| {
        for (id, time_ns) in [(number, first_ns)].into_iter().chain(realtime) {
            snapshot.message(clock_snapshot::CLOCKS, |reading| {
                reading.uint(clock_snapshot::CLOCK_ID, id.into());
                reading.uint(clock_snapshot::TIMESTAMP, timestamp(time_ns));
            });
        }
        snapshot.uint(clock_snapshot::PRIMARY_TRACE_CLOCK, number.into());
    });
}

/// A Perfetto time stamp; negative times become 0.
#[inline]
pub fn timestamp(ts_ns: i64) -> u64 {
    ts_ns.max(0).cast_unsigned()
}
