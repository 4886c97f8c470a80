//! The durations of all calls of a function, and the figures computed from them.

/// How a percentile is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rank {
    /// The smallest that at least this share is not above: nearest rank.
    #[default]
    Nearest,
    /// Element `floor(n * share)` of the sorted durations, as `llvm-xray account` takes it.
    Llvm,
}

impl Rank {
    /// All ranks with their names.
    pub const ALL: [(&'static str, Self); 2] = [("nearest", Self::Nearest), ("llvm", Self::Llvm)];

    /// Index of the percentile among `num` sorted durations.
    fn index(self, num: usize, percent: usize) -> usize {
        let index = match self {
            Self::Nearest => num.saturating_mul(percent).div_ceil(100).saturating_sub(1),
            Self::Llvm if percent == 50 => num / 2,
            // A floating-point product, as in LLVM.
            Self::Llvm => (num as f64 * (percent as f64 / 100.0)) as usize,
        };
        index.min(num.saturating_sub(1))
    }
}

/// Figures of durations, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The shortest.
    pub min_ns: u64,
    /// Half are not longer.
    pub median_ns: u64,
    /// 90 % are not longer.
    pub p90_ns: u64,
    /// 99 % are not longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Their sum; saturates.
    pub sum_ns: u64,
}

/// Durations in no order. Most calls are short and take one of few lengths of time: where there are many, short ones are
/// counted by their length.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    /// The latest ones, not counted yet.
    latest: Vec<u32>,
    /// Numbers of durations of 0 ns, 1 ns and so on; empty until there are many.
    counts: Vec<u64>,
    num_counted: usize,
    short: Vec<u32>,
    long: Vec<u64>,
}

impl Durations {
    /// Number of durations that are counted at a time: as many bytes as a few pages have, for each function of each segment.
    const MANY: usize = 1 << 11;
    /// Durations below this are counted by their length.
    const COUNTED_NS: usize = 1 << 11;

    /// Adds a duration.
    #[inline]
    pub fn push(&mut self, duration_ns: u64) {
        match u32::try_from(duration_ns) {
            Ok(short) => {
                if self.latest.len() == self.latest.capacity() {
                    self.make_room();
                }
                self.latest.push(short);
            }
            Err(_) => self.long.push(duration_ns),
        }
    }

    #[cold]
    fn make_room(&mut self) {
        if self.latest.len() < Self::MANY {
            self.latest
                .reserve_exact(self.latest.len().clamp(4, Self::MANY.saturating_sub(self.latest.len())));
        } else {
            self.count();
        }
    }

    fn count(&mut self) {
        self.counts.resize(Self::COUNTED_NS, 0);
        let before = self.short.len();
        for &duration in &self.latest {
            match self.counts.get_mut(duration as usize) {
                Some(count) => *count = count.saturating_add(1),
                None => self.short.push(duration),
            }
        }
        let num_counted = self.latest.len().saturating_sub(self.short.len().saturating_sub(before));
        self.num_counted = self.num_counted.saturating_add(num_counted);
        self.latest.clear();
    }

    /// Adds the durations of another.
    pub fn append(&mut self, mut other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        if !other.counts.is_empty() {
            self.counts.resize(Self::COUNTED_NS, 0);
            self.counts
                .iter_mut()
                .zip(&other.counts)
                .for_each(|(mine, its)| *mine = mine.saturating_add(*its));
            self.num_counted = self.num_counted.saturating_add(other.num_counted);
        }
        self.short.append(&mut other.short);
        self.long.append(&mut other.long);
        for &duration in &other.latest {
            self.push(duration.into());
        }
    }

    /// Number of durations.
    #[must_use]
    pub fn len(&self) -> usize {
        let lengths = [self.latest.len(), self.num_counted, self.short.len(), self.long.len()];
        lengths.into_iter().fold(0, usize::saturating_add)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exact figures; `None` without durations.
    #[must_use]
    pub fn figures(mut self, rank: Rank) -> Option<Figures> {
        if self.counts.is_empty() {
            self.short.append(&mut self.latest);
        } else {
            self.count();
        }
        let num = self.len();
        let [median_ns, p90_ns, p99_ns] = [50, 90, 99].map(|percent| self.at(rank.index(num, percent)));
        Some(Figures {
            min_ns: self.min()?,
            median_ns,
            p90_ns,
            p99_ns,
            max_ns: self.max()?,
            sum_ns: self.sum(),
        })
    }

    /// The counted durations, with their numbers.
    fn counted(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        let some = |&(_, &count): &(usize, &u64)| count > 0;
        self.counts.iter().enumerate().filter(some).map(|(duration, &count)| (duration as u64, count))
    }

    /// Element `index` of the durations in sorted order; elements that are not greater precede it afterwards.
    fn at(&mut self, index: usize) -> u64 {
        let Some(index) = index.checked_sub(self.num_counted) else {
            let mut left = index as u64;
            let is_there =
                |&(_, count): &(u64, u64)| left.checked_sub(count).map(|less| left = less).is_none();
            return self.counted().find(is_there).map_or(0, |(duration, _)| duration);
        };
        match index.checked_sub(self.short.len()) {
            None => u64::from(*self.short.select_nth_unstable(index).1),
            Some(index) if index < self.long.len() => *self.long.select_nth_unstable(index).1,
            Some(_) => 0,
        }
    }

    fn min(&self) -> Option<u64> {
        let counted = self.counted().next().map(|(duration, _)| duration);
        let short = || self.short.iter().min().copied().map(u64::from);
        counted.or_else(short).or_else(|| self.long.iter().min().copied())
    }

    fn max(&self) -> Option<u64> {
        let short = || self.short.iter().max().copied().map(u64::from);
        let counted = || self.counted().next_back().map(|(duration, _)| duration);
        self.long.iter().max().copied().or_else(short).or_else(counted)
    }

    fn sum(&self) -> u64 {
        let short = self.short.iter().map(|&short| u64::from(short)).sum::<u64>();
        let counted = self.counted().map(|(duration, count)| duration.saturating_mul(count));
        self.long.iter().copied().chain(counted).fold(short, u64::saturating_add)
    }
}
