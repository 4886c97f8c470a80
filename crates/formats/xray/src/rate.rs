//! The rate of the counter, from the log itself.
//!
//! On Linux the runtime takes the processor's highest clock for the counter's rate where the kernel does not tell: 40 % too
//! much is usual. But every buffer has a wall time and the counter right behind it, and those lie on a line.

/// Longest list of pairs that is looked at; more do not make it better.
const MAX_PAIRS: usize = 4096;

/// Resolution of WallTimeMarker.
const WALL_RESOLUTION_NS: f64 = 1000.0;

/// How much longer a thread may take between its two readings in its first buffer than in later ones.
const FIRST_BUFFER_NS: f64 = 20_000.0;

/// A rate as estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateEstimate {
    /// Ticks a second.
    pub hz: f64,
    /// How far off that may be, as a share of it: 99 of 100 such estimates are nearer.
    pub relative_error: f64,
    /// Pairs it is made from.
    pub num_pairs: usize,
}

/// A moment: nanoseconds of wall time, and the counter.
pub type ClockPair = (i64, u64);

/// Estimates the rate from moments; `None` where fewer than two lie apart.
#[must_use]
pub fn estimate(pairs: &[ClockPair]) -> Option<RateEstimate> {
    let step = pairs.len().div_ceil(MAX_PAIRS).max(1);
    let &(wall, tsc) = pairs.first()?;
    let mut points: Vec<(f64, f64)> = pairs
        .iter()
        .step_by(step)
        .map(|&(w, t)| (w.wrapping_sub(wall) as f64, t.wrapping_sub(tsc) as i64 as f64))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    // First by medians, which a thread that was preempted between the two readings cannot move.
    let slope = median(slopes(&points))?;
    let mut offsets: Vec<f64> = points.iter().map(|(w, t)| w - t / slope).collect();
    let median_offset = median(offsets.clone())?;
    offsets.iter_mut().for_each(|offset| *offset = (*offset - median_offset).abs());
    let spread = median(offsets)?.max(WALL_RESOLUTION_NS);
    let inliers: Vec<(f64, f64)> =
        points.into_iter().filter(|(w, t)| (w - t / slope - median_offset).abs() <= 4.0 * spread).collect();
    least_squares(&inliers)
}

/// Slopes, in ticks a nanosecond, between points half the list apart.
fn slopes(points: &[(f64, f64)]) -> Vec<f64> {
    let half = points.len().div_ceil(2);
    let pairs = points.iter().zip(points.iter().skip(half));
    let slopes = pairs.map(|((w1, t1), (w2, t2))| (t2 - t1) / (w2 - w1));
    slopes.filter(|slope| slope.is_finite() && *slope > 0.0).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() >> 1).copied()
}

fn least_squares(points: &[(f64, f64)]) -> Option<RateEstimate> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (w0, t0) = (mean(|p| p.0), mean(|p| p.1));
    let wall: f64 = points.iter().map(|(w, _)| (w - w0).powi(2)).sum();
    let both: f64 = points.iter().map(|(w, t)| (w - w0) * (t - t0)).sum();
    let slope = both / wall;
    if !(slope.is_finite() && slope > 0.0) {
        return None;
    }
    let rest: f64 = points.iter().map(|(w, t)| ((t - t0) / slope - (w - w0)).powi(2)).sum();
    let degrees_of_freedom = (n - 2.0).max(1.0);
    // Wall times are cut to the microsecond: that points fit better is chance.
    let deviation = (rest / degrees_of_freedom).sqrt().max(WALL_RESOLUTION_NS);
    let walls = points.iter().map(|(w, _)| *w);
    let reach = walls.clone().fold(f64::MIN, f64::max) - walls.fold(f64::MAX, f64::min);
    let relative_error = student_factor(points.len()) * deviation / wall.sqrt() + FIRST_BUFFER_NS / reach;
    Some(RateEstimate { hz: slope * 1e9, relative_error, num_pairs: points.len() })
}

/// Student's factor for 99 %, of a line through so many points: with few of them chance fits as well.
fn student_factor(points: usize) -> f64 {
    const FACTORS: [f64; 10] = [100.0, 63.7, 9.93, 5.85, 4.61, 4.04, 3.71, 3.50, 3.36, 3.25];
    points
        .checked_sub(2)
        .and_then(|degrees_of_freedom| FACTORS.get(degrees_of_freedom))
        .copied()
        .unwrap_or(3.0)
}

/// The wall time at counter 0, at that rate, and how far off it may be: both in nanoseconds.
#[must_use]
pub fn offset(pairs: &[ClockPair], hz: u64) -> Option<(i64, i64)> {
    let step = pairs.len().div_ceil(MAX_PAIRS).max(1);
    let mut offsets: Vec<i64> = pairs
        .iter()
        .step_by(step)
        .map(|&(wall, tsc)| {
            let ns = u128::from(tsc).saturating_mul(1_000_000_000).checked_div(hz.into()).unwrap_or(0);
            // A marker is cut to the microsecond: on average it is half of one early.
            wall.saturating_add(500).saturating_sub(i64::try_from(ns).unwrap_or(i64::MAX))
        })
        .collect();
    offsets.sort_unstable();
    let median_offset = *offsets.get(offsets.len() >> 1)?;
    let mut away: Vec<i64> =
        offsets.iter().map(|offset| offset.saturating_sub(median_offset).saturating_abs()).collect();
    away.sort_unstable();
    let spread = away.get(away.len() >> 1).copied().unwrap_or(0);
    Some((median_offset, spread.saturating_mul(3).max(1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(hz: f64, num: i64, late: impl Fn(i64) -> i64) -> Vec<ClockPair> {
        let at = |i: i64| (i * 93_000_007, (i * 93_000_007 + late(i)) as f64);
        (0..num).map(at).map(|(wall, ns)| (wall / 1000 * 1000, (ns * hz / 1e9) as u64 + 77_000)).collect()
    }

    #[test]
    fn a_line_gives_its_slope() {
        let found = estimate(&pairs(2_596_126_000.0, 17, |_| 0)).unwrap();
        assert!((found.hz / 2_596_126_000.0 - 1.0).abs() < 1e-6, "{found:?}");
        assert!(found.relative_error < 1e-4, "{found:?}");
    }

    #[test]
    fn preempted_readings_do_not_move_it() {
        let found = estimate(&pairs(1e9, 40, |i| if i % 7 == 0 { 30_000_000 } else { 0 })).unwrap();
        assert!((found.hz / 1e9 - 1.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn one_moment_gives_no_rate() {
        assert_eq!(estimate(&[(5, 5)]), None);
        assert_eq!(estimate(&[(5, 5), (5, 5)]), None);
    }
}
