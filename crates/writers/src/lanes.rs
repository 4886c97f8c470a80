//! Tracks for slices other than calls: on a track, any two slices nest or follow each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use perfuse_tables::SliceKind;

use super::Tracks;
use super::spans::Span;
use super::survey::TraceSurvey;

/// Where a track is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackOwner {
    /// A process: its collections and pauses.
    Process(i32),
    /// The track of a thread, among its calls.
    Thread(u32),
    /// Beside the track of a thread.
    Beside(u32),
}

/// A track of slices.
#[derive(Clone, Debug)]
pub struct Lane<'a> {
    /// Where it is.
    pub place: TrackOwner,
    /// Its process.
    pub pid: i32,
    /// What it is called; the track of a thread has that name already.
    pub name: String,
    /// Its slices in the order of their starts, each before those within it.
    pub spans: Vec<&'a Span>,
}

/// A slice begins or ends.
#[derive(Clone, Copy, Debug)]
pub enum Edge<'a> {
    /// It begins, within those that have not ended.
    Begin(&'a Span),
    /// The innermost ends.
    End(&'a Span),
}

impl<'a> Lane<'a> {
    /// Puts the slices of a trace onto tracks, in the order of these.
    pub fn all(survey: &'a TraceSurvey, tracks: &Tracks) -> Vec<Self> {
        let mut groups: BTreeMap<(i32, TrackOwner, u8), LaneGroup<'a>> = BTreeMap::new();
        for (span, nests) in survey.spans.iter().zip(&survey.nests) {
            let pid = tracks.get(span.thread_id).pid;
            let place = if is_of_process(span) {
                TrackOwner::Process(pid)
            } else {
                TrackOwner::Beside(span.thread_id)
            };
            let group = groups.entry((pid, place, span.kind as u8)).or_default();
            group.spans.push(span);
            group.nests &= *nests;
        }
        let mut lanes = Vec::new();
        let mut among: BTreeMap<(i32, u32), Vec<&Span>> = BTreeMap::new();
        for ((pid, place, _), LaneGroup { mut spans, nests }) in groups {
            sort(&mut spans);
            if let TrackOwner::Beside(thread_id) = place
                && nests
            {
                let before = among.entry((pid, thread_id)).or_default();
                let mut all = [before.as_slice(), &spans].concat();
                sort(&mut all);
                if split_by_nesting(&all).len() == 1 {
                    *before = all;
                    continue;
                }
            }
            let name = name(place, spans[0], tracks);
            for (spans, number) in split_by_nesting(&spans).into_iter().zip(1..) {
                let name = if number == 1 { name.clone() } else { format!("{name} {number}") };
                lanes.push(Self { place, pid, name, spans });
            }
        }
        lanes.extend(among.into_iter().filter(|(_, spans)| !spans.is_empty()).map(
            |((pid, thread_id), spans)| Self {
                place: TrackOwner::Thread(thread_id),
                pid,
                name: String::new(),
                spans,
            },
        ));
        lanes
    }

    /// Calls `visit` with begins and ends in time order.
    pub fn edges(&self, mut visit: impl FnMut(Edge<'a>)) {
        let mut open: Vec<&Span> = Vec::new();
        for span in &self.spans {
            while let Some(last) = open.pop_if(|last| last.end_ns <= span.start_ns) {
                visit(Edge::End(last));
            }
            visit(Edge::Begin(span));
            open.push(span);
        }
        open.into_iter().rev().for_each(|last| visit(Edge::End(last)));
    }
}

#[derive(Debug)]
struct LaneGroup<'a> {
    spans: Vec<&'a Span>,
    /// Whether they all nest with the calls of their thread.
    nests: bool,
}

impl Default for LaneGroup<'_> {
    fn default() -> Self {
        Self { spans: Vec::new(), nests: true }
    }
}

/// Whether it is a collection or a pause: these belong to the process, independent of the thread that does them. Finalizers run in a thread.
fn is_of_process(span: &Span) -> bool {
    span.kind == SliceKind::Gc && !span.name.starts_with("finalizer")
}

fn name(place: TrackOwner, first: &Span, tracks: &Tracks) -> String {
    let what = match first.kind {
        SliceKind::Gc if is_of_process(first) => "GC",
        SliceKind::Gc => "Finalizers",
        SliceKind::Jit => "JIT",
        SliceKind::Lock => "Locks",
        SliceKind::Call | SliceKind::Custom => "Slices",
    };
    match place {
        TrackOwner::Process(_) => what.to_owned(),
        TrackOwner::Thread(id) | TrackOwner::Beside(id) => {
            let thread = tracks.get(id);
            format!("{what} of {}", thread.name.unwrap_or_else(|| format!("thread {}", thread.tid)))
        }
    }
}

fn sort(spans: &mut [&Span]) {
    spans.sort_by_key(|span| (span.start_ns, Reverse(span.end_ns)));
}

/// Distributes slices over as few tracks as possible, best fit first.
fn split_by_nesting<'a>(spans: &[&'a Span]) -> Vec<Vec<&'a Span>> {
    let mut tracks: Vec<Vec<&Span>> = Vec::new();
    let mut open: Vec<Vec<i64>> = Vec::new();
    // Tracks by the end of their innermost open slice.
    let mut room: BTreeSet<(i64, usize)> = BTreeSet::new();
    for span in spans {
        while let Some(&(end_ns, track)) = room.first()
            && end_ns <= span.start_ns
            && open[track].pop().is_some()
        {
            room.remove(&(end_ns, track));
            room.insert((open[track].last().copied().unwrap_or(i64::MAX), track));
        }
        let fit = room.range((span.end_ns, 0)..).next().copied();
        let track = if let Some((end_ns, track)) = fit {
            room.remove(&(end_ns, track));
            track
        } else {
            tracks.push(Vec::new());
            open.push(Vec::new());
            tracks.len() - 1
        };
        tracks[track].push(span);
        open[track].push(span.end_ns);
        room.insert((span.end_ns, track));
    }
    tracks
}
