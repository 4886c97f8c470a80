//! Trace packets: one per event, and those for tracks and interned strings.

use perfuse_tables::access::ColumnError;
use perfuse_tables::{Choices, EndReason, StartReason};

use super::super::instants::Instants;
use super::super::names::EncodedNames;
use super::super::ordered::CallEnd;
use super::super::{Spool, Trace};
use super::clock::{TraceClock, describe_sequence, timestamp};
use super::fields::{debug_annotation, interned_data, trace, trace_packet, track_descriptor, track_event};
use super::tracks::{cpu_track, describe, descriptor, process, thread_track};
use crate::protobuf::Encoder;

/// All packets are of one sequence, which names and defaults hold for.
const SEQUENCE: u64 = 1;

/// What interned categories and names of annotations are numbered by: 1, 2, ...
const CATEGORIES: [&str; 6] = ["call", "event", "gc", "jit", "lock", "custom"];
const CALL: u64 = 1;
const EVENT: u64 = 2;
const ANNOTATIONS: [&str; 7] =
    ["arguments", "start_reason", "end_reason", "kind", "event_type", "payload", "payload_hex"];

/// Where packets are written to.
#[derive(Debug)]
pub struct Packets {
    spool: Spool,
    names: EncodedNames,
    /// Functions whose names are already interned, by key.
    interned: Vec<bool>,
}

impl Packets {
    /// Packets about the functions of a trace.
    pub fn new(trace: &Trace<'_>, spool: Spool) -> Result<Self, ColumnError> {
        let names =
            EncodedNames::of(trace.tables.functions, |name, out| out.extend_from_slice(name.as_bytes()))?;
        Ok(Self { spool, names, interned: Vec::new() })
    }

    /// Writes the clock and the initially interned strings.
    pub fn first(&mut self, clock: Option<TraceClock>, first_ns: i64) {
        self.packet(trace_packet::SEQ_INCREMENTAL_STATE_CLEARED, |packet| {
            if clock.is_some() {
                describe_sequence(packet, clock, first_ns, |_| ());
            }
            packet.message(trace_packet::INTERNED_DATA, |data| {
                for (iid, name) in (1..).zip(CATEGORIES) {
                    intern(data, interned_data::EVENT_CATEGORIES, iid, name.as_bytes());
                }
                for (iid, name) in (1..).zip(ANNOTATIONS) {
                    intern(data, interned_data::DEBUG_ANNOTATION_NAMES, iid, name.as_bytes());
                }
            });
        });
    }

    /// The tracks of threads, processes and counters.
    pub fn tracks(&mut self, trace: &Trace<'_>) {
        let mut described = describe(trace.tracks, &trace.survey.thread_ids, |about| {
            self.packet(trace_packet::SEQ_NEEDS_INCREMENTAL_STATE, about);
        });
        for counter in trace.survey.counters.values() {
            if described.insert(counter.pid) {
                let name = trace.tracks.process_name(counter.pid);
                self.packet(trace_packet::SEQ_NEEDS_INCREMENTAL_STATE, |packet| {
                    process(packet, counter.pid, name);
                });
            }
            self.counter(counter);
        }
    }

    /// Declares the track of a thread's processor.
    pub fn cpus(&mut self, thread_id: u32) {
        self.packet(trace_packet::SEQ_NEEDS_INCREMENTAL_STATE, |packet| {
            descriptor(packet, cpu_track(thread_id), Some(thread_track(thread_id)), |track| {
                track.data(track_descriptor::NAME, b"cpu");
                track.message(track_descriptor::COUNTER, |_| {});
            });
        });
    }

    /// A thread runs on a processor from now on.
    pub fn run_on_cpu(&mut self, thread_id: u32, cpu: u32, ts_ns: i64) {
        self.event(ts_ns, track_event::TYPE_COUNTER, cpu_track(thread_id), |event| {
            event.uint(track_event::COUNTER_VALUE, cpu.into());
        });
    }

    /// Writes an instant.
    pub fn instant(&mut self, instants: &Instants<'_>, row: usize) {
        let track = thread_track(instants.thread_id(row));
        self.event(instants.ts_ns(row), track_event::TYPE_INSTANT, track, |event| {
            event.uint(track_event::CATEGORY_IIDS, EVENT);
            event.data(track_event::NAME, instants.title(row).as_bytes());
            text(event, "kind", instants.kind(row));
            if let Some(event_type) = instants.event_type(row) {
                annotation(event, "event_type", |value| {
                    value.uint(debug_annotation::UINT_VALUE, event_type.into())
                });
            }
            if let Some(payload) = instants.payload(row) {
                text(event, payload.key, &payload.value);
            }
        });
    }

