//! A log with its names.

use perfuse_recording::Source;

use crate::names::LogNames;
use crate::survey::LogSurvey;

/// The bytes of a log, what its survey found, and its names.
#[derive(Clone, Copy, Debug)]
pub struct NamedLog<'a> {
    /// The bytes.
    pub source: &'a Source,
    /// The result of the survey.
    pub survey: &'a LogSurvey,
    /// The names.
    pub names: &'a LogNames,
}
