//! What is wrong with files that name functions.

/// A problem of an instrumentation map or of how it fits the recordings, or of another file that names functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamingFinding {
    /// The map, or the recording where the finding is about how they fit.
    pub path: String,
    /// Code of the rule.
    pub code: &'static str,
    /// What was found.
    pub message: String,
    /// Offset in the map.
    pub offset: Option<u64>,
    /// Number of occurrences.
    pub count: u64,
}
