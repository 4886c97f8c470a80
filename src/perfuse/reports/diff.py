"""The report of what differs between two profiles: data, JSON, CSV, text."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfuse.analysis.diff import Change, Difference, FunctionChange
from perfuse.analysis.function_graph import FunctionGraph
from perfuse.reports.grid import Cell, Column, Ranked, fields, fitted, section
from perfuse.reports.inputs import Input, inputs
from perfuse.reports.measured_text import number_text
from perfuse.reports.names import function_text, where_text
from perfuse.reports.text import Role, Style, cell_width, cut_middle
from perfuse.reports.units import count_text, counted

if TYPE_CHECKING:
    from perfuse.profile import Profile


STATES = ("changed", "new", "gone", "undecided", "same")
_NAMED = ("name", "module", "path", "line", "column")


@dataclass(frozen=True, slots=True)
class DiffReport:
    """The report of `perfuse diff`.

    Attributes:
        difference: The comparison.
        inputs: The files of each side.
        order: The statistic by whose change functions are sorted.
        counts: Number of functions by state.
        functions: The functions with the largest changes.
    """

    difference: Difference
    inputs: tuple[list[Input], list[Input]]
    order: str
    counts: dict[str, int]
    functions: list[FunctionChange]

    @property
    def num_left_out(self) -> int:
        """The number of functions that differ and are not listed."""
        return sum(self.counts[state] for state in STATES if state != "same") - len(self.functions)

    def as_json(self) -> dict[str, Any]:
        """The documented JSON of `diff --json`."""
        sides = {"a": self.difference.a, "b": self.difference.b}
        return {
            "kind": self.difference.a.kind,
            "unit": self.difference.a.unit,
            **{name: _side_json(side, of) for (name, side), of in zip(sides.items(), self.inputs, strict=True)},
            "sort": self.order,
            "num_functions": self.counts,
            "matched": {side: self.difference.matched_share(side) for side in ("a", "b")},
            "functions": [_function_json(one) for one in self.functions],
        }


def diff_report(
    profiles: tuple[Profile, Profile], difference: Difference, *, order: str = "self", limit: int | None = 10
) -> DiffReport:
    """Collects the report.

    Raises:
        UsageError: The order is unknown.
    """
    top = difference.top(limit, order=order)
    counts: Counter[str] = Counter(one.state for one in difference.functions)
    a, b = profiles
    return DiffReport(difference, (inputs(a), inputs(b)), order, {state: counts[state] for state in STATES}, top)


def csv_lines(report: DiffReport) -> Iterator[str]:
    """One line per function: each statistic of both sides, the difference and the ratio; unknown values are empty."""
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
        "evidence": one.evidence,
        "figures": {name: _change_json(figure) for name, figure in one.figures.items()},
    }


def _change_json(one: Change) -> dict[str, Any]:
    return {"a": one.a, "b": one.b, "difference": one.difference, "ratio": one.ratio}


NAME_COMFORT = 26
_LARGE_RATIO = 10
# Columns with the highest rank are left out first; the column of the sort order always stays.
_RANKS = {"count": 2, "self": 0, "sum": 6, "total": 5, "min": 9, "median": 3, "p90": 8, "p99": 4, "max": 7}
_ORDER_WORDS = {
    "count": "number of calls",
    "self": "self time",
    "sum": "sum of durations",
    "total": "time on the stack",
    "min": "shortest call",
    "median": "median",
    "p90": "90th percentile",
    "p99": "99th percentile",
    "max": "longest call",
}


def diff_lines(report: DiffReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    a, b = report.difference.a, report.difference.b
    counts = report.counts
    whole = change_text(Change(a.whole, b.whole), "self", a.unit)
    states = ", ".join(f"{count_text(count)} {state}" for state, count in counts.items() if count)
    pairs: list[tuple[str, Cell]] = [
        ("a", _side_text(a)),
        ("b", _side_text(b)),
        ("change", f"{whole[0]} ({whole[1]})"),
        ("functions", states or "none"),
    ]
    if counts["undecided"]:
        shares = {side: report.difference.matched_share(side) for side in ("a", "b")}
        known = ", ".join(f"{share:.1%} of {side}" for side, share in shares.items() if share is not None)
        pairs.append(("matched", f"{known}; an undecided function shares its name with others of the other side"))
    yield from fields(pairs, style, indent="")
    order = f"by change of {_ORDER_WORDS.get(report.order, report.order)}" if report.order != "name" else "by name"
    if a.kind == "samples":
        order = order.replace("number of calls", "number of samples")
    if report.functions:
        yield from section("Functions", style, order)
        yield from fitted(_table_columns(report), style)
        if report.num_left_out:
            yield style.paint(f"  {count_text(report.num_left_out)} more (--limit 0 shows all)", Role.FAINT)


def change_text(change: Change, statistic: str, unit: str) -> tuple[str, str]:
    """`+1.42 s` and `+31.2%`; `x12.3` for large ratios, `new` and `gone` where one side has none."""
    if not change.is_comparable:
        return "-", ""
    sign = "+" if change.difference > 0 else ""
    amount = f"{sign}{number_text(change.difference, statistic, unit)}"
    if change.ratio is None:
        return amount, "new" if change.difference > 0 else "gone" if change.difference < 0 else ""
    if change.ratio >= _LARGE_RATIO:
        return amount, f"x{change.ratio + 1:,.1f}"
    return amount, f"{change.ratio:+.1%}" if change.difference else "="


def _side_text(side: FunctionGraph) -> str:
    # Collapsed stacks have samples of no named event.
    event = f" of {side.event}" if side.event and side.event != side.kind else ""
    whole = number_text(side.whole, "self", side.unit) + ("" if side.unit == "ns" else f" {side.unit}")
    return f"{side.title}: {counted(side.num_counted, side.kind.removesuffix('s'))}{event}, {whole}"


def _table_columns(report: DiffReport) -> list[Ranked]:
    unit, rows = report.difference.a.unit, report.functions
    figures = {name: [one.figures[name] for one in rows] for name in report.difference.statistics}
    columns = [
        _figure_column("self", figures["self"], unit, 0),
        _sides_column(figures["self"], unit),
        _name_column(rows),
    ]
    # The column of the sort order is the first of the others.
    for name in sorted(figures, key=lambda name: name != report.order):
        is_known = any(one.is_comparable for one in figures[name])
        if name != "self" and (is_known or name == report.order):
            columns.append(_figure_column(name, figures[name], unit, 0 if name == report.order else _RANKS[name]))
    where = [where_text(one.named) for one in rows]
    if any(where):
        columns.append(Ranked(Column("where", role=Role.FAINT, shrinks=8, cut=cut_middle), where, 4, comfort=14))
    return columns


def _figure_column(name: str, changes: Sequence[Change], unit: str, rank: int) -> Ranked:
    texts = [change_text(one, name, unit) for one in changes]
    width = max((cell_width(ratio) for _, ratio in texts), default=0)
    role = [Role.WARNING if one.difference > 0 else Role.GOOD if one.difference else Role.FAINT for one in changes]
    cells: list[Cell] = [(f"{text} {ratio:>{width}}", role[row]) for row, (text, ratio) in enumerate(texts)]
    return Ranked(Column(name, right=True), cells, rank)


def _sides_column(changes: Sequence[Change], unit: str) -> Ranked:
    pairs = [(number_text(one.a, "self", unit), number_text(one.b, "self", unit)) for one in changes]
    width = max((cell_width(after) for _, after in pairs), default=0)
    return Ranked(Column("a > b", right=True), [f"{before} > {after:>{width}}" for before, after in pairs], 1)


def _name_column(rows: Sequence[FunctionChange]) -> Ranked:
    cells: list[Cell] = [function_text(one.named.name) for one in rows]
    return Ranked(Column("function", shrinks=16), cells, comfort=NAME_COMFORT)
