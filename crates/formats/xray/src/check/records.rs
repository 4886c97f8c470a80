//! The records of a buffer, one by one: held against the grammar, and each against what its fields may be.

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, Rule};

use super::buffers::{has_garbage, is_carried, is_empty};
use super::grammar::{Broken, Grammar, Place, carried};
use crate::block::{Block, Clock, RECORDS_A_UNIT};
use crate::consts::{Action, FUNCTION_BYTES, Kind};
use crate::encode::has_kind;
use crate::fdr::Survey;
use crate::log::XRay;
use crate::record_iter::{FunctionRun, Step, Walk};
use crate::records::{Dialect, Event, Record, metadata_kind};
use crate::rules::*;
use perfuse_recording::Recording;

/// Walks a block and tells what is wrong with each record. `first_record` is the index of its first.
pub fn tell(log: &XRay, survey: &Survey, index: usize, first_record: u64, sink: &mut Diagnostics) {
    let Some(block) = survey.blocks.get(index).filter(|block| !is_empty(block)) else { return };
    let dialect = Dialect { payloads: block.payloads, ..log.header().dialect() };
    let mut records = Records {
        data: log.source(),
        block,
        dialect,
        is_carried: is_carried(survey, index, block, dialect.version),
        grammar: Grammar::new(dialect.version),
        last_action: None,
        clock: survey.clock(index, Clock::default()),
        index: first_record,
        sink,
    };
    records.run();
}

struct Records<'a> {
    data: &'a [u8],
    block: &'a Block,
    dialect: Dialect,
    is_carried: bool,
    grammar: Grammar,
    last_action: Option<Action>,
    clock: Clock,
    index: u64,
    sink: &'a mut Diagnostics,
}

