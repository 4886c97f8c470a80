//! Collapsed ("folded") stacks: text with one stack per line, its frames from the outermost on and a count, `a;b;c 42`.
//!
//! There is no specification. The format is what Brendan Gregg's stackcollapse scripts write and flamegraph.pl reads;
//! `docs/formats/collapsed.md` describes the variants of other tools.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::panic
    )
)]

mod line;
mod survey;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::{Arc, OnceLock};

use perfuse_recording::{
    BatchStream, Capabilities, ClockPolicy, Format, Placement, Position, Recording, Role, Source, Summary,
    TableRequest,
};
use perfuse_tables::Offsets;
use perfuse_wire::{Diagnostics, ParseError, RecordView, Value, rules};

use line::Line;
use survey::Survey;

rules! {
    NO_COUNT = "CS001", Error, "";
    LARGE_COUNT = "CS002", Error, "";
    FRACTION = "CS003", Warning, "";
    NOT_UTF8 = "CS004", Info, "";
    EMPTY_FRAME = "CS005", Info, "";
    TWO_COUNTS = "CS006", Warning, "";
    CUT_LINE = "CS007", Warning, "", marks_end;
}

/// The format's entry in the registry.
pub static FORMAT: Format = Format {
    name: "collapsed",
    title: "collapsed stacks",
    about: "stacks with counts as text, as stackcollapse scripts, async-profiler, py-spy, bpftrace and Austin write them",
    role: Role::Samples,
    report: "profile",
    clock: ClockPolicy::TIMELESS,
    process_field: None,
    files: &["*.collapsed", "*.folded"],
    directory: None,
    capabilities: Capabilities { writer: false, repair: false },
    sniff: line::sniff,
    open: |source| Ok(Arc::new(CollapsedStacks::open(source)?)),
    refused: None,
    rules: RULES,
    layouts: &[],
    tables: &["processes", "threads", "thread_names", "functions", "frames", "stacks", "samples"],
};

/// An open file of collapsed stacks.
#[derive(Debug)]
pub struct CollapsedStacks {
    source: Arc<Source>,
    survey: OnceLock<Arc<Survey>>,
}

impl CollapsedStacks {
    /// Opens a file; nothing is read before it is needed.
    ///
    /// # Errors
    /// None: every text is a list of lines.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        Ok(Self { source, survey: OnceLock::new() })
    }

    /// All distinct names, frames, stacks and threads with the sample of each line; computed once, in one pass.
    fn survey(&self) -> &Arc<Survey> {
        self.survey.get_or_init(|| Arc::new(Survey::new(&self.source)))
    }
}

impl Recording for CollapsedStacks {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<Source> {
        &self.source
    }

    fn summary(&self) -> Summary {
        let survey = self.survey();
        Summary::of_counts(&[("stack", survey.num_stack_lines()), ("comment", survey.num_comments())])
    }

    fn read_record<'a>(
        &'a self,
        at: &mut Position,
        _wanted: &dyn Fn(&str) -> bool,
    ) -> Option<RecordView<'a>> {
        loop {
            perfuse_stopping::checkpoint();
            let (offset, text) = line::next(&self.source, at.offset)?;
            at.offset = offset.saturating_add(text.len() as u64).saturating_add(1);
            let (name, fields) = match Line::parse(text) {
                Line::Blank => continue,
                Line::Comment(comment) => {
                    ("comment", vec![("text", Value::Text(String::from_utf8_lossy(comment)))])
                }
                Line::Stack(stack) => {
                    let text = Value::Text(String::from_utf8_lossy(stack.frames));
                    ("stack", vec![("frames", text), ("count", Value::Unsigned(stack.count))])
                }
                Line::Malformed(_) => {
                    ("malformed", vec![("text", Value::Text(String::from_utf8_lossy(text)))])
                }
            };
            let index = at.index;
            at.index = index.saturating_add(1);
            return Some(RecordView {
                index,
                offset,
                size: text.len() as u64,
                name: name.into(),
                timestamp: None,
                fields,
            });
        }
    }

    fn check(&self, sink: &mut Diagnostics) {
        let found = std::mem::take(sink);
        *sink = self.survey().diagnostics().iter().cloned().fold(found, |mut all, row| {
            all.push_row(row);
            all
        });
    }

    fn extent(&self) -> Offsets {
        self.survey().extent()
    }

    fn table(&self, name: &str, placement: &Placement, _request: &TableRequest) -> Option<BatchStream> {
        survey::table(self.survey(), &self.source, name, placement)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
