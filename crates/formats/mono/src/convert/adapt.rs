//! Conversion of events between data versions.

mod heap;
mod program;
mod sample;

use rustc_hash::FxHashSet;

use super::misfits::{Misfit, Written};
use crate::MonoLog;
use crate::consts::{EventByte, PERFCOUNTERS, gc, metadata as mtypes, monitor};
use crate::dialect::Dialect;
use crate::ingest::Registered;
use crate::names::Timeline;
use crate::records::{Body, Event, shape};

/// Converts the events of one log, using the classes, roots and counters that the whole log defines.
pub struct Adapter {
    from: Dialect,
    to: Dialect,
    /// By vtable: an index into `classes`.
    /// The classes of the vtables.
    vtables: Timeline,
    classes: Vec<u64>,
    /// Registered root memory: an index into `root_sources`.
    roots: Registered,
    root_sources: Vec<u64>,
    /// Performance counters, which data versions 5 and 6 do not have.
    performance: FxHashSet<u64>,
    /// Time of the first counter values: the zero of the millisecond times before data version 13.
    counters_since: Option<u64>,
}

impl Adapter {
    pub fn new(log: &MonoLog, to: Dialect) -> Self {
        let (survey, facts) = (log.survey(), &log.survey().facts);
        let loads = facts.things.iter().filter(|it| {
            it.mtype == mtypes::VTABLE && it.what == EventByte::METADATA_END_LOAD && !to.vtables()
        });
        let (mut classes, mut told) = (Vec::new(), Vec::new());
        for it in loads {
            told.push((it.pointer, it.time, classes.len() as u32));
            classes.push(it.class);
        }
        let performance = facts.counters.iter().filter(|it| it.section == PERFCOUNTERS);
        Self {
            from: survey.dialect,
            to,
            vtables: Timeline::new(told),
            classes,
            roots: Registered::new(&facts.roots),
            root_sources: facts.roots.iter().map(|it| it.source).collect(),
            performance: performance.map(|it| it.index).collect(),
            counters_since: None,
        }
    }

    /// Converts an event in place; returns `false` if the target cannot represent it. `time` is that of the last
    /// timed event.
    pub fn adapt(&mut self, event: &mut Event<'_>, thread: u64, time: u64, written: &mut Written) -> bool {
        self.rename(event, written);
        if !shape::exists(event.byte, &self.to) || !self.means_something(event) {
            return false;
        }
        if self.to.modern() && event.flags != 0 {
            written.add(Misfit::Flags, 1);
        }
        self.program(event, written);
        self.sampled(event, thread, time, written);
        self.heap(event, time, written);
        self.timed(event, time, written);
        true
    }

    /// Converts the event byte where it states a backtrace or the kind of a monitor event.
    fn rename(&self, event: &mut Event<'_>, written: &mut Written) {
        let had_backtrace = event.has_backtrace();
        if let Body::Monitor { event: what, .. } = event.body {
            event.byte = match (self.to.version >= 14, what, had_backtrace) {
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
            written.add(Misfit::Backtraces, 1);
        }
    }

    /// Whether the target defines the meaning of the event.
    fn means_something(&self, event: &Event<'_>) -> bool {
        let version = self.to.version;
        match event.body {
            Body::GcEvent { event, .. } => match event {
                1..=4 => version <= 13,
                gc::PRE_STOP_WORLD_LOCKED | gc::POST_START_WORLD_UNLOCKED => version >= 13,
                _ => true,
            },
            Body::Metadata(it) => match it.mtype {
                mtypes::ASSEMBLY | mtypes::DOMAIN | mtypes::CONTEXT => version >= 11,
                mtypes::THREAD => version >= 11 || event.byte == EventByte::METADATA_NAME,
                mtypes::VTABLE => version >= 15,
                _ => true,
            },
            Body::JitHelper { kind, .. } => self.helper(kind).is_some(),
            _ => true,
        }
    }

    /// Adds or drops the time of events that have one only since data version 13.
    fn timed(&self, event: &mut Event<'_>, time: u64, written: &mut Written) {
        if self.from.modern() == self.to.modern() {
            return;
        }
        let untimed = matches!(
            event.body,
            Body::HeapObject(_)
                | Body::HeapRoot(_)
                | Body::SampleUsym { .. }
                | Body::CountersDesc
                | Body::Coverage(_)
        );
        if !untimed {
            return;
        }
        if self.to.modern() {
            event.time = Some(time);
            written.add(Misfit::UnknownTimes, 1);
        } else {
            written.add(Misfit::Times, 1);
        }
    }

    /// Replaces a vtable by its class if the target has no vtables.
    fn class(&self, class: &mut u64, time: u64, written: &mut Written) {
        if !self.from.vtables() || self.to.vtables() {
            return;
        }
        let known = self.vtables.at(*class, time).and_then(|at| self.classes.get(at as usize));
        match known {
            Some(known) => *class = *known,
            None => written.add(Misfit::UnknownVtables, 1),
        }
    }
}
