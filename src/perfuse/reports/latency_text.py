"""Statistics of calls as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from perfuse.analysis.callgraph import CallEdge
from perfuse.analysis.functions import Function
from perfuse.analysis.latency import FunctionLatency, Latency
from perfuse.reports.fitting import Ranked, fitted
from perfuse.reports.grid import Cell, Column, bar
from perfuse.reports.names import function_text, module_text
from perfuse.reports.style import Role, Style
from perfuse.reports.text import cut_middle
from perfuse.reports.units import count_text, duration_text, percent_text

BAR_COLUMNS = 8
NAME_COMFORT = 30

_FIGURES = ("min", "median", "p90", "p99", "max", "sum", "total")
# The higher, the sooner it is left out; what the rows are sorted by always stays.
_FUNCTION_RANKS = {"min": 9, "p90": 8, "sum": 5, "total": 10, "max": 2, "p99": 1, "median": 1}
_EDGE_RANKS = {"min": 9, "p90": 8, "sum": 1, "total": 10, "max": 3, "p99": 2, "median": 2}


Time = Callable[[int], str]
"""How a length of time is shown."""


def function_lines(
    rows: Sequence[FunctionLatency], whole_ns: int, order: str, style: Style, time: Time = duration_text
) -> Iterator[str]:
    """Functions with their statistics; `whole_ns` is what shares are of."""
    latencies = [one.latency for one in rows]
    most = max((one.self_ns for one in latencies), default=0)
    bars: list[Cell] = [
        (bar(one.self_ns / most if most else 0, BAR_COLUMNS).ljust(BAR_COLUMNS), Role.JIT) for one in latencies
    ]
    columns = [
        Ranked(Column("self", right=True), [time(one.self_ns) for one in latencies]),
        Ranked(Column("", right=True), [percent_text(one.self_ns, whole_ns) for one in latencies], 3),
        Ranked(Column(""), bars, 6),
        Ranked(Column("calls", right=True), [count_text(one.num_calls) for one in latencies]),
        *_figures(latencies, _FUNCTION_RANKS, order, time),
    ]
    if any(one.thread for one in rows):
        threads = [one.thread.label if one.thread else "" for one in rows]
        columns.append(Ranked(Column("thread", role=Role.FAINT, shrinks=10), threads, comfort=16))
    if any(one.cpu is not None for one in rows):
        cpus = ["-" if one.cpu is None else str(one.cpu) for one in rows]
        columns.append(Ranked(Column("cpu", right=True, role=Role.FAINT), cpus))
    columns += [_name("function", [one.function for one in rows]), *_notes(latencies)]
    columns += _where([one.function for one in rows])
    return fitted(columns, style)


def edge_lines(edges: Sequence[CallEdge], order: str, style: Style, time: Time = duration_text) -> Iterator[str]:
    """Edges of the call graph with their statistics."""
    latencies = [one.latency for one in edges]
    columns = [
        Ranked(Column("calls", right=True), [count_text(one.num_calls) for one in latencies]),
        *_figures(latencies, _EDGE_RANKS, order, time),
        _name("caller", [one.caller for one in edges]),
        _name("callee", [one.callee for one in edges]),
        *_notes(latencies),
    ]
    return fitted(columns, style)


def endings_text(one: Latency) -> str:
    """What is special about how calls began or ended: `3 unwound, 1 open`."""
    counts = (
        (one.num_unwound, "unwound"),
        (one.num_truncated, "open at the end"),
        (one.num_lost, "begun before"),
        (one.num_orphans, "without a start"),
        (one.num_tail_calls, "tail calls" if one.num_tail_calls > 1 else "tail call"),
        (one.recursive_calls, "recursive"),
    )
    return ", ".join(f"{count_text(count)} {what}" for count, what in counts if count)


def _figures(latencies: Sequence[Latency], ranks: dict[str, int], order: str, time: Time) -> list[Ranked]:
    columns = []
    for name in _FIGURES:
        values = [None if name == "sum" and not one.num_timed else getattr(one, f"{name}_ns") for one in latencies]
        # Of sums alone, without single calls, there are no durations.
        if any(value is not None for value in values):
            cells = ["-" if value is None else time(value) for value in values]
            columns.append(Ranked(Column(name, right=True), cells, 0 if name == order else ranks[name]))
    return columns


def _name(title: str, functions: Sequence[Function | None]) -> Ranked:
    cells: list[Cell] = [("(outermost)", Role.FAINT) if one is None else function_text(one.name) for one in functions]
    return Ranked(Column(title, shrinks=16), cells, comfort=NAME_COMFORT)


def _notes(latencies: Sequence[Latency]) -> list[Ranked]:
    notes = [endings_text(one) for one in latencies]
    return [Ranked(Column("of them", role=Role.FAINT, shrinks=8), notes, 7, comfort=24)] if any(notes) else []


def _where(functions: Sequence[Function]) -> list[Ranked]:
    places = [where_text(one) for one in functions]
    if not any(places):
        return []
    return [Ranked(Column("where", role=Role.FAINT, shrinks=8, cut=cut_middle), places, 4, comfort=14)]


def where_text(function: Function) -> str:
    """`lvm.c:1151`, or the module where the source is not known."""
    if function.path:
        name = function.path.rsplit("/", 1)[-1]
        return f"{name}:{function.line}" if function.line else name
    return module_text(function.module or "")
