"""The report of unwind tables, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from perfuse.reports.findings import finding_lines
from perfuse.reports.grid import Cell, Column, bar, fields, grid
from perfuse.reports.section import section
from perfuse.reports.style import Role, Style
from perfuse.reports.units import bytes_text, count_text, counted, hex_text, percent_text

if TYPE_CHECKING:
    from perfuse.reports.unwind_tables import Reader, SectionReport, UnwindReport
    from perfuse.unwind_tables import CodeSection, EhFrameAgreement, SectionHeader, UncoveredFunction

BAR_COLUMNS = 12


def unwind_lines(report: UnwindReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(report.path, Role.TITLE)
    for one in report.sections:
        yield ""
        if one.member:
            yield style.paint(f"  {one.member}", Role.NAME)
        yield from fields(_facts(one), style)
        if one.code:
            yield from section("Code with rows", style, "and in .eh_frame")
            yield from _code(one.code, style)
        if one.without:
            yield from section("Functions without rows", style, f"{bytes_text(one.without_bytes)} in all")
            yield from _without(one.without, style)
            if len(one.without) < one.num_without:
                left = count_text(one.num_without - len(one.without))
                yield style.paint(f"  … {left} more (--limit 0 shows all)", Role.FAINT)
    if report.readers:
        yield from section("Who would unwind by it", style)
        yield from _readers(report.readers, style)
    if report.findings:
        yield from section("Findings", style, "perfuse explain CODE: what it means")
        yield from finding_lines(report.findings, style)


def _facts(one: SectionReport) -> list[tuple[str, Cell]]:
    pieces = one.pieces
    facts: list[tuple[str, Cell]] = [("section", _kind(pieces)), ("starts", _starts(pieces))]
    rows = sum(piece.num_rows for piece in pieces)
    functions = sum(piece.num_functions for piece in pieces)
    facts.append(("content", f"{counted(functions, 'function')}, {counted(rows, 'row')}"))
    facts.append(("size", _size(one, functions)))
    if one.eh_frame_bytes:
        ratio = one.size_bytes / one.eh_frame_bytes
        facts.append(("", f"{ratio:.2f} times .eh_frame and its index, {bytes_text(one.eh_frame_bytes)}"))
    if one.shared_bytes is not None and one.shared_bytes < one.size_bytes:
        saved = percent_text(one.size_bytes - one.shared_bytes, one.size_bytes)
        facts.append(
            ("", f"{bytes_text(one.shared_bytes)} with equal rows shared, {saved} less: perfuse sframe optimise")
        )
    if one.num_functions is not None:
        there = one.num_functions - one.num_without
        share = percent_text(there, one.num_functions)
        facts.append(("covers", f"{count_text(there)} of {counted(one.num_functions, 'function')}, {share}"))
    if one.agreement is not None:
        facts.append(("agrees", _agreement(one.agreement)))
    return facts


def _kind(pieces: Sequence[SectionHeader]) -> str:
    versions = ", ".join(str(version) for version in sorted({piece.version for piece in pieces}))
    machine = pieces[0].abi or "an unknown machine"
    several = f", {len(pieces)} headers one behind the other" if len(pieces) > 1 else ""
    sorted_text = "sorted" if pieces[0].flags & 1 else "not sorted"
    return f"SFrame {versions} for {machine}, {sorted_text}{several}"


def _starts(pieces: Sequence[SectionHeader]) -> str:
    return f"count from the {pieces[0].starts}: {pieces[0].because}"


def _size(one: SectionReport, functions: int) -> str:
    parts = {
        "header": sum(piece.header_bytes for piece in one.pieces),
        "functions": sum(piece.entries_bytes for piece in one.pieces),
        "rows": sum(piece.rows_bytes for piece in one.pieces),
    }
    told = " + ".join(f"{bytes_text(size)} {name}" for name, size in parts.items())
    each = f", {one.size_bytes / functions:.1f} B a function" if functions else ""
    return f"{bytes_text(one.size_bytes)} = {told}{each}"


def _agreement(agreement: EhFrameAgreement) -> Cell:
    compared = f"{counted(agreement.num_functions, 'function')}, {bytes_text(agreement.num_bytes)} of code"
    if not agreement.num_functions:
        return "nothing in common with .eh_frame"
    if not agreement.num_disagreements:
        return (f"with .eh_frame in all of {compared}", Role.GOOD)
    rows = counted(agreement.num_disagreements, "row")
    return (f"not with .eh_frame: {rows} of {compared}, see findings", Role.WARNING)


def _code(rows: Sequence[CodeSection], style: Style) -> Iterator[str]:
    columns = [
        Column("section", role=Role.NAME, shrinks=10),
        Column("bytes", right=True),
        Column("with rows", right=True),
        Column(""),
        Column(".eh_frame", right=True, role=Role.FAINT),
    ]
    cells: list[list[Cell]] = [
        [
            row.name,
            count_text(row.size_bytes),
            percent_text(row.covered_bytes, row.size_bytes),
            bar(row.covered_bytes / row.size_bytes, BAR_COLUMNS).ljust(BAR_COLUMNS),
            percent_text(row.eh_frame_bytes, row.size_bytes),
        ]
        for row in rows
    ]
    return grid(columns, cells, style)


def _without(rows: Sequence[UncoveredFunction], style: Style) -> Iterator[str]:
    columns = [
        Column("address", right=True, role=Role.FAINT),
        Column("bytes", right=True),
        Column("function", role=Role.NAME, shrinks=16),
        Column("why", shrinks=20),
    ]
    cells: list[list[Cell]] = [
        [hex_text(row.address), count_text(row.size_bytes), row.name or ("no name", Role.FAINT), row.why]
        for row in rows
    ]
    return grid(columns, cells, style)


def _readers(rows: Sequence[Reader], style: Style) -> Iterator[str]:
    columns = [Column(""), Column("", role=Role.NAME), Column("", shrinks=20)]
    cells: list[list[Cell]] = [
        [("no" if row.refuses else "yes", Role.WARNING if row.refuses else Role.GOOD), row.name, row.refuses]
        for row in rows
    ]
    return grid(columns, cells, style)
