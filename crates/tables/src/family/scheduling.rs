//! When threads run, and the groups and namespaces they are in.

use crate::column::choices;
use crate::schema::table;

choices! {
    /// What a thread does between two context switches.
    SchedState {
        /// It is on a processor.
        Running = "running",
        /// It could continue: it was preempted.
        Runnable = "runnable",
        /// It waits.
        Sleeping = "sleeping",
    }
}

table! {
    /// One row for each time that a thread is in one state, from one context switch to the next (`perf record --switch-events`, or
    /// `-e sched:sched_switch`).
    sched_states {
        /// Thread.
        thread_id: u32,
        /// Start on the profile's clock, in nanoseconds.
        start_ns: i64,
        /// End on the profile's clock, in nanoseconds; null where it was not recorded.
        end_ns: Opt<i64>,
        /// State:
        state: Choice<super::SchedState>,
        /// Processor that it is on, or that it left; null where not recorded.
        cpu: Opt<u32>,
        /// Off the processor: the last sample of the thread since it was put on the processor, whose stack is that of the wait where the
        /// sample was taken at the switch (`-e context-switches -c 1`, `-e sched:sched_switch`); null where there is none.
        sample_id: Opt<u64>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each field of each sample of a tracepoint, a probe or a system call (`perf record -e syscalls:sys_enter_read`), where
    /// the recording has the formats of tracepoints.
    tracepoint_fields {
        /// Sample.
        sample_id: u64,
        /// Time of the sample on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// Name of the event.
        event: Str,
        /// Name of the field.
        field: Str,
        /// Its value; null where that is not a number, or one without a sign of 2^63 and more.
        number: Opt<i64>,
        /// Its value where `number` is null: text, the bytes of arrays and structures in hexadecimal, or the number as `0xffffffff81000000`.
        text: Opt<Str>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each time that a thread was woken (`perf record -e sched:sched_waking`, `sched:sched_wakeup`).
    wake_ups {
        /// Time on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// Thread that was woken; its process has pid -1 where the recording does not state it.
        thread_id: u32,
        /// Thread that woke it, or that an interrupt which did so came upon.
        waker_thread_id: u32,
        /// Name of the tracepoint: `sched_waking` before, `sched_wakeup` after the thread can run, `sched_wakeup_new` for a new one.
        event: Str,
        /// Processor that it will run on; null where not recorded.
        target_cpu: Opt<u32>,
        /// Sample of this event, whose stack is that of the waker.
        sample_id: u64,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each event and processor, with what it had counted in a thread at its end (`perf record -s`). The sums by thread and
    /// event are those of `perf report -T`.
    thread_counts {
        /// Time on the profile's clock, in nanoseconds; null where not recorded.
        ts_ns: Opt<i64>,
        /// Thread.
        thread_id: u32,
        /// Name of the event; null where the record has an id of no event.
        event: Opt<Str>,
        /// The count.
        count: u64,
        /// Time that the event was enabled in the thread, in nanoseconds; null where not recorded.
        enabled_ns: Opt<u64>,
        /// Time of it that the event counted: less where more events were requested than the processor has counters.
        running_ns: Opt<u64>,
        /// Samples of the event that were lost; null where not recorded.
        num_lost: Opt<u64>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each control group whose path was recorded (`perf record --all-cgroups`).
    cgroups {
        /// Id of the group in the kernel.
        cgroup: u64,
        /// Path.
        path: Str,
        /// Time of the record on the profile's clock, in nanoseconds; null where the group existed before the recording.
        ts_ns: Opt<i64>,
        /// Number of samples that state this group.
        num_samples: u64,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each namespace of a thread (`perf record --namespaces`).
    namespaces {
        /// Thread.
        thread_id: u32,
        /// Time on the profile's clock, in nanoseconds; null for a thread from before the recording.
        ts_ns: Opt<i64>,
        /// `net`, `uts`, `ipc`, `pid`, `user`, `mnt`, `cgroup`; a number for one without a name.
        kind: Str,
        /// Device of the namespace.
        device: u64,
        /// Inode of the namespace on it: threads with the same two numbers share the namespace.
        inode: u64,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
