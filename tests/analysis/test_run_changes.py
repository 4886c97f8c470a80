"""Changes between groups of runs: reference values of SciPy, and of limma as inmoose has it."""

import math
import os
import random
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import pytest

from perfuse.analysis.normalization import typical_factors
from perfuse.analysis.one_run import block_variance, one_run_change
from perfuse.analysis.run_changes import Measured, run_changes, runs_needed, whole_change

BASE = [
    [920, 454, 256, 133, 131, 102, 64, 34],
    [912, 384, 309, 133, 138, 130, 70, 38],
    [954, 396, 278, 175, 146, 107, 69, 39],
    [919, 402, 236, 146, 155, 112, 61, 29],
]
NEW = [
    [823, 482, 282, 163, 131, 107, 52, 30],
    [884, 538, 234, 163, 149, 102, 68, 34],
    [866, 618, 239, 147, 126, 110, 57, 31],
    [910, 521, 227, 175, 157, 117, 60, 37],
]
EXPECTED = [
    # estimate, run variance, t, p, q, interval in percent, p_max, sees
    (-0.06178927, 3.463291e-03, -1.48485, 1.46540e-01, 2.93080e-01, -13.6076, 2.2951, 0.74286, 0.169459),
    (0.27739091, 5.335013e-03, 5.37081, 5.22715e-06, 4.18172e-05, 18.8317, 46.5570, 0.02857, 0.214450),
    (-0.09419866, 6.992187e-03, -1.59314, 1.20128e-01, 2.93080e-01, -19.2843, 2.6177, 0.71429, 0.249107),
    (0.09886588, 8.534769e-03, 1.51344, 1.39152e-01, 2.93080e-01, -3.3191, 26.0472, 0.71429, 0.278571),
    (-0.01235673, 8.278478e-03, -0.19206, 8.48804e-01, 8.48804e-01, -13.3221, 12.5534, 1.00000, 0.273826),
    (-0.03382510, 9.376468e-03, -0.49401, 6.24388e-01, 7.13587e-01, -15.8720, 11.0912, 1.00000, 0.293790),
    (-0.10788896, 1.376855e-02, -1.30031, 2.01997e-01, 3.23195e-01, -24.1441, 6.2427, 0.94286, 0.366326),
    (-0.05884050, 2.273283e-02, -0.55191, 5.84523e-01, 7.13587e-01, -24.0642, 17.0699, 1.00000, 0.493410),
]
"""Computed with SciPy 1.17.1 and NumPy 2.4.6 from the formulas; the shared variance agrees with limma's `fitFDist`."""


def _measured() -> list[Measured]:
    columns = list(zip(zip(*BASE, strict=True), zip(*NEW, strict=True), strict=True))
    return [Measured(base, new, sum(base) + sum(new)) for base, new in columns]


def test_moderated_t_and_permutation() -> None:
    found = run_changes(_measured())
    assert found.noise**2 == pytest.approx(0.004270547565, abs=1e-12)
    assert found.prior_scale == pytest.approx(0.734586952074, abs=1e-12)
    assert found.prior_df == pytest.approx(28.976975597981, abs=1e-9)
    for estimate, expected in zip(found.estimates, EXPECTED, strict=True):
        assert estimate is not None
        ratio, variance, t, p, q, low, high, p_max, sees = expected
        assert estimate.log_ratio == pytest.approx(ratio, abs=1e-8)
        assert estimate.run_variance == pytest.approx(variance, rel=1e-6)
        assert estimate.log_ratio / estimate.error == pytest.approx(t, abs=1e-5)
        assert (estimate.p, estimate.q) == (pytest.approx(p, rel=1e-5), pytest.approx(q, rel=1e-5))
        assert [100 * bound for bound in estimate.bounds()] == pytest.approx([low, high], abs=1e-4)
        assert (estimate.p_max, estimate.sees) == (pytest.approx(p_max, abs=1e-5), pytest.approx(sees, abs=1e-6))


