//! Checks of the values of single events.

use super::LogCheck;
use crate::consts::{EventByte, metadata as mtypes};
use crate::records::{Event, EventBody};
use crate::rules::*;

impl LogCheck<'_> {
    /// Checks the values of an event.
    pub(super) fn check_values(&mut self, event: &Event<'_>) {
        let offset = event.offset;
        match &event.body {
            EventBody::Alloc { class, .. } => self.check_class(*class, offset),
            EventBody::HeapObject(it) => self.check_class(it.class, offset),
            EventBody::Call { method } => self.check_method(*method, offset),
            EventBody::Clause { kind, method, .. } => {
                if ![0, 1, 2, 4].contains(kind) {
                    self.report(&CLAUSE_TYPE, offset, "type", || format!("type {kind}"));
                }
                self.check_method(*method, offset);
            }
            EventBody::GcEvent { event, generation } => {
                if *generation > 1 {
                    self.report(&GENERATION, offset, "generation", || format!("generation {generation}"));
                }
                let known = if self.version < 14 { *event <= 11 } else { matches!(event, 0 | 5..=11) };
                if !known {
                    self.report(&GC_PHASE, offset, "event", || format!("event {event}"));
                }
            }
            EventBody::GcMove => {
                let num = event.addresses.len();
                if !num.is_multiple_of(2) {
                    self.report(&ODD_MOVES, offset, "objects", || format!("{num} addresses"));
                }
            }
            EventBody::HandleCreated { kind, .. } | EventBody::HandleDestroyed { kind, .. } if *kind > 3 => {
                self.report(&HANDLE_TYPE, offset, "type", || format!("type {kind}"));
            }
            EventBody::Jit { code, size, .. } if self.no_code.contains(&offset) => {
                self.report(&NO_CODE, offset, "size", || format!("code {code:#x}, size {:#x}", size));
            }
            EventBody::Metadata(it) if it.mtype == mtypes::IMAGE => {
                let unload = event.byte == EventByte::METADATA_END_UNLOAD;
                if unload && self.is_profiler_3 {
                    self.report(&IMAGE_UNLOAD, offset, "mvid", || "an image is unloaded".to_owned());
                }
            }
            EventBody::Coverage(_) => self.report(&COVERAGE, offset, "", || event.byte.to_string()),
            EventBody::Counters { .. } => {
                for value in &event.values {
                    if !self.counters.contains(&value.index) {
                        self.report(&UNKNOWN_COUNTER, offset, "index", || format!("counter {}", value.index));
                    }
                }
            }
            _ => {}
        }
    }
}
