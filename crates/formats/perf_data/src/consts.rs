//! Numbers of perf.data, by the names the kernel and perf give them.

use std::borrow::Cow;

use linux_perf_event_reader::constants as abi;

/// First eight bytes of a little-endian file.
pub const MAGIC_LITTLE: &[u8; 8] = b"PERFILE2";
/// First eight bytes of a big-endian file.
pub const MAGIC_BIG: &[u8; 8] = b"2ELIFREP";
/// `perf_file_header.size` of a pipe-mode stream, whose header ends there.
pub const PIPE_HEADER_BYTES: u64 = 16;

/// Records of this type and above are perf's own; below, the kernel's.
pub const USER_TYPE_START: u32 = abi::PERF_RECORD_USER_TYPE_START;

/// Bits of `perf_event_header.misc`.
pub mod misc {
    use super::abi;

    /// Which bits say where the processor was.
    pub const CPUMODE_MASK: u16 = abi::PERF_RECORD_MISC_CPUMODE_MASK;
    /// In the kernel.
    pub const KERNEL: u16 = abi::PERF_RECORD_MISC_KERNEL;
    /// In user code.
    pub const USER: u16 = abi::PERF_RECORD_MISC_USER;
    /// In a guest's kernel.
    pub const GUEST_KERNEL: u16 = abi::PERF_RECORD_MISC_GUEST_KERNEL;
    /// MMAP: not executable.
    pub const MMAP_DATA: u16 = abi::PERF_RECORD_MISC_MMAP_DATA;
    /// COMM: by exec.
    pub const COMM_EXEC: u16 = abi::PERF_RECORD_MISC_COMM_EXEC;
    /// MMAP2: a build id in the place of the inode.
    pub const MMAP_BUILD_ID: u16 = abi::PERF_RECORD_MISC_MMAP_BUILD_ID;
    /// HEADER_BUILD_ID: byte 20 holds the length of the id.
    pub const BUILD_ID_SIZE: u16 = abi::PERF_RECORD_MISC_BUILD_ID_SIZE;
}

/// Type of a record, as the file has it: any number may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordType(pub u32);

macro_rules! record_types {
    ($($name:ident = $value:literal, $doc:literal;)+) => {
        impl RecordType {
            $(#[doc = $doc] pub const $name: Self = Self($value);)+

            /// The name perf and the kernel give it, where they do.
            #[must_use]
            pub fn known_name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(concat!("PERF_RECORD_", stringify!($name))),)+
                    _ => None,
                }
            }
        }
    };
}

