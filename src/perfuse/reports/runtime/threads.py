"""Section `threads`: threads, with all their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from perfuse.analysis.thread_lives import ThreadLife
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import Gathering, RuntimeRequest, plain, rest
from perfuse.reports.text import Role, Style
from perfuse.reports.units import counted, duration_text, hex_text


@dataclass(frozen=True, slots=True)
class Told:
    """Threads, and since when times are counted."""

    start_ns: int
    lives: list[ThreadLife]


def gather(of: Gathering) -> Told | None:
    """Threads of the selection."""
    return Told(of.start_ns, of.thread_lives) if of.thread_lives else None


def as_json(told: Told) -> Any:
    """Threads by their start."""
    return plain(told.lives)


def lines(told: Told, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """A line a thread."""
    ids = {one.native_address for one in told.lives}
    again = ""
    if len(ids) < len(told.lives):
        again = f"; ids were used again: there are {len(ids)}"
    yield from section("Threads", style, counted(len(told.lives), "thread") + again)
    shown = told.lives[: asked.rows(8)]
    rows: list[list[Cell]] = []
    for one in shown:
        native = "-" if one.native_address is None else hex_text(one.native_address)
        number = one.thread_id if one.tid is None else one.tid
        rows.append([str(number), native, *_span(one, told.start_ns), " → ".join(one.names) or "-"])
    columns = [
        Column("thread", right=True),
        Column("id", role=Role.FAINT),
        Column("from", right=True),
        Column("to", right=True),
        Column("names", shrinks=12),
    ]
    yield from grid(columns, rows, style)
    yield from rest(len(told.lives) - len(shown), "threads", asked, style)


def _span(one: ThreadLife, zero: int) -> list[Cell]:
    return ["-" if time is None else duration_text(time - zero) for time in (one.start_ns, one.end_ns)]
