//! Which clock times are of.

use super::fields::{clock_snapshot, trace_packet, trace_packet_defaults};
use crate::protobuf::Encoder;

/// Says in the first packet of a sequence that its times, and the trace's, are of that clock.
pub fn clock_is(packet: &mut Encoder, clock: u32, first_ns: i64) {
    packet.message(trace_packet::CLOCK_SNAPSHOT, |snapshot| {
        snapshot.message(clock_snapshot::CLOCKS, |reading| {
            reading.uint(clock_snapshot::CLOCK_ID, clock.into());
            reading.uint(clock_snapshot::TIMESTAMP, timestamp(first_ns));
        });
        snapshot.uint(clock_snapshot::PRIMARY_TRACE_CLOCK, clock.into());
    });
    packet.message(trace_packet::TRACE_PACKET_DEFAULTS, |defaults| {
        defaults.uint(trace_packet_defaults::TIMESTAMP_CLOCK_ID, clock.into());
    });
}

/// Perfetto has no times before its clock's zero.
#[inline]
pub fn timestamp(ts_ns: i64) -> u64 {
    ts_ns.max(0).cast_unsigned()
}
