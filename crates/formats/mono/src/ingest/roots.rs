//! Table `heap_roots`: roots with the registered memory that contains them.

use std::sync::Arc;

use perfuse_tables::heap_roots;
use rustc_hash::FxHashMap;

use super::heap::Heapshots;
use super::pass;
use super::threads::ThreadKeys;
use crate::consts::{EventByte, KindSet, gc, root_source_name, root_type_name};
use crate::reader::EventBuffer;
use crate::recording::LogData;
use crate::records::{Event, EventBody, Root};
use crate::survey::facts::RootRecord;
use perfuse_recording::{BatchStream, Placement, TableRequest};

/// Maximum number of registered ranges examined for one address; more do not overlap in practice.
const MAX_ROOT_OVERLAPS: usize = 4096;

/// Registered root memory over time.
#[derive(Debug)]
pub struct RootRanges {
    ranges: Vec<RootRange>,
    /// Maximum end of the ranges up to each index: the search stops where it is too low.
    highest: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct RootRange {
    start: u64,
    end: u64,
    since: u64,
    until: u64,
    record: usize,
}

impl RootRanges {
    /// Pairs registrations and unregistrations.
    pub fn new(records: &[RootRecord]) -> Self {
        let mut order: Vec<_> = records.iter().enumerate().collect();
        order.sort_by_key(|(_, record)| (record.start, record.time));
        let mut ranges: Vec<RootRange> = Vec::new();
        for (record, it) in order {
            if let Some(open) =
                ranges.last_mut().filter(|last| last.start == it.start && last.until == u64::MAX)
            {
                open.until = it.time;
            }
            if let Some(size) = it.size {
                let end = it.start.saturating_add(size);
                ranges.push(RootRange { start: it.start, end, since: it.time, until: u64::MAX, record });
            }
        }
        let highest = ranges.iter().scan(0u64, |highest, range| {
            *highest = range.end.max(*highest);
            Some(*highest)
        });
        let highest = highest.collect();
        Self { ranges, highest }
    }

    /// The innermost range that contained an address at a time, or else at any time, as an index into the
    /// registrations.
    pub fn at(&self, address: u64, time: u64) -> Option<usize> {
        let mut at = self.ranges.partition_point(|range| range.start <= address);
        let mut any = None;
        for _ in 0..MAX_ROOT_OVERLAPS {
            let Some(previous) = at.checked_sub(1) else { break };
            at = previous;
            if self.highest.get(at).is_none_or(|end| *end <= address) {
                break;
            }
            let Some(range) = self.ranges.get(at).filter(|range| range.end > address) else { continue };
            if (range.since..range.until).contains(&time) {
                return Some(range.record);
            }
            any = any.or(Some(range.record));
        }
        any
    }
}

const STACK: u64 = 1;
const STATIC: u64 = 3;
const THREAD_STATIC: u64 = 4;
const HANDLE: u64 = 14;
const PINNING: u64 = 0x100;
const WEAK: u64 = 0x200;

/// Offsets of collection starts of each thread. Until data version 14, the roots of a heapshot precede it: they are
/// written during its collection.
#[derive(Debug, Default)]
struct CollectionStarts(FxHashMap<u64, Vec<u64>>);

impl CollectionStarts {
    fn new(log: &LogData) -> Self {
        let starts =
            pass::collect_events(log, KindSet::of(&[EventByte::GC_EVENT]), |_, buffer, event, found| {
                if matches!(event.body, EventBody::GcEvent { event: gc::START, .. }) {
                    found.push((buffer.header.thread_id, event.offset));
                }
            });
        let mut all = Self::default();
        for (thread, offset) in starts {
            all.0.entry(thread).or_default().push(offset);
        }
        all
    }

    /// The heapshot after a root, unless another collection starts before it.
    fn heapshot_after(&self, heapshots: &Heapshots, buffer: &EventBuffer, event: &Event<'_>) -> Option<u32> {
        let own = self.0.get(&buffer.header.thread_id)?;
        let (heapshot, start) = heapshots.next_after(buffer, event)?;
        let next = own.get(own.partition_point(|collection| *collection <= event.offset));
        next.is_none_or(|collection| *collection > start).then_some(heapshot)
    }
}

/// Table `heap_roots`.
pub fn heap_roots(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let (heapshots, range) = Heapshots::requested(log, placement, request);
    let is_single = request.snapshot.is_some();
    let collections = (!log.survey().dialect.has_vtables()).then(|| CollectionStarts::new(log));
    let range = if collections.is_some() { 0..range.end } else { range };
    let root_ranges = RootRanges::new(&log.survey().definitions.roots);
    let threads = ThreadKeys::new(log, placement);
    let placement = placement.clone();
    pass::scan_selected_batches(
        log,
        KindSet::of(&[EventByte::HEAP_ROOT]),
        &range.into(),
        move |log, group| {
            let (names, definitions, dialect) =
                (log.names(), &log.survey().definitions, log.survey().dialect);
            let mut table = heap_roots::Builder::new();
            pass::for_each_event(log, group, |at, buffer, event| {
                let preceding = || {
                    collections
                        .as_ref()
                        .and_then(|collections| collections.heapshot_after(&heapshots, buffer, event))
                };
                let heapshot = heapshots.of_event(buffer, event).or_else(preceding);
                if event.roots.is_empty() || is_single && heapshot.is_none() {
                    return;
                }
                let snapshot = heapshot.map(|heapshot| placement.first.snapshot.saturating_add(heapshot));
                let ts_ns = event.time.map(|time| placement.clock.ns(time));
                let mut push =
                    |root: &Root, kind: &str, name: Option<&str>, slot, of, thread, pinning, weak| {
                        let source = placement.source_id;
                        let object = root.object;
                        table.push(
                            snapshot,
                            ts_ns,
                            object,
                            kind,
                            name,
                            slot,
                            of,
                            thread,
                            pinning,
                            weak,
                            source,
                            event.offset,
                        );
                    };
                for root in &event.roots {
                    if !dialect.has_vtables() {
                        // In data version 13 the type is a byte, which cannot contain the flags.
                        let flags = dialect.version != 13;
                        let flag = |bit: u64| flags.then_some(root.kind & bit != 0);
                        let kind = root_type_name(dialect.version, root.kind);
                        push(root, kind, None, None, None, None, flag(PINNING), flag(WEAK));
                        continue;
                    }
                    let slot = Some(root.slot);
                    let Some(it) =
                        root_ranges.at(root.slot, at.time).and_then(|record| definitions.roots.get(record))
                    else {
                        push(root, "unknown", None, slot, None, None, None, None);
                        continue;
                    };
                    let of = (it.source == STATIC).then(|| names.object_type(it.key, at.time)).flatten();
                    let has_thread = [STACK, THREAD_STATIC, HANDLE].contains(&it.source);
                    let thread = has_thread.then(|| names.threads.at(it.key, at.time)).flatten();
                    push(
                        root,
                        root_source_name(it.source),
                        Some(&it.name),
                        slot,
                        of.map(|of| placement.first.type_.saturating_add(of)),
                        thread.map(|thread| threads.get(thread)),
                        None,
                        None,
                    );
                }
            });
            table.finish()
        },
    )
}
