"""Student's t distribution, the median of chi-squared, and the derivatives of the logarithm of the gamma function.

The formulas are in Abramowitz and Stegun, Handbook of Mathematical Functions: 6.3.5, 6.3.18, 6.4.6, 6.4.11 (gamma),
6.5.29 (incomplete gamma), 26.5.8 (incomplete beta), 26.7.1 (t). `tests/analysis/test_student.py` compares them with
SciPy. They are here because SciPy would be the largest dependency by far, and slow to import.
"""

import math
from collections.abc import Callable

_ASYMPTOTIC_FROM = 15.0
_EPSILON = 1e-16
_TINY = 1e-300
_MAX_STEPS = 100_000

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
"""Bernoulli numbers B2, B4, ..., B14."""


def digamma(x: float) -> float:
    """The derivative of `ln(gamma(x))`, for x > 0."""
    result = 0.0
    while x < _ASYMPTOTIC_FROM:
        result -= 1 / x
        x += 1
    series = sum(b / (2 * n * x ** (2 * n)) for n, b in enumerate(_BERNOULLI, 1))
    return result + math.log(x) - 1 / (2 * x) - series


def trigamma(x: float) -> float:
    """The second derivative of `ln(gamma(x))`, for x > 0."""
    result = 0.0
    while x < _ASYMPTOTIC_FROM:
        result += 1 / x**2
        x += 1
    return result + 1 / x + 1 / (2 * x**2) + sum(b / x ** (2 * n + 1) for n, b in enumerate(_BERNOULLI, 1))


def _tetragamma(x: float) -> float:
    """The third derivative of `ln(gamma(x))`, for x > 0."""
    result = 0.0
    while x < _ASYMPTOTIC_FROM:
        result -= 2 / x**3
        x += 1
    series = sum((2 * n + 1) * b / x ** (2 * n + 2) for n, b in enumerate(_BERNOULLI, 1))
    return result - 1 / x**2 - 1 / x**3 - series


def inverse_trigamma(value: float) -> float:
    """The x > 0 with `trigamma(x) == value`, by Newton's method on the reciprocal, which is nearly linear."""
    x = 0.5 + 1 / value
    for _ in range(_MAX_STEPS):
        here = trigamma(x)
        step = here * (1 - here / value) / _tetragamma(x)
        x += step
        if abs(step / x) < 1e-13:
            break
    return x


def t_survival(t: float, df: float) -> float:
    """The probability that a t-distributed number with `df` degrees of freedom is greater than t."""
    tail = 0.5 * _incomplete_beta(df / 2, 0.5, df, t * t)
    return tail if t >= 0 else 1 - tail


def t_quantile(probability: float, df: float) -> float:
    """The t that a t-distributed number is at most with a probability between 0 and 1."""
    if probability < 0.5:
        return -t_quantile(1 - probability, df)
    tail = 1 - probability
    return _root(lambda t: t_survival(t, df) - tail)


def chi_squared_median(df: float) -> float:
    """The median of the chi-squared distribution."""
    return 2 * _root(lambda x: 0.5 - _lower_gamma(df / 2, x))


def _root(falling: Callable[[float], float]) -> float:
    """Where a falling function of positive numbers is 0, by bisection to the last digit."""
    low, high = 0.0, 1.0
    while falling(high) > 0:
        low, high = high, high * 2
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if falling(middle) > 0:
            low = middle
        else:
            high = middle


def _incomplete_beta(a: float, b: float, part: float, rest: float) -> float:
    """The regularized incomplete beta function of `part / (part + rest)`; the two are given because x may be near 1."""
    x, y = part / (part + rest), rest / (part + rest)
    if not y:
        return 1.0
    if not x:
        return 0.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(y))
    if x > (a + 1) / (a + b + 2):
        return 1 - front * _beta_fraction(b, a, y) / b
    return front * _beta_fraction(a, b, x) / a


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    result = d
    for n in range(1, _MAX_STEPS):
        for factor in (
            n * (b - n) * x / ((a + 2 * n - 1) * (a + 2 * n)),
            -(a + n) * (a + b + n) * x / ((a + 2 * n) * (a + 2 * n + 1)),
        ):
            d = 1 / _not_zero(1 + factor * d)
            c = _not_zero(1 + factor / c)
            result *= c * d
        if abs(c * d - 1) < _EPSILON:
            break
    return result


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _lower_gamma(a: float, x: float) -> float:
    """The regularized lower incomplete gamma function, by its series."""
    if not x:
        return 0.0
    term = total = 1 / a
    for n in range(1, _MAX_STEPS):
        term *= x / (a + n)
        total += term
        if term < total * _EPSILON:
            break
    return total * math.exp(a * math.log(x) - x - math.lgamma(a))
