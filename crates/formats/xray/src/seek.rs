//! Finds the position of a record by its index or offset without reading all records before it.

use perfuse_recording::{Position, position_of};

use super::basic::{self, BasicSurvey};
use super::block::FdrBlock;
use super::consts::{BASIC_BYTES, FUNCTION_BYTES, HEADER_BYTES};
use super::fdr::FdrSurvey;
use super::log::{LogContent, XRay};
use super::record_iter::{RecordItem, RecordIter};

/// The position of the first record with at least this index.
pub fn index(log: &XRay, index: u64) -> Position {
    match log.content() {
        LogContent::Fdr(survey) => fdr_position(
            log,
            survey,
            |_, first, num| first.saturating_add(num) > index,
            |_, number| index.saturating_sub(number),
            |_, number| number >= index,
        ),
        LogContent::Basic(survey) => basic_position(survey, index),
        LogContent::Profile(_) => position_of(log, |record| record.index >= index),
    }
}

/// The position of the first record that begins at or after an offset.
pub fn offset(log: &XRay, offset: u64) -> Position {
    match log.content() {
        LogContent::Fdr(survey) => fdr_position(
            log,
            survey,
            |block, _, _| block.records.end as u64 > offset,
            |at, _| offset.saturating_sub(at).div_ceil(FUNCTION_BYTES as u64),
            |at, _| at >= offset,
        ),
        LogContent::Basic(survey) => {
            let bytes = offset.saturating_sub(HEADER_BYTES as u64);
            basic_position(survey, bytes.div_ceil(BASIC_BYTES as u64))
        }
        LogContent::Profile(_) => position_of(log, |record| record.offset >= offset),
    }
}

fn basic_position(survey: &BasicSurvey, index: u64) -> Position {
    let index = index.min(survey.num_records as u64);
    Position { offset: basic::record_offset(index as usize) as u64, index, inner: index }
}

/// The position of a record in an FDR log.
///
/// `contains` states whether a block, by its first index and its number of records, contains the record; `most` how many
/// function records may be passed over at an offset and an index; `is_found` whether the record at an offset and an index is
/// the one.
fn fdr_position(
    log: &XRay,
    survey: &FdrSurvey,
    contains: impl Fn(&FdrBlock, u64, u64) -> bool,
    most: impl Fn(u64, u64) -> u64,
    is_found: impl Fn(u64, u64) -> bool,
) -> Position {
    let mut first = 0u64;
    for (number, block) in survey.blocks.iter().enumerate() {
        let num = block.counts.total();
        if !contains(block, first, num) {
            first = first.saturating_add(num);
            continue;
        }
        let mut dialect = log.header().dialect();
        dialect.payloads = block.payloads;
        let inner = number as u64;
        let mut at = Position { offset: block.offset, index: first, inner };
        if is_found(at.offset, at.index) {
            return at;
        }
        // BufferExtents is not in the range of the records.
        at.offset = block.records.start as u64;
        at.index = first.saturating_add((block.offset < at.offset).into());
        let mut records = RecordIter::new(log.file_source(), block.records.clone(), dialect);
        while !is_found(at.offset, at.index) {
            let limit = usize::try_from(most(at.offset, at.index)).unwrap_or(usize::MAX);
            let run = records.functions(limit).len();
            if run == 0 && !matches!(records.next(), Some(RecordItem::Metadata { .. })) {
                break;
            }
            at.offset = records.offset() as u64;
            at.index = at.index.saturating_add(run.max(1) as u64);
        }
        return at;
    }
    let end = log.file_source().len() as u64;
    Position { offset: end, index: first, inner: survey.blocks.len() as u64 }
}
