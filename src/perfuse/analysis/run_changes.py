"""Changes between two groups of runs: moderated t intervals, and verdicts by permutation of the runs.

The variance of a function between runs is shrunk towards a trend over all functions, as limma does (Smyth 2004, doi
10.2202/1544-6115.1027): sampling noise, and the noise of the machine that all functions share. The probability `p_max`
is that of the largest statistic of all functions under permutations of the runs (max-T; Westfall and Young 1993), so
of 100 comparisons of equal programs at most 5 have a function with `p_max` <= 0.05. `docs/guides/slower.md` has the
measured rates.
"""

import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median, variance

from perfuse import _core
from perfuse.analysis.student import chi_squared_median, digamma, inverse_trigamma, t_quantile, t_survival, trigamma

LEAST_SAMPLES = 50
"""Functions with fewer samples in all runs take no part in tests: nothing that could be seen is in so few."""

CONFIDENCE = 0.95
POWER = 0.8
_TREND_SAMPLES = 100
_LEAST_OF_TREND = 5
_ALL_ASSIGNMENTS = 20_000
_MOST_DRAWN, _LEAST_DRAWN = 9_999, 1_999
_STATISTICS = 1_500_000
"""Statistics that are computed at most, where that leaves enough assignments."""
_SEED = 1
_CHUNK_RUNS = 10
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Measured:
    """A number in each run of both sides.

    Attributes:
        base: In each run of the first side.
        new: In each run of the second side.
        samples: The number of samples, or calls, that it is made of, in all runs.
    """

    base: Sequence[float]
    new: Sequence[float]
    samples: float

    @property
    def mean_samples(self) -> float:
        """The number of samples in a run, on average."""
        return self.samples / (len(self.base) + len(self.new))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is known of a change.

    Attributes:
        log_ratio: Natural logarithm of new / base; where one is 0, half a sample stands for it.
        error: Standard error of it.
        df: Degrees of freedom of the error.
        run_variance: Relative variance of the number in one run.
        p: Probability of a change of this size, or a larger one, in this number if nothing changed; None where it was
            not tested.
        q: The same, adjusted for the number of functions that were tested (Benjamini and Hochberg); None where it was
            not tested.
        p_max: Probability that any of the tested functions has a change as clear as this if nothing changed; None where
            it was not tested.
        sees: Relative change that would have been found with a probability of 0.8; None where it was not tested.
    """

    log_ratio: float
    error: float
    df: float
    run_variance: float
    p: float | None = None
    q: float | None = None
    p_max: float | None = None
    sees: float | None = None

    def bounds(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The interval of the relative change: 0.1 is 10 % more."""
        reach = _quantile((1 + confidence) / 2, self.df) * self.error
        return _relative(self.log_ratio - reach), _relative(self.log_ratio + reach)


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The changes of several numbers between two groups of runs.

    Attributes:
        estimates: One for each number; None where it is 0 in all runs.
        noise: Relative standard deviation between runs beside sampling.
        num_tested: How many numbers have enough samples for a test.
        prior_df: Degrees of freedom of the variance that all functions share.
        prior_scale: The factor of that variance.
    """

    estimates: list[Estimate | None]
    noise: float
    num_tested: int
    prior_df: float
    prior_scale: float


def run_changes(
    rows: Sequence[Measured], least_samples: float = LEAST_SAMPLES, *, with_tests: bool = True
) -> RunChanges:
    """Compares runs, of which at least one side has two or more.

    Args:
        rows: The numbers, all of the same runs.
        least_samples: Numbers that are made of fewer samples have an interval, and are not tested.
        with_tests: Whether to compute `q`, `p_max` and `sees`.
    """
    if not rows:
        return RunChanges([], 0.0, 0, 0.0, 1.0)
    prepared = [_Row.of(row) for row in rows]
    tested = [row for row in prepared if row is not None and row.samples >= least_samples]
    prior = _Prior.of(tested)
    known = [None if row is None else prior.estimate(row) for row in prepared]
    if tested and with_tests:
        of = {id(row): estimate for row, estimate in zip(prepared, known, strict=True) if row and estimate}
        p = [_probability(of[id(row)]) for row in tested]
        q = _adjusted(p)
        p_max = _permuted(tested, prior)
        places = {id(row): place for place, row in enumerate(tested)}
        reach = _quantile(1 - 0.025 / len(tested), prior.df) + _quantile(POWER, prior.df)
        for number, row in enumerate(prepared):
            estimate = known[number]
            if row is None or estimate is None or id(row) not in places:
                continue
            place = places[id(row)]
            known[number] = Estimate(
                estimate.log_ratio,
                estimate.error,
                estimate.df,
                estimate.run_variance,
                p[place],
                q[place],
                p_max[place],
                _relative(reach * estimate.error),
            )
    return RunChanges(known, math.sqrt(prior.noise), len(tested), prior.shared_df, prior.scale)


def whole_change(base: Sequence[float], new: Sequence[float]) -> Estimate | None:
    """The change of one number, by Welch's t test of its logarithms; None where a run has 0, or each side one run."""
    if min(*base, *new) <= 0 or min(len(base), len(new)) < 2:
        return None
    logs = [[math.log(value) for value in side] for side in (base, new)]
    parts = [variance(side) / len(side) for side in logs]
    log_ratio = fmean(logs[1]) - fmean(logs[0])
    total = sum(parts)
    if not total:
        return Estimate(log_ratio, 0.0, float(len(base) + len(new) - 2), 0.0, 1.0 if not log_ratio else 0.0)
    df = total**2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, logs, strict=True))
    error = math.sqrt(total)
    spread = fmean([variance(side) for side in logs])
    return Estimate(log_ratio, error, df, spread, 2 * t_survival(abs(log_ratio) / error, df))


