"""Section `allocations`: allocations by type, site and thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.allocations import Allocations, AllocationSite, TypeAllocations
from perfuse.reports.grid import Cell, Column, Ranked, bar, fitted, section
from perfuse.reports.runtime.sections import (
    RuntimeRequest,
    SectionContext,
    as_plain,
    backtrace_lines,
    backtrace_text,
    cut_outermost,
    more_rows_line,
)
from perfuse.reports.text import Role, Style, cut_middle
from perfuse.reports.units import bytes_text, count_text, counted, percent_text
from perfuse.value_class import value_class

BAR_COLUMNS = 8
SITE_WIDTH = 70
SITES_BYTES = 128 << 20
"""The overview of a larger log leaves out allocation sites: reading backtraces takes as long as all the rest."""


@value_class
class AllocationData:
    """Totals and lists, which have at most the requested number of rows."""

    count: int
    bytes: int
    num_types: int
    by_type: list[TypeAllocations]
    num_sites: int
    by_site: list[AllocationSite]
    by_thread: list[tuple[str, int, int]]
    sites_are_open_calls: bool
    """Whether stacks are those of the calls that were open, as the log records calls and no backtraces."""
    has_more: bool
    """Whether there are backtraces, and allocation sites were left out."""


def collect(context: SectionContext) -> AllocationData | None:
    """Allocations of the selected threads and time."""
    found = Allocations(context.profile)
    request = context.request
    size = sum(recording.size_bytes for recording in context.profile.recordings)
    has_stacks = context.profile.has("stacks") and (
        size <= SITES_BYTES or not request.is_overview or request.limit is None
    )
    return AllocationData(
        count=found.count,
        bytes=found.bytes,
        num_types=len(found),
        by_type=found.by_type(request.rows(10), order=request.order),
        num_sites=found.num_sites if has_stacks else 0,
        by_site=found.by_site(request.rows(5), order=request.order) if has_stacks else [],
        sites_are_open_calls=has_stacks and found.sites_are_open_calls,
        by_thread=[(context.thread_labels.get(one.thread_id, "?"), one.count, one.bytes) for one in found.by_thread()],
        has_more=context.profile.has("stacks") and not has_stacks,
    )


def as_json(data: AllocationData) -> Any:
    """Lists of types, sites and threads, by size in descending order."""
    threads = [{"thread": name, "count": count, "bytes": size} for name, count, size in data.by_thread]
    found = as_plain(data)
    del found["has_more"]
    return {**found, "by_thread": threads}


def lines(data: AllocationData, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """Types, then sites, then threads."""
    whole = f"{counted(data.count, 'object')}, {bytes_text(data.bytes)}, of {counted(data.num_types, 'type')}"
    yield from section("Allocations", style, whole)
    if not data.count:
        return
    yield from _table(
        data,
        request,
        [(one.bytes, one.count) for one in data.by_type],
        [Ranked(Column("largest", right=True), [bytes_text(one.largest_bytes) for one in data.by_type], 2)],
        [Ranked(Column("type", shrinks=24, cut=cut_middle), [one.name for one in data.by_type])],
        style,
    )
    yield from more_rows_line(data.num_types - len(data.by_type), "allocations", request, style)
    if data.by_site:
        first = "innermost" if request.stacks else "outermost"
        derived = "; stacks are open calls" if data.sites_are_open_calls else ""
        figures = f"{counted(data.num_sites, 'site')}; {first} function first{derived}"
        yield from section("Allocation sites", style, figures)
        yield from _sites(data, request, style)
    elif data.has_more:
        yield style.paint("  allocation sites: --section allocations", Role.FAINT)
    if len(data.by_thread) > 1 and not request.is_overview:
        yield from section("Allocations by thread", style)
        rows = [(size, count) for _, count, size in data.by_thread]
        names = [Ranked(Column("thread", shrinks=12), [name for name, *_ in data.by_thread])]
        yield from _table(data, request, rows, [], names, style)


def _sites(data: AllocationData, request: RuntimeRequest, style: Style) -> Iterator[str]:
    sites = data.by_site
    types = [f"{one.type_name}{f' and {one.num_types - 1} more' if one.num_types > 1 else ''}" for one in sites]
    if request.stacks:
        for one, name in zip(sites, types, strict=True):
            yield f"  {bytes_text(one.bytes)} in {counted(one.count, 'object')}: {name}"
            yield from backtrace_lines(one.backtrace, request.frames, style)
    else:
        width = SITE_WIDTH if style.width is None else max(style.width - 50, 30)
        places = [backtrace_text(one.backtrace, width) for one in sites]
        rows = [(one.bytes, one.count) for one in sites]
        shown = Ranked(Column("type", role=Role.FAINT, shrinks=12, cut=cut_middle), types, 2, comfort=20)
        yield from _table(
            data, request, rows, [], [Ranked(Column("site", shrinks=24, cut=cut_outermost), places), shown], style
        )
    yield from more_rows_line(data.num_sites - len(sites), "allocations", request, style)


def _table(
    data: AllocationData,
    request: RuntimeRequest,
    rows: list[tuple[int, int]],
    figures: list[Ranked],
    names: list[Ranked],
    style: Style,
) -> Iterator[str]:
    values = [size if request.order == "bytes" else count for size, count in rows]
    most, whole = max(values, default=0), data.bytes if request.order == "bytes" else data.count
    bars: list[Cell] = [(bar(value, most, BAR_COLUMNS), Role.JIT) for value in values]
    columns = [
        Ranked(Column("bytes", right=True), [bytes_text(size) for size, _ in rows]),
        Ranked(Column("", right=True), [percent_text(value, whole) for value in values], 1),
        Ranked(Column(""), bars, 3),
        Ranked(Column("objects", right=True), [count_text(count) for _, count in rows]),
        *figures,
        *names,
    ]
    return fitted(columns, style)
