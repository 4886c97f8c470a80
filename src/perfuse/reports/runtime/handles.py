"""Section `handles`: handles that were created, and those never freed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.handles import Handles
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import (
    RuntimeRequest,
    SectionContext,
    as_plain,
    more_rows_line,
    site_lines,
)
from perfuse.reports.text import Role, Style
from perfuse.reports.units import count_text, counted


def collect(context: SectionContext) -> Handles | None:
    """Handles created or freed by the selected threads in the selected time."""
    data = Handles(context.profile)
    return data if data.kinds else None


def as_json(data: Handles) -> Any:
    """Kinds and sites."""
    return {"kinds": as_plain(data.kinds), "sites": as_plain(data.sites)}


def lines(data: Handles, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """By kind, then where the handles that are left were created."""
    left = sum(one.num_left for one in data.kinds)
    yield from section("Handles", style, f"{counted(left, 'handle')} never freed")
    names = ("created", "freed", "left", "peak")
    rows: list[list[Cell]] = [
        [
            *map(count_text, (one.num_created, one.num_destroyed, one.num_left, one.max_alive)),
            one.kind.replace("_", " "),
        ]
        for one in data.kinds
    ]
    yield from grid([*(Column(name, right=True) for name in names), Column("kind", role=Role.NAME)], rows, style)
    if request.is_overview:
        return
    shown = data.sites[: request.limit]
    yield from section("Creation sites", style, f"{counted(len(data.sites), 'site')}; most handles left first")
    for one in shown:
        yield f"  {count_text(one.num_left)} left of {count_text(one.num_created)} {one.kind.replace('_', ' ')}"
        yield from site_lines(one.backtrace, request, style)
    yield from more_rows_line(len(data.sites) - len(shown), "handles", request, style)
