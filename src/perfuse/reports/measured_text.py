"""Statistics of functions and calls as text."""

from __future__ import annotations

from perfuse.analysis.function_graph import FunctionGraph, StatisticValues
from perfuse.reports.units import bytes_text, count_text, counted, duration_text


def number_text(value: int | None, statistic: str, unit: str) -> str:
    """`1.42 s`, or `1,234` for a count; a dash for an unknown value."""
    if value is None:
        return "-"
    if statistic == "count":
        return count_text(value)
    return duration_text(value) if unit == "ns" else bytes_text(value) if unit == "bytes" else count_text(value)


def value_text(values: StatisticValues, statistic: str, measured: FunctionGraph) -> str:
    """A statistic with its unit: `1.42 s`, `12 calls`, `80,000 events`."""
    value = values.get(statistic)
    if value is None:
        return "-"
    if statistic == "count":
        return counted(value, measured.kind.removesuffix("s"))
    text = number_text(value, statistic, measured.unit)
    return text if measured.unit in ("ns", "bytes") else f"{text} {measured.unit}"


def everything_text(values: StatisticValues, measured: FunctionGraph) -> str:
    """All statistics, one per line."""
    return "\n".join(
        value_text(values, name, measured) if name == "count" else f"{name} {value_text(values, name, measured)}"
        for name in measured.statistics
    )
