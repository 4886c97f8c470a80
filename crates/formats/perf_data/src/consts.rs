//! Constants of perf.data, with the names of the kernel and of perf.

use std::borrow::Cow;

use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, Endian};

use super::layout::EventAttr;

/// First eight bytes of a little-endian file.
pub const MAGIC_LITTLE: &[u8; 8] = b"PERFILE2";
/// First eight bytes of a big-endian file.
pub const MAGIC_BIG: &[u8; 8] = b"2ELIFREP";
/// First eight bytes of a file of perf before Linux 3.4, in either byte order; the header is otherwise the same.
pub const MAGIC_VERSION_1: &[u8; 8] = b"PERFFILE";
/// The number that the magic of a written file is, in its byte order.
pub const MAGIC_NUMBER: u64 = u64::from_le_bytes(*MAGIC_LITTLE);
/// `perf_file_header.size` of a pipe-mode stream, whose header has only two fields.
pub const PIPE_HEADER_BYTES: u64 = 16;

/// Byte order of a file that begins with these bytes; `None` for other files.
#[must_use]
pub fn byte_order(head: &[u8]) -> Option<Endian> {
    match head.first_chunk::<8>()? {
        MAGIC_LITTLE => Some(Endian::Little),
        MAGIC_BIG => Some(Endian::Big),
        MAGIC_VERSION_1 => {
            let size = |endian| Cursor::new(head.get(8..)?, 8, endian).u64("size").ok();
            Some(if size(Endian::Little) <= size(Endian::Big) { Endian::Little } else { Endian::Big })
        }
        _ => None,
    }
}

/// Smallest type of records that perf writes; the kernel writes those below.
pub const USER_TYPE_START: u32 = abi::PERF_RECORD_USER_TYPE_START;

/// Bits of `perf_event_header.misc`.
pub mod misc {
    use super::abi;

    /// Bits of the processor mode.
    pub const CPUMODE_MASK: u16 = abi::PERF_RECORD_MISC_CPUMODE_MASK;
    /// Kernel mode.
    pub const KERNEL: u16 = abi::PERF_RECORD_MISC_KERNEL;
    /// User mode.
    pub const USER: u16 = abi::PERF_RECORD_MISC_USER;
    /// Kernel mode of a guest.
    pub const GUEST_KERNEL: u16 = abi::PERF_RECORD_MISC_GUEST_KERNEL;
    /// MMAP: not executable.
    pub const MMAP_DATA: u16 = abi::PERF_RECORD_MISC_MMAP_DATA;
    /// SWITCH: the task leaves the processor.
    pub const SWITCH_OUT: u16 = abi::PERF_RECORD_MISC_SWITCH_OUT;
    /// SWITCH: the task that leaves the processor could have continued.
    pub const SWITCH_OUT_PREEMPT: u16 = abi::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    /// User mode of a guest.
    pub const GUEST_USER: u16 = abi::PERF_RECORD_MISC_GUEST_USER;
    /// Hypervisor.
    pub const HYPERVISOR: u16 = abi::PERF_RECORD_MISC_HYPERVISOR;
    /// COMM: the name is from exec.
    pub const COMM_EXEC: u16 = abi::PERF_RECORD_MISC_COMM_EXEC;
    /// MMAP2: a build id instead of the inode.
    pub const MMAP_BUILD_ID: u16 = abi::PERF_RECORD_MISC_MMAP_BUILD_ID;
    /// LOST_SAMPLES: a filter dropped them (`perf record --filter`).
    pub const LOST_SAMPLES_BPF: u16 = 1 << 15;
    /// HEADER_BUILD_ID: byte 20 contains the length of the id.
    pub const BUILD_ID_SIZE: u16 = abi::PERF_RECORD_MISC_BUILD_ID_SIZE;
}

/// Flags of `PERF_RECORD_AUX` that mean a loss, each with what it means.
pub const AUX_LOSSES: [(u64, &str); 3] = [
    (1, "the buffer was full, and data was lost"),
    (4, "the data has gaps"),
    (8, "samples collided, and data was lost"),
];

pub use perfuse_tables::context;

/// Type of a record. Numbers without a name may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordType(pub u32);

macro_rules! record_types {
    ($($name:ident = $value:literal, $doc:literal;)+) => {
        impl RecordType {
            $(#[doc = $doc] pub const $name: Self = Self($value);)+

            /// Name of the kernel or of perf; `None` for other numbers.
            #[must_use]
            pub fn known_name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(concat!("PERF_RECORD_", stringify!($name))),)+
                    number => simpleperf_name(number),
                }
            }
        }
    };
}

