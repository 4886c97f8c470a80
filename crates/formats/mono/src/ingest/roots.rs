//! Table `heap_roots`: roots with the registered memory that contains them.

use std::sync::Arc;

use perfuse_tables::heap_roots;
use rustc_hash::FxHashMap;

use super::heap::Shots;
use super::pass;
use super::threads::ThreadKeys;
use crate::consts::{EventByte, KindSet, gc, root_source_name, root_type_name};
use crate::reader::Buffer;
use crate::recording::Shared;
use crate::records::{Body, Event, Root};
use crate::survey::facts::RootFact;
use perfuse_recording::{BatchStream, Placement, TableRequest};

/// Maximum number of registered ranges examined for one address; more do not overlap in practice.
const MOST_OVERLAPS: usize = 4096;

/// Registered root memory over time.
#[derive(Debug)]
pub struct Registered {
    ranges: Vec<Range>,
    /// Maximum end of the ranges up to each index: the search stops where it is too low.
    highest: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    since: u64,
    until: u64,
    fact: usize,
}

impl Registered {
    /// Pairs registrations and unregistrations.
    pub fn new(facts: &[RootFact]) -> Self {
        let mut order: Vec<_> = facts.iter().enumerate().collect();
        order.sort_by_key(|(_, fact)| (fact.start, fact.time));
        let mut ranges: Vec<Range> = Vec::new();
        for (fact, it) in order {
            if let Some(open) =
                ranges.last_mut().filter(|last| last.start == it.start && last.until == u64::MAX)
            {
                open.until = it.time;
            }
            if let Some(size) = it.size {
                let end = it.start.saturating_add(size);
                ranges.push(Range { start: it.start, end, since: it.time, until: u64::MAX, fact });
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
        for _ in 0..MOST_OVERLAPS {
            let Some(before) = at.checked_sub(1) else { break };
            at = before;
            if self.highest.get(at).is_none_or(|end| *end <= address) {
                break;
            }
            let Some(range) = self.ranges.get(at).filter(|range| range.end > address) else { continue };
            if (range.since..range.until).contains(&time) {
                return Some(range.fact);
            }
            any = any.or(Some(range.fact));
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
struct Collections(FxHashMap<u64, Vec<u64>>);

impl Collections {
    fn new(log: &Shared) -> Self {
        let starts = pass::gather(log, KindSet::of(&[EventByte::GC_EVENT]), |_, buffer, event, found| {
            if matches!(event.body, Body::GcEvent { event: gc::START, .. }) {
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
    fn shot(&self, shots: &Shots, buffer: &Buffer, event: &Event<'_>) -> Option<u32> {
        let own = self.0.get(&buffer.header.thread_id)?;
        let (shot, start) = shots.behind(buffer, event)?;
        let next = own.get(own.partition_point(|begun| *begun <= event.offset));
        next.is_none_or(|begun| *begun > start).then_some(shot)
    }
}

/// Table `heap_roots`.
pub fn heap_roots(log: &Arc<Shared>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let (shots, part) = Shots::wanted(log, placement, request);
    let of_one_shot = request.snapshot.is_some();
    let before = (!log.survey().dialect.vtables()).then(|| Collections::new(log));
    let part = if before.is_some() { 0..part.end } else { part };
    let registered = Registered::new(&log.survey().facts.roots);
    let threads = ThreadKeys::new(log, placement);
    let placement = placement.clone();
    pass::batches_of(log, KindSet::of(&[EventByte::HEAP_ROOT]), &part.into(), move |log, group| {
        let (names, facts, dialect) = (log.names(), &log.survey().facts, log.survey().dialect);
        let mut table = heap_roots::Builder::new();
        pass::each(log, group, |at, buffer, event| {
            let before = || before.as_ref().and_then(|before| before.shot(&shots, buffer, event));
            let shot = shots.of(buffer, event).or_else(before);
            if event.roots.is_empty() || of_one_shot && shot.is_none() {
                return;
            }
            let snapshot = shot.map(|shot| placement.first.snapshot.saturating_add(shot));
            let ts_ns = event.time.map(|time| placement.clock.ns(time));
            let mut push = |root: &Root, kind: &str, name: Option<&str>, slot, of, thread, pinning, weak| {
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
                if !dialect.vtables() {
                    // In data version 13 the type is a byte, which cannot contain the flags.
                    let flags = dialect.version != 13;
                    let flag = |bit: u64| flags.then_some(root.kind & bit != 0);
                    let kind = root_type_name(dialect.version, root.kind);
                    push(root, kind, None, None, None, None, flag(PINNING), flag(WEAK));
                    continue;
                }
                let slot = Some(root.slot);
                let Some(it) = registered.at(root.slot, at.time).and_then(|fact| facts.roots.get(fact))
                else {
                    push(root, "unknown", None, slot, None, None, None, None);
                    continue;
                };
                let of = (it.source == STATIC).then(|| names.object_type(it.key, at.time)).flatten();
                let of_thread = [STACK, THREAD_STATIC, HANDLE].contains(&it.source);
                let thread = of_thread.then(|| names.threads.at(it.key, at.time)).flatten();
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
    })
}
