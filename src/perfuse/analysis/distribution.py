"""How a number is spread: exact, from all values."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Distribution:
    """Some values: their number, sum and percentiles. A percentile is the least one that so many percent do not exceed.

    Attributes:
        count: How many there are.
        sum: What they add up to.
        min: Least; 0 where there are none, as all that follow.
        median: Half of them are no greater.
        p90: 90 % of them are no greater.
        p99: 99 % of them are no greater.
        max: Greatest.
    """

    count: int
    sum: int
    min: int
    median: int
    p90: int
    p99: int
    max: int

    @property
    def mean(self) -> float:
        """Sum by count; 0 where there are none."""
        return self.sum / self.count if self.count else 0.0


def distribution_of(values: Sequence[int]) -> Distribution:
    """The spread of some values.

    >>> distribution_of([30, 10, 20])
    Distribution(count=3, sum=60, min=10, median=20, p90=30, p99=30, max=30)
    """
    ordered = sorted(values)
    if not ordered:
        return Distribution(0, 0, 0, 0, 0, 0, 0)

    def percentile(percent: int) -> int:
        return ordered[max(-(-len(ordered) * percent // 100), 1) - 1]

    return Distribution(
        len(ordered), sum(ordered), ordered[0], percentile(50), percentile(90), percentile(99), ordered[-1]
    )


def sum_by_bin(points: Sequence[tuple[int, int]], span: tuple[int, int], bins: int) -> list[int]:
    """Values added up by when they are: `bins` equal parts of a span of time, those outside of it in the outer ones."""
    start, end = span
    sums = [0] * bins
    for time, value in points:
        at = (time - start) * bins // max(end - start, 1)
        sums[min(max(at, 0), bins - 1)] += value
    return sums
