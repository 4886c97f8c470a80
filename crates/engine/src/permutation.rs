//! The largest statistic of all functions under assignments of runs to two sides: what chance alone gives (max-T).

/// A number in each run, and what its statistic depends on.
#[derive(Debug, Clone)]
pub struct Row {
    /// The number in each run divided by the mean of all, minus 1.
    pub centred: Vec<f64>,
    /// Squares that are within the two sides if these do not differ, times the factor of the runs; above 0.
    pub within: f64,
    /// Degrees of freedom.
    pub df: f64,
}

/// Which runs are on the second side in each assignment: for each chunk of runs, a mask of it by assignment.
#[derive(Debug, Clone)]
pub struct Assignments {
    /// Masks by chunk and assignment; bit 0 is the first run of the chunk. The first assignment is the observed one.
    pub chunks: Vec<Vec<u16>>,
    /// Number of runs in a chunk, at most 16.
    pub chunk_runs: usize,
    /// The variance of a difference of means in variances of one run.
    pub runs_factor: f64,
}

/// Squared statistics: the observed one of each row, and the largest of all rows in each assignment.
///
/// With h the sum of a row over the runs of the second side, the difference of means is h times the factor of the runs, and
/// what is left within sides follows from h. Sums of a chunk are tabulated, so a statistic takes an addition a chunk.
#[must_use]
pub fn largest_statistics(rows: &[Row], assignments: &Assignments) -> (Vec<f64>, Vec<f64>) {
    let number = assignments.chunks.iter().map(Vec::len).min().unwrap_or(0);
    let mut largest = vec![0.0_f64; number];
    let mut sums_of_second = vec![0.0_f64; number];
    let squared_factor = assignments.runs_factor * assignments.runs_factor;
    let mut observed = Vec::with_capacity(rows.len());
    for row in rows {
        perfuse_stopping::checkpoint();
        sums_of_second.fill(0.0);
        for (values, masks) in
            row.centred.chunks(assignments.chunk_runs.clamp(1, 16)).zip(&assignments.chunks)
        {
            let sums = subset_sums(values);
            for (sum, &mask) in sums_of_second.iter_mut().zip(masks) {
                *sum += sums.get(usize::from(mask)).copied().unwrap_or(0.0);
            }
        }
        let above = squared_factor * row.df;
        // Rounding may make the rest 0 where the sides explain all of the variance.
        let least = row.within * 1e-12;
        let statistic = |sum: f64| {
            let squared = sum * sum;
            above * squared / (row.within - squared_factor * squared).max(least)
        };
        observed.push(sums_of_second.first().map_or(0.0, |&sum| statistic(sum)));
        for (most, &sum) in largest.iter_mut().zip(&sums_of_second) {
            *most = most.max(statistic(sum));
        }
    }
    (observed, largest)
}

/// The sum of each subset of values, by the mask of the subset.
fn subset_sums(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for value in values {
        for place in 0..sums.len() {
            let sum = sums.get(place).copied().unwrap_or(0.0) + value;
            sums.push(sum);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_subsets() {
        assert_eq!(subset_sums(&[1.0, 2.0, 4.0]), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(subset_sums(&[]), [0.0]);
    }

    /// Two runs a side in chunks of three: squares within sides are added up directly.
    #[test]
    fn a_statistic_is_that_of_its_definition() {
        let row = Row { centred: vec![-0.3, 0.1, -0.1, 0.3], within: 0.2, df: 2.0 };
        let assignments =
            Assignments { chunks: vec![vec![0b100, 0b011], vec![1, 0]], chunk_runs: 3, runs_factor: 1.0 };
        let (observed, largest) = largest_statistics(&[row], &assignments);
        // The second side is (-0.1, 0.3): its mean is 0.1, that of the first -0.1; within: 2 * 0.2^2 + 2 * 0.2^2 = 0.16.
        let expected = 0.2_f64.powi(2) / (0.16 / 2.0);
        assert!((observed[0] - expected).abs() < 1e-12, "{observed:?}");
        assert_eq!(observed[0], largest[0]);
        // The second side is (-0.3, 0.1): the same by symmetry.
        assert!((largest[1] - expected).abs() < 1e-12, "{largest:?}");
    }

    #[test]
    fn nothing_is_read_outside_of_the_assignments() {
        let row = Row { centred: vec![0.5; 20], within: 1.0, df: 1.0 };
        let assignments =
            Assignments { chunks: vec![vec![u16::MAX, 0], vec![1]], chunk_runs: 40, runs_factor: 1.0 };
        let (observed, largest) = largest_statistics(&[row], &assignments);
        assert_eq!((observed.len(), largest.len()), (1, 1));
        assert_eq!(
            largest_statistics(&[], &Assignments { chunks: vec![], chunk_runs: 0, runs_factor: 1.0 }),
            (vec![], vec![])
        );
    }
}
