//! Samply's inline-aware debug records.
use super::records::RawRecord;

/// Whether a record is one.
#[must_use]
pub fn is_debug_info(_record: &RawRecord<'_>) -> bool {
    false
}

/// The address of the code it is about.
#[must_use]
pub fn code_address(_record: &RawRecord<'_>) -> Option<u64> {
    None
}

/// Its fields.
#[must_use]
pub fn fields<'a>(_record: &RawRecord<'a>) -> Option<Vec<(&'static str, perfuse_wire::Value<'a>)>> {
    None
}

/// A line of an inline-aware record.
pub struct Line {
    pub code_offset: u64,
    pub path: String,
    pub line: u32,
    pub column: Option<u32>,
}

/// Offset of its record, and lines.
pub fn line_rows(_dump: &super::Shared, _code: &super::index::Code) -> Option<(u64, Vec<Line>)> {
    None
}

/// Tables only these records fill.
pub fn table(
    _dump: &super::JitDump,
    _name: &str,
    _placement: &crate::Placement,
    _request: &crate::TableRequest,
) -> Option<crate::BatchStream> {
    None
}

/// Tells its departures.
pub fn check(_record: &RawRecord<'_>, _sink: &mut perfuse_wire::Diagnostics) {}
