"""Section `threads`: threads with all their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.thread_lifetimes import ThreadLifetime
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext, as_plain, more_rows_line
from perfuse.reports.text import Role, Style
from perfuse.reports.units import counted, duration_text, hex_text
from perfuse.value_class import value_class


@value_class
class ThreadData:
    """Threads, and the start of the recording."""

    start_ns: int
    threads: list[ThreadLifetime]


def collect(context: SectionContext) -> ThreadData | None:
    """The selected threads."""
    return ThreadData(context.start_ns, context.thread_lifetimes) if context.thread_lifetimes else None


def as_json(data: ThreadData) -> Any:
    """Threads by their start."""
    return as_plain(data.threads)


def lines(data: ThreadData, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """One line per thread."""
    ids = [one.native_address for one in data.threads if one.native_address is not None]
    again = f"; ids were reused: there are {len(set(ids))}" if len(set(ids)) < len(ids) else ""
    yield from section("Threads", style, counted(len(data.threads), "thread") + again)
    shown = data.threads[: request.rows(8)]
    rows: list[list[Cell]] = []
    for one in shown:
        native = "-" if one.native_address is None else hex_text(one.native_address)
        number = one.thread_id if one.tid is None else one.tid
        rows.append([str(number), native, *_span(one, data.start_ns), " → ".join(one.names) or "-"])
    columns = [
        Column("thread", right=True),
        Column("id", role=Role.FAINT),
        Column("from", right=True),
        Column("to", right=True),
        Column("names", shrinks=12),
    ]
    yield from grid(columns, rows, style)
    yield from more_rows_line(len(data.threads) - len(shown), "threads", request, style)


def _span(one: ThreadLifetime, zero: int) -> list[Cell]:
    return ["-" if time is None else duration_text(time - zero) for time in (one.start_ns, one.end_ns)]