def test_every_step_agrees_with_scipy() -> None:
    """The formulas again, with NumPy and SciPy, and the permutation without its shortcut."""
    if os.environ.get("CI"):
        import scipy  # noqa: F401
    np, stats = pytest.importorskip("numpy"), pytest.importorskip("scipy.stats")
    special = pytest.importorskip("scipy.special")
    for seed, (num_base, num_new) in enumerate([(4, 4), (3, 5), (5, 4)]):
        dice = random.Random(seed)
        rows = [
            [dice.gauss(1, 0.04) * mean for _ in range(num_base + num_new)] for mean in (40, 90, 150, 400, 900, 2000)
        ]
        y = np.array(rows)
        d = num_base + num_new - 2
        means = y[:, :num_base].mean(1), y[:, num_base:].mean(1)
        squares = ((y[:, :num_base] / means[0][:, None] - 1) ** 2).sum(1)
        rv = (squares + ((y[:, num_base:] / means[1][:, None] - 1) ** 2).sum(1)) / d
        mu = y.mean(1)
        largest = np.sort(d / stats.chi2.ppf(0.5, d) * rv[1:] - 1 / mu[1:])  # the five largest have 100 samples or not
        if (mu >= 100).sum() >= 5:
            largest = d / stats.chi2.ppf(0.5, d) * rv[mu >= 100] - 1 / mu[mu >= 100]
        tau2 = max(0.0, float(np.median(largest)))
        s0 = 1 / mu + tau2
        z = np.log(rv / s0) - special.digamma(d / 2) + math.log(d / 2)
        v = z.var(ddof=1) - special.polygamma(1, d / 2)
        if v > 0.001:
            from scipy.optimize import brentq

            d0 = 2 * brentq(lambda x, v=v: special.polygamma(1, x) - v, 1e-3, 1e6, xtol=1e-14)
            k = math.exp(z.mean() + special.digamma(d0 / 2) - math.log(d0 / 2))
        else:
            d0, k = math.inf, float((rv / s0).mean())
        d0 = min(d0, d * len(rows))
        s2 = (d0 * k * s0 + d * rv) / (d0 + d)
        error = np.sqrt(s2 * (1 / num_base + 1 / num_new))
        estimate = np.log(means[1] / means[0])
        p = 2 * stats.t.sf(np.abs(estimate / error), d0 + d)
        reach = stats.t.ppf(0.975, d0 + d) * error

        found = run_changes([Measured(row[:num_base], row[num_base:], sum(row)) for row in rows]).estimates
        for place, one in enumerate(found):
            assert one is not None
            assert one.log_ratio == pytest.approx(float(estimate[place]), abs=1e-12)
            assert one.error == pytest.approx(float(error[place]), rel=1e-9)
            assert one.p == pytest.approx(float(p[place]), rel=1e-9)
            assert one.q == pytest.approx(float(stats.false_discovery_control(p)[place]), rel=1e-9)
            ends = np.expm1(estimate[place] + np.array([-1, 1]) * reach[place])
            assert one.bounds() == pytest.approx([float(end) for end in ends], rel=1e-9)

        statistics = np.array(list(_statistics(y, num_new, d0 * k * s0, d0)))
        for place, one in enumerate(found):
            assert one is not None
            share = (statistics.max(1) >= statistics[-1][place] - 1e-9).mean()
            assert one.p_max == pytest.approx(float(share), abs=1e-12)


def _statistics(y: Any, num_new: int, shared: Any, d0: float) -> Iterator[Any]:
    """The statistic of every row for every assignment of runs; the last one is the observed one."""
    import numpy as np

    num_runs = y.shape[1]
    d = num_runs - 2
    g = y / y.mean(1)[:, None]
    for new in combinations(range(num_runs), num_new):
        is_new = np.isin(np.arange(num_runs), new)
        a, b = g[:, ~is_new], g[:, is_new]
        w = (((a.T - a.mean(1)) ** 2).sum(0) + ((b.T - b.mean(1)) ** 2).sum(0)) / d
        spread = np.sqrt((shared + d * w) / (d0 + d) * (1 / (num_runs - num_new) + 1 / num_new))
        yield np.abs(b.mean(1) - a.mean(1)) / spread


def test_the_whole_is_a_welch_test_of_logarithms() -> None:
    found = whole_change([sum(run) for run in BASE], [sum(run) for run in NEW])
    assert found is not None
    assert found.log_ratio / found.error == pytest.approx(1.367728993, abs=1e-9)
    assert (found.df, found.p) == (pytest.approx(5.427617482, abs=1e-9), pytest.approx(0.225313868, abs=1e-9))
    assert found.log_ratio == pytest.approx(0.024218730, abs=1e-9)
    assert [100 * bound for bound in found.bounds()] == pytest.approx([-2.003797, 7.109224], abs=1e-6)
    assert whole_change([0, 5], [1, 2]) is None


def test_typical_factors() -> None:
    rows = [[*base, *new] for base, new in zip(zip(*BASE, strict=True), zip(*NEW, strict=True), strict=True)]
    expected = [0.974575, 1.057787, 1.063428, 0.955312, 0.938460, 1.020140, 0.935882, 1.065704]
    assert typical_factors(rows) == pytest.approx(expected, abs=1e-6)


ONE = [3, 5, 2, 8, 9, 7, 1, 0, 4, 6, 5, 5, 2, 3, 8, 9, 1, 2, 4, 6]
OTHER = [4, 6, 3, 8, 9, 9, 2, 1, 5, 6, 7, 5, 3, 4, 9, 9, 2, 2, 5, 8]


