//! Programs of processes, by which processes of several recordings are distinguished.

use perfuse_recording::RecordedPrograms;
use rustc_hash::FxHashSet;

use super::perf_data::PerfData;
use super::records::MappingRecord;

/// Programs and mappings of all processes; without those of guests.
#[must_use]
pub fn recorded_programs(perf: &PerfData) -> RecordedPrograms {
    let file = perf.file();
    let tasks = file.tasks();
    let mut recorded = RecordedPrograms::new(perf.hostname(), perf.os_release());
    for pid in perf.sampled_pids().into_iter().chain(tasks.facts.iter().map(|fact| fact.pid)) {
        if pid >= 0 {
            recorded.add_process(pid);
        }
    }
    let mut execs = tasks.execs.iter().peekable();
    let mut with_program = FxHashSet::default();
    for row in &tasks.mappings {
        while let Some(exec) = execs.next_if(|exec| exec.ts <= row.ts) {
            with_program.remove(&exec.pid);
        }
        let Some(record) = file.at(row.mapping) else { continue };
        let Some(mapping) = MappingRecord::read(&record, file.endian) else { continue };
        if row.pid == -1 {
            // The first part of the kernel: modules follow, and have addresses of their own.
            if mapping.path.starts_with(b"[kernel.kallsyms]") && mapping.start_address != 0 {
                recorded.add_kernel(mapping.start_address);
            }
        } else if row.pid >= 0 && mapping.path == b"[vdso]" {
            recorded.add_vdso(row.pid, mapping.start_address);
        } else if row.pid >= 0
            && mapping.executable
            && mapping.path.starts_with(b"/")
            && !mapping.is_anonymous()
        {
            let is_program = with_program.insert(row.pid);
            recorded.add_file(row.pid, mapping.path, mapping.start_address, is_program);
        }
    }
    recorded
}
