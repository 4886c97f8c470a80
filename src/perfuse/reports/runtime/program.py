"""Section `program`: domains, contexts, images, assemblies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from perfuse.analysis.program import Program
from perfuse.analysis.program import program as program_of
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import Gathering, RuntimeRequest, plain, rest
from perfuse.reports.text import Role, Style, cut_middle
from perfuse.reports.units import count_text, counted, duration_text, hex_text

_TITLES = {"domain": "Domains", "context": "Contexts", "image": "Images", "assembly": "Assemblies"}


@dataclass(frozen=True, slots=True)
class Told:
    """What was loaded, and since when times are counted."""

    start_ns: int
    program: Program


def gather(of: Gathering) -> Told:
    """Everything that was loaded."""
    return Told(of.start_ns, program_of(of.profile))


def as_json(told: Told) -> Any:
    """Counts, and a list of what was loaded."""
    return plain(told.program)


def lines(told: Told, asked: RuntimeRequest, style: Style) -> Iterator[str]:
    """By kind, in the order of time."""
    counts = f"{counted(told.program.num_types, 'type')}, {counted(told.program.num_functions, 'function')}"
    yield from section("Program", style, counts)
    for kind, group in groupby(told.program.loaded, key=lambda one: one.kind):
        found = list(group)
        shown = found[: asked.limit]
        rows: list[list[Cell]] = []
        for one in shown:
            times = [
                "-" if at is None else duration_text(at - told.start_ns) for at in (one.loaded_ns, one.unloaded_ns)
            ]
            native = "-" if one.native_address is None else hex_text(one.native_address)
            rows.append([*times, (native, Role.FAINT), one.name or "-"])
        heading = f"{_TITLES[kind]} ({count_text(len(found))})"
        columns = [
            Column("loaded", right=True),
            Column("unloaded", right=True),
            Column("id"),
            Column(heading, shrinks=20, cut=cut_middle),
        ]
        yield from grid(columns, rows, style)
        yield from rest(len(found) - len(shown), "program", asked, style)
