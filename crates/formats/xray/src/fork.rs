//! What a log has from the process that forked its own: `fork` copies the buffers of every thread, and both processes write them.

use std::ops::Range;

use perfuse_recording::Source;
use rustc_hash::FxHashMap;

use super::block::{FdrBlock, RecordCounts, read_rest};
use super::fdr::{FdrSurvey, thread_ids};
use super::log::{LogContent, XRay};
use super::record_iter::{RecordItem, RecordIter};
use super::records::{Record, XRayDialect};

/// Most buffers of one thread, time and counter that are compared: there are more of them in a hostile file alone.
const MOST_COMPARED: usize = 8;

/// What identifies a buffer: its process and thread, its wall time, its first processor and counter.
type BufferKey = ((i32, i32), (i64, i32), (u16, u64));

fn key(block: &FdrBlock) -> Option<BufferKey> {
    Some((thread_ids(block), block.known_wall()?, block.first_cpu?))
}

/// The records of a log that earlier ones do not have, and the number of calls and events that they have; `None` where they have
/// none.
pub fn without_copies(log: &XRay, earlier: &[&XRay]) -> Option<(XRay, u64)> {
    let LogContent::Fdr(survey) = log.content() else { return None };
    let dialect = log.header().dialect();
    if dialect.version < 2 {
        // Buffers without a counter of their own follow the one before.
        return None;
    }
    let mut known: FxHashMap<BufferKey, Vec<(&XRay, &FdrBlock)>> = FxHashMap::default();
    for &other in earlier {
        let LogContent::Fdr(others) = other.content() else { continue };
        // What both have is in the time of both.
        if other.header().dialect() != dialect || !overlap(survey.span, others.span) {
            continue;
        }
        for block in others.order.iter().filter_map(|&index| others.blocks.get(index)) {
            let Some(key) = key(block) else { continue };
            let same = known.entry(key).or_default();
            if same.len() < MOST_COMPARED {
                same.push((other, block));
            }
        }
    }
    let mut blocks = Vec::new();
    let mut before = RecordCounts::default();
    for block in survey.order.iter().filter_map(|&index| survey.blocks.get(index)) {
        before.add(&block.counts);
        let same = key(block).and_then(|key| known.get(&key)).map(Vec::as_slice).unwrap_or_default();
        let num_equal =
            same.iter().map(|(other, original)| num_equal(log, block, other, original)).max().unwrap_or(0);
        let copied = copied(log.file_source(), block, dialect, num_equal);
        if copied == block.records.start {
            blocks.push(block.clone());
        } else if copied < block.records.end {
            blocks.push(read_rest(log.file_source(), block, dialect, copied));
        }
    }
    let rest = FdrSurvey::of_blocks(blocks, survey);
    let num_copied = before.num_events().saturating_sub(rest.counts.num_events());
    (num_copied > 0).then(|| (log.with_content(LogContent::Fdr(rest)), num_copied))
}

/// Whether two spans have a time in common.
fn overlap(one: Option<(u64, u64)>, other: Option<(u64, u64)>) -> bool {
    let (Some((first, last)), Some((other_first, other_last))) = (one, other) else { return false };
    first <= other_last && other_first <= last
}

/// Number of bytes at the start of a buffer that another one begins with.
fn num_equal(log: &XRay, block: &FdrBlock, other: &XRay, original: &FdrBlock) -> usize {
    let bytes = |log: &XRay, records: &Range<usize>| -> Box<[u8]> {
        let source = log.file_source();
        let copy = source.get(records.clone()).unwrap_or_default().into();
        source.release(records.clone());
        copy
    };
    let (here, there) = (bytes(log, &block.records), bytes(other, &original.records));
    here.iter().zip(&there).take_while(|(here, there)| here == there).count()
}

/// Where the first record of a buffer is that is not in its first `num_equal` bytes; the start of the buffer where these have no
/// calls and events.
fn copied(source: &Source, block: &FdrBlock, dialect: XRayDialect, num_equal: usize) -> usize {
    let start = block.records.start;
    if num_equal >= block.records.len() {
        return block.records.end;
    }
    if block.has_events() && !block.payloads {
        // The writer moved the end of such a buffer.
        return start;
    }
    let dialect = XRayDialect { payloads: block.payloads, ..dialect };
    let mut records = RecordIter::new(source, block.records.clone(), dialect);
    let (mut end, mut has_events) = (start, false);
    while let Some(item) = records.next() {
        if records.offset() > start.saturating_add(num_equal) || matches!(item, RecordItem::Broken(_)) {
            break;
        }
        end = records.offset();
        has_events |= matches!(
            item,
            RecordItem::Function { .. }
                | RecordItem::Metadata { record: Record::Custom(_) | Record::Typed(_), .. }
        );
    }
    if has_events { end } else { start }
}
