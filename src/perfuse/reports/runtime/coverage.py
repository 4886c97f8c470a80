"""Section `coverage`: which statements were executed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perfuse.analysis.coverage import Coverage, Covered
from perfuse.analysis.coverage import coverage as coverage_of
from perfuse.reports.grid import Cell, Column, bar, grid, section
from perfuse.reports.runtime.sections import RuntimeRequest, SectionContext, as_plain, more_rows_line
from perfuse.reports.text import Role, Style
from perfuse.reports.units import count_text, percent_text


def collect(context: SectionContext) -> Coverage | None:
    """Coverage of the whole recording."""
    data = coverage_of(context.profile)
    return data if data.methods else None


def as_json(data: Coverage) -> Any:
    """Assemblies, classes and methods."""
    return as_plain(data)


def lines(data: Coverage, request: RuntimeRequest, style: Style) -> Iterator[str]:
    """Assemblies, then classes; in full also methods, those with the most missed statements first."""
    run = sum(one.num_run for one in data.assemblies)
    whole = sum(one.num_statements for one in data.assemblies)
    yield from section("Coverage", style, f"{count_text(run)} of {count_text(whole)} statements were executed")
    for title, rows in (("assembly", data.assemblies), ("class", data.classes), ("method", data.methods)):
        if title == "method" and request.is_overview:
            continue
        shown = rows[: request.rows(5)]
        yield from _table(title, shown, style)
        yield from more_rows_line(len(rows) - len(shown), "coverage", request, style)


def _table(title: str, rows: Sequence[Covered], style: Style) -> Iterator[str]:
    columns = [
        Column("run", right=True),
        Column(""),
        Column("of", right=True),
        Column("full methods" if title != "method" else "", right=True),
        Column("part" if title != "method" else "missed at line", right=True),
        Column(title, shrinks=20),
    ]
    cells: list[list[Cell]] = []
    for one in rows:
        share = one.num_run / one.num_statements if one.num_statements else 0
        name = " ".join(part for part in (one.class_name if title != "assembly" else one.assembly, one.method) if part)
        missed = "" if one.missed_line is None else str(one.missed_line)
        of_methods = [f"{one.num_whole} of {one.num_methods}", count_text(one.num_partial)]
        cells.append([
            percent_text(one.num_run, one.num_statements),
            (bar(share, 1.0), Role.JIT),
            count_text(one.num_statements),
            *(of_methods if title != "method" else ["", missed]),
            name,
        ])  # fmt: skip
    return grid(columns, cells, style)
