"""The difference of two profiles by function: changed, new, gone and undecided functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from perfuse.analysis.function_graph import FunctionGraph, GraphFunction, StatisticValues
from perfuse.analysis.function_matching import Evidence, match_functions
from perfuse.errors import UsageError

State = Literal["changed", "same", "new", "gone", "undecided"]


@dataclass(frozen=True, slots=True)
class Change:
    """A number in both profiles; None where it is unknown, or the function does not occur.

    Attributes:
        a: The number in the first profile.
        b: The number in the second profile.
        is_comparable: Whether neither is unknown although the function occurs, as durations of single calls are in a
            recording of sums.
    """

    a: int | None
    b: int | None
    is_comparable: bool = True

    @property
    def difference(self) -> int:
        """The increase; 0 where the numbers cannot be compared."""
        if not self.is_comparable:
            return 0
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
        evidence: What shows that it is the same function in both profiles; None where it is in one.
        is_undecided: Whether the other profile may have it, too: it has functions of this name, and nothing shows which
            is this one.
    """

    key: int
    a: GraphFunction | None
    b: GraphFunction | None
    figures: Mapping[str, Change]
    evidence: Evidence | None = None
    is_undecided: bool = False

    @property
    def named(self) -> GraphFunction:
        """The function of the second profile, or of the first where it is gone."""
        one = self.b or self.a
        assert one is not None
        return one

    @property
    def state(self) -> State:
        """Whether it changed."""
        if self.is_undecided:
            return "undecided"
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

    `match_functions` decides which functions are the same. Functions that share a name and that nothing distinguishes
    are not paired: they are listed for each side.

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
        self._in_a: dict[int, int] = {}
        self._in_b: dict[int, int] = {}
        self.functions = self._match()
        """All functions of both profiles."""

    def _match(self) -> list[FunctionChange]:
        keys = [(*side.functions, *(None for _ in side.unsampled)) for side in (self.a, self.b)]
        sides = [[*(one.identity for one in side.functions.values()), *side.unsampled] for side in (self.a, self.b)]
        matches = match_functions(*sides)
        rows: list[tuple[int | None, int | None, Evidence | None]] = [(m.a, m.b, m.by) for m in matches.pairs]
        rows.sort(key=lambda row: row[0] or 0)
        matched = {m.a for m in matches.pairs}, {m.b for m in matches.pairs}
        rows += [(place, None, None) for place in range(len(self.a.functions)) if place not in matched[0]]
        rows += [(None, place, None) for place in range(len(self.b.functions)) if place not in matched[1]]
        functions: list[FunctionChange] = []
        for in_a, in_b, evidence in rows:
            key_a = None if in_a is None else keys[0][in_a]
            key_b = None if in_b is None else keys[1][in_b]
            if key_a is None and key_b is None:
                continue
            a = None if key_a is None else self.a.functions[key_a]
            b = None if key_b is None else self.b.functions[key_b]
            if key_a is not None:
                self._in_a[key_a] = len(functions)
            if key_b is not None:
                self._in_b[key_b] = len(functions)
            figures = self._figures(a.values if a else None, b.values if b else None)
            is_undecided = in_a in matches.undecided[0] or in_b in matches.undecided[1]
            functions.append(FunctionChange(len(functions), a, b, figures, evidence, is_undecided))
        return functions

    def matched_share(self, side: str) -> float | None:
        """Share of a profile's whole that is in functions which were matched or are new or gone; None where it is 0."""
        graph = self.a if side == "a" else self.b
        undecided = (getattr(one, side) for one in self.functions if one.is_undecided)
        left = sum(one.values["self"] or 0 for one in undecided if one is not None)
        return 1 - left / graph.whole if graph.whole else None

    @cached_property
    def edges(self) -> list[EdgeChange]:
        """All calls of one function by another, in both profiles; none where the graphs have no edges."""
        in_a, in_b = self._in_a, self._in_b
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
        values = {name: (a[name] if a else None, b[name] if b else None) for name in self.statistics}
        in_both = a is not None and b is not None
        return {name: Change(*pair, not (in_both and None in pair)) for name, pair in values.items()}
