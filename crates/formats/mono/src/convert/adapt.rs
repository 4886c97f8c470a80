//! Conversion of events between data versions.

mod heap;
mod program;
mod sample;

use rustc_hash::FxHashSet;

use super::misfits::{ConvertSummary, UnsupportedItem};
use crate::MonoLog;
use crate::consts::{EventByte, PERFCOUNTERS, gc, metadata as mtypes, monitor};
use crate::dialect::LogDialect;
use crate::ingest::RootRanges;
use crate::names::AddressTimeline;
use crate::records::{Event, EventBody, shape};

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
    pub fn new(log: &MonoLog, to: LogDialect) -> Self {
        let (survey, definitions) = (log.survey(), &log.survey().definitions);
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
        if !shape::is_defined(event.byte, &self.to) || !self.is_representable(event) {
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
                mtypes::ASSEMBLY | mtypes::DOMAIN | mtypes::CONTEXT => version >= 11,
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
