//! Tables `heap_snapshots`, `heap_objects`, `heap_references` and `heap_roots`.

use std::ops::Range;
use std::sync::Arc;

use perfuse_recording::{BatchStream, Placement, TableRequest, one_batch};
use perfuse_tables::{SnapshotSum, heap_objects, heap_references, heap_roots, heap_snapshots};
use rustc_hash::FxHashMap;

use crate::consts::{EventByte, KindSet, gc, root_source_name, root_type_name};
use crate::decode::runs::HeapObjectSummary;
use crate::ingest::scan;
use crate::ingest::threads::ThreadKeys;
use crate::log::LogData;
use crate::ranges::RootRanges;
use crate::reader::EventBuffer;
use crate::records::{Event, EventBody, HeapRootEntry, int_size};

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
        for boundary in &log.survey().events.definitions.heapshots {
            let own = heapshots.by_thread.entry(boundary.thread).or_default();
            let last = own.last().and_then(|last| heapshots.list.get_mut(*last as usize));
            if let Some(open) = last.filter(|heapshot| heapshot.end == u64::MAX) {
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
        let is_before =
            |number: &u32| self.list.get(*number as usize).is_some_and(|heapshot| heapshot.start <= offset);
        Some((own, own.partition_point(is_before)))
    }

    /// A lookup for a thread without a cached heapshot.
    fn lookup(&self, thread: u64) -> HeapshotLookup {
        HeapshotLookup { thread, range: 0..0, heapshot: None }
    }

    /// Whether a heapshot is selected.
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
    let heapshots = Heapshots::new(log);
    let is_old = !log.survey().dialect.has_vtables() && !heapshots.list.is_empty();
    let collections = if is_old { Collections::new(log, &heapshots) } else { Collections::default() };
    for ((heapshot, number), id) in heapshots.list.iter().zip(0u32..).zip(placement.first.snapshot..) {
        let last_move = collections.last_moves.get(&number).copied();
        let end = heapshot.end_time.map(|time| placement.clock.ns(time.max(last_move.unwrap_or(time))));
        table.push(id, placement.clock.ns(heapshot.time), end, placement.source_id, heapshot.start);
    }
    one_batch(table.finish())
}

