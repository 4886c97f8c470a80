"""The report of code without samples, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfuse.reports.findings import summary_lines
from perfuse.reports.grid import Cell, Column, bar, fields, grid, sparkline
from perfuse.reports.inputs import input_text
from perfuse.reports.recording import Code, CodeGroup, CodeReport, RecordKind
from perfuse.reports.section import section
from perfuse.reports.style import Role, Style
from perfuse.reports.units import bytes_text, count_text, counted, duration_text, percent_text

BAR_COLUMNS = 12


def code_lines(report: CodeReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(report.title, Role.TITLE)
    yield ""
    yield from fields(_header(report), style)
    if report.groups:
        yield from section("Code by tier", style)
        yield from _groups(report.groups, report.bytes, style)
    if report.duration_ns > 0:
        yield from section("Compiled over time", style, f"bytes of code, {duration_text(report.duration_ns)} in all")
        yield "  " + style.paint(sparkline(report.timeline), Role.JIT)
    yield from _codes("Compiled most often", "times", report.recompiled, style)
    yield from _codes("Biggest code", "", report.biggest, style)
    yield from _codes("Most line rows", "rows", report.most_lines, style)
    if report.records:
        yield from section("What the files are made of", style)
        yield from record_lines(report.records, style)
    yield from summary_lines(report.diagnostics, style)


def record_lines(kinds: Sequence[RecordKind], style: Style) -> Iterator[str]:
    """Records by kind, with their part of the bytes."""
    whole = sum(kind.bytes for kind in kinds)
    columns = [Column("records", right=True), Column("bytes", right=True), Column(""), Column("kind")]
    rows: list[list[Cell]] = []
    for kind in kinds:
        drawn = bar(kind.bytes / whole if whole else 0, BAR_COLUMNS).ljust(BAR_COLUMNS)
        rows.append([count_text(kind.records), bytes_text(kind.bytes), (drawn, Role.NAME), kind.kind])
    return grid(columns, rows, style)


def _header(report: CodeReport) -> list[tuple[str, Cell]]:
    pairs: list[tuple[str, Cell]] = [
        ("files" if index == 0 else "", input_text(one)) for index, one in enumerate(report.inputs)
    ]
    made = f"{counted(report.code_objects, 'piece')} of code for {counted(report.functions, 'function')}"
    pairs.append(("code", f"{made}, {bytes_text(report.bytes)}"))
    reuse = report.reuse
    if reuse.reused_addresses or reuse.moved:
        starts = counted(reuse.start_addresses, "start address", "start addresses")
        told = f"{count_text(reuse.reused_addresses)} of {starts}"
        pairs.append(("reuse", f"{told} served more than one piece of code; {counted(reuse.moved, 'move')}"))
    return pairs


def _groups(groups: Sequence[CodeGroup], whole: int, style: Style) -> Iterator[str]:
    columns = [
        Column("bytes", right=True),
        Column(""),
        Column(""),
        Column("pieces", right=True),
        Column("functions", right=True),
        Column("largest", right=True),
        Column("tier", role=Role.NAME, shrinks=6),
        Column("kind", role=Role.FAINT),
    ]
    rows: list[list[Cell]] = []
    for group in groups:
        drawn = bar(group.bytes / whole if whole else 0, BAR_COLUMNS).ljust(BAR_COLUMNS)
        numbers = [
            count_text(group.code_objects),
            count_text(group.functions),
            bytes_text(group.largest_bytes),
        ]
        part = percent_text(group.bytes, whole)
        rows.append([bytes_text(group.bytes), part, (drawn, Role.JIT), *numbers, group.tier or "-", group.kind])
    return grid(columns, rows, style)


def _codes(title: str, unit: str, codes: Sequence[Code], style: Style) -> Iterator[str]:
    if not codes:
        return
    yield from section(title, style)
    counts = [Column(unit, right=True)] if unit else []
    columns = [
        *counts,
        Column("bytes", right=True),
        Column("function", shrinks=16),
        Column("tier", role=Role.FAINT, shrinks=8),
    ]
    rows = [[*([count_text(one.count)] if unit else []), bytes_text(one.bytes), one.name, one.tiers] for one in codes]
    yield from grid(columns, rows, style)
