//! Allocations as a `ProfilePacket` for each process, and counters of its heap.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::{Array, Int32Array, RecordBatch, UInt32Array, UInt64Array};

use super::super::stacks::{NONE, Stacks};
use super::super::{Error, Spool};
use super::clock::{TraceClock, describe_sequence, timestamp};
use super::fields::{
    callstack, counter_descriptor, frame, heap_sample, interned_data, interned_string, mapping,
    process_heap_samples, profile_packet, trace, trace_packet, track_descriptor, track_event,
};
use super::interning::PacketInterner;
use super::tracks::{descriptor, heap_counter_track, process, process_track};
use crate::protobuf::Encoder;
use perfuse_engine::stacks::columns::column;

/// Sequence of these packets; those of samples are below.
const SEQUENCE: u64 = 1 << 16;

/// Name of the only frame of allocations without a stack.
const NO_STACK: &str = "[no stack]";

/// Value of a counter of a process from a time on.
#[derive(Clone, Debug)]
pub struct Count {
    /// Process.
    pub pid: i32,
    /// Time.
    pub ts_ns: i64,
    /// Name of the counter.
    pub name: String,
    /// Whether the value is in bytes; otherwise it is a number of things.
    pub is_bytes: bool,
    /// Value.
    pub value: i64,
}

/// Allocations and counters to write.
#[derive(Clone, Copy, Debug)]
pub struct Heap<'a> {
    /// Columns `pid`, `stack_id`, `bytes` and `objects`, process by process.
    pub allocations: &'a [RecordBatch],
    /// Values of counters; each counter's in time order.
    pub counts: &'a [Count],
    /// Time of the end of the recording, which the allocations are shown at.
    pub end_ns: i64,
}

/// Writes allocations and counters. `clock` is Perfetto's number of the clock of their times.
pub fn write_heap(
    heap: &Heap<'_>,
    stacks: &Stacks,
    clock: Option<TraceClock>,
    spool: &mut Spool,
) -> Result<(), Error> {
    if heap.counts.is_empty() && heap.allocations.iter().all(|batch| batch.num_rows() == 0) {
        return Ok(());
    }
    let interner = PacketInterner::new(stacks);
    HeapWriter { spool, stacks, interner, has_no_stack: false }.write(heap, clock)
}

/// Bytes and objects that a stack allocated.
struct Allocated {
    callstack_id: u64,
    bytes: u64,
    objects: u64,
}

struct HeapWriter<'a> {
    spool: &'a mut Spool,
    stacks: &'a Stacks,
    interner: PacketInterner<'a>,
    /// Whether the stack of allocations without one is interned.
    has_no_stack: bool,
}

