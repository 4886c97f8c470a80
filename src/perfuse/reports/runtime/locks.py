"""Section `locks`: who waited for which lock, and how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from perfuse.analysis.locks import Contention, LockContention, contention
from perfuse.analysis.spread import Spread
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import Gathering, RuntimeRequest, block, one_line, plain, rest
from perfuse.reports.text import Role, Style
from perfuse.reports.units import count_text, counted, duration_text, hex_text

UNKNOWN = "(unknown type)"


@dataclass(frozen=True, slots=True)
class Told:
    """Contention, with threads by name."""

    contention: Contention
    by_thread: list[tuple[str, Spread]]


def gather(of: Gathering) -> Told | None:
    """Waits in the selected threads and time."""
    found = contention(of.profile, of.objects)
    threads = [(of.thread_labels.get(key, "?"), waits) for key, waits in found.by_thread.items()]
    threads.sort(key=lambda one: (-one[1].sum, one[0]))
    any_event = found.num_contentions or found.num_acquired or found.num_failed
    return Told(found, threads) if any_event else None


def as_json(told: Told) -> Any:
    """Locks by type, by object, by site and by thread."""
    threads = [{"thread": name, "waits": plain(waits)} for name, waits in told.by_thread]
    found = {
        one.name: plain(getattr(told.contention, one.name)) for one in fields(Contention) if one.name != "by_thread"
    }
    return {**found, "by_thread": threads}


def lines(told: Told, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """By type; in full by object, by place and by thread too."""
    found = told.contention
    waits = found.waits
    failed = f", {count_text(found.num_failed)} gave up" if found.num_failed else ""
    waited = f"{counted(found.num_contentions, 'wait')}, {duration_text(waits.sum)} in all{failed}"
    yield from section("Locks", style, waited)
    yield from _locks(found.by_type, "locks", asked, style)
    if asked.is_overview:
        return
    yield from section("By object", style)
    yield from _locks(found.by_lock, "address", asked, style)
    yield from section("Waited in", style, f"{'innermost' if asked.stacks else 'outermost'} function first")
    shown = found.by_site[: asked.limit]
    for one in shown:
        yield f"  {duration_text(one.waits.sum)} in {counted(one.waits.count, 'wait')}"
        if asked.stacks:
            yield from block(one.backtrace, asked.frames, style)
        else:
            width = None if style.width is None else style.width - 6
            yield style.paint("      " + one_line(one.backtrace, width), Role.FAINT)
    yield from rest(len(found.by_site) - len(shown), "locks", asked, style)
    yield from section("By thread", style)
    rows: list[list[Cell]] = [[*_figures(waits), name] for name, waits in told.by_thread[: asked.limit]]
    yield from grid([*_columns(), Column("thread", shrinks=12)], rows, style)


def _locks(locks: Sequence[LockContention], what: str, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    shown = locks[: asked.rows(5)]
    rows: list[list[Cell]] = []
    for one in shown:
        which = count_text(one.num_locks) if one.object_address is None else hex_text(one.object_address)
        rows.append([*_figures(one.waits), count_text(one.num_failed), which, one.type_name or UNKNOWN])
    columns = [*_columns(), Column("gave up", right=True), Column(what, right=True), Column("type", shrinks=16)]
    yield from grid(columns, rows, style)
    yield from rest(len(locks) - len(shown), "locks", asked, style)


def _columns() -> list[Column]:
    return [Column(name, right=True) for name in ("waits", "sum", "median", "p99", "longest")]


def _figures(told: Spread) -> list[Cell]:
    if not told.count:
        return ["0", "-", "-", "-", "-"]
    return [count_text(told.count), *(duration_text(time) for time in (told.sum, told.median, told.p99, told.max))]
