//! Conversion of events between data versions.

use rustc_hash::FxHashSet;

use crate::consts::{EventByte, PERFCOUNTERS, gc, metadata as mtypes, monitor};
use crate::convert::outcome::{ConvertSummary, UnsupportedItem};
use crate::dialect::LogDialect;
use crate::fields;
use crate::names::AddressTimeline;
use crate::ranges::RootRanges;
use crate::recording::MonoLog;
use crate::records::{Event, EventBody, FramePosition, HeapRootEntry, Metadata};

/// Converts the events of one log, using the classes, roots and counters that the whole log defines.
pub struct Adapter {
    from: LogDialect,
    to: LogDialect,
    /// By vtable: an index into `classes`.
    /// The classes of the vtables.
    vtables: AddressTimeline,
    classes: Vec<u64>,
    /// Registered root memory: an index into `root_sources`.
    roots: RootRanges,
    root_sources: Vec<u64>,
    /// Performance counters, which data versions 5 and 6 do not have.
    performance_counters: FxHashSet<u64>,
    /// Time of the first counter values: the zero of the millisecond times before data version 13.
    first_counter_time: Option<u64>,
}

impl Adapter {
    /// Collects what the conversion of a log to `to` needs from the whole log.
    pub fn new(log: &MonoLog, to: LogDialect) -> Self {
        let (survey, definitions) = (log.survey(), &log.survey().events.definitions);
        let loads = definitions.metadata.iter().filter(|it| {
            it.mtype == mtypes::VTABLE && it.what == EventByte::METADATA_END_LOAD && !to.has_vtables()
        });
        let (mut classes, mut loads_by_time) = (Vec::new(), Vec::new());
        for it in loads {
            loads_by_time.push((it.pointer, it.time, classes.len() as u32));
            classes.push(it.class);
        }
        let performance = definitions.counters.iter().filter(|it| it.section == PERFCOUNTERS);
        Self {
            from: survey.dialect,
            to,
            vtables: AddressTimeline::new(loads_by_time),
            classes,
            roots: RootRanges::new(&definitions.roots),
            root_sources: definitions.roots.iter().map(|it| it.source).collect(),
            performance_counters: performance.map(|it| it.index).collect(),
            first_counter_time: None,
        }
    }

    /// Converts an event in place; returns `false` if the target cannot represent it. `time` is that of the last
    /// timed event.
    pub fn adapt(
        &mut self,
        event: &mut Event<'_>,
        thread: u64,
        time: u64,
        summary: &mut ConvertSummary,
    ) -> bool {
        self.adapt_byte(event, summary);
        if !fields::is_defined(event.byte, &self.to) || !self.is_representable(event) {
            return false;
        }
        if self.to.since_v13() && event.flags != 0 {
            summary.count_item(UnsupportedItem::Flags, 1);
        }
        self.adapt_program(event, summary);
        self.adapt_sample(event, thread, time, summary);
        self.adapt_heap(event, time, summary);
        self.adapt_time(event, time, summary);
        true
    }

    /// Converts the event byte where it states a backtrace or the kind of a monitor event.
    fn adapt_byte(&self, event: &mut Event<'_>, summary: &mut ConvertSummary) {
        let had_backtrace = event.has_backtrace();
        if let EventBody::Monitor { event: kind, .. } = event.body {
            event.byte = match (self.to.version >= 14, kind, had_backtrace) {
                (true, _, false) => EventByte::MONITOR,
                (true, _, true) => EventByte::MONITOR_BT,
                (false, monitor::CONTENTION, false) => EventByte::MONITOR_CONTENTION,
                (false, monitor::CONTENTION, true) => EventByte::MONITOR_CONTENTION_BT,
                (false, monitor::DONE, _) => EventByte::MONITOR_DONE,
                (false, monitor::FAIL, _) => EventByte::MONITOR_FAIL,
                (false, _, _) => event.byte,
            };
        }
        if self.to.version < 11 {
            event.byte = match event.byte {
                EventByte::GC_HANDLE_CREATED_BT => EventByte::GC_HANDLE_CREATED,
                EventByte::GC_HANDLE_DESTROYED_BT => EventByte::GC_HANDLE_DESTROYED,
                byte => byte,
            };
        }
        if had_backtrace && !event.has_backtrace() {
            event.frames.clear();
            summary.count_item(UnsupportedItem::Backtraces, 1);
        }
    }

