//! What had no place in the log that was written.

/// How many of what did not fit, or was not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misfits {
    /// Buffers, or records of Basic mode, whose process the version cannot tell.
    pub pids: u64,
    /// Wall times of buffers, which Basic mode has not; with them goes what the log shows of its counter's rate.
    pub wall_times: u64,
    /// Buffers that were given wall time 0, as the log they are made of has none.
    pub unknown_wall_times: u64,
    /// Buffers that were given a processor, and a counter from 0 on, as the log says neither.
    pub unknown_counters: u64,
    /// Processors whose number does not fit; 8 bits of it were written.
    pub cpus: u64,
    /// Tail exits, written as exits.
    pub tail_exits: u64,
    /// Arguments that were left out.
    pub arguments: u64,
    /// Custom and typed events that were left out.
    pub events: u64,
    /// Function records that were left out, as their ids have more than 28 bits.
    pub function_ids: u64,
    /// Events whose bytes had been overwritten: written with as many `0xff`.
    pub payloads: u64,
    /// Buffers of versions 1 to 3 in which bytes of events look like records: those versions do not say whether the bytes
    /// are there, and readers have to guess.
    pub doubtful: u64,
    /// Arguments of no entry, left out.
    pub orphans: u64,
    /// Records of no known kind, left out.
    pub unknown: u64,
    /// Buffers, or records of Basic mode, that were there twice: written once.
    pub copies: u64,
}

impl Misfits {
    /// Every count, with its name.
    #[must_use]
    pub fn counts(&self) -> [(&'static str, u64); 14] {
        [
            ("pids", self.pids),
            ("wall_times", self.wall_times),
            ("unknown_wall_times", self.unknown_wall_times),
            ("unknown_counters", self.unknown_counters),
            ("cpus", self.cpus),
            ("tail_exits", self.tail_exits),
            ("arguments", self.arguments),
            ("events", self.events),
            ("function_ids", self.function_ids),
            ("payloads", self.payloads),
            ("doubtful", self.doubtful),
            ("orphans", self.orphans),
            ("unknown", self.unknown),
            ("copies", self.copies),
        ]
    }

    /// Counts those of another part too.
    pub fn add(&mut self, other: &Self) {
        let mine: [&mut u64; 14] = [
            &mut self.pids,
            &mut self.wall_times,
            &mut self.unknown_wall_times,
            &mut self.unknown_counters,
            &mut self.cpus,
            &mut self.tail_exits,
            &mut self.arguments,
            &mut self.events,
            &mut self.function_ids,
            &mut self.payloads,
            &mut self.doubtful,
            &mut self.orphans,
            &mut self.unknown,
            &mut self.copies,
        ];
        for (mine, (_, its)) in mine.into_iter().zip(other.counts()) {
            *mine = mine.saturating_add(its);
        }
    }
}
