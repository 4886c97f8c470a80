"""What the numbers of runs are divided by before they are compared: nothing, work, the whole, or the speed of a run."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal, get_args

from perfuse.errors import UsageError

Method = Literal["run", "share", "typical", "work"]
METHODS: tuple[str, ...] = get_args(Method)[:3]
"""How runs are made comparable, for users:

- `run`: not at all, which is right for programs that do the same work in each run
- `share`: divided by the whole of the run; what grows makes all else shrink
- `typical`: divided by the typical change of the run's functions, which removes the speed of the machine
"""

_LEAST_SAMPLES_OF_TYPICAL = 20
_LEAST_FUNCTIONS_OF_TYPICAL = 30


@dataclass(frozen=True, slots=True)
class Normalization:
    """How runs are made comparable.

    Attributes:
        method: `run`, `share`, `typical`, or `work`, which divides by units of work.
        work: For `work`: what is counted.
        units: For `work`: the number of units in each run of both sides.
    """

    method: Method = "run"
    work: str | None = None
    units: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())


Factors = tuple[Sequence[float], Sequence[float]]
"""A divisor for each run of both sides."""


@dataclass(frozen=True, slots=True)
class Divisors:
    """Divisors of the runs of both sides.

    Attributes:
        of_sums: For sums over a run.
        of_calls: For durations of single calls.
        of_whole: For the sum over all functions.
        of_counts: For numbers of calls or samples; None where they are divided as other sums are.
    """

    of_sums: Factors
    of_calls: Factors
    of_whole: Factors
    of_counts: Factors | None = None

    def of(self, kind: Literal["count", "sum", "call"]) -> Factors:
        """For a statistic that is a number of calls or samples, another sum, or a duration of single calls."""
        if kind == "count" and self.of_counts is not None:
            return self.of_counts
        return self.of_calls if kind == "call" else self.of_sums


def divisors(
    normalization: Normalization,
    wholes: Sequence[Sequence[float]],
    counts: Sequence[Sequence[float]],
    numbers: Callable[[], Sequence[tuple[Sequence[float | None], Sequence[float | None]]]],
    samples: Callable[[], Sequence[float]],
) -> Divisors:
    """The divisors of runs.

    Args:
        normalization: How runs are made comparable.
        wholes: The sum of all functions in each run of both sides.
        counts: The number of all calls or samples in each run of both sides.
        numbers: Computes the number of each function in each run of both sides.
        samples: Computes the number of samples of each function in all runs.

    Raises:
        UsageError: A run has no weight or no work to divide by, or too few functions for a typical change.
    """
    ones = [1.0] * len(wholes[0]), [1.0] * len(wholes[1])
    if normalization.method == "share":
        if not all(map(all, wholes)):
            raise UsageError(
                "a run has no weight, hence no shares", field="normalize", hint="compare with --normalize run"
            )
        base, new = ([count or 1.0 for count in side] for side in counts)
        return Divisors((wholes[0], wholes[1]), ones, ones, (base, new))
    if normalization.method == "work":
        for units in normalization.units:
            if min(units, default=0) <= 0:
                raise UsageError(f"a run has no {normalization.work}", hint="each run needs some work to divide by")
        return Divisors(normalization.units, ones, normalization.units)
    if normalization.method == "typical":
        factors = _typical(numbers(), samples(), len(wholes[0]), len(wholes[1]))
        return Divisors(factors, factors, ones)
    return Divisors(ones, ones, ones)


def typical_factors(rows: Sequence[Sequence[float]]) -> list[float]:
    """The speed of each run: the median, over numbers that are in all runs, of their ratios to their means (as DESeq2
    has it), with a geometric mean of 1."""
    logs = [[math.log(value) for value in row] for row in rows]
    means = [fmean(row) for row in logs]
    medians = [median(row[run] - mean for row, mean in zip(logs, means, strict=True)) for run in range(len(rows[0]))]
    mean = fmean(medians)
    return [math.exp(one - mean) for one in medians]


def _typical(
    numbers: Sequence[tuple[Sequence[float | None], Sequence[float | None]]],
    samples: Sequence[float],
    num_base: int,
    num_new: int,
) -> Factors:
    least = _LEAST_SAMPLES_OF_TYPICAL * (num_base + num_new)
    usable = []
    for (base, new), count in zip(numbers, samples, strict=True):
        row = [value for value in (*base, *new) if value]
        if len(row) == num_base + num_new and count >= least:
            usable.append(row)
    if len(usable) < _LEAST_FUNCTIONS_OF_TYPICAL:
        raise UsageError(
            f"only {len(usable)} functions have {_LEAST_SAMPLES_OF_TYPICAL} samples in each run,"
            f" and a typical change needs {_LEAST_FUNCTIONS_OF_TYPICAL}",
            field="normalize",
            hint="compare with --normalize run or share, or record longer",
        )
    factors = typical_factors(usable)
    return factors[:num_base], factors[num_base:]
