//! Facts from passes over records in time order, each computed when it is first needed.

use perfuse_tables::SchedState;
use rustc_hash::{FxHashMap, FxHashSet};

use super::consts::{RecordType, misc};
use super::layout::Fork;
use super::order::TimeOrder;
use super::perf_file::PerfFile;
use super::record::{RawEvent, RecordLocation};
use super::rounds::TimedRecord;
use super::sample::SampleHead;
use super::sched::ThreadState;
use super::tracepoints::Tracepoint;
use super::wake_ups::ProcessOfThread;

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

/// Whether a record contains a switch of a thread, its start or end, or a sample of it.
fn has_state_of_thread(record: &RawEvent<'_>) -> bool {
    matches!(
        record.record_type,
        RecordType::SAMPLE
            | RecordType::SWITCH
            | RecordType::SWITCH_CPU_WIDE
            | RecordType::FORK
            | RecordType::EXIT
    )
}

fn read_states(file: &PerfFile) -> Vec<ThreadState> {
    let mut states: Vec<ThreadState> = Vec::new();
    let counts = &file.survey().counts;
    let switches = [RecordType::SWITCH, RecordType::SWITCH_CPU_WIDE];
    if !switches.iter().any(|kind| counts.contains_key(kind)) {
        return match (file.switch_tracepoint(), file.switch_event()) {
            (Some(tracepoint), _) => states_of_tracepoint(file, tracepoint),
            (None, Some(event)) => states_of_samples(file, event),
            (None, None) => Vec::new(),
        };
    }
    let mut order = TimeOrder::new(file, |record, _| has_state_of_thread(record));
    let mut open: FxHashMap<(i32, i32), usize> = FxHashMap::default();
    let mut samples: FxHashMap<(i32, i32), (u64, RecordLocation)> = FxHashMap::default();
    let mut ended: FxHashSet<(i32, i32)> = FxHashSet::default();
    let mut num_samples = 0u64;
    while let Some(timed) = order.next(file) {
        let Some(record) = file.at(timed.location).filter(has_state_of_thread) else { continue };
        if record.record_type == RecordType::SAMPLE {
            let Some(head) = file.sample_head(&record) else { continue };
            let key = (head.pid.unwrap_or(-1).min(-1), head.tid.unwrap_or(-1));
            samples.insert(key, (num_samples, timed.location));
            num_samples = num_samples.saturating_add(1);
            continue;
        }
        // A later thread may have the id of one that ended.
        if matches!(record.record_type, RecordType::FORK | RecordType::EXIT) {
            let Ok(task) = Fork::read(&mut record.cursor(file.endian)) else { continue };
            let key = (file.process_number(&record, task.pid).min(-1), task.tid);
            let last = open.remove(&key).and_then(|index| states.get_mut(index));
            if record.record_type == RecordType::FORK {
                ended.remove(&key);
                samples.remove(&key);
                continue;
            }
            ended.insert(key);
            if let Some(last) = last.filter(|last| last.state == SchedState::Running) {
                last.end = Some(timed.time);
            }
            continue;
        }
        let Some(layout) = file.event_layout(&record) else { continue };
        let Some((pid, tid)) = layout.trailer_task(record.body, file.endian) else { continue };
        let pid = file.process_number(&record, pid);
        // Threads of different machines may have the same id.
        let key = (pid.min(-1), tid);
        // The idle task of each processor has thread 0.
        if tid <= 0 || timed.time == 0 {
            continue;
        }
        let state = match record.misc {
            bits if bits & misc::SWITCH_OUT == 0 => SchedState::Running,
            bits if bits & misc::SWITCH_OUT_PREEMPT != 0 => SchedState::Runnable,
            _ => SchedState::Sleeping,
        };
        // A thread that ends leaves the processor after its end.
        if state == SchedState::Running {
            ended.remove(&key);
        } else if ended.contains(&key) {
            continue;
        }
        if let Some(previous) = open.insert(key, states.len()).and_then(|index| states.get_mut(index)) {
            previous.end_by(state == SchedState::Running, timed.time);
        }
        let sample = samples.remove(&key).filter(|_| state != SchedState::Running);
        let cpu = layout.trailer_cpu(record.body, file.endian);
        states.push(ThreadState::begun((pid, tid), state, timed, cpu, sample));
    }
    states
}

