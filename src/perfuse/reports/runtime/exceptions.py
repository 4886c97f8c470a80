"""Section `exceptions`: what was thrown and where, and what handled it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.backtraces import innermost
from perfuse.analysis.exceptions import Exceptions
from perfuse.analysis.exceptions import exceptions as exceptions_of
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import Gathering, RuntimeRequest, block, plain, rest, short_name
from perfuse.reports.text import Role, Style
from perfuse.reports.units import count_text, counted

UNKNOWN = "(unknown type)"


def gather(of: Gathering) -> Exceptions | None:
    """Throws and handlers of the selected threads and time."""
    told = exceptions_of(of.profile, of.objects)
    return told if told.count or told.handlers else None


def as_json(told: Exceptions) -> Any:
    """Throws by type and site, handlers by kind and function."""
    return {**plain(told), "by_type": [{"type_name": name, "count": count} for name, count in told.by_type]}


def lines(told: Exceptions, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """Throws by type and place, then what ran to handle them."""
    ran = ", ".join(f"{count_text(count)} {kind}" for kind, count in told.clauses.items() if count)
    handled = f"; handlers run: {ran}" if ran else ""
    yield from section("Exceptions", style, f"{counted(told.count, 'throw')}{handled}")
    shown = told.by_site[: asked.rows(5)]
    if asked.stacks:
        for one in shown:
            yield f"  {count_text(one.count)} {one.type_name or UNKNOWN}"
            yield from block(one.backtrace, asked.frames, style)
    elif shown:
        rows: list[list[Cell]] = [
            [count_text(one.count), one.type_name or UNKNOWN, _place(one.backtrace)] for one in shown
        ]
        columns = [Column("throws", right=True), Column("type", shrinks=20), Column("in", role=Role.FAINT, shrinks=20)]
        yield from grid(columns, rows, style)
    yield from rest(len(told.by_site) - len(shown), "exceptions", asked, style)
    if asked.is_overview or not told.handlers:
        return
    yield from section("Handlers", style)
    handlers = told.handlers[: asked.limit]
    rows = [[count_text(one.count), one.kind, one.function] for one in handlers]
    yield from grid([Column("ran", right=True), Column("", role=Role.NAME), Column("in", shrinks=20)], rows, style)
    yield from rest(len(told.handlers) - len(handlers), "exceptions", asked, style)


def _place(backtrace: tuple[str, ...]) -> str:
    return short_name(innermost(backtrace)) if backtrace else ""
