//! Slices other than calls, and counters, as packets.

use perfuse_tables::{Choices, EndReason, StartReason};

use super::super::Trace;
use super::super::counters::{Counter, HEAP};
use super::super::lanes::{Edge, Lane, TrackOwner};
use super::super::spans::Span;
use super::fields::{counter_descriptor, debug_annotation, trace_packet, track_descriptor, track_event};
use super::packets::{Packets, annotation, category, text};
use super::tracks::{counter_track, descriptor, heap_track, lane_track, process_track, thread_track};

/// Writes all slices other than calls.
pub fn write_spans(trace: &Trace<'_>, packets: &mut Packets) {
    for (lane, number) in Lane::all(trace.survey, trace.tracks).iter().zip(0..) {
        let track = match lane.place {
            TrackOwner::Thread(id) => thread_track(id),
            TrackOwner::Process(_) | TrackOwner::Beside(_) => {
                let parent = match lane.place {
                    TrackOwner::Process(pid) => process_track(pid),
                    TrackOwner::Thread(id) | TrackOwner::Beside(id) => thread_track(id),
                };
                packets.track(lane_track(number), parent, &lane.name);
                lane_track(number)
            }
        };
        lane.edges(|edge| match edge {
            Edge::Begin(span) => packets.begin_span(span, track),
            Edge::End(span) => packets.end_span(span, track),
        });
    }
}

impl Packets {
    /// A track of slices within another.
    fn track(&mut self, uuid: u64, parent: u64, name: &str) {
        self.packet(trace_packet::SEQ_NEEDS_INCREMENTAL_STATE, |packet| {
            descriptor(packet, uuid, Some(parent), |track| {
                track.data(track_descriptor::NAME, name.as_bytes());
            });
        });
    }

    fn begin_span(&mut self, span: &Span, track: u64) {
        self.event(span.start_ns, track_event::TYPE_SLICE_BEGIN, track, |event| {
            event.uint(track_event::CATEGORY_IIDS, category(span.kind.name()));
            event.data(track_event::NAME, span.title().as_bytes());
            if span.start_reason != StartReason::Entry {
                text(event, "start_reason", span.start_reason.name());
            }
        });
    }

    fn end_span(&mut self, span: &Span, track: u64) {
        self.event(span.end_ns, track_event::TYPE_SLICE_END, track, |event| {
            if let Some(args) = &span.args {
                annotation(event, "arguments", |list| {
                    list.data(debug_annotation::JSON_VALUE, args.as_bytes())
                });
            }
            if span.end_reason != EndReason::Exit {
                text(event, "end_reason", span.end_reason.name());
            }
        });
    }

    /// The track of a counter.
    pub fn counter(&mut self, counter: &Counter) {
        let Counter { counter_id, pid, title, unit } = counter;
        self.count_track(counter_track(*counter_id), *pid, title, unit.as_deref());
    }

    /// The track of the size of a process's heap.
    pub fn heap(&mut self, pid: i32) {
        self.count_track(heap_track(pid), pid, HEAP, Some("bytes"));
    }

    fn count_track(&mut self, uuid: u64, pid: i32, name: &str, unit: Option<&str>) {
        self.packet(trace_packet::SEQ_NEEDS_INCREMENTAL_STATE, |packet| {
            descriptor(packet, uuid, Some(process_track(pid)), |track| {
                track.data(track_descriptor::NAME, name.as_bytes());
                track.message(track_descriptor::COUNTER, |counter| match unit {
                    Some("bytes") => {
                        counter.uint(counter_descriptor::UNIT, counter_descriptor::UNIT_SIZE_BYTES)
                    }
                    Some("count") => counter.uint(counter_descriptor::UNIT, counter_descriptor::UNIT_COUNT),
                    Some("percentage") => counter.data(counter_descriptor::UNIT_NAME, b"%"),
                    Some(other) => counter.data(counter_descriptor::UNIT_NAME, other.as_bytes()),
                    None => {}
                });
            });
        });
    }

    /// Writes a counter's absolute value.
    pub fn count(&mut self, track: u64, ts_ns: i64, value: f64) {
        self.event(ts_ns, track_event::TYPE_COUNTER, track, |event| {
            event.double(track_event::DOUBLE_COUNTER_VALUE, value);
        });
    }
}
