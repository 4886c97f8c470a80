//! Tables of heap snapshots.

use std::ops::Range;
use std::sync::Arc;

use perfuse_tables::{heap_objects, heap_references, heap_snapshots};

use rustc_hash::FxHashMap;

use super::pass;
use crate::consts::{EventByte, KindSet};
use crate::decode::HeapObjectSummary;
use crate::reader::EventBuffer;
use crate::recording::LogData;
use crate::records::{Event, EventBody, int_size};
use perfuse_recording::{BatchStream, Placement, ShotSum, TableRequest, one_batch};

/// A heapshot: the events of a thread between two offsets of the file.
#[derive(Clone, Copy, Debug)]
pub struct Heapshot {
    start: u64,
    end: u64,
    time: u64,
    end_time: Option<u64>,
}

/// The heapshots of a log, by index.
#[derive(Clone, Debug)]
pub struct Heapshots {
    list: Vec<Heapshot>,
    /// Indices of the heapshots of each thread, in file order.
    by_thread: FxHashMap<u64, Vec<u32>>,
    /// Mask of thread ids.
    mask: u64,
    /// The only selected heapshot, if one is selected.
    selected: Option<u32>,
}

impl Heapshots {
    /// Pairs starts and ends. A heapshot without an end extends to the next one of its thread, or to the end of the
    /// file.
    pub fn new(log: &LogData) -> Self {
        let mask = log.survey().dialect.pointer_mask();
        let mut heapshots = Self { list: Vec::new(), by_thread: FxHashMap::default(), mask, selected: None };
        for boundary in &log.survey().definitions.heapshots {
            let own = heapshots.by_thread.entry(boundary.thread).or_default();
            let lookup_ = own.last().and_then(|lookup_| heapshots.list.get_mut(*lookup_ as usize));
            if let Some(open) = lookup_.filter(|heapshot| heapshot.end == u64::MAX) {
                open.end = boundary.offset;
                open.end_time = (!boundary.is_start).then_some(boundary.time);
            }
            if boundary.is_start {
                own.push(heapshots.list.len() as u32);
                heapshots.list.push(Heapshot {
                    start: boundary.offset,
                    end: u64::MAX,
                    time: boundary.time,
                    end_time: None,
                });
            }
        }
        heapshots
    }

    /// The requested heapshots and their range in the file.
    pub fn requested(log: &LogData, placement: &Placement, request: &TableRequest) -> (Self, Range<u64>) {
        let mut heapshots = Self::new(log);
        let Some(key) = request.snapshot else { return (heapshots, 0..u64::MAX) };
        // The key of another recording becomes an index that this log does not have.
        let number = key.checked_sub(placement.first.snapshot).unwrap_or(u32::MAX);
        heapshots.selected = Some(number);
        let range = heapshots.list.get(number as usize).map_or(0..0, |heapshot| heapshot.start..heapshot.end);
        (heapshots, range)
    }

    /// Index of the heapshot that contains an event, if it is selected.
    pub fn of_event(&self, buffer: &EventBuffer, event: &Event<'_>) -> Option<u32> {
        self.at(buffer.header.thread_id, event.offset)
    }

    /// Index of the heapshot of a thread that contains an offset, if it is selected.
    fn at(&self, thread: u64, offset: u64) -> Option<u32> {
        let (own, next) = self.of_thread(thread, offset)?;
        let number = *own.get(next.checked_sub(1)?)?;
        (offset < self.list.get(number as usize)?.end && self.is_selected(number)).then_some(number)
    }

    /// Index and offset of the next heapshot of the event's thread, if it is selected.
    pub fn next_after(&self, buffer: &EventBuffer, event: &Event<'_>) -> Option<(u32, u64)> {
        let (own, next) = self.of_thread(buffer.header.thread_id, event.offset)?;
        let number = *own.get(next)?;
        self.is_selected(number).then_some((number, self.list.get(number as usize)?.start))
    }

    /// The heapshots of a thread, and how many of them start at or before an offset.
    fn of_thread(&self, thread: u64, offset: u64) -> Option<(&[u32], usize)> {
        let own = self.by_thread.get(&(thread & self.mask))?;
        let begins =
            |number: &u32| self.list.get(*number as usize).is_some_and(|heapshot| heapshot.start <= offset);
        Some((own, own.partition_point(begins)))
    }

    /// A lookup for a thread without a cached heapshot.
    fn lookup(&self, thread: u64) -> HeapshotLookup {
        HeapshotLookup { thread, range: 0..0, heapshot: None }
    }

    fn is_selected(&self, number: u32) -> bool {
        self.selected.is_none_or(|selected| selected == number)
    }
}

/// Lookup of heapshots for increasing offsets of one thread.
struct HeapshotLookup {
    thread: u64,
    range: Range<u64>,
    heapshot: Option<u32>,
}

