"""Section `jit`: what was compiled, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfuse.analysis.program import Compilation, compilation
from perfuse.reports.grid import Cell, Column, grid, section, sparkline
from perfuse.reports.runtime.sections import Gathering, RuntimeRequest, plain
from perfuse.reports.text import Role, Style
from perfuse.reports.units import bytes_text, counted


def gather(of: Gathering) -> Compilation | None:
    """Code of the selected time."""
    told = compilation(of.profile, of.request.rows(3))
    return told if told.num_methods or told.num_helpers else None


def as_json(told: Compilation) -> Any:
    """Counts, the timeline, the biggest methods."""
    return plain(told)


def lines(told: Compilation, _asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """How much, when, and the biggest methods."""
    made = f"{counted(told.num_methods, 'method')}, {bytes_text(told.bytes)}"
    if told.num_helpers:
        made += f"; {bytes_text(told.helper_bytes)} in {counted(told.num_helpers, 'piece')} for the runtime itself"
    yield from section("Compiled code", style, made)
    if any(told.timeline_bytes):
        yield "  " + style.paint(sparkline(told.timeline_bytes), Role.JIT) + style.paint("  bytes of code", Role.FAINT)
    rows: list[list[Cell]] = [[bytes_text(one.bytes), one.name] for one in told.biggest]
    yield from grid([Column("", right=True), Column("", shrinks=20)], rows, style)
