//! Slices other than calls, and counters, as events.

use perfuse_tables::{Choices, EndReason, StartReason};

use super::super::counters::HEAP;
use super::super::lanes::{Edge, Lane, TrackOwner};
use super::super::spans::Span;
use super::super::{Thread, Trace, json};
use super::event::EventWriter;

/// The members for process and thread in all events of a track: those between the phase and the time.
struct Track(Vec<u8>);

impl Track {
    fn of(pid: i32, tid: i64) -> Self {
        Self(format!("\",\"pid\":{pid},\"tid\":{tid},\"ts\":").into_bytes())
    }
}

/// Writes all slices other than calls. Tracks that do not belong to a thread get unused thread ids, since the format has no other kind of track.
pub fn write_spans(trace: &Trace<'_>, events: &mut EventWriter) {
    let mut free = trace.tracks.free_tid();
    for lane in Lane::all(trace.survey, trace.tracks) {
        let track = if let TrackOwner::Thread(id) = lane.place {
            let Thread { pid, tid, .. } = trace.tracks.get(id);
            Track::of(pid, tid.into())
        } else {
            events.name("thread_name", lane.pid, free, Some(&lane.name));
            free += 1;
            Track::of(lane.pid, free - 1)
        };
        lane.edges(|edge| match edge {
            Edge::Begin(span) if span.is_instant() => events.slice(b'X', span, &track),
            Edge::Begin(span) => events.slice(b'B', span, &track),
            Edge::End(span) if span.is_instant() => {}
            Edge::End(span) => events.slice(b'E', span, &track),
        });
    }
}

impl EventWriter {
    /// Writes a complete slice (`X`), its begin (`B`) or its end (`E`). Viewers keep the times of the latter two exact, but
    /// add start and duration of the first; only a slice of duration 0 is written as `X`.
    fn slice(&mut self, phase: u8, span: &Span, track: &Track) {
        let ts_ns = self.since_zero(if phase == b'E' { span.end_ns } else { span.start_ns });
        let out = self.begin();
        out.extend_from_slice(b"{\"name\":");
        json::string(out, span.title());
        out.extend_from_slice(format!(",\"cat\":\"{}\",\"ph\":\"", span.kind.name()).as_bytes());
        out.push(phase);
        out.extend_from_slice(&track.0);
        json::micros(out, ts_ns);
        if phase == b'X' {
            out.extend_from_slice(b",\"dur\":0");
        }
        if phase != b'B' {
            write_span_args(span, out);
        }
        self.end();
    }

    /// Writes a counter's new value; the name identifies the counter within its process.
    pub fn count(&mut self, name: &str, unit: Option<&str>, pid: i32, ts_ns: i64, value: f64) {
        let ts_ns = self.since_zero(ts_ns);
        let out = self.begin();
        out.extend_from_slice(b"{\"name\":");
        json::string(out, name);
        out.extend_from_slice(format!(",\"cat\":\"counter\",\"ph\":\"C\",\"pid\":{pid},\"ts\":").as_bytes());
        json::micros(out, ts_ns);
        out.extend_from_slice(b",\"args\":{");
        json::string(out, unit.unwrap_or("value"));
        out.extend_from_slice(format!(":{value}}}").as_bytes());
        self.end();
    }

    /// Writes the size of a heap.
    pub fn heap(&mut self, pid: i32, ts_ns: i64, bytes: f64) {
        self.count(HEAP, Some("bytes"), pid, ts_ns, bytes);
    }
}

fn write_span_args(span: &Span, out: &mut Vec<u8>) {
    let start_reason = (span.start_reason != StartReason::Entry).then(|| span.start_reason.name());
    let end_reason = (span.end_reason != EndReason::Exit).then(|| span.end_reason.name());
    let quoted = |reason: &str| format!("\"{reason}\"");
    let members = [
        ("arguments", span.args.as_deref().map(str::to_owned)),
        ("start_reason", start_reason.map(quoted)),
        ("end_reason", end_reason.map(quoted)),
    ];
    let mut separator = ",\"args\":{";
    for (name, value) in members {
        if let Some(value) = value {
            out.extend_from_slice(format!("{separator}\"{name}\":{value}").as_bytes());
            separator = ",";
        }
    }
    if separator == "," {
        out.push(b'}');
    }
}
