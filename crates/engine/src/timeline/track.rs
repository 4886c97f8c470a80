//! Tracks: the slices of one kind of a thread, a process or a processor.

use super::row::SliceRow;

/// What the slices of a track are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackKind {
    /// Threads on a processor.
    Processor,
    /// Collections and pauses of a garbage collector.
    Gc,
    /// Time in a compiler.
    Jit,
    /// Code objects, at the time from which their code can run.
    Compilations,
    /// Calls of a call trace.
    Calls,
    /// Runs of consecutive samples with equal frames.
    Samples,
    /// States of a thread between context switches.
    State,
    /// Waits for locks.
    Lock,
    /// Other slices.
    Custom,
    /// Events without a duration.
    Instants,
}

impl TrackKind {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Processor => "cpu",
            Self::State => "state",
            Self::Gc => "gc",
            Self::Jit => "jit",
            Self::Compilations => "compile",
            Self::Calls => "calls",
            Self::Samples => "samples",
            Self::Lock => "lock",
            Self::Custom => "custom",
            Self::Instants => "instants",
        }
    }

    /// Whether its labels are functions of calls.
    pub(super) fn has_functions(self) -> bool {
        self == Self::Calls
    }

    /// Whether its slices are work of the program: those of processors and states show the same time once more.
    pub(super) fn is_work(self) -> bool {
        !matches!(self, Self::Processor | Self::State)
    }
}

/// What a track belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackOwner {
    /// A process, by its key.
    Process(u32),
    /// A thread, by its key.
    Thread(u32),
    /// A processor, by its number.
    Processor(u32),
}

impl TrackOwner {
    /// Its name, and its key or number.
    #[must_use]
    pub fn parts(self) -> (&'static str, u32) {
        match self {
            Self::Process(key) => ("process", key),
            Self::Thread(key) => ("thread", key),
            Self::Processor(number) => ("processor", number),
        }
    }
}

/// A track of the timeline.
#[derive(Clone, Debug)]
pub struct TimelineTrack {
    /// What its slices are.
    pub kind: TrackKind,
    /// What it belongs to.
    pub owner: TrackOwner,
    /// Its slices, by depth.
    pub rows: Vec<SliceRow>,
}

impl TimelineTrack {
    /// Number of slices.
    #[must_use]
    pub fn num_slices(&self) -> usize {
        self.rows.iter().map(SliceRow::len).sum()
    }

    /// First start and last end.
    #[must_use]
    pub fn span_ns(&self) -> Option<(i64, i64)> {
        self.rows.iter().filter_map(SliceRow::span_ns).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Sum of the durations of its outermost slices.
    #[must_use]
    pub fn busy_ns(&self) -> u64 {
        self.rows.first().map_or(0, SliceRow::busy_ns)
    }

    /// The slice at a time and depth, with its position.
    #[must_use]
    pub fn around(&self, depth: usize, ts_ns: i64) -> Option<usize> {
        let row = self.rows.get(depth)?;
        let end = row.starting_before(ts_ns.saturating_add(1));
        (row.reaching(ts_ns)..end)
            .rev()
            .find(|&position| row.get(position).is_some_and(|s| s.end_ns() > ts_ns))
    }
}
