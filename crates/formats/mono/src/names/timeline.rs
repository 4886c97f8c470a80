use rustc_hash::FxHashMap;

/// What each address stands for over time.
#[derive(Debug, Default)]
pub struct Timeline {
    map: FxHashMap<u64, Slot>,
    /// Start time and meaning of addresses with several meanings.
    meanings: Vec<(u64, u32)>,
}

/// The meaning of an address.
#[derive(Clone, Copy, Debug)]
enum Slot {
    /// The only meaning.
    Always(u32),
    /// Index range in `meanings`.
    Changing(u32, u32),
}

impl Timeline {
    /// Builds it from `(address, start time, meaning)`.
    pub fn new(mut told: Vec<(u64, u64, u32)>) -> Self {
        told.sort_by_key(|(address, time, _)| (*address, *time));
        let mut line = Self::default();
        for run in told.chunk_by(|a, b| a.0 == b.0) {
            let Some((address, _, first)) = run.first().copied() else { continue };
            if run.iter().all(|(_, _, what)| *what == first) {
                line.map.insert(address, Slot::Always(first));
                continue;
            }
            let start = line.meanings.len() as u32;
            line.meanings.extend(run.iter().map(|(_, time, what)| (*time, *what)));
            line.map.insert(address, Slot::Changing(start, line.meanings.len() as u32));
        }
        line
    }

    /// The meaning of an address at a time: the last one that had started, or else the first one.
    #[inline]
    pub fn at(&self, address: u64, time: u64) -> Option<u32> {
        match *self.map.get(&address)? {
            Slot::Always(what) => Some(what),
            Slot::Changing(start, end) => {
                let all = self.meanings.get(start as usize..end as usize)?;
                let next = all.partition_point(|(since, _)| *since <= time);
                Some(all.get(next.saturating_sub(1))?.1)
            }
        }
    }

    /// Whether an address has at most one meaning.
    #[inline]
    pub fn is_constant(&self, address: u64) -> bool {
        !matches!(self.map.get(&address), Some(Slot::Changing(..)))
    }
}

#[cfg(test)]
mod tests {
    use super::Timeline;

    #[test]
    fn an_address_is_what_was_told_last_of_it() {
        let line = Timeline::new(vec![(8, 20, 1), (8, 10, 0), (16, 5, 2), (16, 9, 2)]);
        assert_eq!([5, 10, 19, 20].map(|time| line.at(8, time)), [Some(0), Some(0), Some(0), Some(1)]);
        assert_eq!(line.at(16, 0), Some(2));
        assert_eq!(line.at(24, 0), None);
        assert!(line.is_constant(16) && !line.is_constant(8));
    }
}
