//! Tables `frames`, `stacks` and `samples`.

use std::sync::Arc;

use perfuse_recording::{BatchStream, Placement, TableRequest, one_batch};
use perfuse_tables::{frames, samples, stacks};

use crate::consts::{EventByte, KindSet};
use crate::ingest::scan;
use crate::ingest::threads::ThreadKeys;
use crate::log::LogData;
use crate::ranges::MethodRanges;
use crate::records::EventBody;
use crate::stacks::{LogStacks, StackFrame, sample_frames, sample_time};

/// The stacks that a request needs.
fn requested_stacks<'a>(log: &'a LogData, request: &TableRequest) -> Option<&'a LogStacks> {
    let is_whole = !request.no_allocation_stacks && !request.no_stacks && request.stacks_of.is_none();
    if is_whole { Some(log.stacks()) } else { log.stacks_for(request) }
}

/// Table `frames` of the requested stacks.
pub fn frames(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let names = log.names();
    let mut table = frames::Builder::new();
    let frames = requested_stacks(log, request).into_iter().flat_map(|stacks| stacks.tree.frames());
    for (frame, id) in frames.zip(placement.first.frame..) {
        let kind = match frame.function {
            Some(function) if function <= names.unknown_function() => "jit",
            Some(_) => "native",
            None => "unknown",
        };
        let unresolved = frame.function.is_none().then_some("the log contains no symbol for this address");
        let by = match frame {
            StackFrame { is_traced: true, .. } => "trace",
            StackFrame { address: Some(_), .. } => "sampled",
            _ => "callchain",
        };
        table.push(
            id,
            frame.function.map(|function| placement.first.function.saturating_add(function)),
            None,
            None,
            frame.address,
            None,
            None,
            None,
            None,
            0,
            kind,
            by,
            unresolved,
        );
    }
    one_batch(table.finish())
}

/// Table `stacks`.
pub fn stacks(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let first = placement.first;
    let mut table = stacks::Builder::new();
    let mut depths: Vec<u32> = Vec::new();
    let stacks = requested_stacks(log, request).into_iter().flat_map(|stacks| stacks.tree.stacks());
    for ((caller, frame), id) in stacks.zip(first.stack..) {
        let caller_depth = caller.and_then(|caller| depths.get(caller as usize));
        let depth = caller_depth.map_or(0, |depth| depth.saturating_add(1));
        let caller = caller.map(|caller| first.stack.saturating_add(caller));
        table.push(id, caller, first.frame.saturating_add(frame), depth);
        depths.push(depth);
    }
    one_batch(table.finish())
}

/// A sample with its stack.
struct SampleRow {
    time: u64,
    thread: u32,
    stack: Option<u32>,
    event: &'static str,
    offset: u64,
}

/// Name of the sampled hardware event.
fn event_name(kind: u64) -> &'static str {
    match kind {
        1 => "cycles",
        2 => "instructions",
        3 => "cache-misses",
        4 => "cache-references",
        5 => "branches",
        6 => "branch-misses",
        _ => "sample",
    }
}

/// Table `samples`.
pub fn samples(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    let (names, stacks) = (log.names(), log.event_stacks());
    let threads = ThreadKeys::new(log, placement);
    let code = MethodRanges::new(log.survey(), names);
    let mut rows = scan::collect_events(log, KindSet::of(&[EventByte::SAMPLE_HIT]), |at, _, event, found| {
        let EventBody::SampleHit { kind, thread, .. } = event.body else { return };
        let time = sample_time(event, at.time);
        // Until data version 10 a sample is in a buffer of the sampled thread.
        let is_in_own_buffer = log.survey().dialect.version < 11;
        let number = if is_in_own_buffer {
            Some(names.threads.of_buffer(at.buffer))
        } else {
            names.threads.at(thread, time)
        };
        let number = number.unwrap_or_else(|| names.threads.of_buffer(at.buffer));
        let stack = stacks.tree.find(&sample_frames(event, names, &code, time));
        let event_name = event_name(kind);
        found.push(SampleRow {
            time,
            thread: threads.get(number),
            stack,
            event: event_name,
            offset: event.offset,
        });
    });
    rows.sort_by_key(|row| row.time);
    let mut table = samples::Builder::new();
    for (row, id) in rows.iter().zip(placement.first.sample..) {
        let stack = row.stack.map(|stack| placement.first.stack.saturating_add(stack));
        let ts_ns = placement.clock.ns(row.time);
        table.push(
            id,
            ts_ns,
            row.thread,
            None,
            stack,
            1,
            "events",
            row.event,
            placement.source_id,
            row.offset,
        );
    }
    one_batch(table.finish())
}