def runs_needed(change: float, run_variance: float, num_tested: int) -> int:
    """The number of runs a side that finds a relative change with a probability of 0.8 among the tested functions."""
    wanted = math.log1p(change)
    runs = 4
    for _ in range(8):
        reach = _quantile(1 - 0.025 / max(num_tested, 1), 2 * runs - 2) + _quantile(POWER, 2 * runs - 2)
        needed = max(4, math.ceil(2 * run_variance * (reach / wanted) ** 2))
        if needed == runs:
            break
        runs = needed if needed > runs else (needed + runs) // 2
    return runs


@dataclass(frozen=True, slots=True)
class _Row:
    """A number in each run, with its means and relative variance.

    Attributes:
        values: All runs, those of the first side first.
        num_base: How many of them are of the first side.
        samples: Number of samples in all runs.
        log_ratio: Natural logarithm of the ratio of the means.
        variance: Relative variance of one run, as it was measured.
    """

    values: tuple[float, ...]
    num_base: int
    samples: float
    log_ratio: float
    variance: float

    @classmethod
    def of(cls, measured: Measured) -> "_Row | None":
        values = (*measured.base, *measured.new)
        total = sum(values)
        if total <= 0 or measured.samples <= 0:
            return None
        one_sample = total / measured.samples
        centres = means = [fmean(side) for side in (measured.base, measured.new)]
        if min(means) <= 0:
            sizes = len(measured.base), len(measured.new)
            means = [mean + 0.5 * one_sample / size for mean, size in zip(means, sizes, strict=True)]
        df = len(values) - 2
        # Runs that all have 0 do not differ, whatever stands for 0 in the ratio.
        squares = sum(
            ((value - centre) / mean) ** 2
            for centre, mean, side in zip(centres, means, (measured.base, measured.new), strict=True)
            for value in side
        )
        return cls(values, len(measured.base), measured.samples, math.log(means[1] / means[0]), squares / df)

    @property
    def mean_samples(self) -> float:
        return self.samples / len(self.values)

    @property
    def df(self) -> int:
        return len(self.values) - 2

    @property
    def runs_factor(self) -> float:
        """The variance of a difference of means in variances of one run."""
        return 1 / self.num_base + 1 / (len(self.values) - self.num_base)


@dataclass(frozen=True, slots=True)
class _Prior:
    """The variance that all functions share, and how much it weighs.

    Attributes:
        noise: Relative variance between runs beside sampling.
        shared_df: Degrees of freedom that it stands for.
        scale: Factor of the trend.
        df: Degrees of freedom of an estimate.
    """

    noise: float
    shared_df: float
    scale: float
    df: float

    @classmethod
    def of(cls, rows: Sequence[_Row]) -> "_Prior":
        if not rows:
            return cls(0.0, 0.0, 1.0, 1.0)
        df = rows[0].df
        noise = _noise(rows)
        if len(rows) < 3:
            return cls(noise, 0.0, 1.0, float(df))
        ratios = [max(row.variance, 1e-300) / (1 / row.mean_samples + noise) for row in rows]
        logs = [math.log(ratio) - digamma(df / 2) + math.log(df / 2) for ratio in ratios]
        spread = variance(logs) - trigamma(df / 2)
        if spread > 0.001:
            shared_df = 2 * inverse_trigamma(spread)
            scale = math.exp(fmean(logs) + digamma(shared_df / 2) - math.log(shared_df / 2))
        else:
            shared_df, scale = math.inf, fmean(ratios)
        shared_df = min(shared_df, float(df * len(rows)))
        return cls(noise, shared_df, scale, shared_df + df)

    def shared_variance(self, row: _Row) -> float:
        return self.shared_df * self.scale * (1 / row.mean_samples + self.noise)

    def estimate(self, row: _Row) -> Estimate:
        df = self.shared_df + row.df
        run_variance = (self.shared_variance(row) + row.df * row.variance) / df
        error = math.sqrt(run_variance * row.runs_factor)
        return Estimate(row.log_ratio, error, df, run_variance)