impl Records<'_> {
    fn run(&mut self) {
        let start = self.block.records.start;
        if (self.block.offset as usize) < start {
            self.place(Place::Extents, self.block.offset as usize);
            self.reserved(self.block.offset as usize, Kind::BUFFER_EXTENTS);
            self.index = self.index.saturating_add(1);
        } else if self.block.is_later_part {
            self.tell(&SECOND_NEW_BUFFER, start, "", || "another NewBuffer".to_owned());
            self.grammar.before = Place::Extents;
        } else if self.dialect.version > 1 {
            // That there is no BufferExtents was told of the buffer.
            self.grammar.before = Place::Extents;
        }
        let mut walk = Walk::new(self.data, self.block.records.clone(), self.dialect);
        loop {
            let run = walk.functions(RECORDS_A_UNIT);
            if !run.is_empty() {
                self.functions(&run);
                continue;
            }
            match walk.next() {
                Some(Step::Metadata { offset, record, .. }) => {
                    self.metadata(offset, &record);
                    self.index = self.index.saturating_add(1);
                }
                Some(Step::Function { .. } | Step::Broken(_)) | None => break,
            }
        }
        self.end(walk.offset());
    }

    fn end(&mut self, end: usize) {
        if self.block.broken.is_none()
            && self.block.missing == 0
            && let Err(broken) = self.grammar.end()
        {
            self.told(broken, "the end of the buffer", end);
        }
        let stale = self.data.get(end..self.block.end).unwrap_or_default();
        if self.dialect.version == 1
            && self.grammar.before == Place::End
            && stale.iter().any(|byte| *byte != 0)
        {
            self.tell(&STALE, end, "", || format!("{} bytes follow EndOfBuffer", stale.len()));
        }
    }

    fn functions(&mut self, run: &FunctionRun<'_>) {
        let (mut tsc, mut odd) = (self.clock.tsc, false);
        run.for_each(|action, _, delta| {
            let next = tsc.wrapping_add(u64::from(delta));
            odd |= action.name().is_none() | (next < tsc);
            tsc = next;
        });
        if let Some((action, _)) = run.first() {
            self.place(Place::of_action(action), run.offset);
        }
        if odd {
            self.odd_functions(run);
        }
        if let Some((action, _)) = run.last() {
            self.grammar.before = Place::of_action(action);
            self.last_action = Some(action);
        }
        self.clock.tsc = tsc;
        self.index = self.index.saturating_add(run.len() as u64);
    }

    fn odd_functions(&mut self, run: &FunctionRun<'_>) {
        let (first, mut tsc, mut offset) = (self.index, self.clock.tsc, run.offset);
        run.for_each(|action, _, delta| {
            let next = tsc.wrapping_add(u64::from(delta));
            if action.name().is_none() {
                self.tell(&UNKNOWN_ACTION, offset, "action", || format!("action is {}", action.0));
            }
            if next < tsc && self.clock.is_whole {
                self.tell(&TIME_BACK, offset, "tsc_delta", || format!("{tsc} and {delta} more is {next}"));
            }
            tsc = next;
            offset = offset.saturating_add(FUNCTION_BYTES);
            self.index = self.index.saturating_add(1);
        });
        self.index = first;
    }

    fn metadata(&mut self, offset: usize, record: &Record<'_>) {
        let Some(&first) = self.data.get(offset) else { return };
        let kind = metadata_kind(first, self.dialect.endian);
        self.reserved(offset, kind);
        let Some(place) = Place::of_kind(kind) else {
            return self.tell(&UNKNOWN_KIND, offset, "kind", || format!("kind is {}", kind.0));
        };
        if place == Place::End && self.dialect.version > 1 {
            let rest = self.block.end.saturating_sub(offset);
            return self.tell(&END_OF_BUFFER, offset, "kind", || {
                format!("{rest} bytes before the end of the buffer")
            });
        }
        if !has_kind(self.dialect.version, kind) {
            let version = self.dialect.version;
            return self.tell(&LATER_KIND, offset, "kind", || format!("version {version} has no {kind}"));
        }
        let before = self.grammar.before;
        self.place(place, offset);
        match record {
            Record::CallArgument(_) if before == Place::Entry && self.last_action == Some(Action::ENTRY) => {
                self.tell(&PLAIN_ENTRY, offset, "", || "the entry before it has the action Entry".to_owned());
            }
            Record::Custom(event) | Record::Typed(event) if event.size == 0 => {
                self.tell(&EMPTY_EVENT, offset, "event_size", || "event_size is 0".to_owned());
            }
            _ => {}
        }
        self.time(offset, record);
    }

    fn time(&mut self, offset: usize, record: &Record<'_>) {
        let before = self.clock;
        self.clock.metadata(record);
        let field = match record {
            Record::NewCpuId { .. } => "absolute_tsc",
            Record::Custom(Event { .. }) | Record::Typed(Event { .. }) => "tsc_delta",
            _ => return,
        };
        let now = self.clock.tsc;
        if before.is_whole && now < before.tsc {
            self.tell(&TIME_BACK, offset, field, || format!("{now} after {}", before.tsc));
        }
    }

    fn reserved(&mut self, offset: usize, kind: Kind) {
        let record = self.data.get(offset..offset.saturating_add(16)).unwrap_or_default();
        if has_garbage(record, kind, self.dialect.version) {
            self.tell(&RESERVED, offset, "reserved", || format!("{kind} has bytes in its reserved part"));
        }
    }

    fn place(&mut self, place: Place, offset: usize) {
        if let Err(broken) = self.grammar.step(place) {
            self.told(broken, place.name(), offset);
        }
    }

    fn told(&mut self, broken: Broken, found: &str, offset: usize) {
        let (rule, expected) = carried(broken, self.is_carried);
        let rule = if found == Place::Argument.name() { &ORPHAN_ARGUMENT } else { rule };
        self.tell(rule, offset, "", || format!("expected {expected}, found {found}"));
    }

    fn tell(
        &mut self,
        rule: &'static Rule,
        offset: usize,
        field: &'static str,
        message: impl FnOnce() -> String,
    ) {
        self.sink.push(rule, offset as u64, Some(self.index), field, || Cow::Owned(message()));
    }
}
