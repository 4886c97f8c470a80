//! Table `call_sums`: what Profiling mode summed up.

use perfuse_tables::call_sums;

use super::super::ids::FunctionKeys;
use super::super::log::{Content, XRay};
use super::super::profile::read_path;
use perfuse_recording::{BatchStream, Placement, Recording};

/// The rows of a profile, a batch a thread.
pub fn stream(log: &XRay, placement: &Placement) -> BatchStream {
    let (log, placement) = (log.clone(), placement.clone());
    let keys = FunctionKeys::new(log.function_ids(), placement.first.function);
    let num = match log.content() {
        Content::Profile(survey) => survey.blocks.len(),
        Content::Fdr(_) | Content::Basic(_) => 0,
    };
    Box::new((0..num).filter_map(move |index| block(&log, &placement, &keys, index)))
}

fn block(
    log: &XRay,
    placement: &Placement,
    keys: &FunctionKeys,
    index: usize,
) -> Option<arrow_array::RecordBatch> {
    let Content::Profile(survey) = log.content() else { return None };
    let block = survey.blocks.get(index)?;
    let pid = log.header().profile.map_or(0, |profile| profile.pid as i32);
    let thread_id = super::thread(placement, (pid, block.header.thread as i32));
    let mut table = call_sums::Builder::new();
    let mut cursor = block.cursor(log.source(), log.header().endian);
    while cursor.remaining() > 0 {
        let Ok(path) = read_path(&mut cursor) else { break };
        let functions: Vec<u64> =
            path.functions.iter().map(|id| keys.get(id.cast_unsigned()).into()).collect();
        let self_ns = signed_ns(placement, path.ticks);
        table.push(thread_id, &functions, path.calls, self_ns, placement.source_id, path.offset);
    }
    Some(table.finish())
}

/// A length of time, which may be below 0.
fn signed_ns(placement: &Placement, ticks: i64) -> i64 {
    let zero = placement.clock.offset_ns;
    let ns = placement.clock.ns(ticks.unsigned_abs()).saturating_sub(zero);
    if ticks < 0 { ns.saturating_neg() } else { ns }
}