def _probability(estimate: Estimate) -> float:
    """The probability of a change of this size, or a larger one, if nothing changed."""
    # Counts that are the same in every run have no variance.
    clear = abs(estimate.log_ratio) / max(estimate.error, 1e-100)
    return 2 * t_survival(min(clear, 1e100), estimate.df)


def _noise(rows: Sequence[_Row]) -> float:
    """Relative variance between runs beside sampling: the median of what the functions with many samples have."""
    factor = rows[0].df / chi_squared_median(rows[0].df)
    large = [row for row in rows if row.mean_samples >= _TREND_SAMPLES]
    if len(large) < _LEAST_OF_TREND:
        large = sorted(rows, key=lambda row: -row.mean_samples)[:_LEAST_OF_TREND]
    return max(0.0, median(factor * row.variance - 1 / row.mean_samples for row in large))


def _adjusted(p: Sequence[float]) -> list[float]:
    """Probabilities adjusted by Benjamini and Hochberg."""
    order = sorted(range(len(p)), key=lambda place: -p[place])
    result, least = [0.0] * len(p), 1.0
    for rank, place in zip(range(len(p), 0, -1), order, strict=True):
        least = min(least, p[place] * len(p) / rank)
        result[place] = least
    return result


def _permuted(rows: Sequence[_Row], prior: _Prior) -> list[float]:
    """For each row, the share of assignments of the runs to sides whose largest statistic is at least that of the row.

    With the values of a row divided by their mean and h the sum of the runs of the second side minus its expected
    value, both the difference of means and the variance within sides depend on h alone. Sums of up to ten runs are
    tabulated by the core, so a statistic takes a few additions.
    """
    num_runs, num_base = len(rows[0].values), rows[0].num_base
    factor = rows[0].runs_factor
    prepared = []
    for row in rows:
        mean = fmean(row.values)
        centred = [value / mean - 1 for value in row.values]
        squares = sum(value * value for value in centred)
        within = max((prior.shared_variance(row) + squares) * factor, 1e-300)
        prepared.append((centred, within, prior.shared_df + row.df))
    assignments = _assignments(num_runs, num_runs - num_base, len(rows))
    observed, largest = _core.largest_statistics(prepared, assignments, _CHUNK_RUNS, factor)
    ordered = sorted(math.sqrt(value) for value in largest)
    return [_share_from(ordered, math.sqrt(value) * (1 - _TOLERANCE) - _TOLERANCE) for value in observed]


def _share_from(ordered: Sequence[float], least: float) -> float:
    return (len(ordered) - bisect_left(ordered, least)) / len(ordered)


def _assignments(num_runs: int, num_new: int, num_rows: int) -> list[list[int]]:
    """For each chunk of runs, a mask of those that are on the second side, by assignment.

    The first assignment is the observed one.
    """
    observed = tuple(range(num_runs - num_new, num_runs))
    if math.comb(num_runs, num_new) <= _ALL_ASSIGNMENTS:
        rest = [one for one in combinations(range(num_runs), num_new) if one != observed]
    else:
        drawn, runs = random.Random(_SEED), range(num_runs)
        number = min(_MOST_DRAWN, max(_LEAST_DRAWN, _STATISTICS // num_rows))
        rest = [tuple(drawn.sample(runs, num_new)) for _ in range(number)]
    masks = [sum(1 << run for run in one) for one in (observed, *rest)]
    return [[mask >> start & ((1 << _CHUNK_RUNS) - 1) for mask in masks] for start in range(0, num_runs, _CHUNK_RUNS)]


def _relative(log_ratio: float) -> float:
    return math.expm1(min(log_ratio, 700.0))


_QUANTILES: dict[tuple[float, float], float] = {}


def _quantile(probability: float, df: float) -> float:
    key = (probability, df)
    if key not in _QUANTILES:
        if len(_QUANTILES) > 1000:
            _QUANTILES.clear()
        _QUANTILES[key] = t_quantile(probability, df)
    return _QUANTILES[key]