impl HeapshotLookup {
    /// Index of the heapshot that contains an offset, if it is selected.
    #[inline]
    fn at(&mut self, heapshots: &Heapshots, offset: u64) -> Option<u32> {
        if !self.range.contains(&offset) {
            self.heapshot = heapshots.at(self.thread, offset);
            let heapshot = self.heapshot.and_then(|heapshot| heapshots.list.get(heapshot as usize));
            self.range = heapshot.map_or(0..0, |heapshot| offset..heapshot.end);
        }
        self.heapshot
    }
}

/// Table `heap_snapshots`.
pub fn snapshots(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    let mut table = heap_snapshots::Builder::new();
    for (heapshot, id) in Heapshots::new(log).list.iter().zip(placement.first.snapshot..) {
        let end = heapshot.end_time.map(|time| placement.clock.ns(time));
        table.push(id, placement.clock.ns(heapshot.time), end, placement.source_id, heapshot.start);
    }
    one_batch(table.finish())
}

/// Totals of each heap snapshot by type; `None` if the survey has none, or the address of a class was reused.
pub fn totals(log: &LogData, placement: &Placement) -> Option<Vec<ShotSum>> {
    let (sections, names) = (log.survey().heapshots.sections()?, log.names());
    let heapshots = Heapshots::new(log);
    let mut all: FxHashMap<(u32, Option<u32>), ShotSum> = FxHashMap::default();
    for range in sections {
        let Some(heapshot) = heapshots.at(range.thread, range.offset) else { continue };
        for total in &range.totals {
            if !names.is_constant_type(total.class) {
                return None;
            }
            let of = names.object_type(total.class, range.time);
            let total_ = all.entry((heapshot, of)).or_insert_with(|| ShotSum {
                snapshot_id: placement.first.snapshot.saturating_add(heapshot),
                type_id: of.map(|of| placement.first.type_.saturating_add(of)),
                num_objects: 0,
                size_bytes: 0,
                num_references: 0,
            });
            total_.num_objects = total_.num_objects.saturating_add(total.count);
            total_.size_bytes = total_.size_bytes.saturating_add(total.bytes);
            total_.num_references = total_.num_references.saturating_add(total.num_references);
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|total| (total.snapshot_id, total.type_id));
    Some(all)
}

const KINDS: KindSet = KindSet::of(&[EventByte::HEAP_OBJECT]);

/// Table `heap_objects`.
pub fn objects(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let (heapshots, range) = Heapshots::requested(log, placement, request);
    let placement = placement.clone();
    pass::scan_selected_batches(log, KINDS, &range.into(), move |log, group| {
        let (names, survey) = (log.names(), log.survey());
        let has_generations = survey.dialect.is_profiler_3();
        let mut table = heap_objects::Builder::new();
        let mut event = Event::default();
        for &number in group {
            let Some(buffer) = survey.buffers.list.get(number) else { continue };
            let mut lookup_ = heapshots.lookup(buffer.header.thread_id);
            let mut push = |it: HeapObjectSummary| {
                // A record of size 0 adds references to an object that already has a row.
                let Some(heapshot) = lookup_.at(&heapshots, it.offset).filter(|_| it.size != 0) else {
                    return;
                };
                table.push(
                    placement.first.snapshot.saturating_add(heapshot),
                    it.object,
                    names.object_type(it.class, it.time).map(|of| placement.first.type_.saturating_add(of)),
                    int_size(it.size),
                    // Converted logs have 255 for an unknown generation.
                    has_generations.then_some(it.generation).filter(|it| *it != 0xff),
                    placement.source_id,
                    it.offset,
                );
            };
            let mut decoder = buffer.decoder(&log.source, survey.dialect).skip_backtraces(KindSet::all());
            loop {
                decoder.read_heap_objects(&mut push);
                let Some(Ok(())) = decoder.read(&mut event) else { break };
                if let EventBody::HeapObject(it) = &event.body {
                    push(HeapObjectSummary::new(it, decoder.time(), 0, event.offset));
                }
            }
        }
        table.finish()
    })
}

/// Table `heap_references`.
pub fn references(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let (heapshots, range) = Heapshots::requested(log, placement, request);
    let placement = placement.clone();
    pass::scan_selected_batches(log, KINDS, &range.into(), move |log, group| {
        let offsets = log.survey().dialect.version >= 2;
        let mut table = heap_references::Builder::new();
        pass::for_each_event(log, group, |_, buffer, event| {
            let EventBody::HeapObject(it) = event.body else { return };
            let Some(heapshot) = heapshots.of_event(buffer, event) else { return };
            let snapshot = placement.first.snapshot.saturating_add(heapshot);
            for reference in &event.references {
                let offset = offsets.then_some(reference.offset);
                let (owner, target) = (it.object, reference.target);
                table.push(snapshot, owner, target, offset, placement.source_id, event.offset);
            }
        });
        table.finish()
    })
}
