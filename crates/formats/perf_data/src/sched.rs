//! What threads do between context switches, from SWITCH and SWITCH_CPU_WIDE records (`perf record --switch-events`).

use perfuse_tables::SchedState;

use super::record::RecordLocation;

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
    /// Time of the switch that ends it; `None` where the recording ends before.
    pub end: Option<u64>,
    /// Processor of the first switch.
    pub cpu: Option<u32>,
    /// Record of the first switch.
    pub location: RecordLocation,
    /// For a thread off the processor: number and record of the last sample since it was put on it.
    pub sample: Option<(u64, RecordLocation)>,
}

impl ThreadState {
    /// Time off the processor, where it ends in the recording.
    #[must_use]
    pub fn off_cpu(&self) -> Option<u64> {
        let end = self.end.filter(|_| self.state != SchedState::Running)?;
        Some(end.saturating_sub(self.start))
    }
}
