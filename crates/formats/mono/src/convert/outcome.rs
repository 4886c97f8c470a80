//! The outcome of a conversion: what was written, the items that the target data version cannot represent, or an
//! error.

use std::collections::BTreeMap;
use std::{fmt, io};

use perfuse_wire::ParseError;

use crate::consts::{EventByte, NEWEST};

macro_rules! unsupported_items {
    ($(#[doc = $doc:literal] $variant:ident = $name:literal,)+) => {
        /// A kind of item that the target data version cannot represent, or that the source does not contain.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum UnsupportedItem {
            $(#[doc = $doc] $variant,)+
        }

        impl UnsupportedItem {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code of the kind, as used in Python.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

unsupported_items! {
    /// Header fields that the target does not have.
    HeaderFields = "header_fields",
    /// Times of events that have none in the target.
    Times = "times",
    /// Events without a time in the source: they get that of the previous timed event.
    UnknownTimes = "unknown_times",
    /// Times of counters rounded down to milliseconds.
    CounterTimes = "counter_times",
    /// Omitted backtraces.
    Backtraces = "backtraces",
    /// Allocation sizes rounded up to a multiple of 8 bytes.
    Sizes = "sizes",
    /// Vtables added for classes, at the address of the class.
    AddedVtables = "made_vtables",
    /// Objects whose vtable is not described: the vtable is written as the class.
    UnknownVtables = "unknown_vtables",
    /// Images of assemblies: omitted, or unknown and written as 0.
    AssemblyImages = "assembly_images",
    /// Module version ids of images: omitted, or unknown and written as empty.
    Mvids = "mvids",
    /// Exceptions of clauses: omitted, or unknown and written as 0.
    ClauseObjects = "clause_objects",
    /// Generations of objects: omitted, or unknown and written as 255.
    Generations = "generations",
    /// Offsets of references: omitted, or unknown and written as 0.
    ReferenceOffsets = "reference_offsets",
    /// Addresses of roots: omitted, or unknown and written as 0.
    RootSlots = "root_slots",
    /// Kinds of roots, which the target derives from their addresses.
    RootKinds = "root_kinds",
    /// Flags of roots (pinning, weak, interior).
    RootFlags = "root_flags",
    /// Numbers of collections: omitted, or unknown and written as 0.
    Collections = "collections",
    /// Types of samples.
    SampleTypes = "sample_types",
    /// Managed stacks of samples.
    SampleStacks = "sample_stacks",
    /// Positions in the frames of samples: omitted, or unknown (IL offset -1).
    SamplePositions = "sample_places",
    /// Counters or counter values.
    Counters = "counters",
    /// Units and variances of counters.
    CounterUnits = "counter_units",
    /// Names of helpers.
    HelperNames = "helper_names",
    /// Flags of names and backtraces.
    Flags = "flags",
    /// Buffers that several logs contain: written once.
    Copies = "copies",
    /// Definitions that several logs contain: written once.
    Repeated = "repeated",
    /// Buffers truncated before an unreadable event.
    Damaged = "damaged",
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertSummary {
    /// Buffers.
    pub num_buffers: u64,
    /// Events.
    pub num_events: u64,
    /// Events that the data version does not have, left out.
    pub omitted_events: BTreeMap<EventByte, u64>,
    /// What else did not fit.
    pub unsupported: BTreeMap<UnsupportedItem, u64>,
}

impl ConvertSummary {
    /// Counts unsupported items.
    pub(super) fn count_item(&mut self, what: UnsupportedItem, count: u64) {
        if count > 0 {
            let sum = self.unsupported.entry(what).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// Counts an omitted event.
    pub(super) fn omit_event(&mut self, event: EventByte) {
        let sum = self.omitted_events.entry(event).or_default();
        *sum = sum.saturating_add(1);
    }

    /// Counts a written event.
    pub(super) fn count_event(&mut self) {
        self.num_events = self.num_events.saturating_add(1);
    }

    /// Counts a written buffer.
    pub(super) fn count_buffer(&mut self) {
        self.num_buffers = self.num_buffers.saturating_add(1);
    }
}

/// Why a conversion failed.
#[derive(Debug)]
pub enum LogConvertError {
    /// The output failed.
    Output(io::Error),
    /// No log was given.
    Nothing,
    /// The data version does not exist.
    Version(u8),
    /// The logs are of programs with different pointer sizes.
    Pointers(u8, u8),
    /// The logs are of different processes, or of one process id at different times.
    Runs(String, String),
    /// A buffer would exceed the maximum length.
    Buffer(ParseError),
}

impl fmt::Display for LogConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) => error.fmt(f),
            Self::Nothing => f.write_str("no log to convert"),
            Self::Version(version) => {
                write!(f, "data version {version} does not exist: the versions are 1 to {NEWEST}")
            }
            Self::Pointers(first, other) => {
                write!(f, "the logs are not of one run: their pointers have {first} and {other} bytes")
            }
            Self::Runs(first, other) => write!(f, "the logs are not of one run: {first}, and {other}"),
            Self::Buffer(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LogConvertError {}

impl From<io::Error> for LogConvertError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
