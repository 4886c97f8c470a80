"""What is different between two profiles: gathered once, then printed or given as JSON or CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfuse.analysis.diff import Change, Difference, FunctionChange
from perfuse.analysis.function_graph import FunctionGraph
from perfuse.reports.inputs import Input, inputs

if TYPE_CHECKING:
    from perfuse.profile import Profile

STATES = ("changed", "new", "gone", "same")
_NAMED = ("name", "module", "path", "line")


@dataclass(frozen=True, slots=True)
class DiffReport:
    """Everything `perfuse diff` tells.

    Attributes:
        difference: What was compared.
        inputs: The files of either.
        order: Which statistic's change functions are sorted by.
        counts: Number of functions by state.
        functions: Those that changed most.
    """

    difference: Difference
    inputs: tuple[list[Input], list[Input]]
    order: str
    counts: dict[str, int]
    functions: list[FunctionChange]

    @property
    def num_left_out(self) -> int:
        """Functions that differ, and are not listed."""
        return sum(self.counts[state] for state in STATES if state != "same") - len(self.functions)

    def as_json(self) -> dict[str, Any]:
        """The contract of `diff --json`."""
        sides = {"a": self.difference.a, "b": self.difference.b}
        return {
            "kind": self.difference.a.kind,
            "unit": self.difference.a.unit,
            **{name: _side_json(side, of) for (name, side), of in zip(sides.items(), self.inputs, strict=True)},
            "sort": self.order,
            "num_functions": self.counts,
            "functions": [_function_json(one) for one in self.functions],
        }


def diff_report(
    profiles: tuple[Profile, Profile], difference: Difference, *, order: str = "self", limit: int | None = 10
) -> DiffReport:
    """Gathers the report.

    Raises:
        UsageError: There is no such order.
    """
    top = difference.top(limit, order=order)
    counts: Counter[str] = Counter(one.state for one in difference.functions)
    a, b = profiles
    return DiffReport(difference, (inputs(a), inputs(b)), order, {state: counts[state] for state in STATES}, top)


def csv_lines(report: DiffReport) -> Iterator[str]:
    """A line a function: each number on both sides, its difference and its ratio; what is not known is empty."""
    of_each = ("a", "b", "difference", "ratio")
    names = [f"{name}_{part}" for name in report.difference.statistics for part in of_each]
    yield _csv_line([*_NAMED, "state", *names])
    for one in report.functions:
        numbers = [getattr(figure, part) for figure in one.figures.values() for part in of_each]
        yield _csv_line([*(getattr(one.named, name) for name in _NAMED), one.state, *numbers])


def _csv_line(values: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return line.getvalue()


def _side_json(side: FunctionGraph, of: list[Input]) -> dict[str, Any]:
    return {
        "title": side.title,
        "inputs": [asdict(one) for one in of],
        "event": side.event,
        "num_counted": side.num_counted,
        "num_functions": len(side.functions),
        "self": side.whole,
    }


def _function_json(one: FunctionChange) -> dict[str, Any]:
    return {
        **{name: getattr(one.named, name) for name in _NAMED},
        "state": one.state,
        "figures": {name: _change_json(figure) for name, figure in one.figures.items()},
    }


def _change_json(one: Change) -> dict[str, Any]:
    return {"a": one.a, "b": one.b, "difference": one.difference, "ratio": one.ratio}
