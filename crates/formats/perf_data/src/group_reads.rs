//! Counts of the events of a group, which each sample of its leader contains (`perf record -e '{cycles,instructions}:S'`), and of an
//! event by itself (`-e cycles:S`).
//!
//! As in perf, an event's part in a sample is what it counted since the sample before, and members have no samples of their own.

use linux_perf_event_reader::constants as abi;
use rustc_hash::FxHashMap;

use super::attribute::EventAttribute;
use super::reader::RecordFile;
use super::record::RecordLocation;
use super::sample::SampleHead;

/// What a member of a group counted up to a sample of its leader, since the one before.
#[derive(Clone, Copy, Debug)]
pub struct MemberCount {
    /// The leader's sample.
    pub location: RecordLocation,
    /// Index of the member.
    pub event: usize,
    /// The count.
    pub count: u64,
}

/// Latest counts of each event id; of inherited events, of each thread.
#[derive(Debug, Default)]
pub struct GroupReads {
    latest: FxHashMap<(u64, i32), u64>,
    /// Counts of members, in the order of the samples.
    pub members: Vec<MemberCount>,
}

/// Whether samples of an event contain its count or those of its group, each with its id.
#[must_use]
pub fn has_counts(attribute: &EventAttribute) -> bool {
    attribute.layout.has(abi::PERF_SAMPLE_READ) && attribute.layout.read_format & abi::PERF_FORMAT_ID != 0
}

impl GroupReads {
    /// Adds the counts in a sample of an event with an index. Returns what that event itself counted; `None` where the sample does
    /// not contain that.
    pub fn add(
        &mut self,
        file: &RecordFile,
        head: &SampleHead<'_>,
        index: usize,
        location: RecordLocation,
    ) -> Option<u64> {
        let leader = file.attributes.list().get(index)?;
        if !has_counts(leader) {
            return None;
        }
        let tid = match leader.fields.flags & abi::ATTR_FLAG_BIT_INHERIT {
            0 => 0,
            _ => head.tid.unwrap_or(0),
        };
        let counters = leader.layout.counters();
        let mut words = head.read?.iter();
        // The times precede the values of a group, and follow that of a single event.
        let (count, num_before, num_after) = match counters.group {
            true => (words.next()?, counters.num_times, 0),
            false => (1, 0, counters.num_times),
        };
        words.by_ref().take(num_before).for_each(drop);
        let mut own = None;
        for _ in 0..count {
            let value = words.next()?;
            words.by_ref().take(num_after).for_each(drop);
            let id = words.next()?;
            words.by_ref().take(counters.num_extra_words.saturating_sub(1)).for_each(drop);
            let since = value.saturating_sub(self.latest.insert((id, tid), value).unwrap_or(0));
            match file.attributes.index_of(id) {
                Some(event) if event == index => own = Some(since),
                Some(event) if since > 0 => self.members.push(MemberCount { location, event, count: since }),
                _ => {}
            }
        }
        own
    }
}
