//! Estimates the rate of the counter from the log.
//!
//! Where the Linux kernel does not report the counter's rate, the runtime states the processor's highest frequency,
//! which is often 40 % too high. But every buffer contains a wall time and the counter read directly after it, and
//! these pairs are on a line.

/// Largest number of pairs that is used; more do not improve the estimate.
const MAX_PAIRS: usize = 4096;

/// Resolution of WallTimeMarker.
const WALL_RESOLUTION_NS: f64 = 1000.0;

/// Additional time between the two readings in the first buffer of a thread.
const FIRST_BUFFER_NS: f64 = 20_000.0;

/// An estimated rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateEstimate {
    /// Ticks per second.
    pub hz: f64,
    /// Relative error; 99 of 100 estimates are closer.
    pub relative_error: f64,
    /// Number of pairs used.
    pub num_pairs: usize,
}

/// Wall time in nanoseconds and the counter at that time.
pub type ClockPair = (i64, u64);

/// Estimates the rate; `None` with fewer than two distinct pairs.
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
    // Medians first, which a thread that was preempted between the two readings does not affect.
    let slope = median(slopes(&points))?;
    let mut offsets: Vec<f64> = points.iter().map(|(w, t)| w - t / slope).collect();
    let median_offset = median(offsets.clone())?;
    offsets.iter_mut().for_each(|offset| *offset = (*offset - median_offset).abs());
    let spread = median(offsets)?.max(WALL_RESOLUTION_NS);
    let inliers: Vec<(f64, f64)> =
        points.into_iter().filter(|(w, t)| (w - t / slope - median_offset).abs() <= 4.0 * spread).collect();
    least_squares(&inliers)
}

/// Slopes in ticks per nanosecond between points half the list apart.
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

/// Fits a line through the points.
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
    // Wall times are truncated to microseconds, so a better fit is coincidence.
    let deviation = (rest / degrees_of_freedom).sqrt().max(WALL_RESOLUTION_NS);
    let walls = points.iter().map(|(w, _)| *w);
    let reach = walls.clone().fold(f64::MIN, f64::max) - walls.fold(f64::MAX, f64::min);
    let relative_error = student_factor(points.len()) * deviation / wall.sqrt() + FIRST_BUFFER_NS / reach;
    Some(RateEstimate { hz: slope * 1e9, relative_error, num_pairs: points.len() })
}

/// Student's t factor for 99 % and a line through this many points.
fn student_factor(points: usize) -> f64 {
    const FACTORS: [f64; 10] = [100.0, 63.7, 9.93, 5.85, 4.61, 4.04, 3.71, 3.50, 3.36, 3.25];
    points
        .checked_sub(2)
        .and_then(|degrees_of_freedom| FACTORS.get(degrees_of_freedom))
        .copied()
        .unwrap_or(3.0)
}

/// How far times of a rate in the header may be off, relative to them, where no estimate bounds that.
///
/// The runtime states the processor's highest frequency, which is up to three times the counter's rate.
const STATED_RATE_ERROR: f64 = 2.0;

/// The greatest relative error of times that the rate in the header gives.
#[must_use]
pub fn stated_rate_error(stated: u64, found: Option<&RateEstimate>) -> f64 {
    let measured = found.map(|found| {
        let ratio = stated as f64 / found.hz;
        (ratio - 1.0).abs() + ratio * found.relative_error
    });
    measured.map_or(STATED_RATE_ERROR, |error| error.min(STATED_RATE_ERROR))
}

/// Where a rate puts the counter on the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallOffset {
    /// Wall time at counter 0, in nanoseconds.
    pub offset_ns: i64,
    /// How far pairs are from that, in nanoseconds.
    pub spread_ns: i64,
    /// The counter of the pair that determines the offset: an error of the rate grows with the distance from it.
    pub pivot: u64,
}

/// The wall time at counter 0 for a rate; `None` without pairs.
#[must_use]
pub fn offset(pairs: &[ClockPair], hz: u64) -> Option<WallOffset> {
    let step = pairs.len().div_ceil(MAX_PAIRS).max(1);
    let mut offsets: Vec<(i64, u64)> = pairs
        .iter()
        .step_by(step)
        .map(|&(wall, tsc)| {
            let ns = u128::from(tsc).saturating_mul(1_000_000_000).checked_div(hz.into()).unwrap_or(0);
            // A marker is truncated to the microsecond, half a microsecond early on average.
            (wall.saturating_add(500).saturating_sub(i64::try_from(ns).unwrap_or(i64::MAX)), tsc)
        })
        .collect();
    offsets.sort_unstable();
    let (offset_ns, pivot) = *offsets.get(offsets.len() >> 1)?;
    let mut away: Vec<i64> =
        offsets.iter().map(|(offset, _)| offset.saturating_sub(offset_ns).saturating_abs()).collect();
    away.sort_unstable();
    let spread = away.get(away.len() >> 1).copied().unwrap_or(0);
    Some(WallOffset { offset_ns, spread_ns: spread.saturating_mul(3).max(1000), pivot })
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
