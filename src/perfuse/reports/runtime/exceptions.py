"""Section `exceptions`: where exceptions were thrown, and what handled them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.exceptions import Exceptions
from perfuse.analysis.exceptions import exceptions as exceptions_of
from perfuse.analysis.functions import innermost
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import (
    RuntimeRequest,
    SectionContext,
    as_plain,
    backtrace_lines,
    more_rows_line,
    short_name,
)
from perfuse.reports.text import Role, Style
from perfuse.reports.units import count_text, counted

UNKNOWN = "(unknown type)"


def collect(context: SectionContext) -> Exceptions | None:
    """Exceptions and handlers of the selected threads and time."""
    data = exceptions_of(context.profile, context.objects)
    return data if data.count or data.handlers else None


def as_json(data: Exceptions) -> Any:
    """Exceptions by type and site, handlers by kind and function."""
    return {**as_plain(data), "by_type": [{"type_name": name, "count": count} for name, count in data.by_type]}


def lines(data: Exceptions, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """Exceptions by type and site, then the handlers that ran."""
    ran = ", ".join(f"{count_text(count)} {kind}" for kind, count in data.clauses.items() if count)
    handled = f"; handlers run: {ran}" if ran else ""
    yield from section("Exceptions", style, f"{counted(data.count, 'exception')}{handled}")
    shown = data.by_site[: request.rows(5)]
    if request.stacks:
        for one in shown:
            yield f"  {count_text(one.count)} {one.type_name or UNKNOWN}"
            yield from backtrace_lines(one.backtrace, request.frames, style)
    elif shown:
        rows: list[list[Cell]] = [
            [count_text(one.count), one.type_name or UNKNOWN, _place(one.backtrace)] for one in shown
        ]
        columns = [Column("count", right=True), Column("type", shrinks=20), Column("in", role=Role.FAINT, shrinks=20)]
        yield from grid(columns, rows, style)
    yield from more_rows_line(len(data.by_site) - len(shown), "exceptions", request, style)
    if request.is_overview or not data.handlers:
        return
    yield from section("Handlers", style)
    handlers = data.handlers[: request.limit]
    rows = [[count_text(one.count), one.kind, one.function] for one in handlers]
    yield from grid([Column("ran", right=True), Column("", role=Role.NAME), Column("in", shrinks=20)], rows, style)
    yield from more_rows_line(len(data.handlers) - len(handlers), "exceptions", request, style)


def _place(backtrace: tuple[str, ...]) -> str:
    return short_name(innermost(backtrace)) if backtrace else ""
