//! Samples as `PerfSample` packets: one packet sequence per event; stacks are interned at first use. Allocations and heap
//! snapshots follow.

use std::io::Write;

use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, PrimitiveArray, RecordBatch};
use rustc_hash::FxHashMap;

use super::super::stacks::{NONE, Stacks};
use super::super::{Error, Progress, Spool, Tracks};
use super::clock::{describe_clock, timestamp};
use super::fields::{perf_sample, perf_sample_defaults, trace, trace_packet, trace_packet_defaults};
use super::heap::{Heap, write_heap};
use super::interning::PacketInterner;
use super::tracks::describe;
use crate::protobuf::Encoder;
use perfuse_engine::stacks::columns::{Texts, column, text};

/// Sequence of the first event; those of calls are before it.
const FIRST_SEQUENCE: u64 = 2;

/// Samples to write.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// SampleColumns `ts_ns`, `pid`, `tid`, `cpu`, `stack_id`, `weight`, `event`, `weight_unit` and `mode`, event by event.
    pub rows: &'a [RecordBatch],
    /// Their stacks.
    pub stacks: &'a Stacks,
    /// The threads that have samples.
    pub tracks: &'a Tracks,
    /// Perfetto's number of their clock.
    pub clock: Option<u32>,
}

/// Writes samples, event by event, then allocations and heap snapshots.
///
/// # Errors
/// [`Error`]
pub fn write_samples(
    samples: &Samples<'_>,
    heap: &Heap<'_>,
    out: impl Write + Send + 'static,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let Samples { rows, stacks, tracks, clock } = *samples;
    let mut texts = Texts::default();
    let mut writer = SampleWriter {
        spool: Spool::new(out),
        stacks,
        clock,
        sequence: FIRST_SEQUENCE - 1,
        event: NONE,
        interner: PacketInterner::new(stacks),
        counts: FxHashMap::default(),
    };
    describe(tracks, &tracks.ids(), |about| writer.track(about));
    let mut done = 0;
    let result = rows.iter().try_for_each(|batch| {
        let written = writer.batch(&SampleColumns::of(batch, &mut texts)?, &texts);
        done += batch.num_rows() as u64;
        if written && progress(done) { Ok(()) } else { Err(Error::Stopped) }
    });
    let result = result.and_then(|()| write_heap(heap, stacks, clock, &mut writer.spool));
    let failed = writer.spool.failed();
    let written = writer.spool.finish();
    if !failed {
        result?;
    }
    Ok(written?)
}

/// The columns of a batch.
struct SampleColumns<'a> {
    ts_ns: &'a PrimitiveArray<Int64Type>,
    pids: &'a PrimitiveArray<Int32Type>,
    tids: &'a PrimitiveArray<Int32Type>,
    cpus: &'a PrimitiveArray<UInt32Type>,
    stacks: &'a PrimitiveArray<UInt32Type>,
    weights: &'a PrimitiveArray<UInt64Type>,
    events: Vec<u32>,
    units: Vec<u32>,
    modes: Vec<u32>,
}

impl<'a> SampleColumns<'a> {
    fn of(batch: &'a RecordBatch, texts: &mut Texts) -> Result<Self, Error> {
        let one = std::slice::from_ref(batch);
        let mut words = |name| text(one, "samples", name, texts);
        let (events, units, modes) = (words("event")?, words("weight_unit")?, words("mode")?);
        Ok(Self {
            ts_ns: column(batch, "samples", "ts_ns")?,
            pids: column(batch, "samples", "pid")?,
            tids: column(batch, "samples", "tid")?,
            cpus: column(batch, "samples", "cpu")?,
            stacks: column(batch, "samples", "stack_id")?,
            weights: column(batch, "samples", "weight")?,
            events,
            units,
            modes,
        })
    }
}

struct SampleWriter<'a> {
    spool: Spool,
    stacks: &'a Stacks,
    clock: Option<u32>,
    sequence: u64,
    event: u32,
    interner: PacketInterner<'a>,
    /// The event's running count on each processor, which is the value that Perfetto stores.
    counts: FxHashMap<u32, u64>,
}