    /// A call begins.
    #[inline]
    pub fn begin_call(&mut self, thread_id: u32, function_id: u32, start_ns: i64, start_reason: StartReason) {
        let iid = u64::from(function_id) + 1;
        let index = function_id as usize;
        let is_new = !self.interned.get(index).copied().unwrap_or(false);
        let mut encoder = self.encoder();
        let names = &self.names;
        encoder.message(trace::PACKET, |packet| {
            begin_packet(packet, start_ns);
            if is_new {
                packet.message(trace_packet::INTERNED_DATA, |data| {
                    intern(data, interned_data::EVENT_NAMES, iid, names.get(function_id));
                });
            }
            packet.message(trace_packet::TRACK_EVENT, |event| {
                event.uint(track_event::TYPE, track_event::TYPE_SLICE_BEGIN);
                event.uint(track_event::TRACK_UUID, thread_track(thread_id));
                event.uint(track_event::CATEGORY_IIDS, CALL);
                event.uint(track_event::NAME_IID, iid);
                if start_reason != StartReason::Entry {
                    text(event, "start_reason", start_reason.name());
                }
            });
        });
        self.put_back(encoder);
        if is_new {
            if index >= self.interned.len() {
                self.interned.resize(index + 1, false);
            }
            self.interned[index] = true;
        }
    }

    /// The innermost call of a thread ends.
    #[inline]
    pub fn end_call(&mut self, thread_id: u32, end: &CallEnd<'_>) {
        let CallEnd { end_ns, reason, arguments } = *end;
        self.event(end_ns, track_event::TYPE_SLICE_END, thread_track(thread_id), |event| {
            if !arguments.is_empty() {
                annotation(event, "arguments", |list| {
                    for &argument in arguments {
                        list.message(debug_annotation::ARRAY_VALUES, |value| {
                            value.uint(debug_annotation::UINT_VALUE, argument);
                        });
                    }
                });
            }
            if reason != EndReason::Exit {
                text(event, "end_reason", reason.name());
            }
        });
    }

    /// An event of a track.
    #[inline]
    pub fn event(&mut self, ts_ns: i64, kind: u64, track: u64, about: impl FnOnce(&mut Encoder)) {
        let mut encoder = self.encoder();
        encoder.message(trace::PACKET, |packet| {
            begin_packet(packet, ts_ns);
            packet.message(trace_packet::TRACK_EVENT, |event| {
                event.uint(track_event::TYPE, kind);
                event.uint(track_event::TRACK_UUID, track);
                about(event);
            });
        });
        self.put_back(encoder);
    }

    /// A packet that is of no time.
    pub fn packet(&mut self, flags: u64, about: impl FnOnce(&mut Encoder)) {
        let mut encoder = self.encoder();
        encoder.message(trace::PACKET, |packet| {
            packet.uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            packet.uint(trace_packet::SEQUENCE_FLAGS, flags);
            about(packet);
        });
        self.put_back(encoder);
    }

    #[inline]
    fn encoder(&mut self) -> Encoder {
        Encoder::appending_to(std::mem::take(self.spool.buffer()))
    }

    #[inline]
    fn put_back(&mut self, encoder: Encoder) {
        *self.spool.buffer() = encoder.into_bytes();
        self.spool.flush_if_full();
    }

    /// Whether the output failed.
    pub fn failed(&self) -> bool {
        self.spool.failed()
    }

    /// Writes the remaining bytes.
    pub fn finish(self) -> std::io::Result<()> {
        self.spool.finish()
    }
}

#[inline]
fn begin_packet(packet: &mut Encoder, ts_ns: i64) {
    packet.uint(trace_packet::TIMESTAMP, timestamp(ts_ns));
    packet.uint(trace_packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
    packet.uint(trace_packet::SEQUENCE_FLAGS, trace_packet::SEQ_NEEDS_INCREMENTAL_STATE);
}

fn intern(data: &mut Encoder, field: u32, iid: u64, name: &[u8]) {
    data.message(field, |entry| {
        entry.uint(interned_data::IID, iid);
        entry.data(interned_data::NAME, name);
    });
}

/// Something of an event that is text.
pub fn text(event: &mut Encoder, name: &str, value: &str) {
    annotation(event, name, |annotation| annotation.data(debug_annotation::STRING_VALUE, value.as_bytes()));
}

/// Something of an event; `name` is one of [`ANNOTATIONS`].
pub fn annotation(event: &mut Encoder, name: &str, value: impl FnOnce(&mut Encoder)) {
    let iid = (1..).zip(ANNOTATIONS).find(|(_, known)| *known == name).map_or(0, |(iid, _)| iid);
    event.message(track_event::DEBUG_ANNOTATIONS, |annotation| {
        annotation.uint(debug_annotation::NAME_IID, iid);
        value(annotation);
    });
}

/// The number of one of [`CATEGORIES`].
pub fn category(name: &str) -> u64 {
    (1..).zip(CATEGORIES).find(|(_, known)| *known == name).map_or(EVENT, |(iid, _)| iid)
}
