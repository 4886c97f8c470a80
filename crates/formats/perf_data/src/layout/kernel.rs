//! Records the kernel writes, after `perf_event.h`. Where the event has `sample_id_all`, a sample id ends the body.

use perfuse_wire::layout;

layout! {
/// A mapping that existed or was made, executable unless `misc` has `MMAP_DATA`.
    Mmap = "PERF_RECORD_MMAP", section "perf_event.h: PERF_RECORD_MMAP" {
        /// Process; -1 for the kernel's mappings.
        pid: i32,
        /// Thread.
        tid: i32,
        /// First address.
        addr: u64,
        /// Length in bytes.
        len: u64,
        /// Offset in the file of the first address.
        pgoff: u64,
    } then {
        /// File, `//anon`, `[vdso]` and the like.
        filename: CString,
    }

    /// MMAP2, between the fields it shares with MMAP and its file name: which file, where `misc` has no `MMAP_BUILD_ID`.
    Mmap2Inode = "PERF_RECORD_MMAP2: inode", section "perf_event.h: PERF_RECORD_MMAP2" {
        /// Major number of the device.
        maj: u32,
        /// Minor number of the device.
        min: u32,
        /// Inode.
        ino: u64,
        /// Generation of the inode.
        ino_generation: u64,
    }

    /// MMAP2, after the file's identity.
    Mmap2Protection = "PERF_RECORD_MMAP2: protection", section "perf_event.h: PERF_RECORD_MMAP2" {
        /// `PROT_*` bits; 4 is executable.
        prot: u32,
        /// `MAP_*` bits.
        flags: u32,
    } then {
        /// File, `//anon`, `[vdso]` and the like.
        filename: CString,
    }

    /// A thread got a name; `misc` has `COMM_EXEC` where it got it by exec.
    Comm = "PERF_RECORD_COMM", section "perf_event.h: PERF_RECORD_COMM" {
        /// Process.
        pid: i32,
        /// Thread.
        tid: i32,
    } then {
        /// The name.
        comm: CString,
    }

    /// A thread or process began.
    Fork = "PERF_RECORD_FORK", section "perf_event.h: PERF_RECORD_FORK" {
        /// Its process.
        pid: i32,
        /// Process that made it; the same for a thread.
        ppid: i32,
        /// Its thread.
        tid: i32,
        /// Thread that made it.
        ptid: i32,
        /// When.
        time: u64,
    }

    /// A thread ended.
    Exit = "PERF_RECORD_EXIT", section "perf_event.h: PERF_RECORD_EXIT" {
        /// Its process.
        pid: i32,
        /// Parent process.
        ppid: i32,
        /// The thread.
        tid: i32,
        /// Parent thread.
        ptid: i32,
        /// When.
        time: u64,
    }

    /// Records the kernel had no room for.
    Lost = "PERF_RECORD_LOST", section "perf_event.h: PERF_RECORD_LOST" {
        /// Event.
        id: u64,
        /// How many records.
        lost: u64,
    }

    /// Samples that were dropped.
    LostSamples = "PERF_RECORD_LOST_SAMPLES", section "perf_event.h: PERF_RECORD_LOST_SAMPLES" {
        /// How many samples.
        lost: u64,
    }

    /// An event was stopped for taking too many samples.
    Throttle = "PERF_RECORD_THROTTLE", section "perf_event.h: PERF_RECORD_THROTTLE" {
        /// When.
        time: u64,
        /// Event.
        id: u64,
        /// Stream.
        stream_id: u64,
    }

    /// A throttled event goes on.
    Unthrottle = "PERF_RECORD_UNTHROTTLE", section "perf_event.h: PERF_RECORD_UNTHROTTLE" {
        /// When.
        time: u64,
        /// Event.
        id: u64,
        /// Stream.
        stream_id: u64,
    }

    /// Counter values of a task that ended.
    CounterRead = "PERF_RECORD_READ", section "perf_event.h: PERF_RECORD_READ" {
        /// Process.
        pid: i32,
        /// Thread.
        tid: i32,
    } then {
        /// Values, as `read_format` has them.
        values: Bytes,
    }

    /// New data in the AUX area.
    Aux = "PERF_RECORD_AUX", section "perf_event.h: PERF_RECORD_AUX" {
        /// Offset in the AUX area.
        aux_offset: u64,
        /// Size in bytes.
        aux_size: u64,
        /// Flags: 1 truncated, 2 overwritten.
        flags: u64,
    }

    /// Instruction tracing began.
    ItraceStart = "PERF_RECORD_ITRACE_START", section "perf_event.h: PERF_RECORD_ITRACE_START" {
        /// Process.
        pid: i32,
        /// Thread.
        tid: i32,
    }

    /// A context switch on a recorded processor.
    SwitchCpuWide = "PERF_RECORD_SWITCH_CPU_WIDE", section "perf_event.h: PERF_RECORD_SWITCH_CPU_WIDE" {
        /// The other process.
        next_prev_pid: i32,
        /// The other thread.
        next_prev_tid: i32,
    }

    /// The namespaces a task is in.
    Namespaces = "PERF_RECORD_NAMESPACES", section "perf_event.h: PERF_RECORD_NAMESPACES" {
        /// Process.
        pid: i32,
        /// Thread.
        tid: i32,
        /// How many entries follow: net, uts, ipc, pid, user, mnt, cgroup.
        nr_namespaces: u64,
    } then {
        /// Device and inode of each.
        link_info: Array,
    }

    /// Kernel code came or went.
    Ksymbol = "PERF_RECORD_KSYMBOL", section "perf_event.h: PERF_RECORD_KSYMBOL" {
        /// First address.
        addr: u64,
        /// Length in bytes.
        len: u32,
        /// 1 BPF, 2 out of line code.
        ksym_type: u16,
        /// 1 where it went.
        flags: u16,
    } then {
        /// Symbol.
        name: CString,
    }

    /// A BPF program was loaded or unloaded.
    BpfEvent = "PERF_RECORD_BPF_EVENT", section "perf_event.h: PERF_RECORD_BPF_EVENT" {
        /// 1 loaded, 2 unloaded.
        type_: u16,
        /// Flags.
        flags: u16,
        /// The program's id.
        id: u32,
    } then {
        /// The program's tag.
        tag: Bytes,
    }

    /// The path of a control group.
    Cgroup = "PERF_RECORD_CGROUP", section "perf_event.h: PERF_RECORD_CGROUP" {
        /// Its id.
        id: u64,
    } then {
        /// Its path.
        path: CString,
    }

    /// Kernel code was changed.
    TextPoke = "PERF_RECORD_TEXT_POKE", section "perf_event.h: PERF_RECORD_TEXT_POKE" {
        /// Where.
        addr: u64,
        /// Bytes before.
        old_len: u16,
        /// Bytes after.
        new_len: u16,
    } then {
        /// Old bytes, then new ones.
        bytes: Bytes,
    }

    /// Which hardware id an AUX output event has.
    AuxOutputHwId = "PERF_RECORD_AUX_OUTPUT_HW_ID", section "perf_event.h: PERF_RECORD_AUX_OUTPUT_HW_ID" {
        /// The id.
        hw_id: u64,
    }

    /// The user part of earlier call chains.
    CallchainDeferred = "PERF_RECORD_CALLCHAIN_DEFERRED", section "perf_event.h: PERF_RECORD_CALLCHAIN_DEFERRED" {
        /// What the samples it belongs to have in the place of their user part.
        cookie: u64,
        /// How many addresses follow.
        nr: u64,
    } then {
        /// Addresses, innermost first.
        ips: Bytes,
    }
}
