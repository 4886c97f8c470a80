"""Section `gc`: pauses, collections, heap size, finalizers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.distribution import Distribution
from perfuse.analysis.gc import GcActivity, gc_activity
from perfuse.analysis.objects import UNKNOWN_TYPE
from perfuse.reports.grid import Cell, Column, grid, section, sparkline
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext, as_plain, more_rows_line
from perfuse.reports.text import Role, Style
from perfuse.reports.units import bytes_text, count_text, counted, duration_text


def collect(context: SectionContext) -> GcActivity | None:
    """Garbage collections; None where there were none."""
    data = gc_activity(context.profile, context.objects)
    did = data.pauses.count or data.generations or data.num_moves or data.num_resizes or data.finalizer_rounds.count
    return data if did or data.finalizers else None


def as_json(data: GcActivity) -> Any:
    """All values; durations in nanoseconds."""
    return as_plain(data)


def lines(data: GcActivity, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """Pauses by generation and over time, heap size, then finalizers."""
    # A log can record finalizers alone.
    if data.generations or data.num_resizes or data.num_moves or data.num_open:
        yield from _collections(data, style)
    if data.finalizer_rounds.count or data.finalizers:
        yield from _finalizers(data, request, style)


def _collections(data: GcActivity, style: Style) -> Iterator[str]:
    pauses = data.pauses
    stood = f"{counted(pauses.count, 'pause')}, {duration_text(pauses.sum)} in all, longest {duration_text(pauses.max)}"
    yield from section("Garbage collection", style, stood if pauses.count else "")
    if data.generations:
        columns = [Column(""), *_columns(), Column("collections", right=True), Column("longest", right=True)]
        rows: list[list[Cell]] = [
            [
                (f"{one.name} pauses", Role.NAME),
                *_figures(one.pauses),
                count_text(one.collections.count),
                duration_text(one.collections.max),
            ]
            for one in data.generations
        ]
        if len(data.generations) > 1:
            rows.append([("all pauses", Role.NAME), *_figures(pauses), "", ""])
        yield from grid(columns, rows, style)
    if pauses.sum:
        yield "  " + style.paint(sparkline(data.timeline_ns), Role.JIT) + style.paint("  pause time", Role.FAINT)
    facts = []
    if data.num_resizes:
        facts.append(f"heap resized {counted(data.num_resizes, 'time')}, to {bytes_text(data.max_heap_bytes or 0)}")
    if data.num_moves:
        facts.append(f"{counted(data.num_moves, 'object')} moved")
    if data.num_open:
        facts.append(f"{counted(data.num_open, 'pause')} without an end")
    if facts:
        yield "  " + "; ".join(facts)


def _finalizers(data: GcActivity, request: RuntimeRequest, style: Style) -> Iterator[str]:
    rounds = data.finalizer_rounds
    # Objects are also finalized outside of rounds, when the program ends.
    num_objects = sum(one.durations.count for one in data.finalizers)
    time_ns = sum(one.durations.sum for one in data.finalizers) if num_objects else rounds.sum
    facts = [f"{duration_text(time_ns)} in all"]
    if num_objects:
        facts.insert(0, counted(num_objects, "object"))
    if rounds.count:
        facts.append(counted(rounds.count, "round"))
    yield from section("Finalizers", style, ", ".join(facts))
    shown = data.finalizers[: request.rows(3)]
    rows: list[list[Cell]] = [[*_figures(one.durations), one.type_name or UNKNOWN_TYPE] for one in shown]
    if rows:
        yield from grid([*_columns(), Column("type", shrinks=20)], rows, style)
    yield from more_rows_line(len(data.finalizers) - len(shown), "gc", request, style)


def _columns() -> list[Column]:
    return [Column(name, right=True) for name in ("count", "median", "p90", "p99", "longest", "sum")]


def _figures(data: Distribution) -> list[Cell]:
    if not data.count:
        return ["0", "-", "-", "-", "-", "-"]
    times = (data.median, data.p90, data.p99, data.max, data.sum)
    return [count_text(data.count), *(duration_text(time) for time in times)]
