//! Tables of heap snapshots.

use std::ops::Range;
use std::sync::Arc;

use perfuse_tables::{heap_objects, heap_references, heap_snapshots};

use rustc_hash::FxHashMap;

use super::pass;
use crate::consts::{EventByte, KindSet};
use crate::decode::BareObject;
use crate::reader::Buffer;
use crate::recording::Shared;
use crate::records::{Body, Event, int_size};
use perfuse_recording::{BatchStream, Placement, ShotSum, TableRequest, one_batch};

/// A heapshot: the events of a thread between two offsets of the file.
#[derive(Clone, Copy, Debug)]
pub struct Shot {
    start: u64,
    end: u64,
    time: u64,
    end_time: Option<u64>,
}

/// The heapshots of a log, by index.
#[derive(Clone, Debug)]
pub struct Shots {
    list: Vec<Shot>,
    /// Indices of the heapshots of each thread, in file order.
    by_thread: FxHashMap<u64, Vec<u32>>,
    /// Mask of thread ids.
    mask: u64,
    /// The only selected heapshot, if one is selected.
    only: Option<u32>,
}

impl Shots {
    /// Pairs starts and ends. A heapshot without an end extends to the next one of its thread, or to the end of the
    /// file.
    pub fn new(log: &Shared) -> Self {
        let mask = log.survey().dialect.pointer_mask();
        let mut shots = Self { list: Vec::new(), by_thread: FxHashMap::default(), mask, only: None };
        for mark in &log.survey().facts.shots {
            let own = shots.by_thread.entry(mark.thread).or_default();
            let last = own.last().and_then(|last| shots.list.get_mut(*last as usize));
            if let Some(open) = last.filter(|shot| shot.end == u64::MAX) {
                open.end = mark.offset;
                open.end_time = (!mark.begins).then_some(mark.time);
            }
            if mark.begins {
                own.push(shots.list.len() as u32);
                shots.list.push(Shot { start: mark.offset, end: u64::MAX, time: mark.time, end_time: None });
            }
        }
        shots
    }

    /// The requested heapshots and their range in the file.
    pub fn wanted(log: &Shared, placement: &Placement, request: &TableRequest) -> (Self, Range<u64>) {
        let mut shots = Self::new(log);
        let Some(key) = request.snapshot else { return (shots, 0..u64::MAX) };
        // The key of another recording becomes an index that this log does not have.
        let number = key.checked_sub(placement.first.snapshot).unwrap_or(u32::MAX);
        shots.only = Some(number);
        let part = shots.list.get(number as usize).map_or(0..0, |shot| shot.start..shot.end);
        (shots, part)
    }

    /// Index of the heapshot that contains an event, if it is selected.
    pub fn of(&self, buffer: &Buffer, event: &Event<'_>) -> Option<u32> {
        self.at(buffer.header.thread_id, event.offset)
    }

    /// Index of the heapshot of a thread that contains an offset, if it is selected.
    fn at(&self, thread: u64, offset: u64) -> Option<u32> {
        let (own, next) = self.around(thread, offset)?;
        let number = *own.get(next.checked_sub(1)?)?;
        (offset < self.list.get(number as usize)?.end && self.is_wanted(number)).then_some(number)
    }

    /// Index and offset of the next heapshot of the event's thread, if it is selected.
    pub fn behind(&self, buffer: &Buffer, event: &Event<'_>) -> Option<(u32, u64)> {
        let (own, next) = self.around(buffer.header.thread_id, event.offset)?;
        let number = *own.get(next)?;
        self.is_wanted(number).then_some((number, self.list.get(number as usize)?.start))
    }

    /// The heapshots of a thread, and how many of them start at or before an offset.
    fn around(&self, thread: u64, offset: u64) -> Option<(&[u32], usize)> {
        let own = self.by_thread.get(&(thread & self.mask))?;
        let begins = |number: &u32| self.list.get(*number as usize).is_some_and(|shot| shot.start <= offset);
        Some((own, own.partition_point(begins)))
    }

    /// A lookup for a thread without a cached heapshot.
    fn nowhere(&self, thread: u64) -> Place {
        Place { thread, range: 0..0, shot: None }
    }

    fn is_wanted(&self, number: u32) -> bool {
        self.only.is_none_or(|only| only == number)
    }
}

/// Lookup of heapshots for increasing offsets of one thread.
struct Place {
    thread: u64,
    range: Range<u64>,
    shot: Option<u32>,
}

