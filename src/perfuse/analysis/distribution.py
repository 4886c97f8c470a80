"""Distributions of numbers: exact percentiles, and sums by time."""

from collections.abc import Sequence

from perfuse.value_class import value_class


@value_class
class Distribution:
    """Number, sum and percentiles of values. A percentile is the smallest value that so many percent do not exceed.

    Attributes:
        count: Number of values.
        sum: Their sum.
        min: The smallest; 0 without values, as all following.
        median: 50th percentile.
        p90: 90th percentile.
        p99: 99th percentile.
        max: The largest.
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
        """`sum` divided by `count`; 0 without values."""
        return self.sum / self.count if self.count else 0.0


def distribution_of(values: Sequence[int]) -> Distribution:
    """The distribution of values.

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
    """Sums of `(time, value)` points in `bins` equal parts of a time span; points outside go to the outermost parts."""
    start, end = span
    sums = [0] * bins
    for time, value in points:
        at = (time - start) * bins // max(end - start, 1)
        sums[min(max(at, 0), bins - 1)] += value
    return sums
