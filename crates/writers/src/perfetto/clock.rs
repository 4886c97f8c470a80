//! The clock of time stamps.

use super::fields::{clock_snapshot, trace_packet, trace_packet_defaults};
use crate::protobuf::Encoder;

/// Declares in the first packet of a sequence the clock of its times and of the trace.
pub fn describe_clock(packet: &mut Encoder, clock: u32, first_ns: i64) {
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

/// A Perfetto time stamp; negative times become 0.
#[inline]
pub fn timestamp(ts_ns: i64) -> u64 {
    ts_ns.max(0).cast_unsigned()
}
