use std::borrow::Cow;

/// How much a departure from the specification matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is lost or doubtful.
    Info,
    /// Other tools may go wrong here; perfuse read it right.
    Warning,
    /// Something that was recorded, or should have been, is not readable.
    DataLoss,
    /// The file breaks its specification; what follows from this place may be wrong.
    Error,
}

impl Severity {
    /// All, mildest first.
    pub const ALL: [Self; 4] = [Self::Info, Self::Warning, Self::DataLoss, Self::Error];

    /// The word in the `diagnostics` table.
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

/// A numbered rule: declared once, beside the code that checks it; the documentation is made from it.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Two letters and a number, stable once released: `JD012`.
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// One line: what is the case.
    pub title: &'static str,
    /// Section of the specification that is departed from.
    pub section: &'static str,
    /// What it means and who writes it.
    pub meaning: &'static str,
    /// What to do about it.
    pub action: &'static str,
}

/// A rule that applied at a place in a file: a row of the `diagnostics` table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The rule.
    pub rule: &'static Rule,
    /// What was found, with its numbers.
    pub message: Cow<'static, str>,
    /// Absolute offset of the record or field.
    pub offset: u64,
    /// Zero-based index of the record, where it is about one.
    pub record_index: Option<u64>,
    /// Field that departs, empty where none does.
    pub field: &'static str,
    /// How many times: more than 1 only on the last row of a code that was cut short.
    pub count: u64,
}

/// Collects diagnostics; past a limit per code it counts instead of keeping, so memory stays bounded. What is only worth
/// knowing ([`Severity::Info`]) is told once, with its count: a habit of a writer is in every record.
#[derive(Debug)]
pub struct Diagnostics {
    rows: Vec<Diagnostic>,
    seen: Vec<(&'static str, usize, usize)>,
    limit: usize,
}

impl Default for Diagnostics {
    fn default() -> Self {
        Self::with_limit(1000)
    }
}

impl Diagnostics {
    /// A sink that keeps at most `limit` rows of each code, and counts the rest on the last of them.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { rows: Vec::new(), seen: Vec::new(), limit: limit.max(1) }
    }

    /// Adds one departure. `message` is only made when the row is kept.
    pub fn push(
        &mut self,
        rule: &'static Rule,
        offset: u64,
        record_index: Option<u64>,
        field: &'static str,
        message: impl FnOnce() -> Cow<'static, str>,
    ) {
        let next = self.rows.len();
        let limit = if rule.severity == Severity::Info { 1 } else { self.limit };
        match self.seen.iter_mut().find(|(code, ..)| *code == rule.code) {
            Some((_, kept, last)) if *kept >= limit => {
                if let Some(row) = self.rows.get_mut(*last) {
                    row.count = row.count.saturating_add(1);
                }
                return;
            }
            Some((_, kept, last)) => {
                *kept = kept.saturating_add(1);
                *last = next;
            }
            None => self.seen.push((rule.code, 1, next)),
        }
        self.rows.push(Diagnostic { rule, message: message(), offset, record_index, field, count: 1 });
    }

    /// Adds what another sink of this limit found behind: as if it had been told to this one.
    #[must_use]
    pub fn followed_by(mut self, other: Self) -> Self {
        other.rows.into_iter().for_each(|row| self.retell(row));
        self
    }

    /// Adds a row of another sink, with its count.
    pub fn retell(&mut self, row: Diagnostic) {
        let Diagnostic { rule, message, offset, record_index, field, count } = row;
        self.push(rule, offset, record_index, field, || message);
        let last = self.seen.iter().find(|(code, ..)| *code == rule.code).map(|(_, _, last)| *last);
        if let Some(row) = last.and_then(|last| self.rows.get_mut(last)) {
            row.count = row.count.saturating_add(count.saturating_sub(1));
        }
    }

    /// The rows, in the order they were found.
    #[must_use]
    pub fn rows(&self) -> &[Diagnostic] {
        &self.rows
    }

    /// Gives the rows away.
    #[must_use]
    pub fn into_rows(self) -> Vec<Diagnostic> {
        self.rows
    }
}

/// Declares rules: a constant for each and `RULES`, the list of all.
#[macro_export]
macro_rules! rules {
    ($($name:ident = $code:literal, $severity:ident, $section:literal, $title:literal, $meaning:literal, $action:literal;)+) => {
        $(
            #[doc = concat!($code, ": ", $title)]
            pub static $name: $crate::Rule = $crate::Rule {
                code: $code,
                severity: $crate::Severity::$severity,
                title: $title,
                section: $section,
                meaning: $meaning,
                action: $action,
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
        ODD = "XX001", Warning, "I", "odd", "It is odd.", "Make it even.";
    }

    #[test]
    fn past_the_limit_it_counts() {
        let mut sink = Diagnostics::with_limit(2);
        for offset in 0..5 {
            sink.push(&ODD, offset, None, "", || Cow::Borrowed("odd"));
        }
        let counts: Vec<_> = sink.rows().iter().map(|d| (d.offset, d.count)).collect();
        assert_eq!(counts, [(0, 1), (1, 4)]);
        assert_eq!(RULES.len(), 1);
    }

    #[test]
    fn sinks_side_by_side_tell_what_one_would() {
        let told = |offsets: std::ops::Range<u64>| {
            let mut sink = Diagnostics::with_limit(2);
            offsets.for_each(|offset| sink.push(&ODD, offset, None, "", || Cow::Borrowed("odd")));
            sink
        };
        for middle in 0..=5 {
            assert_eq!(told(0..middle).followed_by(told(middle..5)).into_rows(), told(0..5).into_rows());
        }
    }
}
