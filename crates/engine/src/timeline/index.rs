//! The longest slice and the sum of durations of any range of a row.

/// Number of entries that an entry of the next level stands for.
const FAN_OUT: usize = 16;

/// Longest slices of blocks, of blocks of blocks and so on, and sums of durations before each block.
#[derive(Clone, Debug, Default)]
pub struct SliceIndex {
    /// Positions of the longest slices; of blocks of 16, 256, ... slices.
    levels: Vec<Vec<u32>>,
    /// Sum of the durations before each block of 16.
    sums: Vec<u64>,
}

impl SliceIndex {
    /// The index of so many slices.
    pub(super) fn of(num: usize, duration: impl Fn(usize) -> u64) -> Self {
        let mut index = Self::default();
        let mut level: Vec<u32> = Vec::with_capacity(num.div_ceil(FAN_OUT));
        let mut sum = 0u64;
        for block in (0..num).step_by(FAN_OUT) {
            index.sums.push(sum);
            let positions = block..num.min(block.saturating_add(FAN_OUT));
            let mut best = (block, duration(block));
            for position in positions {
                let long = duration(position);
                sum = sum.saturating_add(long);
                if long > best.1 {
                    best = (position, long);
                }
            }
            level.push(best.0 as u32);
        }
        while level.len() > 1 {
            let above = level.chunks(FAN_OUT).filter_map(|block| {
                block
                    .iter()
                    .copied()
                    .reduce(|a, b| if duration(b as usize) > duration(a as usize) { b } else { a })
            });
            let above = above.collect();
            index.levels.push(level);
            level = above;
        }
        index.levels.push(level);
        index
    }

    /// Memory in bytes.
    pub(super) fn num_bytes(&self) -> usize {
        let levels = self.levels.iter().map(|level| level.len().saturating_mul(4)).sum::<usize>();
        levels.saturating_add(self.sums.len().saturating_mul(8))
    }

    /// Position of the longest slice of a range; of several, the first.
    pub(super) fn longest(&self, from: usize, to: usize, duration: impl Fn(usize) -> u64) -> Option<usize> {
        let mut best: Option<(u64, usize)> = None;
        let mut consider = |position: usize| {
            let long = duration(position);
            if best.is_none_or(|(most, at)| long > most || (long == most && position < at)) {
                best = Some((long, position));
            }
        };
        // Entries at the edges of each level, then those between them on the level above.
        let (mut from, mut to) = (from, to);
        let mut below: Option<&Vec<u32>> = None;
        let mut above = self.levels.iter();
        while from < to {
            let mut entry = |entry: usize| match below {
                None => consider(entry),
                Some(level) => level.get(entry).into_iter().for_each(|&position| consider(position as usize)),
            };
            let Some(next) = above.next() else {
                (from..to).for_each(entry);
                break;
            };
            let (first, last) = (from.next_multiple_of(FAN_OUT).min(to), to.saturating_sub(to % FAN_OUT));
            if first >= last {
                (from..to).for_each(entry);
                break;
            }
            (from..first).for_each(&mut entry);
            (last..to).for_each(&mut entry);
            (from, to) = (first / FAN_OUT, last / FAN_OUT);
            below = Some(next);
        }
        best.map(|(_, position)| position)
    }

    /// Sum of the durations of a range.
    pub(super) fn sum(&self, from: usize, to: usize, duration: impl Fn(usize) -> u64) -> u64 {
        if from >= to {
            return 0;
        }
        self.before(to, &duration).saturating_sub(self.before(from, &duration))
    }

    fn before(&self, position: usize, duration: impl Fn(usize) -> u64) -> u64 {
        let block = position / FAN_OUT;
        let Some(&sum) = self.sums.get(block).or(self.sums.last()) else { return 0 };
        let start = block.min(self.sums.len().saturating_sub(1)).saturating_mul(FAN_OUT);
        (start..position).map(duration).fold(sum, u64::saturating_add)
    }
}
