"""Section `gc`: pauses, collections, the size of the heap, finalizers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.gc import GcActivity, gc_activity
from perfuse.analysis.spread import Spread
from perfuse.reports.grid import Cell, Column, grid, section, sparkline
from perfuse.reports.runtime.sections import Gathering, RuntimeRequest, plain, rest
from perfuse.reports.text import Role, Style
from perfuse.reports.units import bytes_text, count_text, counted, duration_text

UNKNOWN = "(unknown type)"


def gather(of: Gathering) -> GcActivity | None:
    """The collector's activity; None where it did nothing."""
    told = gc_activity(of.profile, of.objects)
    did = told.pauses.count or told.generations or told.num_moves or told.num_resizes or told.finalizer_rounds.count
    return told if did or told.finalizers else None


def as_json(told: GcActivity) -> Any:
    """All of it; durations in nanoseconds."""
    return plain(told)


def lines(told: GcActivity, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """Pauses by generation, when they were, the heap, then finalizers."""
    pauses = told.pauses
    stood = f"{counted(pauses.count, 'pause')}, {duration_text(pauses.sum)} in all, longest {duration_text(pauses.max)}"
    yield from section("Garbage collection", style, stood if pauses.count else "")
    if told.generations:
        columns = [Column(""), *_columns(), Column("collections", right=True), Column("longest", right=True)]
        rows: list[list[Cell]] = [
            [
                (f"{one.name} pauses", Role.NAME),
                *_figures(one.pauses),
                count_text(one.collections.count),
                duration_text(one.collections.max),
            ]
            for one in told.generations
        ]
        if len(told.generations) > 1:
            rows.append([("all pauses", Role.NAME), *_figures(pauses), "", ""])
        yield from grid(columns, rows, style)
    if pauses.sum:
        yield "  " + style.paint(sparkline(told.timeline_ns), Role.JIT) + style.paint("  time stood still", Role.FAINT)
    facts = []
    if told.num_resizes:
        facts.append(f"heap resized {counted(told.num_resizes, 'time')}, to {bytes_text(told.max_heap_bytes or 0)}")
    if told.num_moves:
        facts.append(f"{counted(told.num_moves, 'object')} moved")
    if told.num_open:
        facts.append(f"{counted(told.num_open, 'pause')} not ended")
    if facts:
        yield "  " + "; ".join(facts)
    if told.finalizer_rounds.count or told.finalizers:
        yield from _finalizers(told, asked, style)


def _finalizers(told: GcActivity, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    rounds = told.finalizer_rounds
    # Objects are finalized outside of rounds, too: when the program ends.
    num_objects = sum(one.durations.count for one in told.finalizers)
    time_ns = sum(one.durations.sum for one in told.finalizers) if num_objects else rounds.sum
    facts = [f"{duration_text(time_ns)} in all"]
    if num_objects:
        facts.insert(0, counted(num_objects, "object"))
    if rounds.count:
        facts.append(counted(rounds.count, "round"))
    yield from section("Finalizers", style, ", ".join(facts))
    shown = told.finalizers[: asked.rows(3)]
    rows: list[list[Cell]] = [[*_figures(one.durations), one.type_name or UNKNOWN] for one in shown]
    if rows:
        yield from grid([*_columns(), Column("type", shrinks=20)], rows, style)
    yield from rest(len(told.finalizers) - len(shown), "gc", asked, style)


def _columns() -> list[Column]:
    return [Column(name, right=True) for name in ("count", "median", "p90", "p99", "longest", "sum")]


def _figures(told: Spread) -> list[Cell]:
    if not told.count:
        return ["0", "-", "-", "-", "-", "-"]
    times = (told.median, told.p90, told.p99, told.max, told.sum)
    return [count_text(told.count), *(duration_text(time) for time in times)]
