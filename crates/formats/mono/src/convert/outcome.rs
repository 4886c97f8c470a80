//! The outcome of a conversion: what was written, the items that the target data version cannot represent, or an error.

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

            /// What was done, for people: a count follows.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$variant => $doc,)+
                }
            }
        }
    };
}

unsupported_items! {
    ///fields of the header that the data version has no place for
    HeaderFields = "header_fields",
    ///times of events that were left out: the data version gives those events none
    Times = "times",
    ///events that were given the time of the one before them: the log says none
    UnknownTimes = "unknown_times",
    ///times of counters that were rounded down to milliseconds
    CounterTimes = "counter_times",
    ///backtraces that were left out
    Backtraces = "backtraces",
    ///sizes of allocations that were rounded up to 8 bytes, as all profilers but the first do
    Sizes = "sizes",
    ///classes that were given a vtable, at their own address and of no domain
    AddedVtables = "made_vtables",
    ///objects of vtables that are described nowhere: the vtable stands where the class should
    UnknownVtables = "unknown_vtables",
    ///assemblies whose image was left out, or is not known and written as 0
    AssemblyImages = "assembly_images",
    ///images whose module version id was left out, or is not known and empty
    Mvids = "mvids",
    ///exceptions of clauses that were left out, or are not known and written as 0
    ClauseObjects = "clause_objects",
    ///generations of objects that were left out, or are not known and written as 255
    Generations = "generations",
    ///offsets of references that were left out, or are not known and written as 0
    ReferenceOffsets = "reference_offsets",
    ///roots whose address was left out, or is not known and written as 0
    RootSlots = "root_slots",
    ///roots whose kind was left out: the data version tells it by where they lie
    RootKinds = "root_kinds",
    ///roots whose flags (pinning, weak, interior) were left out
    RootFlags = "root_flags",
    ///numbers of collections so far that were left out, or are not known and written as 0
    Collections = "collections",
    ///samples whose type was left out
    SampleTypes = "sample_types",
    ///samples whose managed stack was left out
    SampleStacks = "sample_stacks",
    ///frames of samples whose place in their method was left out, or is not known (IL offset -1)
    SamplePositions = "sample_places",
    ///counters, or values of them, that were left out
    Counters = "counters",
    ///counters whose unit and variance were left out
    CounterUnits = "counter_units",
    ///names of helpers that were left out
    HelperNames = "helper_names",
    ///flags of names and backtraces that were left out
    Flags = "flags",
    ///buffers that were there twice, written once
    Copies = "copies",
    ///events that name something and are in several of the logs, written once
    Repeated = "repeated",
    ///buffers that end before an event that cannot be read
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
    pub(super) fn count_item(&mut self, what: UnsupportedItem, count: u64) {
        if count > 0 {
            let sum = self.unsupported.entry(what).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    pub(super) fn omit_event(&mut self, event: EventByte) {
        let sum = self.omitted_events.entry(event).or_default();
        *sum = sum.saturating_add(1);
    }

    pub(super) fn count_event(&mut self) {
        self.num_events = self.num_events.saturating_add(1);
    }

    pub(super) fn count_buffer(&mut self) {
        self.num_buffers = self.num_buffers.saturating_add(1);
    }
}

/// Why a conversion failed.
#[derive(Debug)]
pub enum ConvertError {
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

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) => error.fmt(f),
            Self::Nothing => f.write_str("no log to convert"),
            Self::Version(version) => write!(f, "there is no data version {version}: they are 1 to {NEWEST}"),
            Self::Pointers(first, other) => {
                write!(f, "the logs are not of one run: their pointers have {first} and {other} bytes")
            }
            Self::Runs(first, other) => write!(f, "the logs are not of one run: {first}, and {other}"),
            Self::Buffer(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConvertError {}

impl From<io::Error> for ConvertError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
