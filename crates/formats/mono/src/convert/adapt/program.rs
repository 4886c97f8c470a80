//! Conversion of metadata, allocations and exceptions.

use super::Adapter;
use crate::consts::{EventByte, metadata as mtypes};
use crate::convert::misfits::{Misfit, Written};
use crate::records::{Body, Event, Metadata};

/// The kind of helper that has a name, as numbered before data version 14; since then all kinds are one lower.
const SPECIFIC: u64 = 6;
/// The first kind of helper that data version 8 does not have.
const EXCEPTION_HANDLING: u64 = 10;

impl Adapter {
    /// Converts metadata, allocations, exception clauses and helpers.
    pub(super) fn program(&self, event: &mut Event<'_>, written: &mut Written) {
        let loads = event.byte == EventByte::METADATA_END_LOAD;
        let time = event.time.unwrap_or(0);
        match &mut event.body {
            Body::Metadata(it) => self.metadata(it, loads, written),
            Body::Alloc { class, size, .. } => {
                self.class(class, time, written);
                let rounded = size.checked_next_multiple_of(8).unwrap_or(*size);
                if self.exact_sizes() && rounded != *size {
                    *size = rounded;
                    written.add(Misfit::Sizes, 1);
                }
            }
            Body::Clause { .. } if (self.from.version >= 14) != (self.to.version >= 14) => {
                written.add(Misfit::ClauseObjects, 1);
            }
            Body::JitHelper { kind, name, .. } => {
                if let Some(new) = self.helper(*kind) {
                    *kind = new;
                }
                let specific = if self.to.version < 14 { SPECIFIC } else { SPECIFIC.wrapping_sub(1) };
                if *kind != specific && !name.is_empty() {
                    written.add(Misfit::HelperNames, 1);
                }
            }
            _ => {}
        }
    }

    /// Whether the source log is by profiler 0.1, which wrote exact allocation sizes, and the target is not.
    fn exact_sizes(&self) -> bool {
        let first = |version: u8, minor: u8| version == 1 && minor <= 1;
        first(self.from.version, self.from.minor) && !first(self.to.version, self.to.minor)
    }

    /// Counts metadata fields that only one of the two data versions has.
    fn metadata(&self, it: &mut Metadata<'_>, loads: bool, written: &mut Written) {
        match it.mtype {
            mtypes::ASSEMBLY if (self.from.version >= 14) != (self.to.version >= 14) => {
                written.add(Misfit::AssemblyImages, 1);
            }
            mtypes::IMAGE if loads && self.from.third() != self.to.third() => {
                written.add(Misfit::Mvids, 1);
            }
            _ => {}
        }
    }

    /// The number of a kind of helper in the target; `None` if it has no such kind.
    pub(super) fn helper(&self, kind: u64) -> Option<u64> {
        let (from, to) = (self.from.version, self.to.version);
        let old = if from < 14 { kind } else { kind.checked_add(1)? };
        match to {
            ..=8 if old >= EXCEPTION_HANDLING => None,
            ..=13 => Some(old),
            _ => old.checked_sub(1),
        }
    }

    /// The vtable event to add after the load of a class: at the address of the class.
    pub fn vtable_of(&self, event: &Event<'_>, written: &mut Written) -> Option<Event<'static>> {
        let Body::Metadata(it) = event.body else { return None };
        let wanted = self.to.vtables() && !self.from.vtables();
        if !wanted || it.mtype != mtypes::CLASS || event.byte != EventByte::METADATA_END_LOAD {
            return None;
        }
        written.add(Misfit::MadeVtables, 1);
        let mut vtable = Event::default();
        vtable.begin(EventByte::METADATA_END_LOAD);
        vtable.time = event.time;
        vtable.body = Body::Metadata(Metadata {
            mtype: mtypes::VTABLE,
            pointer: it.pointer,
            class: it.pointer,
            ..Metadata::default()
        });
        Some(vtable)
    }
}