impl SampleWriter<'_> {
    /// Writes the rows of a batch; false if the output failed.
    fn batch(&mut self, rows: &SampleColumns<'_>, texts: &Texts) -> bool {
        for row in 0..rows.events.len() {
            if rows.events[row] != self.event {
                self.event = rows.events[row];
                self.begin(rows, row, texts);
            }
            self.sample(rows, row, texts);
        }
        !self.spool.failed()
    }

    fn track(&mut self, about: &dyn Fn(&mut Encoder)) {
        let mut encoder = Encoder::appending_to(std::mem::take(self.spool.buffer()));
        encoder.message(trace::PACKET, |packet| {
            packet.uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, FIRST_SEQUENCE);
            about(packet);
        });
        *self.spool.buffer() = encoder.into_bytes();
    }

    /// Begins the sequence of an event.
    fn begin(&mut self, rows: &SampleColumns<'_>, row: usize, texts: &Texts) {
        self.sequence += 1;
        self.interner = PacketInterner::new(self.stacks);
        self.counts.clear();
        let name = texts.get(self.event).unwrap_or_default();
        let in_ns = texts.get(rows.units[row]) == Some("ns");
        let mut encoder = Encoder::appending_to(std::mem::take(self.spool.buffer()));
        encoder.message(trace::PACKET, |packet| {
            packet.uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, self.sequence);
            packet.uint(trace_packet::SEQUENCE_FLAGS, trace_packet::SEQ_INCREMENTAL_STATE_CLEARED);
            if let Some(clock) = self.clock {
                describe_clock(packet, clock, rows.ts_ns.value(row));
            }
            packet.message(trace_packet::TRACE_PACKET_DEFAULTS, |defaults| {
                defaults.message(trace_packet_defaults::PERF_SAMPLE_DEFAULTS, |defaults| {
                    defaults.message(perf_sample_defaults::TIMEBASE, |timebase| {
                        if in_ns {
                            timebase.uint(perf_sample_defaults::COUNTER, perf_sample_defaults::SW_CPU_CLOCK);
                        }
                        timebase.data(perf_sample_defaults::NAME, name.as_bytes());
                    });
                });
            });
        });
        *self.spool.buffer() = encoder.into_bytes();
    }

    fn sample(&mut self, rows: &SampleColumns<'_>, row: usize, texts: &Texts) {
        let Self { spool, stacks, sequence, interner, counts, .. } = self;
        let stack = if rows.stacks.is_valid(row) { stacks.row(rows.stacks.value(row)) } else { NONE };
        let cpu = rows.cpus.is_valid(row).then(|| rows.cpus.value(row));
        let count = counts.entry(cpu.unwrap_or(NONE)).or_default();
        *count = count.saturating_add(rows.weights.value(row));
        let mut encoder = Encoder::appending_to(std::mem::take(spool.buffer()));
        encoder.message(trace::PACKET, |packet| {
            packet.uint(trace_packet::TIMESTAMP, timestamp(rows.ts_ns.value(row)));
            packet.uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, *sequence);
            packet.uint(trace_packet::SEQUENCE_FLAGS, trace_packet::SEQ_NEEDS_INCREMENTAL_STATE);
            if stack != NONE {
                interner.intern(stack, packet);
            }
            packet.message(trace_packet::PERF_SAMPLE, |sample| {
                if let Some(cpu) = cpu {
                    sample.uint(perf_sample::CPU, cpu.into());
                }
                sample.int(perf_sample::PID, rows.pids.value(row).into());
                sample.int(perf_sample::TID, rows.tids.value(row).into());
                if stack != NONE {
                    sample.uint(perf_sample::CALLSTACK_IID, u64::from(stack) + 1);
                }
                let mode = match texts.get(rows.modes[row]) {
                    Some("kernel") => perf_sample::MODE_KERNEL,
                    Some("hypervisor") => perf_sample::MODE_HYPERVISOR,
                    Some("unknown") | None => perf_sample::MODE_UNKNOWN,
                    Some(_) => perf_sample::MODE_USER,
                };
                sample.uint(perf_sample::CPU_MODE, mode);
                sample.uint(perf_sample::TIMEBASE_COUNT, *count);
            });
        });
        *spool.buffer() = encoder.into_bytes();
        spool.flush_if_full();
    }
}
