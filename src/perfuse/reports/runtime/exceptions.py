"""Section `exceptions`: where exceptions were thrown, and what handled them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.exceptions import Exceptions
from perfuse.analysis.exceptions import exceptions as exceptions_of
from perfuse.analysis.functions import innermost
from perfuse.analysis.objects import UNKNOWN_TYPE
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
    yield from _site_lines(data, request, style)
    if request.is_overview or not data.handlers:
        return
    yield from section("Handlers", style)
    handlers = data.handlers[: request.limit]
    rows = [[count_text(one.count), one.kind, one.function] for one in handlers]
    yield from grid([Column("ran", right=True), Column("", role=Role.NAME), Column("in", shrinks=20)], rows, style)
    yield from more_rows_line(len(data.handlers) - len(handlers), "exceptions", request, style)


def _site_lines(data: Exceptions, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """By type and whole stack where stacks are requested, else by type and innermost function."""
    num_shown = request.rows(5)
    if request.stacks:
        for one in data.by_site[:num_shown]:
            yield f"  {count_text(one.count)} {one.type_name or UNKNOWN_TYPE}"
            yield from backtrace_lines(one.backtrace, request.frames, style)
        num_sites = len(data.by_site)
    else:
        places: dict[tuple[str, str], int] = {}
        for one in data.by_site:
            place = one.type_name or UNKNOWN_TYPE, _place(one.backtrace)
            places[place] = places.get(place, 0) + one.count
        num_sites = len(places)
        sites = sorted(places.items(), key=lambda item: (-item[1], *item[0]))
        rows: list[list[Cell]] = [[count_text(count), *place] for place, count in sites[:num_shown]]
        columns = [Column("count", right=True), Column("type", shrinks=20), Column("in", role=Role.FAINT, shrinks=20)]
        if rows:
            yield from grid(columns, rows, style)
    if num_shown is not None:
        yield from more_rows_line(num_sites - min(num_shown, num_sites), "exceptions", request, style)


def _place(backtrace: tuple[str, ...]) -> str:
    return short_name(innermost(backtrace)) if backtrace else ""
