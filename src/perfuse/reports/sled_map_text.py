"""The report of an instrumentation map, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from perfuse.reports.findings import finding_lines
from perfuse.reports.grid import Cell, Column, fields, grid
from perfuse.reports.section import section
from perfuse.reports.style import Role, Style
from perfuse.reports.text import cut_middle
from perfuse.reports.units import count_text, hex_text

if TYPE_CHECKING:
    from perfuse.reports.sled_map import SledFunction, SledMapReport


def sled_map_lines(report: SledMapReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(report.path, Role.TITLE)
    yield ""
    yield from fields(_header(report), style)
    if report.functions:
        linked = all(row.section is None for row in report.functions)
        yield from section("Functions", style, "by their ids in logs" if linked else "numbered within this file")
        yield from _functions(report.functions, style)
        if len(report.functions) < report.num_functions:
            left = count_text(report.num_functions - len(report.functions))
            yield style.paint(f"  … {left} more (--limit 0 shows all)", Role.FAINT)
    if report.findings:
        yield from section("Findings", style, "perfuse explain CODE: what it means")
        yield from finding_lines(report.findings, style)


def _header(report: SledMapReport) -> list[tuple[str, Cell]]:
    versions = ", ".join(map(str, report.versions)) or "-"
    kinds = ", ".join(f"{count_text(count)} {kind}" for kind, count in report.kinds.items())
    return [
        ("machine", f"{report.architecture}, {report.pointer_bytes * 8}-bit"),
        ("map", f"{'version' if len(report.versions) < 2 else 'versions'} {versions}"),
        ("functions", count_text(report.num_functions)),
        ("sleds", f"{count_text(report.num_sleds)}: {kinds}" if kinds else count_text(report.num_sleds)),
    ]


def _functions(rows: Sequence[SledFunction], style: Style) -> Iterator[str]:
    with_places = any(row.path for row in rows)
    columns = [
        Column("id", right=True),
        Column("address", right=True, role=Role.FAINT),
        Column("function", role=Role.NAME, shrinks=16),
        Column("sleds", shrinks=12),
        Column("always"),
        *([Column("declared at", role=Role.FAINT, shrinks=12, cut=cut_middle)] if with_places else []),
    ]
    cells: list[list[Cell]] = []
    for row in rows:
        name: Cell = row.name if row.name is not None else ("no name", Role.FAINT)
        place: list[Cell] = [_place(row)] if with_places else []
        always = "yes" if row.always_instrument else "-"
        cells.append([count_text(row.id), _address(row), name, _kinds(row), always, *place])
    return grid(columns, cells, style)


def _address(row: SledFunction) -> str:
    address = "unknown" if row.address is None else hex_text(row.address)
    return f"{row.section}+{address}" if row.section else address


def _kinds(row: SledFunction) -> str:
    """`enter, exit (3)`: the kinds there are, and how many sleds where there are more than kinds."""
    kinds = ", ".join(kind.removeprefix("function-") for kind in row.kinds)
    return f"{kinds} ({len(row.sleds)})" if len(row.sleds) > len(row.kinds) else kinds


def _place(row: SledFunction) -> str:
    if row.path is None:
        return ""
    return row.path if row.line is None else f"{row.path}:{row.line}"
