"""Costs that moved from one function to another: by inlining, outlining, or a new name."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from perfuse.analysis.diff import Difference, FunctionChange

How = Literal["inlined", "outlined", "replaced"]
"""The one that has less was called by the one that has more, the opposite, or both have a caller in common."""

_LARGEST_REST = 0.2
"""What is left of the two changes, relative to the larger, where they are one cost."""


@dataclass(frozen=True, slots=True)
class MovedCost:
    """A proven decrease of one function that is the proven increase of another.

    Attributes:
        source: The function that has less.
        target: The function that has more.
        amount: What the target has more.
        how: How the two are related.
        under: Their common caller, where they were replaced.
    """

    source: FunctionChange
    target: FunctionChange
    amount: float
    how: How
    under: FunctionChange | None = None


def moved_costs(difference: Difference) -> list[MovedCost]:
    """The pairs of proven changes that are one cost which moved, the largest first; each function is in one.

    Known of runs whose graphs have edges.
    """
    statistic = difference.options.statistic
    proven = [one for one in difference.functions if one.verdict in ("changed", "new", "gone")]
    more = [one for one in proven if one.figures[statistic].difference > 0]
    less = [one for one in proven if one.figures[statistic].difference < 0]
    callers: defaultdict[int, set[int]] = defaultdict(set)
    for edge in difference.edges if more and less else ():
        callers[edge.callee.key].add(edge.caller.key)
    found = []
    for source, target in product(less, more):
        down, up = (one.figures[statistic].difference for one in (source, target))
        if abs(down + up) > _LARGEST_REST * max(abs(down), up):
            continue
        moved = _related(difference.functions, callers, source, target)
        if moved is not None:
            found.append(MovedCost(source, target, up, *moved))
    used: set[int] = set()
    result = []
    for one in sorted(found, key=lambda one: -one.amount):
        if used.isdisjoint((one.source.key, one.target.key)):
            result.append(one)
            used |= {one.source.key, one.target.key}
    return result


def _related(
    functions: Sequence[FunctionChange],
    callers: defaultdict[int, set[int]],
    source: FunctionChange,
    target: FunctionChange,
) -> tuple[How, FunctionChange | None] | None:
    if target.key in callers[source.key]:
        return "inlined", None
    if source.key in callers[target.key]:
        return "outlined", None
    common = callers[source.key] & callers[target.key]
    return ("replaced", functions[min(common)]) if common else None
