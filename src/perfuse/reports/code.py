"""The report of code without samples: data, JSON, text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from perfuse.analysis.recorded import why_no_samples
from perfuse.declared_formats import format_named
from perfuse.reports.grid import Cell, Column, bar, fields, grid, section, sparkline
from perfuse.reports.inputs import DiagnosticCount, Input, diagnostic_counts, input_text, inputs, summary_lines
from perfuse.reports.registry import Options, Report
from perfuse.reports.text import Role, Style
from perfuse.reports.units import bytes_text, count_text, counted, duration_text, percent_text
from perfuse.value_class import as_dict

if TYPE_CHECKING:
    from perfuse.profile import Profile


TIMELINE_BINS = 60
LINE_ROWS_BYTES = 64 << 20
"""Larger debug records are not decoded for a report; they are in table `line_rows`."""


@dataclass(frozen=True, slots=True)
class CodeGroup:
    """Code objects of one kind and tier."""

    kind: str
    tier: str | None
    code_objects: int
    functions: int
    bytes: int
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class Code:
    """A function or code object in a list of the largest; `count` is its number of line rows or compilations."""

    name: str
    tiers: str
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RecordKind:
    """Number and size of the records of a kind."""

    kind: str
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Reuse:
    """Reuse of code addresses over time."""

    start_addresses: int
    reused_addresses: int
    retired: int
    moved: int


@dataclass(frozen=True, slots=True)
class CodeReport:
    """The report of code without samples."""

    title: str
    inputs: list[Input]
    start_ns: int
    duration_ns: int
    functions: int
    code_objects: int
    bytes: int
    groups: list[CodeGroup]
    timeline: list[int]
    num_recompiled: int
    recompiled: list[Code]
    biggest: list[Code]
    num_with_lines: int | None
    most_lines: list[Code]
    reuse: Reuse
    records: list[RecordKind]
    diagnostics: list[DiagnosticCount]

    def as_json(self) -> dict[str, Any]:
        """The documented JSON of `report --json` for code without samples."""
        return {"kind": "code", **as_dict(self)}


def build(profile: Profile, options: Options) -> Report:
    """Builds the report of a profile without samples."""
    report = code_report(profile, options["--limit"])
    return Report(report.as_json, partial(code_lines, report), profile.diagnostics)


def code_report(profile: Profile, limit: int = 10) -> CodeReport:
    """Collects the report of a profile without samples; `limit` rows per list, 0 for all."""
    cut = f"LIMIT {limit}" if limit else ""
    [(start, end, objects, functions, size)] = profile.sql(
        "SELECT coalesce(min(create_ns), 0), coalesce(max(create_ns), 0), count(*), count(DISTINCT function_id),"
        " coalesce(sum(size_bytes), 0)::HUGEINT FROM code_objects"
    ).fetchall()
    kinds = [
        RecordKind(*row)
        for row in profile.sql(
            "SELECT kind::VARCHAR, count(*), sum(size_bytes)::BIGINT FROM records GROUP BY 1 ORDER BY 3 DESC, 1"
        ).fetchall()
    ]
    num_recompiled, recompiled = _query_code(
        profile,
        "WHERE kind = 'jit' GROUP BY function_id HAVING count(*) > 1"
        f" ORDER BY n DESC, bytes DESC, name, function_id {cut}",
    )
    _, biggest = _query_code(
        profile, f"GROUP BY function_id, code_object_id ORDER BY bytes DESC, name, code_object_id {cut}"
    )
    num_with_lines, most_lines = _query_most_lines(profile, kinds, cut)
    return CodeReport(
        title=profile.title,
        inputs=inputs(profile),
        start_ns=start,
        duration_ns=end - start,
        functions=functions,
        code_objects=objects,
        bytes=int(size),
        groups=_query_groups(profile),
        timeline=_query_timeline(profile, start, end),
        num_recompiled=num_recompiled,
        recompiled=recompiled,
        biggest=biggest,
        num_with_lines=num_with_lines,
        most_lines=most_lines,
        reuse=_query_reuse(profile),
        records=kinds,
        diagnostics=diagnostic_counts(profile),
    )


def _query_groups(profile: Profile) -> list[CodeGroup]:
    rows = profile.sql("""
        SELECT kind::VARCHAR, tier::VARCHAR, count(*), count(DISTINCT function_id), sum(size_bytes)::BIGINT AS bytes,
               max(size_bytes)
        FROM code_objects GROUP BY 1, 2 ORDER BY bytes DESC, 1, 2""").fetchall()
    return [CodeGroup(*row) for row in rows]


def _query_timeline(profile: Profile, start: int, end: int) -> list[int]:
    bins = [0] * TIMELINE_BINS
    span = max(end - start, 1)
    rows = profile.sql(f"""
        SELECT least(((create_ns - {start})::HUGEINT * {TIMELINE_BINS} // {span})::INTEGER, {TIMELINE_BINS - 1}) AS bin,
               sum(size_bytes)::BIGINT
        FROM code_objects GROUP BY 1""").fetchall()
    for index, size in rows:
        bins[index] = size
    return bins


def _query_code(profile: Profile, which: str) -> tuple[int, list[Code]]:
    """The number of rows without a limit, and the rows."""
    rows = profile.sql(f"""
        SELECT count(*) OVER (), any_value(name)::VARCHAR AS name,
               string_agg(DISTINCT tier::VARCHAR, ', ' ORDER BY tier::VARCHAR),
               count(*) AS n, sum(size_bytes)::BIGINT AS bytes
        FROM code_objects JOIN functions USING (function_id) {which}""").fetchall()
    return _total(rows), [Code(name, tiers or "", count, size) for _, name, tiers, count, size in rows]


def _total(rows: list[tuple[int, ...]]) -> int:
    """The number of rows without a limit, which each row has first."""
    return rows[0][0] if rows else 0


def _query_most_lines(profile: Profile, kinds: list[RecordKind], cut: str) -> tuple[int | None, list[Code]]:
    """The number of pieces of code with line rows (None where they were not counted), and those with most."""
    # The names of records with line rows differ between formats, but all of them contain one of these words.
    debug_bytes = sum(kind.bytes for kind in kinds if "DEBUG_INFO" in kind.kind or "INLINE_INFO" in kind.kind)
    if not debug_bytes or (cut and debug_bytes > LINE_ROWS_BYTES):
        return None, []
    rows = profile.sql(f"""
        WITH counted AS (SELECT code_object_id, count(*) AS n FROM line_rows GROUP BY 1)
        SELECT count(*) OVER (), name::VARCHAR, coalesce(tier::VARCHAR, ''), n, size_bytes
        FROM counted JOIN code_objects USING (code_object_id) JOIN functions USING (function_id)
        ORDER BY n DESC, name, code_object_id {cut}""").fetchall()
    return _total(rows), [Code(*row) for _, *row in rows]


def _query_reuse(profile: Profile) -> Reuse:
    [(addresses, reused)] = profile.sql("""
        SELECT count(*), count(*) FILTER (n > 1)
        FROM (SELECT start_address, count(*) AS n FROM code_objects GROUP BY process_id, start_address)""").fetchall()
    [(retired,)] = profile.sql("SELECT count(*) FROM code_objects WHERE retire_ns IS NOT NULL").fetchall()
    [(moved,)] = profile.sql("SELECT count(*) FROM code_moves").fetchall()
    return Reuse(addresses, reused, retired, moved)


def code_lines(report: CodeReport, style: Style) -> Iterator[str]:
    """The report, line by line."""
    yield style.paint(report.title, Role.TITLE)
    yield ""
    yield from fields(_header(report), style)
    if report.groups:
        yield from section("Code by tier", style)
        yield from _group_table(report.groups, report.bytes, style)
    if report.duration_ns > 0:
        yield from section("Compiled over time", style, f"bytes of code, {duration_text(report.duration_ns)} in all")
        yield "  " + style.paint(sparkline(report.timeline), Role.JIT)
    yield from _code_section("Compiled most often", "times", report.recompiled, style)
    yield from _code_section("Biggest code", "", report.biggest, style)
    yield from _code_section("Most line rows", "rows", report.most_lines, style)
    if report.records:
        yield from section("Records", style)
        yield from record_lines(report.records, style)
    yield from summary_lines(report.diagnostics, style)


def record_lines(kinds: Sequence[RecordKind], style: Style) -> Iterator[str]:
    """A table of records by kind, with their share of the bytes."""
    whole = sum(kind.bytes for kind in kinds)
    columns = [Column("records", right=True), Column("bytes", right=True), Column(""), Column("kind")]
    rows: list[list[Cell]] = []
    for kind in kinds:
        drawn = bar(kind.bytes, whole)
        rows.append([count_text(kind.records), bytes_text(kind.bytes), (drawn, Role.NAME), kind.kind])
    return grid(columns, rows, style)


def _header(report: CodeReport) -> list[tuple[str, Cell]]:
    pairs: list[tuple[str, Cell]] = [
        ("files" if index == 0 else "", input_text(one)) for index, one in enumerate(report.inputs)
    ]
    if any(format_named(one.format).role == "samples" for one in report.inputs):
        pairs.append(("samples", f"none: {why_no_samples(one.kind for one in report.records)}"))
    if report.code_objects or len(pairs) == len(report.inputs):
        made = f"{counted(report.code_objects, 'piece')} of code for {counted(report.functions, 'function')}"
        pairs.append(("code", f"{made}, {bytes_text(report.bytes)}"))
    reuse = report.reuse
    if reuse.reused_addresses or reuse.moved:
        starts = counted(reuse.start_addresses, "start address", "start addresses")
        reused = f"{count_text(reuse.reused_addresses)} of {starts}"
        pairs.append(("reuse", f"{reused} were used by more than one piece of code; {counted(reuse.moved, 'move')}"))
    return pairs


def _group_table(groups: Sequence[CodeGroup], whole: int, style: Style) -> Iterator[str]:
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
        drawn = bar(group.bytes, whole)
        numbers = [
            count_text(group.code_objects),
            count_text(group.functions),
            bytes_text(group.largest_bytes),
        ]
        part = percent_text(group.bytes, whole)
        rows.append([bytes_text(group.bytes), part, (drawn, Role.JIT), *numbers, group.tier or "-", group.kind])
    return grid(columns, rows, style)


def _code_section(title: str, unit: str, codes: Sequence[Code], style: Style) -> Iterator[str]:
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
