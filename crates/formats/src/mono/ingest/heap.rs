//! Heap shots.

use std::sync::Arc;

use perfuse_tables::{heap_objects, heap_references, heap_snapshots};

use super::{int_size, pass};
use crate::mono::consts::{EventByte, KindSet};
use crate::mono::reader::Buffer;
use crate::mono::records::{Body, Event};
use crate::mono::recording::Shared;
use crate::{BatchStream, Placement, one_batch};

/// A heap shot: what its thread writes between two places of the file.
#[derive(Clone, Copy, Debug)]
pub struct Shot {
    thread: u64,
    start: u64,
    end: u64,
    time: u64,
    end_time: Option<u64>,
}

/// The heap shots of a log, by their number.
#[derive(Clone, Debug)]
pub struct Shots(Vec<Shot>);

impl Shots {
    /// Pairs beginnings and ends; a shot without end goes on to the next one of its thread, or to the end of the file.
    pub fn new(log: &Shared) -> Self {
        let mut shots: Vec<Shot> = Vec::new();
        for mark in &log.survey().facts.shots {
            let open = shots.iter_mut().rev().find(|shot| shot.thread == mark.thread && shot.end == u64::MAX);
            if let Some(shot) = open {
                shot.end = mark.offset;
                shot.end_time = (!mark.begins).then_some(mark.time);
            }
            if mark.begins {
                let (thread, start, time) = (mark.thread, mark.offset, mark.time);
                shots.push(Shot { thread, start, end: u64::MAX, time, end_time: None });
            }
        }
        Self(shots)
    }

    /// Number of the shot an event belongs to.
    pub fn of(&self, buffer: &Buffer, event: &Event<'_>) -> Option<u32> {
        let next = self.0.partition_point(|shot| shot.start <= event.offset);
        let before = self.0.get(..next)?.iter().enumerate().rev();
        let mut own = before.filter(|(_, shot)| shot.thread == buffer.header.thread_id);
        let (number, shot) = own.next()?;
        (event.offset < shot.end).then_some(number as u32)
    }
}

pub fn snapshots(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let mut table = heap_snapshots::Builder::new();
    for (shot, id) in Shots::new(log).0.iter().zip(placement.first.snapshot..) {
        let end = shot.end_time.map(|time| placement.clock.ns(time));
        table.push(id, placement.clock.ns(shot.time), end, placement.source_id, shot.start);
    }
    one_batch(table.finish())
}

const KINDS: KindSet = KindSet::of(&[EventByte::HEAP_OBJECT]);

pub fn objects(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let shots = Shots::new(log);
    let placement = placement.clone();
    pass::batches(log, KINDS, move |log, group| {
        let names = log.names();
        let generations = log.survey().dialect.third();
        let mut table = heap_objects::Builder::new();
        pass::each(log, group, |at, buffer, event| {
            let Body::HeapObject(it) = event.body else { return };
            // A record of size 0 goes on with the references of an object that has its row.
            let Some(shot) = shots.of(buffer, event).filter(|_| it.size != 0) else { return };
            table.push(
                placement.first.snapshot.saturating_add(shot),
                it.object,
                names.object_type(it.class, at.time).map(|of| placement.first.type_.saturating_add(of)),
                int_size(it.size),
                generations.then(|| u8::try_from(it.generation).unwrap_or(u8::MAX)),
                placement.source_id,
                event.offset,
            );
        });
        table.finish()
    })
}

pub fn references(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let shots = Shots::new(log);
    let placement = placement.clone();
    pass::batches(log, KINDS, move |log, group| {
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
