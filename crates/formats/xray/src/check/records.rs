//! Checks the records of a buffer against the grammar, and their fields against their valid values.

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, Rule};

use super::buffers::{has_garbage, is_carried, is_empty};
use super::grammar::{Grammar, GrammarError, RecordClass, carried_rule};
use crate::block::{FdrBlock, RECORDS_PER_SLICE, TscState};
use crate::consts::{Action, FUNCTION_BYTES, MetadataKind};
use crate::encode::has_kind;
use crate::fdr::FdrSurvey;
use crate::log::XRay;
use crate::record_iter::{FunctionRun, RecordItem, RecordIter};
use crate::records::{Event, Record, XRayDialect, metadata_kind};
use crate::rules::*;
use perfuse_recording::Recording;

/// Checks the records of a block. `first_record` is the index of its first record.
pub fn check_records(
    log: &XRay,
    survey: &FdrSurvey,
    index: usize,
    first_record: u64,
    sink: &mut Diagnostics,
) {
    let Some(block) = survey.blocks.get(index).filter(|block| !is_empty(block)) else { return };
    let dialect = XRayDialect { payloads: block.payloads, ..log.header().dialect() };
    let mut records = RecordCheck {
        data: log.source(),
        block,
        dialect,
        is_carried: is_carried(survey, index, block, dialect.version),
        grammar: Grammar::new(dialect.version),
        last_action: None,
        clock: survey.clock(index, TscState::default()),
        index: first_record,
        sink,
    };
    records.run();
}

struct RecordCheck<'a> {
    data: &'a [u8],
    block: &'a FdrBlock,
    dialect: XRayDialect,
    is_carried: bool,
    grammar: Grammar,
    last_action: Option<Action>,
    clock: TscState,
    index: u64,
    sink: &'a mut Diagnostics,
}