record_types! {
    MMAP = 1, "A mapping, executable unless `misc` has `MMAP_DATA`.";
    LOST = 2, "Records for which the kernel had no space.";
    COMM = 3, "A thread gets a name.";
    EXIT = 4, "A thread ends.";
    THROTTLE = 5, "An event is stopped because of too many samples.";
    UNTHROTTLE = 6, "A throttled event continues.";
    FORK = 7, "A thread or process starts.";
    READ = 8, "Counter values of a task that ends.";
    SAMPLE = 9, "A sample.";
    MMAP2 = 10, "A mapping with the identity of its file and its protection.";
    AUX = 11, "New data in the AUX area.";
    ITRACE_START = 12, "Instruction tracing starts.";
    LOST_SAMPLES = 13, "Samples that the hardware or the kernel dropped.";
    SWITCH = 14, "A context switch of the recorded task.";
    SWITCH_CPU_WIDE = 15, "A context switch on a recorded processor.";
    NAMESPACES = 16, "The namespaces of a task.";
    KSYMBOL = 17, "Kernel code is added or removed.";
    BPF_EVENT = 18, "A BPF program is loaded or unloaded.";
    CGROUP = 19, "The path of a control group.";
    TEXT_POKE = 20, "Kernel code is changed.";
    AUX_OUTPUT_HW_ID = 21, "Hardware id of an AUX output event.";
    CALLCHAIN_DEFERRED = 22, "The user part of a call chain, recorded when the task leaves the kernel.";
    HEADER_ATTR = 64, "Pipe mode: an event attribute and its ids.";
    HEADER_EVENT_TYPE = 65, "Name of an event; no longer written.";
    HEADER_TRACING_DATA = 66, "Pipe mode: tracepoint formats, which follow the record.";
    HEADER_BUILD_ID = 67, "Build id of a file.";
    FINISHED_ROUND = 68, "Later records are not older than the records before the previous such record.";
    ID_INDEX = 69, "Processor and task of each event id.";
    AUXTRACE_INFO = 70, "Tracer of the AUX data.";
    AUXTRACE = 71, "AUX data, which follows the record.";
    AUXTRACE_ERROR = 72, "AUX data that could not be decoded.";
    THREAD_MAP = 73, "Recorded threads.";
    CPU_MAP = 74, "Recorded processors.";
    STAT_CONFIG = 75, "Configuration of `perf stat record`.";
    STAT = 76, "A counter value.";
    STAT_ROUND = 77, "End of a round of counter values.";
    EVENT_UPDATE = 78, "Unit, scale, name or processors of an event.";
    TIME_CONV = 79, "Conversion of processor time stamps to nanoseconds.";
    HEADER_FEATURE = 80, "Pipe mode: a feature section.";
    COMPRESSED = 81, "Records compressed with zstd.";
    FINISHED_INIT = 82, "All state from before the recording has been written.";
    COMPRESSED2 = 83, "Records compressed with zstd, padded to 8 bytes.";
    BPF_METADATA = 84, "Variables of a BPF program.";
    SCHEDSTAT_CPU = 85, "Scheduler statistics of a processor.";
    SCHEDSTAT_DOMAIN = 86, "Scheduler statistics of a domain of processors.";
}

/// Number before that of the first type that simpleperf adds.
const SIMPLEPERF_TYPE_START: u32 = 32768;

/// Name of a type that simpleperf adds.
fn simpleperf_name(number: u32) -> Option<&'static str> {
    let names = [
        "SIMPLE_PERF_RECORD_KERNEL_SYMBOL",
        "SIMPLE_PERF_RECORD_DSO",
        "SIMPLE_PERF_RECORD_SYMBOL",
        "SIMPLE_PERF_RECORD_SPLIT",
        "SIMPLE_PERF_RECORD_SPLIT_END",
        "SIMPLE_PERF_RECORD_EVENT_ID",
        "SIMPLE_PERF_RECORD_CALLCHAIN",
        "SIMPLE_PERF_RECORD_UNWINDING_RESULT",
        "SIMPLE_PERF_RECORD_TRACING_DATA",
        "SIMPLE_PERF_RECORD_DEBUG",
    ];
    let index = number.checked_sub(SIMPLEPERF_TYPE_START)?.checked_sub(1)?;
    names.get(index as usize).copied()
}

impl RecordType {
    /// simpleperf: the list of the kernel's symbols, as in `/proc/kallsyms`.
    pub const SIMPLEPERF_KERNEL_SYMBOL: Self = Self(32769);
    /// simpleperf until 2016: a file that samples are in.
    pub const SIMPLEPERF_DSO: Self = Self(32770);
    /// simpleperf until 2016: a function that samples are in.
    pub const SIMPLEPERF_SYMBOL: Self = Self(32771);
    /// simpleperf: a part of a record that is larger than 64 KiB.
    pub const SIMPLEPERF_SPLIT: Self = Self(32772);
    /// simpleperf: the parts before this record are complete.
    pub const SIMPLEPERF_SPLIT_END: Self = Self(32773);

