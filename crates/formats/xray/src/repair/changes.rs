//! The changes that a repair makes for each finding.

use perfuse_wire::{Diagnostic, Rule, Severity};

use crate::rules::*;
use perfuse_recording::Change;

static REPAIRS: &[(&Rule, &str)] = &[
    (&VERSION, "written as the version it was read as"),
    (&HEADER_GARBAGE, "cleared"),
    (&LOST, "left out"),
    (&TRUNCATED, "ended after the last complete record"),
    (&EXTENTS_LONG, "the actual size was written"),
    (&EXTENTS_SHORT, "the actual size was written"),
    (&NO_EXTENTS, "written"),
    (&STRIDE, "the distance was written"),
    (&COPY, "the copy was left out"),
    (&EMPTY_BUFFER, "left out"),
    (&STALE, "cleared"),
    (&UNKNOWN_KIND, "left out"),
    (&UNKNOWN_ACTION, "left out"),
    (&CUT_RECORD, "ended before it"),
    (&RESERVED, "cleared"),
    (&NO_END, "written"),
    (&END_OF_BUFFER, "left out"),
    (&LATER_KIND, "left out"),
    (&ORDER, "left out"),
    (&NO_NEW_BUFFER, "written, of thread 0"),
    (&NO_WALL_TIME, "written, with the time of the counter"),
    (&NO_PID, "written, of process 0"),
    (&NO_CPU, "written, with the counter at the wall time"),
    (&CARRIED, "written, with the counter and processor of the previous buffer"),
    (&SECOND_NEW_BUFFER, "made a separate buffer"),
    (&TIME_BACK, "TSCWrap was written before it"),
    (&ROTATED, "buffers were put in order"),
    (&UNORDERED, "buffers were put in order"),
    (&OVERWRITTEN, "eight bytes 0 were written for each"),
    (&TYPED_CUT, "ended after the last complete record"),
    (&EMPTY_EVENT, "eight bytes 0 were written"),
    (&EVENT_SIZE, "ended before it"),
    (&ORPHAN_ARGUMENT, "left out"),
    (&BASIC_TAIL, "cut off"),
    (&BASIC_TYPE, "left out"),
    (&BASIC_KIND, "left out"),
    (&BASIC_ORPHAN, "left out"),
    (&BASIC_COPIES, "the copies were left out"),
    (&BASIC_BACK, "records were put in order"),
    (&BASIC_UNWRITTEN, "left out"),
    (&PROFILE_CUT, "ended after the last complete path"),
    (&PROFILE_BLOCK, "left out"),
];

/// The change made for a finding; `None` where it cannot be repaired.
pub fn change_for(finding: &Diagnostic) -> Option<Change> {
    let (_, done) = REPAIRS.iter().find(|(rule, _)| *rule == finding.rule)?;
    let times =
        if finding.count > 1 { format!(" ({} times from here on)", finding.count) } else { String::new() };
    let message = format!("{}: {done}{times}", finding.message);
    Some(Change { rule: finding.rule, offset: finding.offset, message })
}

/// Whether recorded data, or bytes of the file, are missing from the repaired file.
pub fn is_lost(finding: &Diagnostic) -> bool {
    let left_out: [&Rule; 10] = [
        &UNKNOWN_KIND,
        &UNKNOWN_ACTION,
        &CUT_RECORD,
        &LATER_KIND,
        &ORDER,
        &EVENT_SIZE,
        &ORPHAN_ARGUMENT,
        &BASIC_TYPE,
        &BASIC_KIND,
        &PROFILE_BLOCK,
    ];
    finding.rule.severity == Severity::DataLoss || left_out.contains(&finding.rule)
}
