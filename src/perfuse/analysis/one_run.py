"""The uncertainty of a change between two single runs: how uneven each was in time, and an assumed noise between runs.

One run shows how uneven a function is over its time, not how well it repeats: nothing is proven by it.
"""

import math
from collections.abc import Sequence
from statistics import fmean

from perfuse.analysis.run_changes import Estimate

NOISE = 0.05
"""Relative standard deviation between runs that is assumed."""

BLOCKS = 8
"""Blocks of consecutive bins that a run is cut into."""


def block_variance(bins: Sequence[float], length: int | None = None) -> float:
    """The variance of the sum of the bins, from all blocks of consecutive bins: the moving-block bootstrap of a sum.

    Args:
        bins: Sums by equal parts of the time.
        length: Bins of a block; an eighth of all by default.
    """
    length = length or max(len(bins) // BLOCKS, 1)
    if len(bins) < length:
        return 0.0
    block = sum(bins[:length])
    blocks = [block]
    for leaving, coming in zip(bins, bins[length:], strict=False):
        block += coming - leaving
        blocks.append(block)
    mean = fmean(blocks)
    return len(bins) / length * fmean([(one - mean) ** 2 for one in blocks])


def one_run_change(
    base: float,
    new: float,
    samples: tuple[float, float],
    bins: tuple[Sequence[float], Sequence[float]] = ((), ()),
    *,
    noise: float = NOISE,
    length: int | None = None,
) -> Estimate | None:
    """The change of a number between two runs; None where it is 0 in both.

    Args:
        base: The number in the first run.
        new: The number in the second run.
        samples: Number of samples that each is made of.
        bins: The numbers by equal parts of the time; empty where they have no times.
        noise: Relative standard deviation between runs.
        length: Bins of a block; an eighth of all by default.
    """
    if base + new <= 0 or sum(samples) <= 0:
        return None
    half = 0.5 * (base + new) / sum(samples)
    of_blocks = sum(block_variance(one, length) / sum(one) ** 2 for one in bins if sum(one))
    of_sampling = sum(1 / (count + 0.5) for count in samples)
    variance = max(of_blocks, of_sampling) + 2 * noise**2
    num_blocks = min((len(one) / (length or max(len(one) // BLOCKS, 1)) for one in bins if one), default=BLOCKS)
    df = max(2 * (num_blocks - 1), 1.0)
    return Estimate(math.log((new + half) / (base + half)), math.sqrt(variance), df, variance / 2)
