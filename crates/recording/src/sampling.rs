//! Facts about a recording of samples that code dumps are matched and aligned with.

/// A mapping of a code dump's file by the process that wrote it: how a runtime announces its dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeMarker {
    /// Process, in the recorder's pid namespace.
    pub pid: i32,
    /// Thread that mapped the file.
    pub tid: i32,
    /// When, on the recording's clock.
    pub ts: u64,
    /// Path of the dump on the recorded machine.
    pub path: String,
    /// Offset of the record in the recording.
    pub record_offset: u64,
}

/// The start of a process's address space: as a copy of its parent's (fork), or an empty one (exec).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressSpaceStart {
    /// Process, in the recorder's pid namespace.
    pub pid: i32,
    /// When, on the recording's clock.
    pub ts: u64,
    /// The process that was forked; `None` for an empty address space.
    pub parent: Option<i32>,
}

/// Facts about a recording of samples that its tables do not contain.
#[derive(Clone, Debug, Default)]
pub struct SamplingFacts {
    /// The recorder's command line, argument by argument.
    pub command_line: Option<Vec<String>>,
    /// Name of the recorded machine.
    pub hostname: Option<String>,
    /// Release of its kernel.
    pub os_release: Option<String>,
    /// Name of its processor.
    pub cpu: Option<String>,
    /// Processor counter to nanoseconds: shift, multiplier, nanoseconds at zero.
    pub time_conversion: Option<(u64, u64, u64)>,
    /// Sampled processes.
    pub pids: Vec<i32>,
    /// Code dumps that processes announced, in file order.
    pub markers: Vec<CodeMarker>,
    /// Starts of address spaces that were recorded, in time order.
    pub address_spaces: Vec<AddressSpaceStart>,
}
