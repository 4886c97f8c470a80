//! How long the calls of a function took, every one of them, and what is told of that.

/// Which duration stands for a share of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rank {
    /// The smallest that at least this share is not above: nearest rank.
    #[default]
    Nearest,
    /// Element `floor(n * share)` of the sorted durations, as `llvm-xray account` takes it.
    Llvm,
}

impl Rank {
    /// Every rank with the name it goes by.
    pub const ALL: [(&'static str, Self); 2] = [("nearest", Self::Nearest), ("llvm", Self::Llvm)];

    /// Which of `num` sorted durations stands for `percent` of them.
    fn index(self, num: usize, percent: usize) -> usize {
        let index = match self {
            Self::Nearest => (num * percent).div_ceil(100).saturating_sub(1),
            Self::Llvm if percent == 50 => num / 2,
            // As a floating-point product, like there.
            Self::Llvm => (num as f64 * (percent as f64 / 100.0)) as usize,
        };
        index.min(num.saturating_sub(1))
    }
}

/// What is told of durations, in nanoseconds.
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
    /// All together; saturates.
    pub sum_ns: u64,
}

/// Durations in no order, 4 bytes for each that is below 4.29 seconds.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    short: Vec<u32>,
    long: Vec<u64>,
}

impl Durations {
    /// One more.
    #[inline]
    pub fn push(&mut self, duration_ns: u64) {
        match u32::try_from(duration_ns) {
            Ok(short) => self.short.push(short),
            Err(_) => self.long.push(duration_ns),
        }
    }

    /// All of another.
    pub fn append(&mut self, mut other: Self) {
        if self.is_empty() {
            *self = other;
        } else {
            self.short.append(&mut other.short);
            self.long.append(&mut other.long);
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exact figures; none of no durations.
    #[must_use]
    pub fn figures(mut self, rank: Rank) -> Option<Figures> {
        let num = self.len();
        if num == 0 {
            return None;
        }
        let short_sum: u64 = self.short.iter().map(|&short| u64::from(short)).sum();
        let sum_ns = self.long.iter().fold(short_sum, |sum, &long| sum.saturating_add(long));
        let (short, long) = (&mut self.short[..], &mut self.long[..]);
        let median = rank.index(num, 50);
        let median_ns = select(short, long, median);
        // What is below lies before it now, what is above behind it.
        let least = |below: &[u32]| below.iter().copied().min().map(u64::from);
        let min_ns = least(&short[..short.len().min(median + 1)])
            .or_else(|| long[..=median - short.len()].iter().copied().min())?;
        let mut above = |from: &mut usize, percent| {
            let index = rank.index(num, percent);
            let in_long = from.saturating_sub(short.len());
            let in_short = (*from).min(short.len());
            let at = select(&mut short[in_short..], &mut long[in_long..], index - *from);
            *from = index;
            at
        };
        let mut from = median;
        let (p90_ns, p99_ns) = (above(&mut from, 90), above(&mut from, 99));
        let most = long[from.saturating_sub(short.len())..].iter().copied().max();
        let max_ns = most.or_else(|| short[from.min(short.len())..].iter().copied().max().map(u64::from))?;
        Some(Figures { min_ns, median_ns, p90_ns, p99_ns, max_ns, sum_ns })
    }
}

/// Element `index` of both as if they were sorted, one behind the other; what is not above it comes before it.
fn select(short: &mut [u32], long: &mut [u64], index: usize) -> u64 {
    match index.checked_sub(short.len()) {
        None => u64::from(*short.select_nth_unstable(index).1),
        Some(index) => *long.select_nth_unstable(index).1,
    }
}
