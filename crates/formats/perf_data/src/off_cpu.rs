//! Samples of time off the processor that a BPF program measured: `perf record --off-cpu`.
//!
//! Their task, their time and their call chain are in the raw data of the sample; the other fields are 0. Those that perf writes at
//! the end are sums over a stack, and have no time: perf gives them numbers above all times, so that they are sorted last.

use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, Endian};

use super::attribute::EventAttribute;
use super::sample::{EventWords, SampleHead};

/// Name of the event.
const EVENT: &str = "offcpu-time";
/// `PERF_COUNT_SW_BPF_OUTPUT`.
const BPF_OUTPUT: u64 = 10;
/// Smallest number that stands in place of the time of a sum.
pub const SUM_TIMES: u64 = 0xffff_ffff_0000_0000;

/// Whether an event's samples may be of that kind.
#[must_use]
#[inline]
pub fn may_be_off_cpu(attribute: &EventAttribute) -> bool {
    attribute.fields.config == BPF_OUTPUT && attribute.layout.has(abi::PERF_SAMPLE_RAW)
}

/// Whether an event's samples are of that kind.
#[must_use]
pub fn is_off_cpu(attribute: &EventAttribute) -> bool {
    attribute.fields.type_ == abi::PERF_TYPE_SOFTWARE
        && attribute.fields.config == BPF_OUTPUT
        && attribute.layout.has(abi::PERF_SAMPLE_RAW)
        && attribute.name == EVENT
}

/// The fields of a sample as its raw data has them. `None` where the data is shorter.
#[must_use]
pub fn read<'a>(head: SampleHead<'a>, raw: &'a [u8], endian: Endian) -> Option<SampleHead<'a>> {
    let mut cursor = Cursor::new(raw, 0, endian);
    let pid = cursor.i32("pid").ok()?;
    let tid = cursor.i32("tid").ok()?;
    let period = cursor.u64("period").ok()?;
    let nr = cursor.u64("nr").ok()?;
    let callchain = EventWords::read(&mut cursor, nr, "ips").ok()?;
    Some(SampleHead {
        pid: Some(pid),
        tid: Some(tid),
        period: Some(period),
        // The first word is the marker of user mode.
        ip: callchain.get(1),
        callchain: Some(callchain),
        ..head
    })
}

/// The time of a sample; a sum gets the end of the recording's span.
#[must_use]
#[inline]
pub fn time_within(time: u64, span: Option<(u64, u64)>) -> u64 {
    if time < SUM_TIMES { time } else { span.map_or(0, |(_, last)| last) }
}
