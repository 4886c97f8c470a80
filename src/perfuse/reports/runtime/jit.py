"""Section `jit`: compiled methods, and when they were compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.program import Compilation, compilation
from perfuse.reports.grid import Cell, Column, grid, section, sparkline
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext, as_plain
from perfuse.reports.text import Role, Style
from perfuse.reports.units import bytes_text, counted


def collect(context: SectionContext) -> Compilation | None:
    """Code compiled in the selected time."""
    data = compilation(context.profile, context.request.rows(3))
    return data if data.num_methods or data.num_helpers else None


def as_json(data: Compilation) -> Any:
    """Counts, the timeline, the largest methods."""
    return as_plain(data)


def lines(data: Compilation, _request: RuntimeRequest, style: Style) -> Iterator[str]:
    """Sizes, a timeline, and the largest methods."""
    made = f"{counted(data.num_methods, 'method')}, {bytes_text(data.bytes)}"
    if data.num_helpers:
        made += f"; {bytes_text(data.helper_bytes)} in {counted(data.num_helpers, 'piece')} for the runtime itself"
    yield from section("Compiled code", style, made)
    if any(data.timeline_bytes):
        yield "  " + style.paint(sparkline(data.timeline_bytes), Role.JIT) + style.paint("  bytes of code", Role.FAINT)
    rows: list[list[Cell]] = [[bytes_text(one.bytes), one.name] for one in data.biggest]
    yield from grid([Column("", right=True), Column("", shrinks=20)], rows, style)
