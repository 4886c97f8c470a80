//! What threads do between context switches, from SWITCH and SWITCH_CPU_WIDE records (`perf record --switch-events`).

use perfuse_tables::SchedState;

use super::record::RecordLocation;
use super::rounds::TimedRecord;

/// A thread in one state, from one context switch to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState {
    /// Process.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// The state.
    pub state: SchedState,
    /// Time of the switch that begins it.
    pub start: u64,
    /// Time of the switch that ends it; `None` where that was not recorded.
    pub end: Option<u64>,
    /// Whether a later switch shows that it ended at a time that was not recorded.
    pub has_unknown_end: bool,
    /// Processor of the first switch.
    pub cpu: Option<u32>,
    /// Record of the first switch.
    pub location: RecordLocation,
    /// For a thread off the processor: number and record of the last sample since it was put on it.
    pub sample: Option<(u64, RecordLocation)>,
}

impl ThreadState {
    /// A state of a thread `(pid, tid)` that a switch begins.
    pub fn begun(
        (pid, tid): (i32, i32),
        state: SchedState,
        switch: TimedRecord,
        cpu: Option<u32>,
        sample: Option<(u64, RecordLocation)>,
    ) -> Self {
        let TimedRecord { time, location } = switch;
        Self { pid, tid, state, start: time, end: None, has_unknown_end: false, cpu, location, sample }
    }

    /// Ends it by the next switch of the thread, which puts it on the processor or takes it off. One that begins where this one began
    /// does not state when it ended: of one task, `sched_switch` is recorded only when it leaves the processor.
    pub fn end_by(&mut self, puts_on: bool, time: u64) {
        if puts_on == (self.state == SchedState::Running) {
            self.has_unknown_end = true;
        } else {
            self.end = Some(time);
        }
    }

    /// Time off the processor, where it ends in the recording.
    #[must_use]
    pub fn off_cpu(&self) -> Option<u64> {
        let end = self.end.filter(|_| self.state != SchedState::Running)?;
        Some(end.saturating_sub(self.start))
    }
}
