"""The report of unwind tables (UnwindTables): data, JSON, text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import perfuse
from perfuse.errors import ExportError
from perfuse.reports.grid import Cell, Column, bar, fields, grid, section
from perfuse.reports.inputs import finding_lines
from perfuse.reports.registry import Options, Report
from perfuse.reports.text import Role, Style
from perfuse.reports.units import bytes_text, count_text, counted, hex_text, percent_text
from perfuse.value_class import as_dict, value_class

if TYPE_CHECKING:
    from perfuse.diagnostics import Diagnostic
    from perfuse.profile import Profile
    from perfuse.programs.unwind_tables import (
        CodeSection,
        EhFrameAgreement,
        SectionHeader,
        UncoveredFunction,
        UnwindTables,
    )


@value_class
class UnwinderVersion:
    """A version of an unwinder, and the date on which its behaviour was examined."""

    name: str
    version: str
    as_of: str


READERS = {
    "SF080": UnwinderVersion("Linux", "patch series 13 of 2026-01-27, not in 7.2", "2026-11-21"),
    "SF081": UnwinderVersion("glibc", "2.43", "2026-11-21"),
    "SF082": UnwinderVersion("libsframe", "3, of binutils 2.46 and 2.47", "2026-11-21"),
}
"""Unwinders that read SFrame, by the diagnostic that states that they reject a section."""


@value_class
class Reader:
    """An unwinder, and why it rejects the section; `refuses` is empty where it accepts it."""

    unwinder: UnwinderVersion
    refuses: str


@value_class
class SectionReport:
    """A section: one header, or several where a linker did not merge them.

    `eh_frame_bytes` is the size of `.eh_frame` and its index, `shared_bytes` the size that the section would have with
    equal rows shared; None where there is none. `without` has at most the report's limit of rows.
    """

    member: str
    pieces: list[SectionHeader]
    size_bytes: int
    shared_bytes: int | None
    eh_frame_bytes: int | None
    num_functions: int | None
    num_without: int
    without_bytes: int
    code: list[CodeSection]
    without: list[UncoveredFunction]
    agreement: EhFrameAgreement | None


@value_class
class UnwindReport:
    """The report of a file with unwind tables."""

    path: str
    sections: list[SectionReport]
    readers: list[Reader]
    findings: list[Diagnostic]

    def as_json(self) -> dict[str, Any]:
        """The documented JSON of `report --json` for unwind tables."""
        keys = ("code", "severity", "message", "offset", "count")
        return {
            "kind": "unwind_tables",
            "path": self.path,
            "sections": [_with_hex_addresses(as_dict(one)) for one in self.sections],
            "readers": [
                {**as_dict(one.unwinder), "takes_it": not one.refuses, "why_not": one.refuses} for one in self.readers
            ],
            "findings": [{name: getattr(found, name) for name in keys} for found in self.findings],
        }


def build(profile: Profile, options: Options) -> Report:
    """Builds the report of files with unwind tables: one document per file."""
    reports = [unwind_report(perfuse.sframe.SFrame(one), options["--limit"]) for one in profile.recordings]

    def as_json() -> dict[str, Any]:
        documents = [report.as_json() for report in reports]
        return documents[0] if len(documents) == 1 else {"kind": "unwind_tables", "files": documents}

    def lines(style: Style) -> Iterator[str]:
        for index, report in enumerate(reports):
            if index:
                yield ""
            yield from unwind_lines(report, style)

    return Report(as_json, lines, [found for report in reports for found in report.findings])


def unwind_report(opened: UnwindTables, limit: int = 0) -> UnwindReport:
    """Collects the report; at most `limit` functions without rows, and places per rule; 0 for all."""
    found = opened.recording.check(limit=limit)
    refused = {one.code: one.message for one in found if one.code in READERS}
    # A section outside of a linked program is not loaded by any unwinder.
    linked = any(piece.address for piece in opened.headers)
    numbers = sorted({piece.section for piece in opened.headers})
    return UnwindReport(
        path=opened.recording.path,
        sections=[_section_report(opened, number, limit) for number in numbers],
        readers=[Reader(one, refused.get(code, "")) for code, one in READERS.items()] if linked else [],
        findings=[one for one in found if one.code not in READERS],
    )


def _section_report(opened: UnwindTables, number: int, limit: int) -> SectionReport:
    pieces = [piece for piece in opened.headers if piece.section == number]
    coverage = next((one for one in opened.coverage if one.section == number), None)
    without = coverage.without if coverage else []
    return SectionReport(
        member=pieces[0].member,
        pieces=pieces,
        size_bytes=sum(piece.size_bytes for piece in pieces),
        shared_bytes=_shared_bytes(opened, number),
        eh_frame_bytes=coverage.eh_frame_bytes if coverage else None,
        num_functions=coverage.num_functions if coverage else None,
        num_without=len(without),
        without_bytes=sum(one.size_bytes for one in without),
        code=coverage.code if coverage else [],
        without=without[: limit or None],
        agreement=coverage.agreement if coverage else None,
    )


def _shared_bytes(opened: UnwindTables, number: int) -> int | None:
    """The size of a section with equal rows shared; None for one that cannot be written."""
    pieces = zip(opened.headers, opened.sections, strict=True)
    try:
        return sum(
            len(section.optimise().encode(piece.address, sort=False))
            for piece, section in pieces
            if piece.section == number
        )
    except ExportError:
        return None


def _with_hex_addresses(section: dict[str, Any]) -> dict[str, Any]:
    for rows in (section["pieces"], section["code"], section["without"]):
        for row in rows:
            row["address"] = hex_text(row["address"])
    return section


def unwind_lines(report: UnwindReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(report.path, Role.TITLE)
    for one in report.sections:
        yield ""
        if one.member:
            yield style.paint(f"  {one.member}", Role.NAME)
        yield from fields(_fact_fields(one), style)
        if one.code:
            yield from section("Code with rows", style, "compared with .eh_frame")
            yield from _code_table(one.code, style)
        if one.without:
            yield from section("Functions without rows", style, f"{bytes_text(one.without_bytes)} in all")
            yield from _missing_table(one.without, style)
            if len(one.without) < one.num_without:
                left = count_text(one.num_without - len(one.without))
                yield style.paint(f"  … {left} more (--limit 0 shows all)", Role.FAINT)
    if report.readers:
        dates = {reader.unwinder.as_of for reader in report.readers}
        yield from section("Accepted by", style, f"as of {' and '.join(sorted(dates))}")
        yield from _reader_table(report.readers, style)
    if report.findings:
        yield from section("Findings", style, "explained by: perfuse explain CODE")
        yield from finding_lines(report.findings, style)


def _fact_fields(one: SectionReport) -> list[tuple[str, Cell]]:
    pieces = one.pieces
    facts: list[tuple[str, Cell]] = [("section", _kind_text(pieces)), ("starts", _starts_text(pieces))]
    rows = sum(piece.num_rows for piece in pieces)
    functions = sum(piece.num_functions for piece in pieces)
    facts.append(("content", f"{counted(functions, 'function')}, {counted(rows, 'row')}"))
    facts.append(("size", _size_text(one, functions)))
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
        facts.append(("agrees", _agreement_text(one.agreement)))
    return facts


def _kind_text(pieces: Sequence[SectionHeader]) -> str:
    versions = ", ".join(str(version) for version in sorted({piece.version for piece in pieces}))
    machine = pieces[0].abi or "an unknown machine"
    several = f", {len(pieces)} consecutive headers" if len(pieces) > 1 else ""
    sorted_text = "sorted" if pieces[0].flags & 1 else "not sorted"
    return f"SFrame {versions} for {machine}, {sorted_text}{several}"


def _starts_text(pieces: Sequence[SectionHeader]) -> str:
    return f"count from the {pieces[0].starts}: {pieces[0].because}"


def _size_text(one: SectionReport, functions: int) -> str:
    parts = {
        "header": sum(piece.header_bytes for piece in one.pieces),
        "functions": sum(piece.entries_bytes for piece in one.pieces),
        "rows": sum(piece.rows_bytes for piece in one.pieces),
    }
    addends = " + ".join(f"{bytes_text(size)} {name}" for name, size in parts.items())
    each = f", {one.size_bytes / functions:.1f} B a function" if functions else ""
    return f"{bytes_text(one.size_bytes)} = {addends}{each}"


def _agreement_text(agreement: EhFrameAgreement) -> Cell:
    compared = f"{counted(agreement.num_functions, 'function')}, {bytes_text(agreement.num_bytes)} of code"
    if not agreement.num_functions:
        return "no function is in .eh_frame as well"
    if not agreement.num_disagreements:
        return (f"with .eh_frame in all of {compared}", Role.GOOD)
    rows = counted(agreement.num_disagreements, "row")
    return (f"not with .eh_frame: {rows} of {compared}, see findings", Role.WARNING)


def _code_table(rows: Sequence[CodeSection], style: Style) -> Iterator[str]:
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
            bar(row.covered_bytes, row.size_bytes),
            percent_text(row.eh_frame_bytes, row.size_bytes),
        ]
        for row in rows
    ]
    return grid(columns, cells, style)


def _missing_table(rows: Sequence[UncoveredFunction], style: Style) -> Iterator[str]:
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


def _reader_table(rows: Sequence[Reader], style: Style) -> Iterator[str]:
    columns = [Column(""), Column("", role=Role.NAME), Column("", role=Role.FAINT), Column("", shrinks=20)]
    cells: list[list[Cell]] = [
        [
            ("no" if row.refuses else "yes", Role.WARNING if row.refuses else Role.GOOD),
            row.unwinder.name,
            row.unwinder.version,
            row.refuses,
        ]
        for row in rows
    ]
    return grid(columns, cells, style)