    /// Whether the target defines the meaning of the event.
    fn is_representable(&self, event: &Event<'_>) -> bool {
        let version = self.to.version;
        match event.body {
            EventBody::GcEvent { event, .. } => match event {
                1..=4 => version <= 13,
                gc::PRE_STOP_WORLD_LOCKED | gc::POST_START_WORLD_UNLOCKED => version >= 13,
                _ => true,
            },
            EventBody::Metadata(it) => match it.mtype {
                mtypes::ASSEMBLY | mtypes::DOMAIN => version >= 11 || self.from.version < 11,
                mtypes::CONTEXT => version >= 11,
                mtypes::THREAD => version >= 11 || event.byte == EventByte::METADATA_NAME,
                mtypes::VTABLE => version >= 15,
                _ => true,
            },
            EventBody::JitHelper { kind, .. } => self.adapt_helper(kind).is_some(),
            _ => true,
        }
    }

    /// Adds or drops the time of events that have one only since data version 13.
    fn adapt_time(&self, event: &mut Event<'_>, time: u64, summary: &mut ConvertSummary) {
        if self.from.since_v13() == self.to.since_v13() {
            return;
        }
        let untimed = matches!(
            event.body,
            EventBody::HeapObject(_)
                | EventBody::HeapRoot(_)
                | EventBody::SampleUsym { .. }
                | EventBody::CountersDesc
                | EventBody::Coverage(_)
        );
        if !untimed {
            return;
        }
        if self.to.since_v13() {
            event.time = Some(time);
            summary.count_item(UnsupportedItem::UnknownTimes, 1);
        } else {
            summary.count_item(UnsupportedItem::Times, 1);
        }
    }

    /// Replaces a vtable by its class if the target has no vtables.
    fn adapt_class(&self, class: &mut u64, time: u64, summary: &mut ConvertSummary) {
        if !self.from.has_vtables() || self.to.has_vtables() {
            return;
        }
        let found = self.vtables.at(*class, time).and_then(|at| self.classes.get(at as usize));
        match found {
            Some(found) => *class = *found,
            None => summary.count_item(UnsupportedItem::UnknownVtables, 1),
        }
    }
}

/// The kind of helper that has a name, as numbered before data version 14; since then all kinds are one lower.
const SPECIFIC_TRAMPOLINE: u64 = 6;
/// The first kind of helper that data version 8 does not have.
const EXCEPTION_HANDLING: u64 = 10;

impl Adapter {
    /// Converts metadata, allocations, exception clauses and helpers.
    pub(super) fn adapt_program(&self, event: &mut Event<'_>, summary: &mut ConvertSummary) {
        let loads = event.byte == EventByte::METADATA_END_LOAD;
        let time = event.time.unwrap_or(0);
        match &mut event.body {
            EventBody::Metadata(it) => self.adapt_metadata(it, loads, summary),
            EventBody::Alloc { class, size, .. } => {
                self.adapt_class(class, time, summary);
                let rounded = size.checked_next_multiple_of(8).unwrap_or(*size);
                if self.rounds_sizes() && rounded != *size {
                    *size = rounded;
                    summary.count_item(UnsupportedItem::Sizes, 1);
                }
            }
            EventBody::Clause { .. } if (self.from.version >= 14) != (self.to.version >= 14) => {
                summary.count_item(UnsupportedItem::ClauseObjects, 1);
            }
            EventBody::JitHelper { kind, name, .. } => {
                if let Some(new) = self.adapt_helper(*kind) {
                    *kind = new;
                }
                let specific = if self.to.version < 14 {
                    SPECIFIC_TRAMPOLINE
                } else {
                    SPECIFIC_TRAMPOLINE.wrapping_sub(1)
                };
                if *kind != specific && !name.is_empty() {
                    summary.count_item(UnsupportedItem::HelperNames, 1);
                }
            }
            _ => {}
        }
    }

    /// Whether the source log is by profiler 0.1, which wrote exact allocation sizes, and the target is not.
    fn rounds_sizes(&self) -> bool {
        let first = |version: u8, minor: u8| version == 1 && minor <= 1;
        first(self.from.version, self.from.minor) && !first(self.to.version, self.to.minor)
    }

    /// Counts metadata fields that only one of the two data versions has.
    fn adapt_metadata(&self, it: &mut Metadata<'_>, loads: bool, summary: &mut ConvertSummary) {
        match it.mtype {
            mtypes::ASSEMBLY if (self.from.version >= 14) != (self.to.version >= 14) => {
                summary.count_item(UnsupportedItem::AssemblyImages, 1);
            }
            mtypes::IMAGE if loads && self.from.is_profiler_3() != self.to.is_profiler_3() => {
                summary.count_item(UnsupportedItem::Mvids, 1);
            }
            _ => {}
        }
    }

