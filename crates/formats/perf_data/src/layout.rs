//! Fixed fields of the header and of every kind of record, as in `perf_event.h` and in perf's `perf.data-file-format.txt` and
//! `event.h`. A record's body starts after the eight bytes of [`EventHeader`].

mod kernel;
mod user;

pub use kernel::*;
pub use user::*;

use perfuse_wire::{Layout, layout};

layout! {
    /// Header of a file; that of a pipe-mode stream has only the first two fields.
    FileHeader = "perf_file_header", section "perf.data-file-format: header" {
        /// `PERFILE2`, in the byte order of the recorded machine; `PERFFILE` before Linux 3.4.
        magic: u64,
        /// Size of this header: 104, or 16 in pipe mode.
        size: u64,
        /// Size of an entry of the attribute section: a `perf_event_attr` and the section of its ids.
        attr_size: u64,
        /// Offset of the attribute section.
        attrs_offset: u64,
        /// Size of the attribute section.
        attrs_size: u64,
        /// Offset of the records.
        data_offset: u64,
        /// Size of the records; 0 during the recording, and in files of a recorder that was killed.
        data_size: u64,
        /// Offset of the table of event types, which perf does not write since Linux 3.11.
        event_types_offset: u64,
        /// Size of the event types.
        event_types_size: u64,
        /// Bits 0-63 of the set of feature sections after the records.
        features_0: u64,
        /// Bits 64-127 of that set.
        features_1: u64,
        /// Bits 128-191 of that set.
        features_2: u64,
        /// Bits 192-255 of that set.
        features_3: u64,
    }

    /// Location of a section, of an attribute's ids or of a feature.
    Section = "perf_file_section", section "perf.data-file-format: header" {
        /// Offset from the start of the file.
        offset: u64,
        /// Size in bytes.
        size: u64,
    }

    /// Configuration of an event: what it counts, and the fields of its samples.
    EventAttr = "perf_event_attr", section "perf_event.h: perf_event_attr" {
        /// Kind of event: 0 hardware, 1 software, 2 tracepoint, 4 raw, others a PMU of the machine.
        type_: u32,
        /// Size of this structure in the writer's version.
        size: u32,
        /// Event of that kind.
        config: u64,
        /// Number of events between samples, or of samples per second with the `freq` flag.
        sample_period: u64,
        /// Fields of a sample: bits `PERF_SAMPLE_*`.
        sample_type: u64,
        /// Fields of counter values: bits `PERF_FORMAT_*`.
        read_format: u64,
        /// Bit field of flags; bit 18 is `sample_id_all`, bit 25 `use_clockid`.
        flags: u64,
        /// Number of events or bytes after which the recorder is woken.
        wakeup_events: u32,
        /// Kind of a breakpoint.
        bp_type: u32,
        /// Address of a breakpoint, or an extension of `config`.
        config1: u64,
        /// Length of a breakpoint, or an extension of `config`.
        config2: u64,
        /// Fields of branch stacks: bits `PERF_SAMPLE_BRANCH_*`.
        branch_sample_type: u64,
        /// Set of user registers in a sample.
        sample_regs_user: u64,
        /// Largest number of bytes of user stack in a sample.
        sample_stack_user: u32,
        /// Clock of the time stamps, with the `use_clockid` flag.
        clockid: i32,
        /// Set of registers at the interrupt in a sample.
        sample_regs_intr: u64,
    }

    /// First eight bytes of every record.
    EventHeader = "perf_event_header", section "perf_event.h: perf_event_header" {
        /// Type of the record: `PERF_RECORD_*`.
        type_: u32,
        /// Flags that depend on the type; the lowest three bits are the processor mode.
        misc: u16,
        /// Size of the record, these eight bytes included.
        size: u16,
    }
}

/// Layouts in the documentation.
pub static LAYOUTS: &[&Layout] = &[
    &FileHeader::LAYOUT,
    &Section::LAYOUT,
    &EventAttr::LAYOUT,
    &EventHeader::LAYOUT,
    &Mmap::LAYOUT,
    &Mmap2Inode::LAYOUT,
    &Mmap2Protection::LAYOUT,
    &Comm::LAYOUT,
    &Fork::LAYOUT,
    &Exit::LAYOUT,
    &Lost::LAYOUT,
    &LostSamples::LAYOUT,
    &Throttle::LAYOUT,
    &Unthrottle::LAYOUT,
    &CounterRead::LAYOUT,
    &Aux::LAYOUT,
    &ItraceStart::LAYOUT,
    &SwitchCpuWide::LAYOUT,
    &Namespaces::LAYOUT,
    &Ksymbol::LAYOUT,
    &BpfEvent::LAYOUT,
    &Cgroup::LAYOUT,
    &TextPoke::LAYOUT,
    &AuxOutputHwId::LAYOUT,
    &CallchainDeferred::LAYOUT,
    &EventType::LAYOUT,
    &TracingData::LAYOUT,
    &BuildIdEvent::LAYOUT,
    &IdIndex::LAYOUT,
    &AuxtraceInfo::LAYOUT,
    &Auxtrace::LAYOUT,
    &AuxtraceError::LAYOUT,
    &ThreadMap::LAYOUT,
    &CpuMap::LAYOUT,
    &StatConfig::LAYOUT,
    &Stat::LAYOUT,
    &StatRound::LAYOUT,
    &EventUpdate::LAYOUT,
    &TimeConv::LAYOUT,
    &HeaderFeature::LAYOUT,
    &Compressed2::LAYOUT,
    &SimpleperfDso::LAYOUT,
    &SimpleperfSymbol::LAYOUT,
    &ClockData::LAYOUT,
];