impl Place {
    /// Index of the heapshot that contains an offset, if it is selected.
    #[inline]
    fn at(&mut self, shots: &Shots, offset: u64) -> Option<u32> {
        if !self.range.contains(&offset) {
            self.shot = shots.at(self.thread, offset);
            let shot = self.shot.and_then(|shot| shots.list.get(shot as usize));
            self.range = shot.map_or(0..0, |shot| offset..shot.end);
        }
        self.shot
    }
}

/// Table `heap_snapshots`.
pub fn snapshots(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let mut table = heap_snapshots::Builder::new();
    for (shot, id) in Shots::new(log).list.iter().zip(placement.first.snapshot..) {
        let end = shot.end_time.map(|time| placement.clock.ns(time));
        table.push(id, placement.clock.ns(shot.time), end, placement.source_id, shot.start);
    }
    one_batch(table.finish())
}

/// Totals of each heap snapshot by type; `None` if the survey has none, or the address of a class was reused.
pub fn sums(log: &Shared, placement: &Placement) -> Option<Vec<ShotSum>> {
    let (parts, names) = (log.survey().held.parts()?, log.names());
    let shots = Shots::new(log);
    let mut all: FxHashMap<(u32, Option<u32>), ShotSum> = FxHashMap::default();
    for part in parts {
        let Some(shot) = shots.at(part.thread, part.offset) else { continue };
        for sum in &part.sums {
            if !names.is_constant_type(sum.class) {
                return None;
            }
            let of = names.object_type(sum.class, part.time);
            let known = all.entry((shot, of)).or_insert_with(|| ShotSum {
                snapshot_id: placement.first.snapshot.saturating_add(shot),
                type_id: of.map(|of| placement.first.type_.saturating_add(of)),
                num_objects: 0,
                size_bytes: 0,
                num_references: 0,
            });
            known.num_objects = known.num_objects.saturating_add(sum.count);
            known.size_bytes = known.size_bytes.saturating_add(sum.bytes);
            known.num_references = known.num_references.saturating_add(sum.num_references);
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|sum| (sum.snapshot_id, sum.type_id));
    Some(all)
}

const KINDS: KindSet = KindSet::of(&[EventByte::HEAP_OBJECT]);

/// Table `heap_objects`.
pub fn objects(log: &Arc<Shared>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let (shots, part) = Shots::wanted(log, placement, request);
    let placement = placement.clone();
    pass::batches_of(log, KINDS, &part.into(), move |log, group| {
        let (names, survey) = (log.names(), log.survey());
        let generations = survey.dialect.third();
        let mut table = heap_objects::Builder::new();
        let mut event = Event::default();
        for &number in group {
            let Some(buffer) = survey.buffers.list.get(number) else { continue };
            let mut last = shots.nowhere(buffer.header.thread_id);
            let mut push = |it: BareObject| {
                // A record of size 0 adds references to an object that already has a row.
                let Some(shot) = last.at(&shots, it.offset).filter(|_| it.size != 0) else { return };
                table.push(
                    placement.first.snapshot.saturating_add(shot),
                    it.object,
                    names.object_type(it.class, it.time).map(|of| placement.first.type_.saturating_add(of)),
                    int_size(it.size),
                    // Converted logs have 255 for an unknown generation.
                    generations.then_some(it.generation).filter(|it| *it != 0xff),
                    placement.source_id,
                    it.offset,
                );
            };
            let mut decoder = buffer.decoder(&log.source, survey.dialect).lean(KindSet::all());
            loop {
                decoder.shot_objects(&mut push);
                let Some(Ok(())) = decoder.read(&mut event) else { break };
                if let Body::HeapObject(it) = &event.body {
                    push(BareObject::of(it, decoder.time(), 0, event.offset));
                }
            }
        }
        table.finish()
    })
}

/// Table `heap_references`.
pub fn references(log: &Arc<Shared>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let (shots, part) = Shots::wanted(log, placement, request);
    let placement = placement.clone();
    pass::batches_of(log, KINDS, &part.into(), move |log, group| {
        let offsets = log.survey().dialect.version >= 2;
        let mut table = heap_references::Builder::new();
        pass::each(log, group, |_, buffer, event| {
            let Body::HeapObject(it) = event.body else { return };
            let Some(shot) = shots.of(buffer, event) else { return };
            let snapshot = placement.first.snapshot.saturating_add(shot);
            for reference in &event.references {
                let offset = offsets.then_some(reference.offset);
                let (owner, target) = (it.object, reference.target);
                table.push(snapshot, owner, target, offset, placement.source_id, event.offset);
            }
        });
        table.finish()
    })
}
