//! Conversion of metadata, allocations and exceptions.

use super::Adapter;
use crate::consts::{EventByte, metadata as mtypes};
use crate::convert::misfits::{ConvertSummary, UnsupportedItem};
use crate::records::{Event, EventBody, Metadata};

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