    /// The number of a kind of helper in the target; `None` if it has no such kind.
    pub(super) fn adapt_helper(&self, kind: u64) -> Option<u64> {
        let (from, to) = (self.from.version, self.to.version);
        let old_kind = if from < 14 { kind } else { kind.checked_add(1)? };
        match to {
            ..=8 if old_kind >= EXCEPTION_HANDLING => None,
            ..=13 => Some(old_kind),
            _ => old_kind.checked_sub(1),
        }
    }

    /// The vtable event to add after the load of a class: at the address of the class.
    pub fn vtable_of(&self, event: &Event<'_>, summary: &mut ConvertSummary) -> Option<Event<'static>> {
        let EventBody::Metadata(it) = event.body else { return None };
        let needs_vtables = self.to.has_vtables() && !self.from.has_vtables();
        if !needs_vtables || it.mtype != mtypes::CLASS || event.byte != EventByte::METADATA_END_LOAD {
            return None;
        }
        summary.count_item(UnsupportedItem::AddedVtables, 1);
        let mut vtable = Event::default();
        vtable.begin(EventByte::METADATA_END_LOAD);
        vtable.time = event.time;
        vtable.body = EventBody::Metadata(Metadata {
            mtype: mtypes::VTABLE,
            pointer: it.pointer,
            class: it.pointer,
            ..Metadata::default()
        });
        Some(vtable)
    }
}

/// Nanoseconds per millisecond.
const NS_PER_MS: u64 = 1_000_000;
/// The position of a frame whose offsets are unknown.
const UNKNOWN_POSITION: FramePosition = FramePosition { il_offset: -1, native_offset: 0 };

impl Adapter {
    /// Converts samples and counters.
    pub(super) fn adapt_sample(
        &mut self,
        event: &mut Event<'_>,
        thread: u64,
        time: u64,
        summary: &mut ConvertSummary,
    ) {
        match event.body {
            EventBody::SampleHit { .. } => self.adapt_hit(event, thread, summary),
            EventBody::CountersDesc => self.adapt_descriptions(event, summary),
            EventBody::Counters { .. } => self.adapt_values(event, time, summary),
            _ => {}
        }
    }

    /// Converts a sample. `buffer` is the thread of its buffer.
    fn adapt_hit(&self, event: &mut Event<'_>, buffer: u64, summary: &mut ConvertSummary) {
        let (from, to) = (self.from, self.to);
        let EventBody::SampleHit { kind, timestamp, thread } = &mut event.body else { return };
        if from.version < 11 {
            *thread = buffer;
        }
        match (from.since_v13(), to.since_v13()) {
            (false, true) => event.time = Some(*timestamp),
            (true, false) => *timestamp = event.time.unwrap_or(0),
            _ => {}
        }
        if to.version >= 14 && !to.prerelease.sample_type && *kind != 0 {
            summary.count_item(UnsupportedItem::SampleTypes, 1);
        }
        if to.version < 6 && !event.frames.is_empty() {
            summary.count_item(UnsupportedItem::SampleStacks, 1);
        }
        let has_positions = |version: u8| (6..=12).contains(&version);
        let num = event.frames.len();
        if has_positions(to.version) && !has_positions(from.version) {
            event.frame_positions.clear();
            event.frame_positions.resize(num, UNKNOWN_POSITION);
        }
        if has_positions(from.version) && to.since_v13() || has_positions(to.version) && from.since_v13() {
            summary.count_item(UnsupportedItem::SamplePositions, num as u64);
        }
    }

    /// Converts counter descriptions.
    fn adapt_descriptions(&self, event: &mut Event<'_>, summary: &mut ConvertSummary) {
        let before = event.descriptions.len();
        if self.to.version < 7 {
            event.descriptions.retain(|it| it.section != PERFCOUNTERS);
        }
        summary.count_item(UnsupportedItem::Counters, before.saturating_sub(event.descriptions.len()) as u64);
        if self.to.has_byte_counter_fields() {
            for it in event.descriptions.iter_mut().filter(|it| it.unit > 0xff || it.variance > 0xff) {
                (it.unit, it.variance) = (0, 0);
                summary.count_item(UnsupportedItem::CounterUnits, 1);
            }
        }
    }

