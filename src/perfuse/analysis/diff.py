"""The difference of two profiles by function: changed, new and gone functions."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from perfuse.analysis.function_graph import FunctionGraph, GraphFunction, StatisticValues
from perfuse.errors import UsageError

State = Literal["changed", "same", "new", "gone"]


@dataclass(frozen=True, slots=True)
class Change:
    """A number in both profiles; None where it is unknown, or the function does not occur."""

    a: int | None
    b: int | None

    @property
    def difference(self) -> int:
        """The increase; an unknown number counts as 0."""
        return (self.b or 0) - (self.a or 0)

    @property
    def ratio(self) -> float | None:
        """The increase relative to the first number: 0.5 is an increase by half. None where that is unknown or 0."""
        return self.difference / self.a if self.a and self.b is not None else None


@dataclass(frozen=True, slots=True)
class FunctionChange:
    """A function in both profiles.

    Attributes:
        key: Its index in `Difference.functions`.
        a: The function of the first profile; None where it is new.
        b: The function of the second profile; None where it is gone.
        figures: Its numbers, by statistic.
    """

    key: int
    a: GraphFunction | None
    b: GraphFunction | None
    figures: Mapping[str, Change]

    @property
    def named(self) -> GraphFunction:
        """The function of the second profile, or of the first where it is gone."""
        one = self.b or self.a
        assert one is not None
        return one

    @property
    def state(self) -> State:
        """Whether it changed."""
        if self.a is None or self.b is None:
            return "new" if self.a is None else "gone"
        return "changed" if any(one.a != one.b for one in self.figures.values()) else "same"


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """Calls of one function by another in both profiles."""

    caller: FunctionChange
    callee: FunctionChange
    figures: Mapping[str, Change]


class Difference:
    """The difference of two profiles.

    Functions match where their names and the file names of their modules are equal; then, for renamed programs, where
    their names are equal. Functions of equal names are paired in the order in which their recordings number them.

    Args:
        a: The first profile, before.
        b: The second profile, after.

    Raises:
        UsageError: One has calls and the other samples, one has neither, or their units differ.
    """

    def __init__(self, a: FunctionGraph, b: FunctionGraph) -> None:
        for one in (a, b):
            if not one.functions:
                raise UsageError(f"neither calls nor samples with a stack in {one.title}")
        if a.kind != b.kind:
            raise UsageError(f"the first has {a.kind}, the second {b.kind}", hint="give two of a kind")
        if a.unit != b.unit:
            has_ticks = "ticks" in (a.unit, b.unit)
            hint = "give the rate of the counter with --tsc-hz" if has_ticks else "choose an event both have"
            raise UsageError(f"the first counts {a.unit}, the second {b.unit}", hint=hint)
        self.a, self.b = a, b
        self.statistics = a.statistics
        self._pairs = _paired(a.functions, b.functions)

    @cached_property
    def functions(self) -> list[FunctionChange]:
        """All functions of both profiles."""
        found = []
        for place, (one, other) in enumerate(self._pairs):
            a = None if one is None else self.a.functions[one]
            b = None if other is None else self.b.functions[other]
            found.append(FunctionChange(place, a, b, self._figures(a.values if a else None, b.values if b else None)))
        return found

    @cached_property
    def edges(self) -> list[EdgeChange]:
        """All calls of one function by another, in both profiles; none where the graphs have no edges."""
        in_a = {one: place for place, (one, _) in enumerate(self._pairs) if one is not None}
        in_b = {other: place for place, (_, other) in enumerate(self._pairs) if other is not None}
        a = {(in_a[caller], in_a[callee]): values for (caller, callee), values in self.a.edges.items()}
        b = {(in_b[caller], in_b[callee]): values for (caller, callee), values in self.b.edges.items()}
        functions = self.functions
        return [
            EdgeChange(functions[caller], functions[callee], self._figures(a.get(ends), b.get(ends)))
            for ends in dict.fromkeys((*a, *b))
            for caller, callee in [ends]
        ]

    def top(self, limit: int | None = None, *, order: str = "self") -> list[FunctionChange]:
        """Functions that differ, those with the largest change first.

        Args:
            limit: Largest number of rows; None for all.
            order: Statistic whose change to sort by; `name` is from A to Z.

        Raises:
            UsageError: There is no such statistic.
        """
        orders = (*self.statistics, "name")
        if order not in orders:
            raise UsageError(f"the order of {self.a.kind} is one of {', '.join(orders)}, not {order!r}", field="order")

        def rank(one: FunctionChange) -> tuple[int, str, str]:
            size = 0 if order == "name" else abs(one.figures[order].difference)
            return -size, one.named.name, one.named.module or ""

        return sorted((one for one in self.functions if one.state != "same"), key=rank)[:limit]

    def _figures(self, a: StatisticValues | None, b: StatisticValues | None) -> dict[str, Change]:
        return {name: Change(a[name] if a else None, b[name] if b else None) for name in self.statistics}


def _paired(a: Mapping[int, GraphFunction], b: Mapping[int, GraphFunction]) -> list[tuple[int | None, int | None]]:
    pairs: list[tuple[int | None, int | None]] = []
    left_a, left_b = list(a), list(b)
    for with_module in (True, False):
        waiting = defaultdict(list)
        for key in reversed(left_b):
            waiting[_identity(b[key], with_module)].append(key)
        alone, left_a = left_a, []
        for key in alone:
            same = waiting[_identity(a[key], with_module)]
            if same:
                pairs.append((key, same.pop()))
            else:
                left_a.append(key)
        met = {other for _, other in pairs}
        left_b = [key for key in left_b if key not in met]
    return [*pairs, *((key, None) for key in left_a), *((None, key) for key in left_b)]


def _identity(one: GraphFunction, with_module: bool) -> tuple[str, str]:
    return one.name, (one.module or "").rsplit("/", 1)[-1] if with_module else ""