    /// Whether simpleperf adds it. `misc` of such a record is the upper half of its size.
    #[must_use]
    pub fn is_simpleperf(self) -> bool {
        simpleperf_name(self.0).is_some()
    }

    /// Name, or `Unknown RecordTag N`.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        match self.known_name() {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("Unknown RecordTag {}", self.0)),
        }
    }

    /// Whether perf writes it, not the kernel. Such a record has no time and no sample id.
    #[must_use]
    pub fn is_user(self) -> bool {
        self.0 >= USER_TYPE_START
    }

    /// Whether it contains compressed records.
    #[must_use]
    pub fn is_compressed(self) -> bool {
        matches!(self, Self::COMPRESSED | Self::COMPRESSED2)
    }
}

/// perf's name for an event that has no name in the file, such as `cycles:u`.
#[must_use]
pub fn event_name(attr: &EventAttr) -> String {
    let name = bare_event_name(attr);
    if attr.type_ == abi::PERF_TYPE_TRACEPOINT { name } else { name + &modifiers(attr.flags) }
}

/// Modifiers of an event: the modes that are counted where not all are, and the precision of addresses.
fn modifiers(flags: u64) -> String {
    let modes = [
        (abi::ATTR_FLAG_BIT_EXCLUDE_KERNEL, 'k'),
        (abi::ATTR_FLAG_BIT_EXCLUDE_USER, 'u'),
        (abi::ATTR_FLAG_BIT_EXCLUDE_HV, 'h'),
    ];
    let mut text = String::new();
    if modes.iter().any(|(bit, _)| flags & bit != 0) {
        text.extend(modes.iter().filter(|(bit, _)| flags & bit == 0).map(|(_, letter)| letter));
    }
    let precision = flags & abi::ATTR_FLAG_BITMASK_PRECISE_IP;
    let precision = precision.wrapping_shr(abi::ATTR_FLAG_BITMASK_PRECISE_IP.trailing_zeros());
    text.extend((0..precision).map(|_| 'p'));
    // Without guests is what perf records without a modifier.
    if flags & abi::ATTR_FLAG_BIT_EXCLUDE_HOST != 0 {
        text.push('G');
    }
    if text.is_empty() { text } else { format!(":{text}") }
}

/// The name without modifiers.
fn bare_event_name(attr: &EventAttr) -> String {
    let EventAttr { type_, config, .. } = *attr;
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
    let find_name = |names: &[&'static str], number: u64| {
        usize::try_from(number).ok().and_then(|index| names.get(index).copied())
    };
    if let (abi::PERF_TYPE_HW_CACHE, Some(name)) = (type_, cache_event_name(config)) {
        return name;
    }
    let name = match type_ {
        // The upper half selects a PMU on hybrid machines.
        abi::PERF_TYPE_HARDWARE => find_name(&HARDWARE, config & 0xffff_ffff),
        abi::PERF_TYPE_SOFTWARE => find_name(&SOFTWARE, config),
        _ => None,
    };
    match (name, type_) {
        (Some(name), _) => name.to_owned(),
        (None, abi::PERF_TYPE_TRACEPOINT) => format!("tracepoint {config}"),
        (None, abi::PERF_TYPE_RAW) => format!("raw {config:#x}"),
        (None, abi::PERF_TYPE_BREAKPOINT) => {
            let accesses =
                [(1, 'r'), (2, 'w'), (4, 'x')].into_iter().filter(|(bit, _)| attr.bp_type & bit != 0);
            format!("mem:{:#x}:{}", attr.config1, accesses.map(|(_, letter)| letter).collect::<String>())
        }
        (None, _) => format!("type {type_} config {config:#x}"),
    }
}

/// Name of an event of a cache: its cache, operation and result are bytes of the configuration.
fn cache_event_name(config: u64) -> Option<String> {
    const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
    const OPERATIONS: [(&str, &str); 3] =
        [("load", "loads"), ("store", "stores"), ("prefetch", "prefetches")];
    let [cache, operation, result, ..] = config.to_le_bytes();
    let cache = CACHES.get(usize::from(cache))?;
    let (one, all) = OPERATIONS.get(usize::from(operation))?;
    match result {
        0 => Some(format!("{cache}-{all}")),
        1 => Some(format!("{cache}-{one}-misses")),
        _ => None,
    }
}

/// Name of a `clockid_t` in the `clocks` table.
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

/// Name and pointer size of an ELF machine, as in the `sources` table.
#[must_use]
pub fn machine_name(machine: u32) -> Option<(&'static str, u8)> {
    Some(match machine {
        3 => ("i386", 4),
        8 => ("mips", 4),
        20 => ("ppc", 4),
        21 => ("ppc64", 8),
        22 => ("s390x", 8),
        40 => ("arm", 4),
        62 => ("x86_64", 8),
        183 => ("aarch64", 8),
        243 => ("riscv64", 8),
        258 => ("loongarch64", 8),
        _ => return None,
    })
}
