//! Samples as `StackSample` or `PerfSample` packets: one packet sequence per event; stacks are interned at first use.
//! Allocations and counters of heaps follow.

use std::io::Write;

use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, PrimitiveArray, RecordBatch};
use rustc_hash::FxHashMap;

use super::super::stacks::{NONE, Stacks};
use super::super::{Error, Progress, Spool, Tracks};
use super::clock::{TraceClock, describe_sequence, timestamp};
use super::fields::{
    perf_sample, perf_sample_defaults, stack_sample, stack_sample_defaults, trace, trace_packet,
    trace_packet_defaults,
};
use super::heap::{Heap, write_heap};
use super::interning::PacketInterner;
use super::tracks::describe;
use crate::protobuf::Encoder;
use perfuse_engine::stacks::columns::{Texts, column, text};

/// Sequence of the first event; those of calls are before it.
const FIRST_SEQUENCE: u64 = 2;

/// Which packets samples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleForm {
    /// `StackSample`, with the weight of each.
    Stack,
    /// `PerfSample`, which older releases of Perfetto read too: its values are running counts.
    Perf,
}

/// Samples to write.
#[derive(Clone, Copy, Debug)]
pub struct Samples<'a> {
    /// SampleColumns `ts_ns`, `pid`, `tid`, `cpu`, `stack_id`, `weight`, `event`, `weight_unit` and `mode`, event by event.
    pub rows: &'a [RecordBatch],
    /// Their stacks.
    pub stacks: &'a Stacks,
    /// The threads that have samples.
    pub tracks: &'a Tracks,
    /// Their clock.
    pub clock: Option<TraceClock>,
    /// Which packets they become.
    pub form: SampleForm,
}

/// Writes samples, event by event, then allocations and counters of heaps.
///
/// # Errors
/// [`Error`]
pub fn write_samples(
    samples: &Samples<'_>,
    heap: &Heap<'_>,
    out: impl Write + Send + 'static,
    progress: &mut Progress<'_>,
) -> Result<(), Error> {
    let Samples { rows, stacks, tracks, clock, form } = *samples;
    let mut texts = Texts::default();
    let mut writer = SampleWriter {
        spool: Spool::new(out),
        stacks,
        clock,
        form,
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
    clock: Option<TraceClock>,
    form: SampleForm,
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
        let unit = texts.get(rows.units[row]).unwrap_or_default();
        let mut encoder = Encoder::appending_to(std::mem::take(self.spool.buffer()));
        encoder.message(trace::PACKET, |packet| {
            packet.uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, self.sequence);
            packet.uint(trace_packet::SEQUENCE_FLAGS, trace_packet::SEQ_INCREMENTAL_STATE_CLEARED);
            describe_sequence(packet, self.clock, rows.ts_ns.value(row), |defaults| match self.form {
                SampleForm::Stack => describe_counter(defaults, name, unit),
                SampleForm::Perf => describe_timebase(defaults, name, unit),
            });
        });
        *self.spool.buffer() = encoder.into_bytes();
    }

    fn sample(&mut self, rows: &SampleColumns<'_>, row: usize, texts: &Texts) {
        let Self { spool, stacks, sequence, interner, counts, form, .. } = self;
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
            let mode = match texts.get(rows.modes[row]) {
                Some("kernel") => perf_sample::MODE_KERNEL,
                Some("hypervisor") => perf_sample::MODE_HYPERVISOR,
                Some("unknown") | None => perf_sample::MODE_UNKNOWN,
                Some(_) => perf_sample::MODE_USER,
            };
            let (pid, tid) = (rows.pids.value(row), rows.tids.value(row));
            let callstack = (stack != NONE).then(|| u64::from(stack) + 1);
            match form {
                SampleForm::Stack => packet.message(trace_packet::STACK_SAMPLE, |sample| {
                    sample.message(stack_sample::TASK_CONTEXT, |task| {
                        task.uint(stack_sample::PID, pid.cast_unsigned().into());
                        task.uint(stack_sample::TID, tid.cast_unsigned().into());
                    });
                    sample.message(stack_sample::EXECUTION_CONTEXT, |execution| {
                        if let Some(cpu) = cpu {
                            execution.uint(stack_sample::CPU, cpu.into());
                        }
                        execution.uint(stack_sample::MODE, stack_mode(mode));
                    });
                    if let Some(callstack) = callstack {
                        sample.uint(stack_sample::CALLSTACK_IID, callstack);
                    }
                    sample.uint(stack_sample::PRIMARY_WEIGHT, rows.weights.value(row));
                }),
                SampleForm::Perf => packet.message(trace_packet::PERF_SAMPLE, |sample| {
                    if let Some(cpu) = cpu {
                        sample.uint(perf_sample::CPU, cpu.into());
                    }
                    sample.int(perf_sample::PID, pid.into());
                    sample.int(perf_sample::TID, tid.into());
                    if let Some(callstack) = callstack {
                        sample.uint(perf_sample::CALLSTACK_IID, callstack);
                    }
                    sample.uint(perf_sample::CPU_MODE, mode);
                    sample.uint(perf_sample::TIMEBASE_COUNT, *count);
                }),
            }
        });
        *spool.buffer() = encoder.into_bytes();
        spool.flush_if_full();
    }
}

/// The number of a mode in a `StackSample`.
fn stack_mode(mode: u64) -> u64 {
    match mode {
        perf_sample::MODE_USER => 1,
        perf_sample::MODE_KERNEL => 2,
        perf_sample::MODE_HYPERVISOR => 3,
        _ => 0,
    }
}

/// Describes the event of a sequence of `StackSample` packets.
fn describe_counter(defaults: &mut Encoder, name: &str, unit: &str) {
    let unit = match (unit, name.split(':').next()) {
        ("ns", _) => stack_sample_defaults::UNIT_NANOSECONDS,
        ("bytes", _) => stack_sample_defaults::UNIT_BYTES,
        (_, Some("cycles" | "cpu-cycles")) => stack_sample_defaults::UNIT_CPU_CYCLES,
        (_, Some("instructions")) => stack_sample_defaults::UNIT_INSTRUCTIONS,
        _ => stack_sample_defaults::UNIT_COUNT,
    };
    defaults.message(trace_packet_defaults::STACK_SAMPLE_DEFAULTS, |defaults| {
        defaults.data(stack_sample_defaults::SOURCE, b"perfuse");
        defaults.message(stack_sample_defaults::PRIMARY_DESCRIPTOR, |counter| {
            counter.data(stack_sample_defaults::NAME, name.as_bytes());
            counter.uint(stack_sample_defaults::UNIT, unit);
        });
    });
}

/// Describes the event of a sequence of `PerfSample` packets.
fn describe_timebase(defaults: &mut Encoder, name: &str, unit: &str) {
    defaults.message(trace_packet_defaults::PERF_SAMPLE_DEFAULTS, |defaults| {
        defaults.message(perf_sample_defaults::TIMEBASE, |timebase| {
            if unit == "ns" {
                timebase.uint(perf_sample_defaults::COUNTER, perf_sample_defaults::SW_CPU_CLOCK);
            }
            timebase.data(perf_sample_defaults::NAME, name.as_bytes());
        });
    });
}
