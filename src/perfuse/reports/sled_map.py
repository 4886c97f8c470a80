"""What an instrumentation map tells: the functions that can be traced, and their ids in logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from perfuse.reports.units import hex_text

if TYPE_CHECKING:
    from arro3.core import Table

    from perfuse.diagnostics import Diagnostic
    from perfuse.instrumentation_map import InstrumentationMap


@dataclass(frozen=True, slots=True)
class Sled:
    """A place that is patched; `kind` is named as in `llvm-xray extract`."""

    address: int | None
    kind: str
    always_instrument: bool
    version: int


@dataclass(frozen=True, slots=True)
class SledFunction:
    """A function with sleds; `address` is that of the link, within `section` where the file is not linked."""

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
        """The kinds of its sleds, each once."""
        return list(dict.fromkeys(sled.kind for sled in self.sleds))


@dataclass(frozen=True, slots=True)
class SledMapReport:
    """Everything `perfuse report --map FILE` tells of a program without a log."""

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
        """The contract of `report --map FILE --json`."""
        told = ("code", "severity", "message", "offset", "count")
        findings = [{name: getattr(found, name) for name in told} for found in self.findings]
        functions = [_with_hex_address(asdict(function)) for function in self.functions]
        for function in functions:
            function["sleds"] = [_with_hex_address(sled) for sled in function["sleds"]]
        whole = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"kind": "instrumentation_map", **whole, "functions": functions, "findings": findings}


def sled_map_report(sled_map: InstrumentationMap, limit: int = 0) -> SledMapReport:
    """Gathers the report; the first `limit` functions, all with 0."""
    num_functions = min(limit, len(sled_map)) if limit else len(sled_map)
    functions = sled_map.functions.slice(0, num_functions)
    num_sleds = functions.column("num_sleds").to_pylist()
    shown = sled_map.sleds.slice(0, sum(num_sleds))
    # Sleds are in the order of their functions.
    sleds = (Sled(**row) for row in _rows(shown, "address", "kind", "always_instrument", "version"))
    names = ("id", "address", "section", "name", "linkage_name", "path", "line", "always_instrument")
    rows = zip(_rows(functions, *names), num_sleds, strict=True)
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


def _rows(table: Table, *names: str) -> Iterator[dict[str, Any]]:
    columns = (table.column(name).to_pylist() for name in names)
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _with_hex_address(row: dict[str, Any]) -> dict[str, Any]:
    address = row["address"]
    return {**row, "address": None if address is None else hex_text(address)}
