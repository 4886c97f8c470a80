use rustc_hash::FxHashMap;

/// What each address stands for over time.
#[derive(Debug, Default)]
pub struct AddressTimeline {
    map: FxHashMap<u64, AddressMeaning>,
    /// Start time and meaning of addresses with several meanings.
    meanings: Vec<(u64, u32)>,
}

/// The meaning of an address.
#[derive(Clone, Copy, Debug)]
enum AddressMeaning {
    /// The only meaning.
    Constant(u32),
    /// Index range in `meanings`.
    Varying(u32, u32),
}

impl AddressTimeline {
    /// Builds it from `(address, start time, meaning)`.
    pub fn new(mut entries: Vec<(u64, u64, u32)>) -> Self {
        entries.sort_by_key(|(address, time, _)| (*address, *time));
        let mut timeline = Self::default();
        for run in entries.chunk_by(|a, b| a.0 == b.0) {
            let Some((address, _, first)) = run.first().copied() else { continue };
            if run.iter().all(|(_, _, meaning)| *meaning == first) {
                timeline.map.insert(address, AddressMeaning::Constant(first));
                continue;
            }
            let start = timeline.meanings.len() as u32;
            timeline.meanings.extend(run.iter().map(|(_, time, meaning)| (*time, *meaning)));
            timeline.map.insert(address, AddressMeaning::Varying(start, timeline.meanings.len() as u32));
        }
        timeline
    }

    /// The meaning of an address at a time: the last one that had started, or else the first one.
    #[inline]
    pub fn at(&self, address: u64, time: u64) -> Option<u32> {
        match *self.map.get(&address)? {
            AddressMeaning::Constant(meaning) => Some(meaning),
            AddressMeaning::Varying(start, end) => {
                let all = self.meanings.get(start as usize..end as usize)?;
                let next = all.partition_point(|(since, _)| *since <= time);
                Some(all.get(next.saturating_sub(1))?.1)
            }
        }
    }

    /// Whether an address has at most one meaning.
    #[inline]
    pub fn is_constant(&self, address: u64) -> bool {
        !matches!(self.map.get(&address), Some(AddressMeaning::Varying(..)))
    }
}

#[cfg(test)]
mod tests {
    use super::AddressTimeline;

    #[test]
    fn an_address_is_what_was_told_last_of_it() {
        let timeline = AddressTimeline::new(vec![(8, 20, 1), (8, 10, 0), (16, 5, 2), (16, 9, 2)]);
        assert_eq!([5, 10, 19, 20].map(|time| timeline.at(8, time)), [Some(0), Some(0), Some(0), Some(1)]);
        assert_eq!(timeline.at(16, 0), Some(2));
        assert_eq!(timeline.at(24, 0), None);
        assert!(timeline.is_constant(16) && !timeline.is_constant(8));
    }
}
