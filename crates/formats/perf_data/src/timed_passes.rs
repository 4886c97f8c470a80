//! Facts from passes over records in time order, each computed when it is first needed.

use perfuse_tables::SchedState;
use rustc_hash::FxHashMap;

use super::consts::{RecordType, misc};
use super::order::TimeOrder;
use super::perf_file::PerfFile;
use super::record::RecordLocation;
use super::sched::ThreadState;

/// What threads do between context switches: states of all threads, in order of their starts.
pub fn sched_states(file: &PerfFile) -> &[ThreadState] {
    file.sched_states.get_or_init(|| read_states(file))
}

/// Number of samples whose user part was deferred and never recorded.
pub fn num_incomplete(file: &PerfFile) -> u64 {
    *file.num_incomplete.get_or_init(|| count_incomplete(file))
}

fn count_incomplete(file: &PerfFile) -> u64 {
    let deferred = &file.survey().deferred;
    if deferred.num_samples == 0 {
        return 0;
    }
    let mut order = TimeOrder::samples(file);
    let mut count = 0u64;
    while let Some(timed) = order.next(file) {
        let Some(record) = file.at(timed.location) else { continue };
        let Some(head) = file.sample_head(&record) else { continue };
        let chain = deferred.chain(file, &head, timed.location);
        count = count.saturating_add(chain.is_some_and(|chain| chain.user_part.is_none()).into());
    }
    count
}

fn read_states(file: &PerfFile) -> Vec<ThreadState> {
    let mut states: Vec<ThreadState> = Vec::new();
    let counts = &file.survey().counts;
    let switches = [RecordType::SWITCH, RecordType::SWITCH_CPU_WIDE];
    if !switches.iter().any(|kind| counts.contains_key(kind)) {
        return states;
    }
    let is_selected = |kind: RecordType| switches.contains(&kind) || matches!(kind, RecordType::SAMPLE);
    let mut order = TimeOrder::new(file, |record, _| {
        matches!(record.record_type, RecordType::SAMPLE | RecordType::SWITCH | RecordType::SWITCH_CPU_WIDE)
    });
    let mut open: FxHashMap<i32, usize> = FxHashMap::default();
    let mut samples: FxHashMap<i32, (u64, RecordLocation)> = FxHashMap::default();
    let mut num_samples = 0u64;
    while let Some(timed) = order.next(file) {
        let Some(record) = file.at(timed.location).filter(|record| is_selected(record.record_type)) else {
            continue;
        };
        if record.record_type == RecordType::SAMPLE {
            let Some(head) = file.sample_head(&record) else { continue };
            samples.insert(head.tid.unwrap_or(-1), (num_samples, timed.location));
            num_samples = num_samples.saturating_add(1);
            continue;
        }
        let Some(layout) = file.event_layout(&record) else { continue };
        let Some((pid, tid)) = layout.trailer_task(record.body, file.endian) else { continue };
        // The idle task of each processor has thread 0.
        if tid <= 0 || timed.time == 0 {
            continue;
        }
        let state = match record.misc {
            bits if bits & misc::SWITCH_OUT == 0 => SchedState::Running,
            bits if bits & misc::SWITCH_OUT_PREEMPT != 0 => SchedState::Runnable,
            _ => SchedState::Sleeping,
        };
        if let Some(previous) = open.insert(tid, states.len()).and_then(|index| states.get_mut(index)) {
            previous.end = Some(timed.time);
        }
        let sample = samples.remove(&tid).filter(|_| state != SchedState::Running);
        states.push(ThreadState {
            pid,
            tid,
            state,
            start: timed.time,
            end: None,
            cpu: layout.trailer_cpu(record.body, file.endian),
            location: timed.location,
            sample,
        });
    }
    states
}
