//! Fixed parts of the header and of every record body, after `perf_event.h` and perf's own `perf.data-file-format.txt`
//! and `event.h`. A body starts after the eight bytes of [`EventHeader`].

mod kernel;
mod user;

pub use kernel::*;
pub use user::*;

use perfuse_wire::{Layout, layout};

layout! {
/// Header of a file; a pipe-mode stream has its first two fields only.
    FileHeader = "perf_file_header", section "perf.data-file-format: header" {
        /// `PERFILE2`, in the byte order of the recorded machine.
        magic: u64,
        /// Size of this header: 104, or 16 in pipe mode.
        size: u64,
        /// Size of an entry of the attribute section: a `perf_event_attr` and the place of its ids.
        attr_size: u64,
        /// Offset of the attribute section.
        attrs_offset: u64,
        /// Size of the attribute section.
        attrs_size: u64,
        /// Offset of the records.
        data_offset: u64,
        /// Size of the records; 0 while the recording runs, and after its recorder was killed.
        data_size: u64,
        /// Offset of the event types, which perf no longer writes.
        event_types_offset: u64,
        /// Size of the event types.
        event_types_size: u64,
        /// Bits 0-63: which feature sections follow the records.
        features_0: u64,
        /// Bits 64-127.
        features_1: u64,
        /// Bits 128-191.
        features_2: u64,
        /// Bits 192-255.
        features_3: u64,
    }

    /// Place of a section, of an attribute's ids or of a feature.
    Section = "perf_file_section", section "perf.data-file-format: header" {
        /// Offset from the start of the file.
        offset: u64,
        /// Size in bytes.
        size: u64,
    }

    /// What an event counts and what its samples hold.
    EventAttr = "perf_event_attr", section "perf_event.h: perf_event_attr" {
        /// Kind of event: 0 hardware, 1 software, 2 tracepoint, 4 raw, others a PMU of the machine.
        type_: u32,
        /// Size of this structure where it was written.
        size: u32,
        /// Which event of that kind.
        config: u64,
        /// Events between samples, or samples a second with the `freq` flag.
        sample_period: u64,
        /// What a sample holds: bits `PERF_SAMPLE_*`.
        sample_type: u64,
        /// What counter values hold: bits `PERF_FORMAT_*`.
        read_format: u64,
        /// Bit field of flags; bit 18 is `sample_id_all`, bit 25 `use_clockid`.
        flags: u64,
        /// When the recorder is woken.
        wakeup_events: u32,
        /// Kind of a breakpoint.
        bp_type: u32,
        /// Address of a breakpoint, or more of `config`.
        config1: u64,
        /// Length of a breakpoint, or more of `config`.
        config2: u64,
        /// What branch stacks hold: bits `PERF_SAMPLE_BRANCH_*`.
        branch_sample_type: u64,
        /// Which user registers a sample holds.
        sample_regs_user: u64,
        /// How many bytes of user stack a sample holds at most.
        sample_stack_user: u32,
        /// Clock of the time stamps, with the `use_clockid` flag.
        clockid: i32,
        /// Which registers at the interrupt a sample holds.
        sample_regs_intr: u64,
    }

    /// First eight bytes of every record.
    EventHeader = "perf_event_header", section "perf_event.h: perf_event_header" {
        /// What record it is: `PERF_RECORD_*`.
        type_: u32,
        /// More about it, different for each type; the lowest three bits say where the processor was.
        misc: u16,
        /// Size of the record, these eight bytes included.
        size: u16,
    }
}

/// What the documentation lists.
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
    &ClockData::LAYOUT,
];
