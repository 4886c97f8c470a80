//! Calls and moves between processors as packets.

use std::io;

use perfuse_tables::StartReason;

use super::super::ordered::{End, Sink};
use super::packets::Packets;

/// Tells of calls as they begin and end.
#[derive(Debug)]
pub struct PerfettoCalls {
    packets: Packets,
    /// Which processor each thread is on.
    on: Vec<Option<On>>,
}

#[derive(Clone, Copy, Debug)]
struct On {
    cpu: u32,
    since_ns: i64,
    /// Whether it was on another before.
    moved: bool,
}

impl PerfettoCalls {
    /// No calls yet.
    pub fn new(packets: Packets) -> Self {
        Self { packets, on: Vec::new() }
    }

    /// Where they are written to.
    pub fn packets(&mut self) -> &mut Packets {
        &mut self.packets
    }

    /// Writes what is left.
    pub fn finish(self) -> io::Result<()> {
        self.packets.finish()
    }

    fn moves(&mut self, thread_id: u32, cpu: u32, ts_ns: i64) {
        let index = thread_id as usize;
        if index >= self.on.len() {
            self.on.resize(index + 1, None);
        }
        let before = self.on[index].replace(On { cpu, since_ns: ts_ns, moved: false });
        let Some(before) = before else { return };
        // A thread that stays where it is has no track for that.
        if !before.moved {
            self.packets.cpus(thread_id);
            self.packets.runs_on(thread_id, before.cpu, before.since_ns);
        }
        self.packets.runs_on(thread_id, cpu, ts_ns);
        self.on[index] = Some(On { cpu, since_ns: ts_ns, moved: true });
    }
}

impl Sink for PerfettoCalls {
    #[inline]
    fn begins(&mut self, thread_id: u32, function_id: u32, start_ns: i64, start_reason: StartReason) {
        self.packets.begins(thread_id, function_id, start_ns, start_reason);
    }

    #[inline]
    fn ends(&mut self, thread_id: u32, _function_id: u32, end: &End<'_>) {
        self.packets.ends(thread_id, end);
    }

    #[inline]
    fn runs_on(&mut self, thread_id: u32, cpu: u32, ts_ns: i64) {
        let on = self.on.get(thread_id as usize).copied().flatten();
        if on.is_none_or(|on| on.cpu != cpu) {
            self.moves(thread_id, cpu, ts_ns);
        }
    }

    fn failed(&self) -> bool {
        self.packets.failed()
    }
}