/// Bits of a state in which a thread waits, idle kernel threads included; without them it could continue.
const WAITS: u64 = 0xff;
/// Bits of the state of a thread that has ended: `EXIT_DEAD`, `EXIT_ZOMBIE`.
const ENDED: u64 = 0x30;

/// The samples of a file in order of time.
struct NumberedSamples {
    order: TimeOrder,
    num_samples: u64,
}

/// A sample with its number in that order.
struct NumberedSample<'a> {
    number: u64,
    timed: TimedRecord,
    record: RawEvent<'a>,
    head: SampleHead<'a>,
}

impl NumberedSamples {
    fn of(file: &PerfFile) -> Self {
        Self { order: TimeOrder::samples(file), num_samples: 0 }
    }

    /// The next sample that can be read.
    fn next<'a>(&mut self, file: &'a PerfFile) -> Option<NumberedSample<'a>> {
        loop {
            let timed = self.order.next(file)?;
            let Some(record) = file.at(timed.location) else { continue };
            let Some(head) = file.sample_head(&record) else { continue };
            let number = self.num_samples;
            self.num_samples = number.saturating_add(1);
            return Some(NumberedSample { number, timed, record, head });
        }
    }
}

/// States from samples of `sched_switch`: each is taken on the thread that leaves the processor, with its stack.
fn states_of_tracepoint(file: &PerfFile, tracepoint: &Tracepoint) -> Vec<ThreadState> {
    let processes = ProcessOfThread::new(file);
    let mut states: Vec<ThreadState> = Vec::new();
    let mut open: FxHashMap<i32, usize> = FxHashMap::default();
    let mut samples = NumberedSamples::of(file);
    while let Some(NumberedSample { number, timed, record, head }) = samples.next(file) {
        let found = file.attributes.find(record.record_type, record.body, file.endian);
        if found.is_none_or(|(index, _)| index != tracepoint.event) {
            continue;
        }
        let Ok(sample) = file.sample(&record) else { continue };
        let Some(raw) = sample.raw else { continue };
        let tid = |name| tracepoint.tid(raw, name, file.endian).filter(|&tid| tid > 0);
        let bits = tracepoint.number(raw, "prev_state", file.endian).unwrap_or(0);
        let left = match bits & WAITS {
            0 => Some(SchedState::Runnable),
            _ if bits & ENDED != 0 => None,
            _ => Some(SchedState::Sleeping),
        };
        let sides = [
            (tid("prev_pid"), left, Some((number, timed.location))),
            (tid("next_pid"), Some(SchedState::Running), None),
        ];
        for (tid, state, sample) in sides {
            let Some(tid) = tid else { continue };
            let pid = head.pid.filter(|_| head.tid == Some(tid)).unwrap_or_else(|| processes.pid(tid));
            if let Some(previous) = open.remove(&tid).and_then(|index| states.get_mut(index)) {
                previous.end_by(state == Some(SchedState::Running), timed.time);
            }
            // A later thread may have the id of one that ended.
            let Some(state) = state else { continue };
            open.insert(tid, states.len());
            states.push(ThreadState::begun((pid, tid), state, timed, head.cpu, sample));
        }
    }
    states
}

/// States from samples alone, as simpleperf reads them: one of `event` is taken when its thread leaves the processor, and the thread is
/// on it again by its next sample.
fn states_of_samples(file: &PerfFile, event: usize) -> Vec<ThreadState> {
    let mut states: Vec<ThreadState> = Vec::new();
    let mut open: FxHashMap<i32, usize> = FxHashMap::default();
    let mut samples = NumberedSamples::of(file);
    while let Some(NumberedSample { number, timed, record, head }) = samples.next(file) {
        let (Some(pid), Some(tid)) = (head.pid, head.tid.filter(|&tid| tid > 0)) else { continue };
        let found = file.attributes.find(record.record_type, record.body, file.endian);
        let leaves = found.is_some_and(|(index, _)| index == event);
        let previous = open.get(&tid).and_then(|&index| states.get_mut(index));
        if !leaves && previous.as_ref().is_none_or(|previous| previous.state == SchedState::Running) {
            continue;
        }
        if let Some(previous) = previous {
            previous.end = Some(timed.time);
        }
        open.insert(tid, states.len());
        let (state, sample) = match leaves {
            true => (SchedState::Sleeping, Some((number, timed.location))),
            false => (SchedState::Running, None),
        };
        states.push(ThreadState::begun((pid, tid), state, timed, head.cpu, sample));
    }
    states
}
