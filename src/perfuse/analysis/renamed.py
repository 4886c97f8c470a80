"""Functions that one side has and that may be a function of the other side with another name.

A guess from who calls them and what they call: it is stated beside the comparison, and changes none of its numbers.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perfuse.analysis.diff import Difference, FunctionChange

Side = Literal["base", "new"]

_LEAST_SHARE = 0.005
"""Of the whole of a side: smaller functions have too few samples for their callers to be known."""
_LEAST_SIMILARITY = 0.8
_SECOND_BEST = 0.6
"""A function that resembles two others to this degree is neither."""
_LARGEST_RATIO = 3.0
_WEIGHTS = (0.6, 0.4)
"""Of callers and of callees."""

_Around = tuple[Mapping[int, float], Mapping[int, float]]
"""Totals of the calls by matched callers, and of matched callees, by their keys."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """A function that may have got another name.

    Attributes:
        old: The function of the first side.
        new: That of the second side.
        similarity: Of their callers and callees: 1 where these have the same shares.
    """

    old: FunctionChange
    new: FunctionChange
    similarity: float


def renamed_functions(difference: Difference) -> list[Renamed]:
    """Pairs of unmatched functions that are called by the same functions and call the same ones, the largest first.

    Known of runs whose graphs have edges.
    """
    old = _unmatched(difference, "base")
    new = _unmatched(difference, "new")
    if not old or not new:
        return []
    around = {side: _around(difference, side) for side in ("base", "new")}
    scores = {
        (a.key, b.key): _similarity(around["base"][a.key], around["new"][b.key])
        for a in old
        for b in new
        if _may_be_one(a, b)
    }
    found = []
    for a in old:
        for b in new:
            score = scores.get((a.key, b.key), 0.0)
            others = [value for (x, y), value in scores.items() if (x == a.key) != (y == b.key)]
            if score >= _LEAST_SIMILARITY and max(others, default=0.0) <= _SECOND_BEST:
                found.append(Renamed(a, b, score))
    return sorted(found, key=lambda one: -(one.old.figures["total"].base or 0))


def _unmatched(difference: Difference, side: Side) -> list[FunctionChange]:
    """Functions that only one side has, with enough of its time."""
    whole = getattr(difference.whole, side) or 0
    functions = [one for one in difference.functions if (one.has_base, one.has_new) == (side == "base", side == "new")]
    if difference.options.normalization.method == "share":
        whole = 1.0
    return [one for one in functions if (getattr(one.figures["total"], side) or 0) >= _LEAST_SHARE * whole > 0]


def _may_be_one(a: FunctionChange, b: FunctionChange) -> bool:
    is_near = (a.named.path or "") == (
        b.named.path or ""
    ) or a.named.identity.module_name == b.named.identity.module_name
    totals = a.figures["total"].base or 0, b.figures["total"].new or 0
    return is_near and max(totals) <= _LARGEST_RATIO * min(totals)


def _around(difference: Difference, side: Side) -> defaultdict[int, _Around]:
    callers: defaultdict[int, dict[int, float]] = defaultdict(dict)
    callees: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for edge in difference.edges:
        weight = getattr(edge.figures["total"], side) or 0
        if not weight:
            continue
        if _is_matched(edge.caller):
            callers[edge.callee.key][edge.caller.key] = weight
        if _is_matched(edge.callee):
            callees[edge.caller.key][edge.callee.key] = weight
    found: defaultdict[int, _Around] = defaultdict(lambda: ({}, {}))
    found.update({key: (callers[key], callees[key]) for key in {*callers, *callees}})
    return found


def _is_matched(one: FunctionChange) -> bool:
    return one.has_base and one.has_new


def _similarity(a: _Around, b: _Around) -> float:
    callers, callees = (_cosine(x, y) for x, y in zip(a, b, strict=True))
    if not a[1] and not b[1]:
        # Two functions that call nothing do not differ in it.
        callees = 1.0
    return _WEIGHTS[0] * callers + _WEIGHTS[1] * callees


def _cosine(a: Mapping[int, float], b: Mapping[int, float]) -> float:
    lengths = math.sqrt(_squares(list(a.values())) * _squares(list(b.values())))
    return sum(weight * b.get(key, 0.0) for key, weight in a.items()) / lengths if lengths else 0.0


def _squares(values: Sequence[float]) -> float:
    return sum(value * value for value in values)
