"""The t distribution and the derivatives of the gamma function, compared with SciPy."""

import os
import random

import pytest

from perfuse.analysis import student


def _scipy(module: str) -> object:
    if os.environ.get("CI"):
        __import__(module)
    return pytest.importorskip(module)


def _numbers(seed: int, low: float, high: float, count: int = 200) -> list[float]:
    """Numbers between powers of ten."""
    dice = random.Random(seed)
    return [10 ** dice.uniform(low, high) for _ in range(count)]


@pytest.mark.parametrize("name", ["digamma", "trigamma"])
def test_derivatives_of_the_gamma_function(name: str) -> None:
    special = _scipy("scipy.special")
    for x in _numbers(1, -3, 6):
        expected = special.polygamma(int(name == "trigamma"), x)
        assert getattr(student, name)(x) == pytest.approx(expected, rel=1e-12, abs=1e-13)


def test_the_inverse_of_trigamma() -> None:
    special = _scipy("scipy.special")
    for x in _numbers(2, -2, 5):
        assert student.inverse_trigamma(float(special.polygamma(1, x))) == pytest.approx(x, rel=1e-10)
    assert student.inverse_trigamma(0.05) == pytest.approx(20.495835239, abs=1e-9)
    assert student.inverse_trigamma(2) == pytest.approx(0.876664077, abs=1e-9)


def test_tails_and_quantiles_of_t() -> None:
    stats = _scipy("scipy.stats")
    dice = random.Random(3)
    for df in _numbers(3, 0, 4.6):
        t, p = dice.uniform(-3, 15), dice.uniform(0.001, 0.999999)
        assert student.t_survival(t, df) == pytest.approx(float(stats.t.sf(t, df)), rel=1e-9)
        assert student.t_quantile(p, df) == pytest.approx(float(stats.t.ppf(p, df)), rel=1e-9, abs=1e-12)


def test_medians_of_chi_squared() -> None:
    stats = _scipy("scipy.stats")
    for df in range(1, 200):
        assert student.chi_squared_median(df) == pytest.approx(float(stats.chi2.ppf(0.5, df)), rel=1e-11)
