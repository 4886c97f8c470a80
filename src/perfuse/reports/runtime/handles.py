"""Section `handles`: handles that were made, and those never freed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.handles import Handles
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import Gathering, RuntimeRequest, block, one_line, plain, rest
from perfuse.reports.text import Role, Style
from perfuse.reports.units import count_text, counted


def gather(of: Gathering) -> Handles | None:
    """Handles made or freed in what is selected."""
    told = Handles(of.profile)
    return told if told.kinds else None


def as_json(told: Handles) -> Any:
    """Kinds and sites."""
    return {"kinds": plain(told.kinds), "sites": plain(told.sites)}


def lines(told: Handles, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """By kind, then who made those that are left."""
    left = sum(one.num_left for one in told.kinds)
    yield from section("Handles", style, f"{counted(left, 'handle')} never freed")
    names = ("made", "freed", "left", "most alive")
    rows: list[list[Cell]] = [
        [
            *map(count_text, (one.num_created, one.num_destroyed, one.num_left, one.max_alive)),
            one.kind.replace("_", " "),
        ]
        for one in told.kinds
    ]
    yield from grid([*(Column(name, right=True) for name in names), Column("kind", role=Role.NAME)], rows, style)
    if asked.is_overview:
        return
    shown = told.sites[: asked.limit]
    yield from section("Made from", style, f"{counted(len(told.sites), 'place')}; most left over first")
    for one in shown:
        yield f"  {count_text(one.num_left)} left of {count_text(one.num_created)} {one.kind.replace('_', ' ')}"
        if asked.stacks:
            yield from block(one.backtrace, asked.frames, style)
        else:
            width = None if style.width is None else style.width - 6
            yield style.paint("      " + one_line(one.backtrace, width), Role.FAINT)
    yield from rest(len(told.sites) - len(shown), "handles", asked, style)
