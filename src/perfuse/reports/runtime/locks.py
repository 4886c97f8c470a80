"""Section `locks`: which threads waited for which locks, and how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perfuse.analysis.distribution import Distribution
from perfuse.analysis.locks import Contention, LockContention, contention
from perfuse.analysis.objects import UNKNOWN_TYPE
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import (
    RuntimeRequest,
    SectionContext,
    as_plain,
    more_rows_line,
    site_lines,
)
from perfuse.reports.text import Style
from perfuse.reports.units import count_text, counted, duration_text, hex_text
from perfuse.value_class import field_names, value_class


@value_class
class LockData:
    """Lock contention, and waits by label of the thread."""

    contention: Contention
    by_thread: list[tuple[str, Distribution]]


def collect(context: SectionContext) -> LockData | None:
    """Waits in the selected threads and time."""
    found = contention(context.profile, context.objects)
    threads = [(context.thread_labels.get(key, "?"), waits) for key, waits in found.by_thread.items()]
    threads.sort(key=lambda one: (-one[1].sum, one[0]))
    any_event = found.num_contentions or found.num_acquired or found.num_failed
    return LockData(found, threads) if any_event else None


def as_json(data: LockData) -> Any:
    """Locks by type, by object, by site and by thread."""
    threads = [{"thread": name, "waits": as_plain(waits)} for name, waits in data.by_thread]
    found = {name: as_plain(getattr(data.contention, name)) for name in field_names(Contention) if name != "by_thread"}
    return {**found, "by_thread": threads}


def lines(data: LockData, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """By type; in full also by object, by site and by thread."""
    found = data.contention
    waits = found.waits
    failed = f", {count_text(found.num_failed)} failed" if found.num_failed else ""
    waited = f"{counted(found.num_contentions, 'wait')}, {duration_text(waits.sum)} in all{failed}"
    yield from section("Locks", style, waited)
    yield from _locks(found.by_type, "locks", request, style)
    if request.is_overview:
        return
    yield from section("By object", style)
    yield from _locks(found.by_lock, "address", request, style)
    yield from section("Wait sites", style, f"{'innermost' if request.stacks else 'outermost'} function first")
    shown = found.by_site[: request.limit]
    for one in shown:
        yield f"  {duration_text(one.waits.sum)} in {counted(one.waits.count, 'wait')}"
        yield from site_lines(one.backtrace, request, style)
    yield from more_rows_line(len(found.by_site) - len(shown), "locks", request, style)
    yield from section("By thread", style)
    rows: list[list[Cell]] = [[*_figures(waits), name] for name, waits in data.by_thread[: request.limit]]
    yield from grid([*_columns(), Column("thread", shrinks=12)], rows, style)


def _locks(locks: Sequence[LockContention], what: str, request: RuntimeRequest, style: Style) -> Iterator[str]:
    shown = locks[: request.rows(5)]
    rows: list[list[Cell]] = []
    for one in shown:
        which = count_text(one.num_locks) if one.object_address is None else hex_text(one.object_address)
        rows.append([*_figures(one.waits), count_text(one.num_failed), which, one.type_name or UNKNOWN_TYPE])
    columns = [*_columns(), Column("failed", right=True), Column(what, right=True), Column("type", shrinks=16)]
    yield from grid(columns, rows, style)
    yield from more_rows_line(len(locks) - len(shown), "locks", request, style)


def _columns() -> list[Column]:
    return [Column(name, right=True) for name in ("waits", "sum", "median", "p99", "longest")]


def _figures(data: Distribution) -> list[Cell]:
    if not data.count:
        return ["0", "-", "-", "-", "-"]
    return [count_text(data.count), *(duration_text(time) for time in (data.sum, data.median, data.p99, data.max))]
