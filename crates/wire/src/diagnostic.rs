//! Diagnostics: departures from a specification that do not stop decoding, and the rules that define them.

use std::borrow::Cow;

/// Severity of a departure from a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A fact about the file; no data is lost or uncertain.
    Info,
    /// Other tools may misread this; perfuse reads it correctly.
    Warning,
    /// Data that was recorded, or should have been, cannot be read.
    DataLoss,
    /// The file violates its specification; data that depends on this may be wrong.
    Error,
}

impl Severity {
    /// All severities, in ascending order.
    pub const ALL: [Self; 4] = [Self::Info, Self::Warning, Self::DataLoss, Self::Error];

    /// Name in the `diagnostics` table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::DataLoss => "data_loss",
            Self::Error => "error",
        }
    }
}

/// A numbered rule: its code, severity and place in the specification. Its texts are in Python.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Two letters and a number, stable once released: `JD012`.
    pub code: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Section of the specification; empty where it has none.
    pub section: &'static str,
    /// Whether it reports that the file ends too early, as a file does that is still being written.
    pub marks_end: bool,
}

/// A rule that applies at an offset of a file: a row of the `diagnostics` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The rule.
    pub rule: &'static Rule,
    /// Description of the finding, with its numbers.
    pub message: Cow<'static, str>,
    /// Absolute offset of the record or field.
    pub offset: u64,
    /// Zero-based index of the record; `None` where none applies.
    pub record_index: Option<u64>,
    /// Name of the field; empty where none applies.
    pub field: &'static str,
    /// Section of the program whose code it concerns, such as `.plt.got`; empty where it concerns none.
    pub code_section: Cow<'static, str>,
    /// Number of occurrences: more than 1 only in the last row of a code whose rows were limited.
    pub count: u64,
}

/// Collects diagnostics. Above a limit of rows for each code it only counts, so that memory is bounded. A code of
/// [`Severity::Info`] has one row with a count, because properties of a writer occur in every record.
#[derive(Debug)]
pub struct Diagnostics {
    rows: Vec<Diagnostic>,
    /// Code, number of rows, index of the last row.
    seen: Vec<(&'static str, usize, usize)>,
    limit: usize,
}

impl Default for Diagnostics {
    fn default() -> Self {
        Self::with_limit(1000)
    }
}

impl Diagnostics {
    /// A collection of at most `limit` rows for each code; the last of them counts the rest.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { rows: Vec::new(), seen: Vec::new(), limit: limit.max(1) }
    }

    /// Adds one departure. `message` is only called for a new row.
    pub fn push(
        &mut self,
        rule: &'static Rule,
        offset: u64,
        record_index: Option<u64>,
        field: &'static str,
        message: impl FnOnce() -> Cow<'static, str>,
    ) {
        self.push_in(Cow::Borrowed(""), rule, offset, record_index, field, message);
    }

    /// Adds one departure that concerns code of a section of a program.
    pub fn push_in(
        &mut self,
        code_section: Cow<'static, str>,
        rule: &'static Rule,
        offset: u64,
        record_index: Option<u64>,
        field: &'static str,
        message: impl FnOnce() -> Cow<'static, str>,
    ) {
        let next = self.rows.len();
        let limit = if rule.severity == Severity::Info { 1 } else { self.limit };
        match self.seen.iter_mut().find(|(code, ..)| *code == rule.code) {
            Some((_, num_rows, last)) if *num_rows >= limit => {
                if let Some(row) = self.rows.get_mut(*last) {
                    row.count = row.count.saturating_add(1);
                }
                return;
            }
            Some((_, num_rows, last)) => {
                *num_rows = num_rows.saturating_add(1);
                *last = next;
            }
            None => self.seen.push((rule.code, 1, next)),
        }
        self.rows.push(Diagnostic {
            rule,
            message: message(),
            offset,
            record_index,
            field,
            code_section,
            count: 1,
        });
    }

    /// Adds the rows of another collection with the same limit. The result equals that of adding all departures to one.
    #[must_use]
    pub fn followed_by(mut self, other: Self) -> Self {
        other.rows.into_iter().for_each(|row| self.push_row(row));
        self
    }

    /// Adds a row of another collection, with its count.
    pub fn push_row(&mut self, row: Diagnostic) {
        let Diagnostic { rule, message, offset, record_index, field, code_section, count } = row;
        self.push_in(code_section, rule, offset, record_index, field, || message);
        let last = self.seen.iter().find(|(code, ..)| *code == rule.code).map(|(_, _, last)| *last);
        if let Some(row) = last.and_then(|last| self.rows.get_mut(last)) {
            row.count = row.count.saturating_add(count.saturating_sub(1));
        }
    }

    /// The rows, in the order in which they were added.
    #[must_use]
    pub fn rows(&self) -> &[Diagnostic] {
        &self.rows
    }

    /// Returns the rows, in the order in which they were added.
    #[must_use]
    pub fn into_rows(self) -> Vec<Diagnostic> {
        self.rows
    }
}

/// Declares rules: a static for each, and `RULES`, the list of all. `marks_end` follows where [`Rule::marks_end`] is true.
#[macro_export]
macro_rules! rules {
    (@marks_end) => { false };
    (@marks_end marks_end) => { true };
    ($($name:ident = $code:literal, $severity:ident, $section:literal $(, $marks_end:ident)?;)+) => {
        $(
            #[doc = concat!("Rule ", $code, ".")]
            pub static $name: $crate::Rule = $crate::Rule {
                code: $code,
                severity: $crate::Severity::$severity,
                section: $section,
                marks_end: $crate::rules!(@marks_end $($marks_end)?),
            };
        )+
        /// Every rule of this format, by code.
        pub static RULES: &[&$crate::Rule] = &[$(&$name),+];
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    rules! {
        ODD_NUMBER = "XX001", Warning, "I";
    }

    #[test]
    fn rows_above_the_limit_are_counted() {
        let mut sink = Diagnostics::with_limit(2);
        for offset in 0..5 {
            sink.push(&ODD_NUMBER, offset, None, "", || Cow::Borrowed("odd"));
        }
        let counts: Vec<_> = sink.rows().iter().map(|d| (d.offset, d.count)).collect();
        assert_eq!(counts, [(0, 1), (1, 4)]);
        assert_eq!(RULES.len(), 1);
    }

    #[test]
    fn merged_collections_equal_a_single_one() {
        let collect = |offsets: std::ops::Range<u64>| {
            let mut sink = Diagnostics::with_limit(2);
            offsets.for_each(|offset| sink.push(&ODD_NUMBER, offset, None, "", || Cow::Borrowed("odd")));
            sink
        };
        for middle in 0..=5 {
            assert_eq!(
                collect(0..middle).followed_by(collect(middle..5)).into_rows(),
                collect(0..5).into_rows()
            );
        }
    }
}