impl HeapWriter<'_> {
    fn write(&mut self, heap: &Heap<'_>, clock: Option<TraceClock>) -> Result<(), Error> {
        self.packet(None, |packet| {
            packet.uint(trace_packet::SEQUENCE_FLAGS, trace_packet::SEQ_INCREMENTAL_STATE_CLEARED);
            if clock.is_some() {
                describe_sequence(packet, clock, heap.end_ns, |_| ());
            }
        });
        self.counts(heap.counts);
        let mut process = None;
        let mut samples = Vec::new();
        for batch in heap.allocations {
            let pids: &Int32Array = column(batch, "allocations", "pid")?;
            let stacks: &UInt32Array = column(batch, "allocations", "stack_id")?;
            let bytes: &UInt64Array = column(batch, "allocations", "bytes")?;
            let objects: &UInt64Array = column(batch, "allocations", "objects")?;
            for row in 0..batch.num_rows() {
                if let Some(before) = process.replace(pids.value(row))
                    && before != pids.value(row)
                {
                    self.process(heap, before, &std::mem::take(&mut samples));
                }
                let stack = if stacks.is_valid(row) { self.stacks.row(stacks.value(row)) } else { NONE };
                let callstack_id = self.intern(stack);
                samples.push(Allocated {
                    callstack_id,
                    bytes: bytes.value(row),
                    objects: objects.value(row),
                });
            }
        }
        if let Some(pid) = process {
            self.process(heap, pid, &samples);
        }
        Ok(())
    }

    /// Number of a stack, after it is interned.
    fn intern(&mut self, stack: u32) -> u64 {
        let Self { interner, has_no_stack, .. } = self;
        let mut interned = Encoder::default();
        let callstack_id = if stack == NONE {
            // Numbers of stacks, frames and texts are below.
            let iid = 1 << 32;
            if !std::mem::replace(has_no_stack, true) {
                interned.message(trace_packet::INTERNED_DATA, |data| no_stack(data, iid));
            }
            iid
        } else {
            interner.intern(stack, &mut interned);
            u64::from(stack) + 1
        };
        if !interned.bytes().is_empty() {
            self.packet(None, |packet| {
                packet.uint(trace_packet::SEQUENCE_FLAGS, trace_packet::SEQ_NEEDS_INCREMENTAL_STATE);
                packet.append(interned.bytes());
            });
        }
        callstack_id
    }

    /// The allocations of a process.
    fn process(&mut self, heap: &Heap<'_>, pid: i32, samples: &[Allocated]) {
        self.packet(Some(heap.end_ns), |packet| {
            packet.uint(trace_packet::SEQUENCE_FLAGS, trace_packet::SEQ_NEEDS_INCREMENTAL_STATE);
            packet.message(trace_packet::PROFILE_PACKET, |profile| {
                profile.message(profile_packet::PROCESS_DUMPS, |dump| {
                    dump.int(process_heap_samples::PID, pid.into());
                    dump.data(process_heap_samples::HEAP_NAME, b"managed heap");
                    dump.uint(process_heap_samples::SAMPLING_INTERVAL_BYTES, 1);
                    dump.uint(process_heap_samples::TIMESTAMP, timestamp(heap.end_ns));
                    for Allocated { callstack_id, bytes, objects } in samples {
                        dump.message(process_heap_samples::SAMPLES, |sample| {
                            sample.uint(heap_sample::CALLSTACK_ID, *callstack_id);
                            sample.uint(heap_sample::SELF_ALLOCATED, *bytes);
                            sample.uint(heap_sample::ALLOC_COUNT, *objects);
                        });
                    }
                });
                profile.uint(profile_packet::CONTINUED, 0);
                profile.uint(profile_packet::INDEX, 0);
            });
        });
    }

    fn counts(&mut self, counts: &[Count]) {
        let mut processes = BTreeSet::new();
        let mut counters = BTreeMap::new();
        for Count { pid, ts_ns, name, is_bytes, value } in counts {
            if processes.insert(*pid) {
                self.packet(None, |packet| process(packet, *pid, None));
            }
            let next = counters.len();
            let track = *counters.entry((*pid, name)).or_insert_with(|| {
                let track = heap_counter_track(next);
                self.packet(None, |packet| {
                    descriptor(packet, track, Some(process_track(*pid)), |track| {
                        track.data(track_descriptor::NAME, name.as_bytes());
                        track.message(track_descriptor::COUNTER, |counter| {
                            let unit = if *is_bytes {
                                counter_descriptor::UNIT_SIZE_BYTES
                            } else {
                                counter_descriptor::UNIT_COUNT
                            };
                            counter.uint(counter_descriptor::UNIT, unit);
                        });
                    });
                });
                track
            });
            self.packet(Some(*ts_ns), |packet| {
                packet.message(trace_packet::TRACK_EVENT, |event| {
                    event.uint(track_event::TYPE, track_event::TYPE_COUNTER);
                    event.uint(track_event::TRACK_UUID, track);
                    event.int(track_event::COUNTER_VALUE, *value);
                });
            });
        }
    }

    fn packet(&mut self, ts_ns: Option<i64>, about: impl FnOnce(&mut Encoder)) {
        let mut encoder = Encoder::appending_to(std::mem::take(self.spool.buffer()));
        encoder.message(trace::PACKET, |packet| {
            if let Some(ts_ns) = ts_ns {
                packet.uint(trace_packet::TIMESTAMP, timestamp(ts_ns));
            }
            packet.uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            about(packet);
        });
        *self.spool.buffer() = encoder.into_bytes();
        self.spool.flush_if_full();
    }
}

/// The stack of allocations without one.
fn no_stack(data: &mut Encoder, iid: u64) {
    data.message(interned_data::FUNCTION_NAMES, |entry| {
        entry.uint(interned_string::IID, iid);
        entry.data(interned_string::STR, NO_STACK.as_bytes());
    });
    data.message(interned_data::MAPPINGS, |entry| entry.uint(mapping::IID, iid));
    data.message(interned_data::FRAMES, |entry| {
        entry.uint(frame::IID, iid);
        entry.uint(frame::FUNCTION_NAME_ID, iid);
        entry.uint(frame::MAPPING_ID, iid);
        entry.uint(frame::REL_PC, 0);
    });
    data.message(interned_data::CALLSTACKS, |entry| {
        entry.uint(callstack::IID, iid);
        entry.uint(callstack::FRAME_IDS, iid);
    });
}
