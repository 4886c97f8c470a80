"""Tables of functions, edges of the call graph, stacks and call trees for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TypeVar

from perfuse.analysis.callgraph import CallEdge, CallStack
from perfuse.analysis.functions import Function, ThreadIds
from perfuse.analysis.latency import FunctionLatency, Latency
from perfuse.filters.names import function_text
from perfuse.reports.grid import Cell, Column, Ranked, bar, fitted, grid
from perfuse.reports.names import source_place, where_texts
from perfuse.reports.text import ELLIPSIS, Role, Style, cell_width, cut, cut_middle, printable
from perfuse.reports.units import count_text, duration_text, percent_text
from perfuse.value_class import value_class

BAR_COLUMNS = 8
NAME_COMFORT = 30

_FIGURES = ("min", "median", "p90", "p99", "max", "sum", "total")
# Columns with the highest rank are left out first; the column of the sort order always stays.
_FUNCTION_RANKS = {"min": 9, "p90": 8, "sum": 5, "total": 10, "max": 2, "p99": 1, "median": 1}
_EDGE_RANKS = {"min": 9, "p90": 8, "sum": 1, "total": 10, "max": 3, "p99": 2, "median": 2}


Time = Callable[[int], str]
"""Formats a duration."""


def function_lines(
    rows: Sequence[FunctionLatency], whole_ns: int, order: str, style: Style, time: Time = duration_text
) -> Iterator[str]:
    """A table of functions with their statistics; shares are of `whole_ns`."""
    latencies = [one.latency for one in rows]
    most = max((one.self_ns for one in latencies), default=0)
    bars: list[Cell] = [(bar(one.self_ns, most, BAR_COLUMNS), Role.JIT) for one in latencies]
    columns = [
        Ranked(Column("self", right=True), [time(one.self_ns) for one in latencies]),
        Ranked(Column("", right=True), [percent_text(one.self_ns, whole_ns) for one in latencies], 3),
        Ranked(Column(""), bars, 6),
        Ranked(Column("calls", right=True), [count_text(one.num_calls) for one in latencies]),
        *_figure_columns(latencies, _FUNCTION_RANKS, order, time),
    ]
    if any(one.thread for one in rows):
        threads = [one.thread.label if one.thread else "" for one in rows]
        columns.append(Ranked(Column("thread", role=Role.FAINT, shrinks=10), threads, comfort=16))
    if any(one.cpu is not None for one in rows):
        cpus = ["-" if one.cpu is None else str(one.cpu) for one in rows]
        columns.append(Ranked(Column("cpu", right=True, role=Role.FAINT), cpus))
    columns += [_name_column("function", [one.function for one in rows]), *_notes_column(latencies)]
    columns += _where_column([one.function for one in rows])
    return fitted(columns, style)


def edge_lines(edges: Sequence[CallEdge], order: str, style: Style, time: Time = duration_text) -> Iterator[str]:
    """A table of edges of the call graph with their statistics."""
    latencies = [one.latency for one in edges]
    columns = [
        Ranked(Column("calls", right=True), [count_text(one.num_calls) for one in latencies]),
        *_figure_columns(latencies, _EDGE_RANKS, order, time),
        _name_column("caller", [one.caller for one in edges]),
        _name_column("callee", [one.callee for one in edges]),
        *_notes_column(latencies),
    ]
    return fitted(columns, style)


def endings_text(one: Latency) -> str:
    """Counts of calls with an unusual start or end: `3 unwound, 1 open at the end`."""
    counts = (
        (one.num_unwound, "unwound"),
        (one.num_truncated, "open at the end"),
        (one.num_lost, "begun before"),
        (one.num_orphans, "without a start"),
        (one.num_tail_calls, "tail calls" if one.num_tail_calls > 1 else "tail call"),
        (one.recursive_calls, "recursive"),
    )
    return ", ".join(f"{count_text(count)} {what}" for count, what in counts if count)


def _figure_columns(latencies: Sequence[Latency], ranks: dict[str, int], order: str, time: Time) -> list[Ranked]:
    columns = []
    for name in _FIGURES:
        values = [
            None if name == "sum" and not (one.num_timed or one.sum_ns) else getattr(one, f"{name}_ns")
            for one in latencies
        ]
        # Logs that only have sums over calls have no single durations.
        if any(value is not None for value in values):
            cells = ["-" if value is None else time(value) for value in values]
            columns.append(Ranked(Column(name, right=True), cells, 0 if name == order else ranks[name]))
    return columns


def _name_column(title: str, functions: Sequence[Function | None]) -> Ranked:
    cells: list[Cell] = [("(outermost)", Role.FAINT) if one is None else function_text(one.name) for one in functions]
    return Ranked(Column(title, shrinks=16), cells, comfort=NAME_COMFORT)


def _notes_column(latencies: Sequence[Latency]) -> list[Ranked]:
    notes = [endings_text(one) for one in latencies]
    return [Ranked(Column("of these calls", role=Role.FAINT, shrinks=8), notes, 7, comfort=24)] if any(notes) else []


def _where_column(functions: Sequence[Function]) -> list[Ranked]:
    places = where_texts(functions, source_place)
    if not any(places):
        return []
    return [Ranked(Column("where", role=Role.FAINT, shrinks=8, cut=cut_middle), places, 4, comfort=14)]


ARROW = " → "


@value_class
class StackList:
    """The top stacks by `order`, of one thread or of all."""

    order: str
    thread: ThreadIds | None
    num_stacks: int
    whole_ns: int
    stacks: list[CallStack]


def stack_lines(top: StackList, style: Style, time: Callable[[int], str] = duration_text) -> Iterator[str]:
    """One line per stack: the outermost function, and as many innermost ones as fit."""
    numbers = [
        [time(one.self_ns), percent_text(one.self_ns, top.whole_ns), count_text(one.num_calls)] for one in top.stacks
    ]
    heads = [Column("self", right=True), Column("", right=True), Column("calls", right=True)]
    taken = 2 + sum(
        2 + max([len(head.title), *(len(row[index]) for row in numbers)]) for index, head in enumerate(heads)
    )
    room = None if style.width is None else style.width - taken
    rows: list[list[Cell]] = [[*row, path_text(one, room)] for row, one in zip(numbers, top.stacks, strict=True)]
    return grid([*heads, Column("stack, outermost first")], rows, style)


def stack_blocks(top: StackList, style: Style, time: Callable[[int], str] = duration_text) -> Iterator[str]:
    """One paragraph per stack, with all its functions."""
    for index, one in enumerate(top.stacks):
        if index:
            yield ""
        share = one.total_ns if top.order == "total" else one.self_ns
        numbers = {
            "self": f"{time(one.self_ns)} self",
            "total": f"{time(one.total_ns)} in all",
            "count": f"{count_text(one.num_calls)} call{'' if one.num_calls == 1 else 's'}",
        }
        lead = numbers.pop(top.order)
        part = "" if top.order == "count" else f"  {percent_text(share, top.whole_ns)}"
        yield f"  {style.paint(lead + part, Role.TITLE)}  {style.paint(', '.join(numbers.values()), Role.FAINT)}"
        yield from _wrapped(names_of(one), style)


def path_text(stack: CallStack, room: int | None) -> str:
    """A stack in `room` columns: functions in the middle are left out, never the innermost."""
    names = names_of(stack)
    text = ARROW.join(names)
    if room is None or cell_width(text) <= room:
        return text
    taken = cell_width(names[0] + ARROW + ELLIPSIS)
    num_shown = 0
    for name in names[:1:-1]:
        taken += cell_width(ARROW + name)
        if taken > room:
            break
        num_shown += 1
    if num_shown:
        return ARROW.join([names[0], ELLIPSIS, *names[-num_shown:]])
    text = ARROW.join([ELLIPSIS, names[-1]])
    return text if cell_width(text) <= room else cut(names[-1], max(room, 16))


def names_of(stack: CallStack) -> list[str]:
    """Names of functions, outermost first; consecutive recursive calls are one name with their number."""
    return _short_names(stack.functions, lambda function: function.name)


def wrapped_names(names: Sequence[str], style: Style) -> Iterator[str]:
    """The functions of a stack, outermost first, on as many lines as they need."""
    return _wrapped(_short_names(names, str), style)


_T = TypeVar("_T")


def _short_names(functions: Sequence[_T], name: Callable[[_T], str]) -> list[str]:
    names = []
    for function, run in groupby(functions):
        times = sum(1 for _ in run)
        names.append(_shown_name(name(function)) + (f" (x{times})" if times > 1 else ""))
    return names


@lru_cache(4096)
def _shown_name(name: str) -> str:
    return printable(function_text(name))


def _wrapped(names: Sequence[str], style: Style) -> Iterator[str]:
    indent = "    "
    width = style.width or 10**9
    parts: list[str] = []
    taken = len(indent)
    for index, name in enumerate(names):
        part = cut(name if index == len(names) - 1 else name + ARROW.rstrip(), width - len(indent))
        needed = cell_width(part)
        if parts and taken + needed > width:
            yield indent + " ".join(parts)
            parts, taken = [], len(indent)
        parts.append(part)
        taken += needed + 1
    yield indent + " ".join(parts)
