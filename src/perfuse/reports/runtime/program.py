"""Section `program`: domains, contexts, images, assemblies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from perfuse.analysis.program import Program
from perfuse.analysis.program import program as program_of
from perfuse.reports.grid import Cell, Column, grid, section
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext, as_plain, more_rows_line
from perfuse.reports.text import Role, Style, cut_middle
from perfuse.reports.units import count_text, counted, duration_text, hex_text
from perfuse.value_class import value_class

_TITLES = {"domain": "Domains", "context": "Contexts", "image": "Images", "assembly": "Assemblies"}


@value_class
class ProgramData:
    """What was loaded, and the start of the recording."""

    start_ns: int
    program: Program


def collect(context: SectionContext) -> ProgramData:
    """Everything that was loaded."""
    return ProgramData(context.start_ns, program_of(context.profile))


def as_json(data: ProgramData) -> Any:
    """Counts, and a list of what was loaded."""
    return as_plain(data.program)


def lines(data: ProgramData, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """By kind, in the order of loading."""
    counts = f"{counted(data.program.num_types, 'type')}, {counted(data.program.num_functions, 'function')}"
    yield from section("Program", style, counts)
    for kind, group in groupby(data.program.loaded, key=lambda one: one.kind):
        found = list(group)
        shown = found[: request.limit]
        rows: list[list[Cell]] = []
        for one in shown:
            times = [
                "-" if at is None else duration_text(at - data.start_ns) for at in (one.loaded_ns, one.unloaded_ns)
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
        yield from more_rows_line(len(found) - len(shown), "program", request, style)