    /// Converts counter values.
    fn adapt_values(&mut self, event: &mut Event<'_>, time: u64, summary: &mut ConvertSummary) {
        let before = event.values.len();
        if self.to.version < 7 {
            event.values.retain(|it| !self.performance_counters.contains(&it.index));
        }
        summary.count_item(UnsupportedItem::Counters, before.saturating_sub(event.values.len()) as u64);
        // Mono 4.6 writes 0 as the time of the first values.
        let event_time = event.time.filter(|time| *time != 0);
        let start = *self.first_counter_time.get_or_insert(event_time.unwrap_or(time));
        let EventBody::Counters { ms } = &mut event.body else { return };
        match (self.from.since_v13(), self.to.since_v13()) {
            (false, true) => event.time = Some(start.wrapping_add(ms.wrapping_mul(NS_PER_MS))),
            (true, false) => {
                *ms = event_time.unwrap_or(start).saturating_sub(start).wrapping_div(NS_PER_MS);
                summary.count_item(UnsupportedItem::CounterTimes, 1);
            }
            _ => {}
        }
    }
}

/// Stands for an unknown generation; known ones are 0 and 1.
const UNKNOWN_GENERATION: u64 = 0xff;
/// Root kinds of data version 14, in the order of the kinds 0 to 4 of data versions 3 to 13.
const KINDS_OF_V14: [u64; 5] = [1, 2, 4, 8, 16];
// Root kinds as data versions 3 to 13 number them.
const KIND_STACK: u64 = 0;
const KIND_FINALIZER: u64 = 1;
const KIND_HANDLE: u64 = 2;
const KIND_OTHER: u64 = 3;
const FLAGS_MASK: u64 = !0xff;

/// The kind of a root from the source of its registered memory.
fn kind_of_source(source: u64) -> u64 {
    match source {
        1 => KIND_STACK,
        2 => KIND_FINALIZER,
        6 | 14 => KIND_HANDLE,
        _ => KIND_OTHER,
    }
}

impl Adapter {
    /// Converts heapshot objects and roots.
    pub(super) fn adapt_heap(&self, event: &mut Event<'_>, time: u64, summary: &mut ConvertSummary) {
        let (from, to) = (self.from, self.to);
        match &mut event.body {
            EventBody::HeapObject(it) => {
                self.adapt_class(&mut it.class, time, summary);
                if from.is_profiler_3() != to.is_profiler_3() {
                    summary.count_item(UnsupportedItem::Generations, 1);
                    it.generation = if to.is_profiler_3() { UNKNOWN_GENERATION } else { 0 };
                }
                if (from.version >= 2) != (to.version >= 2) {
                    summary.count_item(UnsupportedItem::ReferenceOffsets, event.references.len() as u64);
                }
            }
            EventBody::HeapRoot(it) => {
                let num = event.roots.len() as u64;
                if from.has_vtables() != to.has_vtables() {
                    summary.count_item(UnsupportedItem::RootSlots, num);
                    summary.count_item(UnsupportedItem::Collections, 1);
                    it.collections = 0;
                }
                if to.has_vtables() && !from.has_vtables() {
                    summary.count_item(UnsupportedItem::RootKinds, num);
                } else if !to.has_vtables() {
                    for root in &mut event.roots {
                        self.adapt_root(root, time, summary);
                    }
                }
            }
            _ => {}
        }
    }

    /// Converts a root to data versions 3 to 14.
    fn adapt_root(&self, root: &mut HeapRootEntry, time: u64, summary: &mut ConvertSummary) {
        let (from, to) = (self.from, self.to);
        let (kind, flags) = if from.has_vtables() {
            let source = self.roots.at(root.slot, time).and_then(|fact| self.root_sources.get(fact));
            (source.map_or(KIND_OTHER, |source| kind_of_source(*source)), 0)
        } else {
            let low = root.kind & !FLAGS_MASK;
            let old_kind = KINDS_OF_V14.iter().position(|kind| *kind == low).map_or(low, |at| at as u64);
            (if from.version >= 14 { old_kind } else { low }, root.kind & FLAGS_MASK)
        };
        let kind = match KINDS_OF_V14.get(kind as usize) {
            Some(new) if to.version >= 14 => *new,
            _ => kind,
        };
        let has_flags = to.version != 13;
        summary.count_item(UnsupportedItem::RootFlags, u64::from(!has_flags && flags != 0));
        root.kind = if has_flags { kind | flags } else { kind };
    }
}
