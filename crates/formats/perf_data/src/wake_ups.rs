//! Table `wake_ups`: which thread woke which, from the tracepoints `sched_waking`, `sched_wakeup` and `sched_wakeup_new`.

use std::sync::PoisonError;

use arrow_array::RecordBatch;
use perfuse_recording::Placement;
use perfuse_tables::wake_ups;
use rustc_hash::{FxHashMap, FxHashSet};

use super::order::TimeOrder;
use super::perf_file::PerfFile;

/// The process of each thread: tracepoints state threads only.
#[derive(Debug)]
pub struct ProcessOfThread(FxHashMap<i32, i32>);

impl ProcessOfThread {
    /// As names, starts and ends of threads state it.
    #[must_use]
    pub fn new(file: &PerfFile) -> Self {
        Self(
            file.tasks().facts.iter().filter(|fact| fact.pid >= 0).map(|fact| (fact.tid, fact.pid)).collect(),
        )
    }

    /// Process of a thread; -1 where it is not known.
    #[must_use]
    pub fn pid(&self, tid: i32) -> i32 {
        self.0.get(&tid).copied().unwrap_or(-1)
    }
}

/// Threads that tracepoints state and that no other record does: their process is not known.
pub fn unknown_threads(file: &PerfFile) -> Vec<i32> {
    let tracepoints: Vec<_> = file.tracepoints().iter().filter(|one| one.is_of_scheduler).collect();
    if tracepoints.is_empty() {
        return Vec::new();
    }
    let processes = ProcessOfThread::new(file);
    let mut order = TimeOrder::samples(file);
    let mut found = FxHashSet::default();
    while let Some(timed) = order.next(file) {
        let Some(record) = file.at(timed.location) else { continue };
        let event = file.attributes.find(record.record_type, record.body, file.endian);
        let Some((index, _)) = event else { continue };
        let Some(tracepoint) = tracepoints.iter().find(|tracepoint| tracepoint.event == index) else {
            continue;
        };
        let Ok(sample) = file.sample(&record) else { continue };
        let Some(raw) = sample.raw else { continue };
        let tids = ["pid", "prev_pid", "next_pid"].map(|name| tracepoint.tid(raw, name, file.endian));
        found.extend(tids.into_iter().flatten().filter(|&tid| tid > 0 && processes.pid(tid) == -1));
    }
    let mut threads: Vec<i32> = found.into_iter().collect();
    threads.sort_unstable();
    threads
}

/// The table.
#[must_use]
pub fn rows(file: &PerfFile, placement: &Placement) -> RecordBatch {
    let tracepoints: Vec<_> = file.tracepoints().iter().filter(|one| one.is_wake_up()).collect();
    let processes = ProcessOfThread::new(file);
    let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
    let mut table = wake_ups::Builder::new();
    let mut order = TimeOrder::samples(file);
    let mut next_id = placement.first.sample;
    while let Some(timed) = order.next(file) {
        let Some(record) = file.at(timed.location) else { continue };
        let Some(head) = file.sample_head(&record) else { continue };
        let sample_id = next_id;
        next_id = next_id.saturating_add(1);
        let found = file.attributes.find(record.record_type, record.body, file.endian);
        let Some(tracepoint) =
            found.and_then(|(index, _)| tracepoints.iter().find(|tracepoint| tracepoint.event == index))
        else {
            continue;
        };
        let Ok(sample) = file.sample(&record) else { continue };
        let Some(raw) = sample.raw else { continue };
        let Some(tid) = tracepoint.tid(raw, "pid", file.endian) else { continue };
        let cpu = tracepoint.number(raw, "target_cpu", file.endian);
        let (waker_pid, waker_tid) = (head.pid.unwrap_or(-1), head.tid.unwrap_or(-1));
        table.push(
            placement.clock.ns(timed.time),
            identities.thread(placement.process(processes.pid(tid)), tid),
            identities.thread(file.guests.identity(placement, waker_pid), waker_tid),
            &tracepoint.name,
            cpu.and_then(|cpu| u32::try_from(cpu).ok()),
            sample_id,
            placement.source_id,
            record.offset,
        );
    }
    table.finish()
}
