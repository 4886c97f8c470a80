"""What code dumps tell when there are no samples: what was compiled, when, how often, how big."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfuse.reports.inputs import DiagnosticCount, Input, diagnostic_counts, inputs

if TYPE_CHECKING:
    from perfuse.profile import Profile

TIMELINE_BINS = 60
LINE_ROWS_BYTES = 64 << 20
"""Debug records above this size in all are not decoded for a report; `line_rows` has them for who asks."""


@dataclass(frozen=True, slots=True)
class CodeGroup:
    """Code of one kind and tier."""

    kind: str
    tier: str | None
    code_objects: int
    functions: int
    bytes: int
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class Code:
    """One piece of code that stands out; `count` says by how much (bytes, line rows, compilations)."""

    name: str
    tiers: str
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RecordKind:
    """What the file is made of."""

    kind: str
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Reuse:
    """Code addresses over time: how many starts served more than one piece of code."""

    start_addresses: int
    reused_addresses: int
    retired: int
    moved: int


@dataclass(frozen=True, slots=True)
class CodeReport:
    """Everything `perfuse report` tells of code without samples."""

    title: str
    inputs: list[Input]
    start_ns: int
    duration_ns: int
    functions: int
    code_objects: int
    bytes: int
    groups: list[CodeGroup]
    timeline: list[int]
    recompiled: list[Code]
    biggest: list[Code]
    most_lines: list[Code]
    reuse: Reuse
    records: list[RecordKind]
    diagnostics: list[DiagnosticCount]

    def as_json(self) -> dict[str, Any]:
        """The contract of `report --json` for code without samples."""
        return {"kind": "code", **asdict(self)}


def code_report(profile: Profile, limit: int = 10) -> CodeReport:
    """Gathers the report of a profile without samples; `limit` rows a list, all with 0."""
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
    return CodeReport(
        title=profile.title,
        inputs=inputs(profile),
        start_ns=start,
        duration_ns=end - start,
        functions=functions,
        code_objects=objects,
        bytes=int(size),
        groups=_groups(profile),
        timeline=_timeline(profile, start, end),
        recompiled=_codes(
            profile,
            f"WHERE kind = 'jit' GROUP BY function_id HAVING count(*) > 1 ORDER BY n DESC, bytes DESC, name {cut}",
        ),
        biggest=_codes(profile, f"GROUP BY function_id, code_object_id ORDER BY bytes DESC, name {cut}"),
        most_lines=_most_lines(profile, kinds, cut),
        reuse=_reuse(profile),
        records=kinds,
        diagnostics=diagnostic_counts(profile),
    )


def _groups(profile: Profile) -> list[CodeGroup]:
    rows = profile.sql("""
        SELECT kind::VARCHAR, tier::VARCHAR, count(*), count(DISTINCT function_id), sum(size_bytes)::BIGINT AS bytes,
               max(size_bytes)
        FROM code_objects GROUP BY 1, 2 ORDER BY bytes DESC, 1, 2""").fetchall()
    return [CodeGroup(*row) for row in rows]


def _timeline(profile: Profile, start: int, end: int) -> list[int]:
    bins = [0] * TIMELINE_BINS
    span = max(end - start, 1)
    rows = profile.sql(f"""
        SELECT least(((create_ns - {start})::HUGEINT * {TIMELINE_BINS} // {span})::INTEGER, {TIMELINE_BINS - 1}) AS bin,
               sum(size_bytes)::BIGINT
        FROM code_objects GROUP BY 1""").fetchall()
    for index, size in rows:
        bins[index] = size
    return bins


def _codes(profile: Profile, which: str) -> list[Code]:
    rows = profile.sql(f"""
        SELECT any_value(name)::VARCHAR AS name, string_agg(DISTINCT tier::VARCHAR, ', ' ORDER BY tier::VARCHAR),
               count(*) AS n, sum(size_bytes)::BIGINT AS bytes
        FROM code_objects JOIN functions USING (function_id) {which}""").fetchall()
    return [Code(name, tiers or "", count, size) for name, tiers, count, size in rows]


def _most_lines(profile: Profile, kinds: list[RecordKind], cut: str) -> list[Code]:
    # Line rows come from records whose names differ between formats, but always say that they are debug information.
    debug_bytes = sum(kind.bytes for kind in kinds if "DEBUG_INFO" in kind.kind or "INLINE_INFO" in kind.kind)
    if not 0 < debug_bytes <= LINE_ROWS_BYTES:
        return []
    rows = profile.sql(f"""
        WITH counted AS (SELECT code_object_id, count(*) AS n FROM line_rows GROUP BY 1)
        SELECT name::VARCHAR, coalesce(tier::VARCHAR, ''), n, size_bytes
        FROM counted JOIN code_objects USING (code_object_id) JOIN functions USING (function_id)
        ORDER BY n DESC, name {cut}""").fetchall()
    return [Code(*row) for row in rows]


def _reuse(profile: Profile) -> Reuse:
    [(addresses, reused)] = profile.sql("""
        SELECT count(*), count(*) FILTER (n > 1)
        FROM (SELECT start_address, count(*) AS n FROM code_objects GROUP BY process_id, start_address)""").fetchall()
    [(retired,)] = profile.sql("SELECT count(*) FROM code_objects WHERE retire_ns IS NOT NULL").fetchall()
    [(moved,)] = profile.sql("SELECT count(*) FROM code_moves").fetchall()
    return Reuse(addresses, reused, retired, moved)
