//! Records of the kernel, as in `perf_event.h`. For an event with `sample_id_all`, the body ends with a sample id.

use perfuse_wire::layout;

layout! {
    /// A mapping, executable unless `misc` has `MMAP_DATA`.
    Mmap = "PERF_RECORD_MMAP", section "perf_event.h: PERF_RECORD_MMAP" {
        /// Process; -1 for the kernel's mappings.
        pid: i32,
        /// Thread.
        tid: i32,
        /// First address.
        addr: u64,
        /// Size in bytes.
        len: u64,
        /// Offset in the file of the first address.
        pgoff: u64,
    } then {
        /// File, or a name such as `//anon` or `[vdso]`.
        filename: CString,
    }

    /// Part of MMAP2 after the fields of MMAP, unless `misc` has `MMAP_BUILD_ID`: identity of the file.
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

    /// Part of MMAP2 after the identity of the file.
    Mmap2Protection = "PERF_RECORD_MMAP2: protection", section "perf_event.h: PERF_RECORD_MMAP2" {
        /// `PROT_*` bits; 4 is executable.
        prot: u32,
        /// `MAP_*` bits.
        flags: u32,
    } then {
        /// File, or a name such as `//anon` or `[vdso]`.
        filename: CString,
    }

    /// A thread gets a name; with `COMM_EXEC` in `misc`, by exec.
    Comm = "PERF_RECORD_COMM", section "perf_event.h: PERF_RECORD_COMM" {
        /// Process.
        pid: i32,
        /// Thread.
        tid: i32,
    } then {
        /// Name.
        comm: CString,
    }

    /// A thread or process starts.
    Fork = "PERF_RECORD_FORK", section "perf_event.h: PERF_RECORD_FORK" {
        /// Process.
        pid: i32,
        /// Parent process; equal to `pid` for a thread.
        ppid: i32,
        /// Thread.
        tid: i32,
        /// Parent thread.
        ptid: i32,
        /// Time.
        time: u64,
    }

    /// A thread ends.
    Exit = "PERF_RECORD_EXIT", section "perf_event.h: PERF_RECORD_EXIT" {
        /// Process.
        pid: i32,
        /// Parent process.
        ppid: i32,
        /// Thread.
        tid: i32,
        /// Parent thread.
        ptid: i32,
        /// Time.
        time: u64,
    }

    /// Records for which the kernel had no space.
    Lost = "PERF_RECORD_LOST", section "perf_event.h: PERF_RECORD_LOST" {
        /// Event.
        id: u64,
        /// Number of records.
        lost: u64,
    }

    /// Samples that were dropped.
    LostSamples = "PERF_RECORD_LOST_SAMPLES", section "perf_event.h: PERF_RECORD_LOST_SAMPLES" {
        /// Number of samples.
        lost: u64,
    }

    /// An event is stopped because of too many samples.
    Throttle = "PERF_RECORD_THROTTLE", section "perf_event.h: PERF_RECORD_THROTTLE" {
        /// Time.
        time: u64,
        /// Event.
        id: u64,
        /// Stream.
        stream_id: u64,
    }

    /// A throttled event continues.
    Unthrottle = "PERF_RECORD_UNTHROTTLE", section "perf_event.h: PERF_RECORD_UNTHROTTLE" {
        /// Time.
        time: u64,
        /// Event.
        id: u64,
        /// Stream.
        stream_id: u64,
    }

    /// Counter values of a task that ends.
    CounterRead = "PERF_RECORD_READ", section "perf_event.h: PERF_RECORD_READ" {
        /// Process.
        pid: i32,
        /// Thread.
        tid: i32,
    } then {
        /// Values, in the layout of `read_format`.
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

    /// Instruction tracing starts.
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

    /// The namespaces of a task.
    Namespaces = "PERF_RECORD_NAMESPACES", section "perf_event.h: PERF_RECORD_NAMESPACES" {
        /// Process.
        pid: i32,
        /// Thread.
        tid: i32,
        /// Number of entries that follow: net, uts, ipc, pid, user, mnt, cgroup.
        nr_namespaces: u64,
    } then {
        /// Device and inode of each namespace.
        link_info: Array,
    }

    /// Kernel code is added or removed.
    Ksymbol = "PERF_RECORD_KSYMBOL", section "perf_event.h: PERF_RECORD_KSYMBOL" {
        /// First address.
        addr: u64,
        /// Size in bytes.
        len: u32,
        /// 1 BPF, 2 out of line code.
        ksym_type: u16,
        /// 1 for removed code.
        flags: u16,
    } then {
        /// Symbol.
        name: CString,
    }

    /// A BPF program is loaded or unloaded.
    BpfEvent = "PERF_RECORD_BPF_EVENT", section "perf_event.h: PERF_RECORD_BPF_EVENT" {
        /// 1 loaded, 2 unloaded.
        type_: u16,
        /// Flags.
        flags: u16,
        /// Id of the program.
        id: u32,
    } then {
        /// Tag of the program.
        tag: Bytes,
    }

    /// The path of a control group.
    Cgroup = "PERF_RECORD_CGROUP", section "perf_event.h: PERF_RECORD_CGROUP" {
        /// Id of the group.
        id: u64,
    } then {
        /// Path of the group.
        path: CString,
    }

    /// Kernel code is changed.
    TextPoke = "PERF_RECORD_TEXT_POKE", section "perf_event.h: PERF_RECORD_TEXT_POKE" {
        /// Address.
        addr: u64,
        /// Number of old bytes.
        old_len: u16,
        /// Number of new bytes.
        new_len: u16,
    } then {
        /// Old bytes, then new bytes.
        bytes: Bytes,
    }

    /// Hardware id of an AUX output event.
    AuxOutputHwId = "PERF_RECORD_AUX_OUTPUT_HW_ID", section "perf_event.h: PERF_RECORD_AUX_OUTPUT_HW_ID" {
        /// Hardware id.
        hw_id: u64,
    }

    /// The user part of earlier call chains.
    CallchainDeferred = "PERF_RECORD_CALLCHAIN_DEFERRED", section "perf_event.h: PERF_RECORD_CALLCHAIN_DEFERRED" {
        /// Value that identifies the samples of these addresses, which contain it instead of their user part.
        cookie: u64,
        /// Number of addresses that follow.
        nr: u64,
    } then {
        /// Addresses, innermost first.
        ips: Bytes,
    }
}