/// Totals of each heap snapshot by type; `None` if the survey has none, or the address of a class was reused.
pub fn totals(log: &LogData, placement: &Placement) -> Option<Vec<SnapshotSum>> {
    let (sections, names) = (log.survey().events.heapshots.sections()?, log.names());
    let heapshots = Heapshots::new(log);
    let mut all: FxHashMap<(u32, Option<u32>), SnapshotSum> = FxHashMap::default();
    for section in sections {
        let Some(heapshot) = heapshots.at(section.thread, section.offset) else { continue };
        for total in &section.totals {
            if !names.is_constant_type(total.class) {
                return None;
            }
            let of = names.object_type(total.class, section.time);
            let of_type = all.entry((heapshot, of)).or_insert_with(|| SnapshotSum {
                snapshot_id: placement.first.snapshot.saturating_add(heapshot),
                type_id: of.map(|of| placement.first.type_.saturating_add(of)),
                num_objects: 0,
                size_bytes: 0,
                num_references: 0,
            });
            of_type.num_objects = of_type.num_objects.saturating_add(total.count);
            of_type.size_bytes = of_type.size_bytes.saturating_add(total.bytes);
            of_type.num_references = of_type.num_references.saturating_add(total.num_references);
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
    scan::scan_selected_batches(log, KINDS, &range.into(), move |log, group| {
        let (names, survey) = (log.names(), log.survey());
        let has_generations = survey.dialect.is_profiler_3();
        let mut table = heap_objects::Builder::new();
        let mut event = Event::default();
        for &number in group {
            let Some(buffer) = survey.buffers.list.get(number) else { continue };
            let mut lookup = heapshots.lookup(buffer.header.thread_id);
            let mut push = |it: HeapObjectSummary| {
                // A record of size 0 adds references to an object that already has a row.
                let Some(heapshot) = lookup.at(&heapshots, it.offset).filter(|_| it.size != 0) else {
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
    scan::scan_selected_batches(log, KINDS, &range.into(), move |log, group| {
        let offsets = log.survey().dialect.version >= 2;
        let mut table = heap_references::Builder::new();
        scan::for_each_event(log, group, |_, buffer, event| {
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

// Values of `HEAP_ROOT_REGISTER.source`.
const STACK: u64 = 1;
const STATIC: u64 = 3;
const THREAD_STATIC: u64 = 4;
const HANDLE: u64 = 14;
// Flags in `HEAP_ROOT.type`.
const PINNING: u64 = 0x100;
const WEAK: u64 = 0x200;

/// The collections of heapshots until data version 14. A heapshot is written at the end of its collection: its roots
/// precede it, with the addresses from before the collection, and the moves of the collection follow it.
#[derive(Debug, Default)]
struct Collections {
    /// Offsets of the collection starts of each thread.
    starts: FxHashMap<u64, Vec<u64>>,
    /// The moves of each heapshot's collection: by heapshot, then by old address.
    moves: FxHashMap<u32, FxHashMap<u64, u64>>,
    /// Time of the last of them.
    last_moves: FxHashMap<u32, u64>,
}

impl Collections {
    /// Collects the collections of the selected heapshots.
    fn new(log: &LogData, heapshots: &Heapshots) -> Self {
        let mask = heapshots.mask;
        let starts =
            scan::collect_events(log, KindSet::of(&[EventByte::GC_EVENT]), |_, buffer, event, found| {
                if matches!(event.body, EventBody::GcEvent { event: gc::START, .. }) {
                    found.push((buffer.header.thread_id & mask, event.offset));
                }
            });
        let mut all = Self::default();
        for (thread, offset) in starts {
            all.starts.entry(thread).or_default().push(offset);
        }
        let moves =
            scan::collect_events(log, KindSet::of(&[EventByte::GC_MOVE]), |at, buffer, event, found| {
                let thread = buffer.header.thread_id & mask;
                let Some(heapshot) = all.heapshot_before(heapshots, thread, event.offset) else { return };
                let pairs =
                    event.addresses.chunks_exact(2).filter_map(|pair| <[u64; 2]>::try_from(pair).ok());
                found.extend(pairs.map(|[old, new]| (heapshot, at.time, old, new)));
            });
        // An object can move again within the pause: from the last move to the first, each leads to the final address.
        for (heapshot, time, old, new) in moves.into_iter().rev() {
            all.last_moves.entry(heapshot).or_insert(time);
            let of_heapshot = all.moves.entry(heapshot).or_default();
            let last = of_heapshot.get(&new).copied().unwrap_or(new);
            of_heapshot.insert(old, last);
        }
        all
    }

    /// The heapshot before a move, unless another collection starts between them.
    fn heapshot_before(&self, heapshots: &Heapshots, thread: u64, offset: u64) -> Option<u32> {
        let (own, next) = heapshots.of_thread(thread, offset)?;
        let heapshot = *own.get(next.checked_sub(1)?)?;
        let start = heapshots.list.get(heapshot as usize)?.start;
        let is_same = self.next_start(thread, start).is_none_or(|collection| collection > offset);
        (is_same && heapshots.is_selected(heapshot)).then_some(heapshot)
    }

    /// Offset of the first collection of a thread that starts after an offset.
    fn next_start(&self, thread: u64, offset: u64) -> Option<u64> {
        let own = self.starts.get(&thread)?;
        own.get(own.partition_point(|collection| *collection <= offset)).copied()
    }

    /// The heapshot after a root, unless another collection starts before it.
    fn heapshot_after(&self, heapshots: &Heapshots, buffer: &EventBuffer, event: &Event<'_>) -> Option<u32> {
        let thread = buffer.header.thread_id & heapshots.mask;
        self.starts.get(&thread)?;
        let (heapshot, start) = heapshots.next_after(buffer, event)?;
        let next = self.next_start(thread, event.offset);
        next.is_none_or(|collection| collection > start).then_some(heapshot)
    }

    /// Address that an object has in a heapshot, from its address before the collection.
    fn address_in(&self, heapshot: u32, object: u64) -> u64 {
        self.moves.get(&heapshot).and_then(|moves| moves.get(&object)).copied().unwrap_or(object)
    }
}

/// What a log states of a root besides the object.
#[derive(Default)]
struct RootFacts<'a> {
    kind: &'static str,
    name: Option<&'a str>,
    slot: Option<u64>,
    owner_type: Option<u32>,
    owner_thread: Option<u32>,
    pinning: Option<bool>,
    weak: Option<bool>,
}

/// What roots are found in.
struct RootContext {
    ranges: RootRanges,
    threads: ThreadKeys,
    first_type: u32,
}

impl RootContext {
    /// The facts of a root: until data version 14 its entry states them, later the memory area that contains it.
    fn facts<'a>(&self, log: &'a LogData, root: &HeapRootEntry, time: u64) -> RootFacts<'a> {
        let dialect = log.survey().dialect;
        if !dialect.has_vtables() {
            // In data version 13 the type is a byte, which cannot contain the flags.
            let flag = |bit: u64| (dialect.version != 13).then_some(root.kind & bit != 0);
            let kind = root_type_name(dialect.version, root.kind);
            return RootFacts { kind, pinning: flag(PINNING), weak: flag(WEAK), ..RootFacts::default() };
        }
        let areas = &log.survey().events.definitions.roots;
        let slot = Some(root.slot);
        let Some(area) = self.ranges.at(root.slot, time).and_then(|record| areas.get(record)) else {
            return RootFacts { kind: "unknown", slot, ..RootFacts::default() };
        };
        let names = log.names();
        let owner = (area.source == STATIC).then(|| names.object_type(area.key, time)).flatten();
        let has_thread = [STACK, THREAD_STATIC, HANDLE].contains(&area.source);
        let thread = has_thread.then(|| names.threads.at(area.key, time)).flatten();
        RootFacts {
            kind: root_source_name(area.source),
            name: Some(&area.name),
            slot,
            owner_type: owner.map(|owner| self.first_type.saturating_add(owner)),
            owner_thread: thread.map(|thread| self.threads.get(thread)),
            ..RootFacts::default()
        }
    }
}

/// Table `heap_roots`.
pub fn heap_roots(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let (heapshots, range) = Heapshots::requested(log, placement, request);
    let is_single = request.snapshot.is_some();
    let collections = (!log.survey().dialect.has_vtables()).then(|| Collections::new(log, &heapshots));
    let range = if collections.is_some() { 0..range.end } else { range };
    let context = RootContext {
        ranges: RootRanges::new(&log.survey().events.definitions.roots),
        threads: ThreadKeys::new(log, placement),
        first_type: placement.first.type_,
    };
    let placement = placement.clone();
    scan::scan_selected_batches(
        log,
        KindSet::of(&[EventByte::HEAP_ROOT]),
        &range.into(),
        move |log, group| {
            let mut table = heap_roots::Builder::new();
            scan::for_each_event(log, group, |at, buffer, event| {
                let preceding = || {
                    collections
                        .as_ref()
                        .and_then(|collections| collections.heapshot_after(&heapshots, buffer, event))
                };
                let own = heapshots.of_event(buffer, event);
                let preceding = own.is_none().then(preceding).flatten();
                let heapshot = own.or(preceding);
                if event.roots.is_empty() || is_single && heapshot.is_none() {
                    return;
                }
                let snapshot = heapshot.map(|heapshot| placement.first.snapshot.saturating_add(heapshot));
                let ts_ns = event.time.map(|time| placement.clock.ns(time));
                let moved = collections.as_ref().zip(preceding);
                for root in &event.roots {
                    let facts = context.facts(log, root, at.time);
                    let object =
                        moved.map_or(root.object, |(it, heapshot)| it.address_in(heapshot, root.object));
                    table.push(
                        snapshot,
                        ts_ns,
                        object,
                        facts.kind,
                        facts.name,
                        facts.slot,
                        facts.owner_type,
                        facts.owner_thread,
                        facts.pinning,
                        facts.weak,
                        placement.source_id,
                        event.offset,
                    );
                }
            });
            table.finish()
        },
    )
}
