//! Slices that recordings contain themselves: collections, waits, finalizers, everything except calls.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type};
use perfuse_tables::access::{ColumnError, choices, numbers, text};
use perfuse_tables::{EndReason, SliceKind, StartReason};

use perfuse_engine::calls::Selection;

/// A slice, clipped to the selected time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Thread.
    pub thread_id: u32,
    /// Start, on the profile's clock.
    pub start_ns: i64,
    /// End; never before the start.
    pub end_ns: i64,
    /// What it is.
    pub kind: SliceKind,
    /// Its name; empty where none was recorded.
    pub name: Box<str>,
    /// How its start is known; `Lost` also where the slice was clipped.
    pub start_reason: StartReason,
    /// How it ended; `Truncated` also where the slice was clipped.
    pub end_reason: EndReason,
    /// Its arguments, as a JSON array.
    pub args: Option<Box<str>>,
}

impl Span {
    /// Appends the selected rows of table `slices` that are not calls.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn read(
        batch: &RecordBatch,
        selection: &Selection,
        spans: &mut Vec<Self>,
    ) -> Result<(), ColumnError> {
        let threads = numbers::<UInt32Type>(batch, "thread_id")?.values();
        let starts = numbers::<Int64Type>(batch, "start_ns")?.values();
        let durations = numbers::<Int64Type>(batch, "duration_ns")?.values();
        let (kinds, names) = (choices::<SliceKind>(batch, "kind")?, text(batch, "name")?);
        let start_reasons = choices::<StartReason>(batch, "start_reason")?;
        let end_reasons = choices::<EndReason>(batch, "end_reason")?;
        let args = text(batch, "args")?;
        for row in 0..batch.num_rows() {
            if kinds.get(row) == SliceKind::Call || !selection.has(threads[row]) {
                continue;
            }
            let mut span = Self {
                thread_id: threads[row],
                start_ns: starts[row],
                end_ns: starts[row].saturating_add(durations[row].max(0)),
                kind: kinds.get(row),
                name: names.get(row).unwrap_or_default().into(),
                start_reason: start_reasons.get(row),
                end_reason: end_reasons.get(row),
                args: args.get(row).map(Into::into),
            };
            if selection.time_ns.as_ref().is_none_or(|range| span.cut(range)) {
                spans.push(span);
            }
        }
        Ok(())
    }

    /// Clips the slice to `range`; false where nothing remains.
    fn cut(&mut self, range: &Range<i64>) -> bool {
        if self.start_ns >= range.end || self.end_ns < range.start {
            return false;
        }
        if self.start_ns < range.start {
            (self.start_ns, self.start_reason) = (range.start, StartReason::Lost);
        }
        if self.end_ns > range.end {
            (self.end_ns, self.end_reason) = (range.end, EndReason::Truncated);
        }
        true
    }

    /// Its name, or its kind where it has none.
    #[must_use]
    pub fn title(&self) -> &str {
        if self.name.is_empty() { perfuse_tables::Choices::name(self.kind) } else { &self.name }
    }

    /// Whether its duration is 0.
    #[must_use]
    pub fn is_instant(&self) -> bool {
        self.start_ns == self.end_ns
    }
}