record_types! {
    MMAP = 1, "A mapping, executable unless `misc` says it is data.";
    LOST = 2, "Records the kernel had no room for.";
    COMM = 3, "A thread got a name.";
    EXIT = 4, "A thread ended.";
    THROTTLE = 5, "An event was stopped for taking too many samples.";
    UNTHROTTLE = 6, "A throttled event goes on.";
    FORK = 7, "A thread or process began.";
    READ = 8, "Counter values of a task that ended.";
    SAMPLE = 9, "A sample.";
    MMAP2 = 10, "A mapping with its file's identity and protection.";
    AUX = 11, "New data in the AUX area.";
    ITRACE_START = 12, "Instruction tracing began.";
    LOST_SAMPLES = 13, "Samples the hardware or the kernel dropped.";
    SWITCH = 14, "A context switch of the recorded task.";
    SWITCH_CPU_WIDE = 15, "A context switch on a recorded processor.";
    NAMESPACES = 16, "The namespaces a task is in.";
    KSYMBOL = 17, "Kernel code came or went.";
    BPF_EVENT = 18, "A BPF program was loaded or unloaded.";
    CGROUP = 19, "The path of a control group.";
    TEXT_POKE = 20, "Kernel code was changed.";
    AUX_OUTPUT_HW_ID = 21, "Which hardware id an AUX output event has.";
    CALLCHAIN_DEFERRED = 22, "The user part of a call chain, taken when the task left the kernel.";
    HEADER_ATTR = 64, "Pipe mode: an event attribute and its ids.";
    HEADER_EVENT_TYPE = 65, "Name of an event; no longer written.";
    HEADER_TRACING_DATA = 66, "Pipe mode: tracepoint formats, which follow the record.";
    HEADER_BUILD_ID = 67, "Build id of a file.";
    FINISHED_ROUND = 68, "What follows is no older than what was before the previous such record.";
    ID_INDEX = 69, "Which processor and task each event id belongs to.";
    AUXTRACE_INFO = 70, "Which tracer the AUX data is from.";
    AUXTRACE = 71, "AUX data, which follows the record.";
    AUXTRACE_ERROR = 72, "AUX data that could not be decoded.";
    THREAD_MAP = 73, "Threads that were recorded.";
    CPU_MAP = 74, "Processors that were recorded.";
    STAT_CONFIG = 75, "How `perf stat record` was asked.";
    STAT = 76, "A counter value.";
    STAT_ROUND = 77, "End of a round of counter values.";
    EVENT_UPDATE = 78, "Unit, scale, name or processors of an event.";
    TIME_CONV = 79, "How to turn processor time stamps into nanoseconds.";
    HEADER_FEATURE = 80, "Pipe mode: a feature section.";
    COMPRESSED = 81, "Records packed with zstd.";
    FINISHED_INIT = 82, "Everything that existed before the recording has been told.";
    COMPRESSED2 = 83, "Records packed with zstd, padded to 8 bytes.";
    BPF_METADATA = 84, "Variables of a BPF program.";
}

impl RecordType {
    /// Its name, or `Unknown RecordTag N`.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        match self.known_name() {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("Unknown RecordTag {}", self.0)),
        }
    }

    /// Whether perf wrote it, not the kernel: such a record has no time and no sample id.
    #[must_use]
    pub fn is_user(self) -> bool {
        self.0 >= USER_TYPE_START
    }

    /// Whether other records are packed in it.
    #[must_use]
    pub fn is_compressed(self) -> bool {
        matches!(self, Self::COMPRESSED | Self::COMPRESSED2)
    }
}

/// Name perf prints for an event that the file gives no name.
#[must_use]
pub fn event_name(type_: u32, config: u64) -> String {
    const HARDWARE: [&str; 10] = [
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
    ];
    const SOFTWARE: [&str; 12] = [
        "cpu-clock",
        "task-clock",
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
        "alignment-faults",
        "emulation-faults",
        "dummy",
        "bpf-output",
        "cgroup-switches",
    ];
    let named = |names: &[&'static str], number: u64| {
        usize::try_from(number).ok().and_then(|index| names.get(index).copied())
    };
    let known = match type_ {
        // The upper half selects a PMU on hybrid machines.
        abi::PERF_TYPE_HARDWARE => named(&HARDWARE, config & 0xffff_ffff),
        abi::PERF_TYPE_SOFTWARE => named(&SOFTWARE, config),
        _ => None,
    };
    match (known, type_) {
        (Some(name), _) => name.to_owned(),
        (None, abi::PERF_TYPE_TRACEPOINT) => format!("tracepoint {config}"),
        (None, abi::PERF_TYPE_RAW) => format!("raw {config:#x}"),
        (None, _) => format!("type {type_} config {config:#x}"),
    }
}

/// Word for a `clockid_t`, as the `clocks` table spells it.
#[must_use]
pub fn clock_name(clockid: i32) -> &'static str {
    match clockid {
        0 => "realtime",
        1 => "monotonic",
        4 => "monotonic_raw",
        7 => "boottime",
        11 => "tai",
        _ => "unknown",
    }
}

/// `CLOCK_MONOTONIC`, which runtimes use in their JITDUMP files.
pub const CLOCK_MONOTONIC: i32 = 1;
