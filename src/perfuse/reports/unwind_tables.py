"""What a file with unwind tables tells: what is in them, how much code they cover, who reads them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfuse.errors import ExportError
from perfuse.reports.units import hex_text

if TYPE_CHECKING:
    from perfuse.diagnostics import Diagnostic
    from perfuse.unwind_tables import CodeSection, EhFrameAgreement, SectionHeader, UncoveredFunction, UnwindTables

READERS = {
    "SF080": "Linux (series of January 2026)",
    "SF081": "glibc 2.43",
    "SF082": "libsframe 3 (binutils 2.46)",
}
"""Who unwinds by such sections, by the rule that tells that they refuse one."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Who would take the section, or why not: `refuses` is empty where it would."""

    name: str
    refuses: str


@dataclass(frozen=True, slots=True)
class SectionReport:
    """A section: one header, or several where a linker did not merge them.

    `eh_frame_bytes` is the size of `.eh_frame` and its index, `shared_bytes` what the section would be with equal rows
    shared; None where there is none. `without` is cut to the report's limit, `num_without` is not.
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


@dataclass(frozen=True, slots=True)
class UnwindReport:
    """Everything `perfuse report` tells of a file with unwind tables."""

    path: str
    sections: list[SectionReport]
    readers: list[Reader]
    findings: list[Diagnostic]

    def as_json(self) -> dict[str, Any]:
        """The contract of `report --json`."""
        told = ("code", "severity", "message", "offset", "count")
        return {
            "kind": "unwind_tables",
            "path": self.path,
            "sections": [_with_hex_addresses(asdict(one)) for one in self.sections],
            "readers": [
                {"name": one.name, "takes_it": not one.refuses, "why_not": one.refuses} for one in self.readers
            ],
            "findings": [{name: getattr(found, name) for name in told} for found in self.findings],
        }


def unwind_report(opened: UnwindTables, limit: int = 0) -> UnwindReport:
    """Gathers the report; at most `limit` functions without rows, and places a rule, all with 0."""
    found = opened.recording.check(limit=limit)
    refused = {one.code: one.message for one in found if one.code in READERS}
    # Who would load a section that is in no program, nobody can say.
    linked = any(piece.address for piece in opened.headers)
    numbers = sorted({piece.section for piece in opened.headers})
    return UnwindReport(
        path=opened.recording.path,
        sections=[_section(opened, number, limit) for number in numbers],
        readers=[Reader(name, refused.get(code, "")) for code, name in READERS.items()] if linked else [],
        findings=[one for one in found if one.code not in READERS],
    )


def _section(opened: UnwindTables, number: int, limit: int) -> SectionReport:
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
    """What a section would be with equal rows shared; None for one that cannot be written."""
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
