//! Checks of the values of single events.

use super::Check;
use crate::consts::{EventByte, metadata as mtypes};
use crate::records::{Body, Event};
use crate::rules::*;

impl Check<'_> {
    /// Checks the values of an event.
    pub(super) fn values(&mut self, event: &Event<'_>) {
        let offset = event.offset;
        match &event.body {
            Body::Alloc { class, .. } => self.class(*class, offset),
            Body::HeapObject(it) => self.class(it.class, offset),
            Body::Call { method } => self.method(*method, offset),
            Body::Clause { kind, method, .. } => {
                if ![0, 1, 2, 4].contains(kind) {
                    self.tell(&CLAUSE_TYPE, offset, "type", || format!("type {kind}"));
                }
                self.method(*method, offset);
            }
            Body::GcEvent { event, generation } => {
                if *generation > 1 {
                    self.tell(&GENERATION, offset, "generation", || format!("generation {generation}"));
                }
                let known = if self.version < 14 { *event <= 11 } else { matches!(event, 0 | 5..=11) };
                if !known {
                    self.tell(&GC_PHASE, offset, "event", || format!("event {event}"));
                }
            }
            Body::GcMove => {
                let num = event.addresses.len();
                if !num.is_multiple_of(2) {
                    self.tell(&ODD_MOVES, offset, "objects", || format!("{num} addresses"));
                }
            }
            Body::HandleCreated { kind, .. } | Body::HandleDestroyed { kind, .. } if *kind > 3 => {
                self.tell(&HANDLE_TYPE, offset, "type", || format!("type {kind}"));
            }
            Body::Jit { code, size, .. } if self.no_code.contains(&offset) => {
                self.tell(&NO_CODE, offset, "size", || format!("code {code:#x}, size {:#x}", size));
            }
            Body::Metadata(it) if it.mtype == mtypes::IMAGE => {
                let unload = event.byte == EventByte::METADATA_END_UNLOAD;
                if unload && self.third {
                    self.tell(&IMAGE_UNLOAD, offset, "mvid", || "an image is unloaded".to_owned());
                }
            }
            Body::Coverage(_) => self.tell(&COVERAGE, offset, "", || event.byte.to_string()),
            Body::Counters { .. } => {
                for value in &event.values {
                    if !self.counters.contains(&value.index) {
                        self.tell(&UNKNOWN_COUNTER, offset, "index", || format!("counter {}", value.index));
                    }
                }
            }
            _ => {}
        }
    }
}
