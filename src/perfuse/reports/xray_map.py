"""The report of an XRay instrumentation map: data, JSON, text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import perfuse
from perfuse.reports.grid import Cell, Column, fields, grid, section
from perfuse.reports.inputs import finding_lines
from perfuse.reports.registry import Report
from perfuse.reports.text import Role, Style, cut_middle
from perfuse.reports.units import count_text, hex_text
from perfuse.value_class import as_dict, field_names

if TYPE_CHECKING:
    from arro3.core import Table

    from perfuse.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Sled:
    """An XRay sled: a patchable place; `kind` is named as in `llvm-xray extract`."""

    address: int | None
    kind: str
    always_instrument: bool
    version: int


@dataclass(frozen=True, slots=True)
class SledFunction:
    """A function with sleds; `address` is relative to `section` where the file is not linked."""

    id: int
    address: int | None
    section: str | None
    name: str | None
    linkage_name: str | None
    path: str | None
    line: int | None
    always_instrument: bool
    sleds: list[Sled]

    @property
    def kinds(self) -> list[str]:
        """The distinct kinds of its sleds."""
        return list(dict.fromkeys(sled.kind for sled in self.sleds))


@dataclass(frozen=True, slots=True)
class SledMapReport:
    """The report of an instrumentation map."""

    path: str
    architecture: str
    pointer_bytes: int
    versions: list[int]
    num_functions: int
    num_sleds: int
    kinds: dict[str, int]
    functions: list[SledFunction]
    findings: list[Diagnostic]

    def as_json(self) -> dict[str, Any]:
        """The documented JSON of `report --map FILE --json`."""
        keys = ("code", "severity", "message", "offset", "count")
        findings = [{name: getattr(found, name) for name in keys} for found in self.findings]
        functions = [_with_hex_address(as_dict(function)) for function in self.functions]
        for function in functions:
            function["sleds"] = [_with_hex_address(sled) for sled in function["sleds"]]
        whole = {name: getattr(self, name) for name in field_names(type(self))}
        return {"kind": "instrumentation_map", **whole, "functions": functions, "findings": findings}


def build(path: str, limit: int, *, symbol_dirs: Sequence[str] = (), debug_info: bool = True) -> Report:
    """Builds the report of a program's instrumentation map; the first `limit` functions, all with 0.

    Raises:
        UnreadableInput: The program cannot be read, or has no map.
    """
    sled_map = perfuse.xray.InstrumentationMap.open(path, symbol_dirs=symbol_dirs, debug_info=debug_info)
    report = sled_map_report(sled_map, limit)
    return Report(report.as_json, partial(sled_map_lines, report), sled_map.findings)


def sled_map_report(sled_map: Any, limit: int = 0) -> SledMapReport:
    """Collects the report; the first `limit` functions, 0 for all."""
    num_functions = min(limit, len(sled_map)) if limit else len(sled_map)
    functions = sled_map.functions.slice(0, num_functions)
    num_sleds = functions.column("num_sleds").to_pylist()
    shown = sled_map.sleds.slice(0, sum(num_sleds))
    # Sleds are ordered by function.
    sleds = (Sled(**row) for row in _row_dicts(shown, "address", "kind", "always_instrument", "version"))
    names = ("id", "address", "section", "name", "linkage_name", "path", "line", "always_instrument")
    rows = zip(_row_dicts(functions, *names), num_sleds, strict=True)
    return SledMapReport(
        path=sled_map.path,
        architecture=sled_map.architecture,
        pointer_bytes=sled_map.pointer_bytes,
        versions=list(sled_map.versions),
        num_functions=len(sled_map),
        num_sleds=sled_map.sleds.num_rows,
        kinds=sled_map.kinds,
        functions=[SledFunction(**row, sleds=list(islice(sleds, count))) for row, count in rows],
        findings=sled_map.findings,
    )


def _row_dicts(table: Table, *names: str) -> Iterator[dict[str, Any]]:
    columns = (table.column(name).to_pylist() for name in names)
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _with_hex_address(row: dict[str, Any]) -> dict[str, Any]:
    address = row["address"]
    return {**row, "address": None if address is None else hex_text(address)}


def sled_map_lines(report: SledMapReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(report.path, Role.TITLE)
    yield ""
    yield from fields(_header(report), style)
    if report.functions:
        linked = all(row.section is None for row in report.functions)
        yield from section("Functions", style, "by their ids in logs" if linked else "numbered within this file")
        yield from _function_table(report.functions, style)
        if len(report.functions) < report.num_functions:
            left = count_text(report.num_functions - len(report.functions))
            yield style.paint(f"  … {left} more (--limit 0 shows all)", Role.FAINT)
    if report.findings:
        yield from section("Findings", style, "explained by: perfuse explain CODE")
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


def _function_table(rows: Sequence[SledFunction], style: Style) -> Iterator[str]:
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
        place: list[Cell] = [_location_text(row)] if with_places else []
        always = "yes" if row.always_instrument else "-"
        cells.append([count_text(row.id), _address_text(row), name, _kinds_text(row), always, *place])
    return grid(columns, cells, style)


def _address_text(row: SledFunction) -> str:
    address = "unknown" if row.address is None else hex_text(row.address)
    return f"{row.section}+{address}" if row.section else address


def _kinds_text(row: SledFunction) -> str:
    """`enter, exit (3)`: the kinds of sleds, and their number where that is larger."""
    kinds = ", ".join(kind.removeprefix("function-") for kind in row.kinds)
    return f"{kinds} ({len(row.sleds)})" if len(row.sleds) > len(row.kinds) else kinds


def _location_text(row: SledFunction) -> str:
    if row.path is None:
        return ""
    return row.path if row.line is None else f"{row.path}:{row.line}"
