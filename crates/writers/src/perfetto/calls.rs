//! Calls and moves between processors as packets.

use std::io;

use perfuse_tables::StartReason;

use super::super::ordered::{CallEnd, CallSink};
use super::packets::Packets;

/// Writes calls as slice begins and ends.
#[derive(Debug)]
pub struct PerfettoCalls {
    packets: Packets,
    /// The current processor of each thread.
    on: Vec<Option<CpuStay>>,
}

#[derive(Clone, Copy, Debug)]
struct CpuStay {
    cpu: u32,
    since_ns: i64,
    /// Whether the thread was on another processor before.
    moved: bool,
}

impl PerfettoCalls {
    /// A writer without calls so far.
    pub fn new(packets: Packets) -> Self {
        Self { packets, on: Vec::new() }
    }

    /// The packet writer.
    pub fn packets(&mut self) -> &mut Packets {
        &mut self.packets
    }

    /// Writes the remaining bytes.
    pub fn finish(self) -> io::Result<()> {
        self.packets.finish()
    }

    fn record_migration(&mut self, thread_id: u32, cpu: u32, ts_ns: i64) {
        let index = thread_id as usize;
        if index >= self.on.len() {
            self.on.resize(index + 1, None);
        }
        let before = self.on[index].replace(CpuStay { cpu, since_ns: ts_ns, moved: false });
        let Some(before) = before else { return };
        // A thread that never migrates gets no track of processors.
        if !before.moved {
            self.packets.cpus(thread_id);
            self.packets.run_on_cpu(thread_id, before.cpu, before.since_ns);
        }
        self.packets.run_on_cpu(thread_id, cpu, ts_ns);
        self.on[index] = Some(CpuStay { cpu, since_ns: ts_ns, moved: true });
    }
}

impl CallSink for PerfettoCalls {
    #[inline]
    fn begin_call(&mut self, thread_id: u32, function_id: u32, start_ns: i64, start_reason: StartReason) {
        self.packets.begin_call(thread_id, function_id, start_ns, start_reason);
    }

    #[inline]
    fn end_call(&mut self, thread_id: u32, _function_id: u32, end: &CallEnd<'_>) {
        self.packets.end_call(thread_id, end);
    }

    #[inline]
    fn run_on_cpu(&mut self, thread_id: u32, cpu: u32, ts_ns: i64) {
        let on = self.on.get(thread_id as usize).copied().flatten();
        if on.is_none_or(|on| on.cpu != cpu) {
            self.record_migration(thread_id, cpu, ts_ns);
        }
    }

    fn failed(&self) -> bool {
        self.packets.failed()
    }
}