def test_one_run_a_side() -> None:
    variances = [block_variance(ONE, length) for length in (1, 2, 4, 5)]
    assert variances == pytest.approx([145, 184.210526, 92.214533, 52.4375], abs=1e-6)
    assert block_variance(OTHER, 5) / sum(OTHER) ** 2 == pytest.approx(0.003750328, abs=1e-9)
    found = one_run_change(90, 107, (90, 107), (ONE, OTHER), length=5)
    assert found is not None
    assert found.log_ratio == pytest.approx(0.172140997, abs=1e-9)
    assert (found.error**2, found.df) == (pytest.approx(0.025352049, abs=1e-9), 6)
    assert [100 * bound for bound in found.bounds()] == pytest.approx([-19.544368, 75.373237], abs=1e-6)


def test_functions_of_few_samples_have_an_interval_and_no_test() -> None:
    rows = [*_measured(), Measured([1, 2, 0, 1], [9, 1, 2, 0], 16), Measured([0] * 4, [0] * 4, 0)]
    found = run_changes(rows)
    few, none = found.estimates[-2:]
    assert few is not None
    assert (few.p_max, few.q, few.sees, none, found.num_tested) == (None, None, None, None, 8)
    low, high = few.bounds()
    assert low < 2 < high
    assert high / low > 5


def test_equal_counts_of_every_run_are_certain() -> None:
    """Counts of calls that are the same in every run have no variance; one that changes is certain."""
    rows = [Measured([100.0] * 4, [100.0] * 4, 800), Measured([70.0] * 4, [70.0] * 4, 560)]
    rows += [Measured([100.0] * 4, [101.0] * 4, 804)]
    same, _, changed = run_changes(rows).estimates
    assert same is not None
    assert changed is not None
    assert same.bounds() == pytest.approx((0, 0), abs=1e-9)
    assert changed.bounds() == pytest.approx((0.01, 0.01), abs=1e-6)
    assert changed.p_max == pytest.approx(2 / 70)


def test_functions_that_one_side_lacks_are_no_noise() -> None:
    """Runs of a side that all have 0 do not differ: the noise is that of the others, which is less than Poisson's."""
    steady = [Measured((900.0 + at, 901.0, 902.0, 899.0), (900.0, 903.0, 898.0, 901.0 + at), 7200) for at in range(3)]
    gone = [Measured((500.0, 503.0, 499.0, 501.0), (0.0, 0.0, 0.0, 0.0), 2003)]
    new = [Measured((0.0, 0.0, 0.0, 0.0), (700.0, 699.0, 703.0, 701.0), 2803)]
    assert run_changes([*steady, *gone, *new]).noise == 0
    lost = run_changes([*steady, *gone]).estimates[-1]
    assert lost is not None
    assert lost.bounds()[1] < -0.99


def test_more_noise_needs_more_runs() -> None:
    needed = [runs_needed(0.05, noise**2, 200) for noise in (0.01, 0.03, 0.06)]
    assert needed == sorted(needed)
    # 2 * 0.03^2 * 4.5^2 / ln(1.05)^2 is 15.3; the t distribution adds a few.
    assert 16 <= needed[1] <= 20


def _comparisons(dice: random.Random, count: int, num_runs: int, slower: float = 1.0) -> int:
    """How many comparisons name the first function, or where nothing is slower any function."""
    shares = [0.15, *(0.85 / 29,) * 29]
    found = 0
    for _ in range(count):
        runs: list[Sequence[float]] = []
        for run in range(2 * num_runs):
            speed = dice.gauss(1, 0.03)
            means = [10_000 * share * speed * dice.gauss(1, 0.02) for share in shares]
            means[0] *= slower if run >= num_runs else 1
            runs.append([max(0.0, dice.gauss(mean, math.sqrt(mean))) for mean in means])
        rows = [Measured(row[:num_runs], row[num_runs:], sum(row)) for row in zip(*runs, strict=True)]
        estimates = run_changes(rows).estimates
        named = [one is not None and one.p_max is not None and one.p_max <= 0.05 for one in estimates]
        found += named[0] if slower != 1.0 else any(named)
    return found


def test_equal_programs_are_rarely_named_and_slower_ones_often() -> None:
    """Simulated runs: 5 % of comparisons of equal programs name a function; +10 % of 15 % of the time is found."""
    # The probability of more than 11 of 100, each with 5 %, is 0.4 %.
    assert _comparisons(random.Random(5), 100, 5) <= 11
    assert _comparisons(random.Random(6), 10, 10, slower=1.1) >= 8