impl RecordCheck<'_> {
    /// Checks all records.
    fn run(&mut self) {
        let start = self.block.records.start;
        if (self.block.offset as usize) < start {
            self.check_class(RecordClass::Extents, self.block.offset as usize);
            self.check_reserved(self.block.offset as usize, MetadataKind::BUFFER_EXTENTS);
            self.index = self.index.saturating_add(1);
        } else if self.block.is_later_part {
            self.report(&SECOND_NEW_BUFFER, start, "", || "another NewBuffer".to_owned());
            self.grammar.before = RecordClass::Extents;
        } else if self.dialect.version > 1 {
            // A missing BufferExtents is reported with the buffer.
            self.grammar.before = RecordClass::Extents;
        }
        let mut records = RecordIter::new(self.data, self.block.records.clone(), self.dialect);
        loop {
            let run = records.functions(RECORDS_PER_SLICE);
            if !run.is_empty() {
                self.check_functions(&run);
                continue;
            }
            match records.next() {
                Some(RecordItem::Metadata { offset, record, .. }) => {
                    self.check_metadata(offset, &record);
                    self.index = self.index.saturating_add(1);
                }
                Some(RecordItem::Function { .. } | RecordItem::Broken(_)) | None => break,
            }
        }
        self.end(records.offset());
    }

    /// Checks the end of the buffer.
    fn end(&mut self, end: usize) {
        if self.block.broken.is_none()
            && self.block.missing == 0
            && let Err(error) = self.grammar.end()
        {
            self.report_grammar(error, "the end of the buffer", end);
        }
        let stale = self.data.get(end..self.block.end).unwrap_or_default();
        if self.dialect.version == 1
            && self.grammar.before == RecordClass::End
            && stale.iter().any(|byte| *byte != 0)
        {
            self.report(&STALE, end, "", || format!("{} bytes follow EndOfBuffer", stale.len()));
        }
    }

    /// Checks a run of function records; single records only where the run has faults.
    fn check_functions(&mut self, run: &FunctionRun<'_>) {
        let (mut tsc, mut has_faults) = (self.clock.tsc, false);
        run.for_each(|action, _, delta| {
            let next = tsc.wrapping_add(u64::from(delta));
            has_faults |= action.name().is_none() | (next < tsc);
            tsc = next;
        });
        if let Some((action, _)) = run.first() {
            self.check_class(RecordClass::of_action(action), run.offset);
        }
        if has_faults {
            self.report_function_faults(run);
        }
        if let Some((action, _)) = run.last() {
            self.grammar.before = RecordClass::of_action(action);
            self.last_action = Some(action);
        }
        self.clock.tsc = tsc;
        self.index = self.index.saturating_add(run.len() as u64);
    }

    /// Reports undefined actions and counters that wrap around.
    fn report_function_faults(&mut self, run: &FunctionRun<'_>) {
        let (first, mut tsc, mut offset) = (self.index, self.clock.tsc, run.offset);
        run.for_each(|action, _, delta| {
            let next = tsc.wrapping_add(u64::from(delta));
            if action.name().is_none() {
                self.report(&UNKNOWN_ACTION, offset, "action", || format!("action is {}", action.0));
            }
            if next < tsc && self.clock.is_whole {
                self.report(&TIME_BACK, offset, "tsc_delta", || {
                    format!("{tsc} plus {delta} wraps around to {next}")
                });
            }
            tsc = next;
            offset = offset.saturating_add(FUNCTION_BYTES);
            self.index = self.index.saturating_add(1);
        });
        self.index = first;
    }

    /// Checks a metadata record.
    fn check_metadata(&mut self, offset: usize, record: &Record<'_>) {
        let Some(&first) = self.data.get(offset) else { return };
        let kind = metadata_kind(first, self.dialect.endian);
        self.check_reserved(offset, kind);
        let Some(class) = RecordClass::of_kind(kind) else {
            return self.report(&UNKNOWN_KIND, offset, "kind", || format!("kind is {}", kind.0));
        };
        if class == RecordClass::End && self.dialect.version > 1 {
            let rest = self.block.end.saturating_sub(offset);
            return self.report(&END_OF_BUFFER, offset, "kind", || {
                format!("{rest} bytes before the end of the buffer")
            });
        }
        if !has_kind(self.dialect.version, kind) {
            let version = self.dialect.version;
            return self.report(&LATER_KIND, offset, "kind", || format!("version {version} has no {kind}"));
        }
        let before = self.grammar.before;
        self.check_class(class, offset);
        match record {
            Record::CallArgument(_)
                if before == RecordClass::Entry && self.last_action == Some(Action::ENTRY) =>
            {
                self.report(&PLAIN_ENTRY, offset, "", || {
                    "the entry before it has the action Entry".to_owned()
                });
            }
            Record::Custom(event) | Record::Typed(event) if event.size == 0 => {
                self.report(&EMPTY_EVENT, offset, "event_size", || "event_size is 0".to_owned());
            }
            _ => {}
        }
        self.check_time(offset, record);
    }

    /// Reports a counter that goes backwards.
    fn check_time(&mut self, offset: usize, record: &Record<'_>) {
        let before = self.clock;
        self.clock.metadata(record);
        let field = match record {
            Record::NewCpuId { .. } => "absolute_tsc",
            Record::Custom(Event { .. }) | Record::Typed(Event { .. }) => "tsc_delta",
            _ => return,
        };
        let now = self.clock.tsc;
        if before.is_whole && now < before.tsc {
            self.report(&TIME_BACK, offset, field, || format!("{now} after {}", before.tsc));
        }
    }

    /// Reports reserved bytes that are not 0.
    fn check_reserved(&mut self, offset: usize, kind: MetadataKind) {
        let record = self.data.get(offset..offset.saturating_add(16)).unwrap_or_default();
        if has_garbage(record, kind, self.dialect.version) {
            self.report(&RESERVED, offset, "reserved", || format!("{kind} has bytes in its reserved part"));
        }
    }

    /// Checks a record against the grammar.
    fn check_class(&mut self, class: RecordClass, offset: usize) {
        if let Err(error) = self.grammar.step(class) {
            self.report_grammar(error, class.name(), offset);
        }
    }

    /// Reports a violation of the grammar.
    fn report_grammar(&mut self, error: GrammarError, found: &str, offset: usize) {
        let (rule, expected) = carried_rule(error, self.is_carried);
        let rule = if found == RecordClass::Argument.name() { &ORPHAN_ARGUMENT } else { rule };
        self.report(rule, offset, "", || format!("expected {expected}, found {found}"));
    }

    /// Adds a finding about the current record.
    fn report(
        &mut self,
        rule: &'static Rule,
        offset: usize,
        field: &'static str,
        message: impl FnOnce() -> String,
    ) {
        self.sink.push(rule, offset as u64, Some(self.index), field, || Cow::Owned(message()));
    }
}
