"""Section `counters`: last values, and values over time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from perfuse.analysis.counters import CounterValues
from perfuse.analysis.counters import counters as counters_of
from perfuse.reports.grid import Cell, Column, grid, section, sparkline
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext, as_plain
from perfuse.reports.text import Role, Style
from perfuse.reports.units import bytes_text, counted, duration_text

SPARK_COLUMNS = 20
_OVERVIEW_COUNTERS = {
    "User Time",
    "System Time",
    "Working Set",
    "Private Bytes",
    "Page Faults",
    "CPU Load Average - 1min",
}
"""Counters that the overview shows; the other hundred or so describe the runtime itself."""
_NS_PER_UNIT = {"long": 100, "ulong": 100, "time_interval": 1_000, "int": 1_000_000, "uint": 1_000_000}
"""Nanoseconds per unit of a counter of time; the unit depends on the type of the counter."""


def collect(context: SectionContext) -> list[CounterValues] | None:
    """Counters with a value in the selected time."""
    return counters_of(context.profile) or None


def as_json(data: list[CounterValues]) -> Any:
    """Every counter with all its values."""
    return [
        {**as_plain(one), "values": [{"ts_ns": time, "value": value} for time, value in one.values]} for one in data
    ]


def lines(data: list[CounterValues], request: RuntimeRequest, style: Style) -> Iterator[str]:
    """By section, one line per counter."""
    shown = [one for one in data if one.name in _OVERVIEW_COUNTERS] if request.is_overview else data
    samples = max(len(one.values) for one in data)
    more = f"; {len(data) - len(shown)} more with --section counters" if len(shown) < len(data) else ""
    yield from section("Counters", style, f"{counted(samples, 'sample')} of {counted(len(data), 'counter')}{more}")
    are_many = len({one.pid for one in data}) > 1

    def title(one: CounterValues) -> str | None:
        name = None if request.is_overview else one.section
        return name if not are_many else " ".join(filter(None, [name, f"of process {one.pid}"]))

    for name, group in groupby(shown, key=title):
        if name:
            yield "  " + style.paint(name, Role.NAME)
        rows: list[list[Cell]] = [[_value(one, one.last), _spark(one), _range(one), one.name] for one in group]
        yield from grid([Column("", right=True), Column(""), Column("", role=Role.FAINT), Column("")], rows, style)


def _value(one: CounterValues, value: float | None) -> str:
    if value is None:
        return one.text or "-"
    if one.unit == "bytes":
        return bytes_text(round(value))
    if one.unit == "time":
        return duration_text(round(value * _NS_PER_UNIT.get(one.kind, 1_000_000)))
    if one.unit == "percentage":
        return f"{value:.1f}%"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _range(one: CounterValues) -> str:
    if one.min is None or one.min == one.max:
        return ""
    return f"{_value(one, one.min)} … {_value(one, one.max)}"


def _spark(one: CounterValues) -> Cell:
    values = [value for _, value in one.values]
    if len(values) < 2 or one.min == one.max:
        return ""
    step = max(len(values) / SPARK_COLUMNS, 1)
    picked = [values[int(at * step)] for at in range(min(len(values), SPARK_COLUMNS))]
    low = min(picked)
    return sparkline([round((value - low) * 1000) for value in picked]), Role.JIT
