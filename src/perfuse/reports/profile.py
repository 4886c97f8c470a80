"""What a fused profile tells: gathered once, then printed or given as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfuse.analysis.sampled import Event, Selection, events
from perfuse.analysis.weights import FunctionWeight, GroupWeight, Weights
from perfuse.errors import UsageError

if TYPE_CHECKING:
    from perfuse.profile import Profile

GROUPS = ("processes", "threads", "modules", "tiers")


@dataclass(frozen=True, slots=True)
class Input:
    """A file the profile was made from."""

    path: str
    format: str
    version: str | None
    producer: str | None
    arch: str | None


@dataclass(frozen=True, slots=True)
class JoinedDump:
    """How a dump was found and put on the profile's clock."""

    path: str
    pid: int | None
    found_by: str
    alignment: str
    offset_ns: int
    uncertainty_ns: int | None


@dataclass(frozen=True, slots=True)
class Unwound:
    """How copies of stacks were unwound: frames by what found them, stacks by why they end."""

    num_stacks: int
    frames: dict[str, int]
    stops: dict[str, int]
    cut_bytes: int | None


@dataclass(frozen=True, slots=True)
class Unnamed:
    """Frames without a name, by reason and module; `leaf_samples` have one innermost."""

    reason: str
    module: str
    frames: int
    leaf_samples: int


@dataclass(frozen=True, slots=True)
class DiagnosticCount:
    """Departures of one code in all files."""

    code: str
    severity: str
    count: int
    paths: int


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """Everything `perfuse report` tells of samples; weights are of `event`, in `event.unit`."""

    title: str
    inputs: list[Input]
    joins: list[JoinedDump]
    unwound: Unwound | None
    start_ns: int
    duration_ns: int
    events: list[Event]
    top_self: list[FunctionWeight]
    top_total: list[FunctionWeight]
    processes: list[GroupWeight]
    threads: list[GroupWeight]
    modules: list[GroupWeight]
    tiers: list[GroupWeight]
    unnamed: list[Unnamed]
    diagnostics: list[DiagnosticCount]

    @property
    def event(self) -> Event:
        """The event that is reported: the one with the most samples."""
        return self.events[0]

    def as_json(self) -> dict[str, Any]:
        """The contract of `report --json` for samples."""
        groups = {name: list(map(_group_json, getattr(self, name))) for name in GROUPS}
        functions = {name: list(map(_function_json, getattr(self, name))) for name in ("top_self", "top_total")}
        events = [
            {"name": one.name, "samples": one.num_samples, "weight": one.weight, "unit": one.unit}
            for one in self.events
        ]
        return {"kind": "samples", **asdict(self), "events": events, **functions, **groups}


def _function_json(one: FunctionWeight) -> dict[str, Any]:
    return {
        "name": one.name,
        "module": one.module or "",
        "path": one.path,
        "line": one.line,
        "kind": one.kind,
        "tiers": list(one.tiers),
        "self_weight": one.self_weight,
        "total_weight": one.total_weight,
        "samples": one.self_samples,
    }


def _group_json(one: GroupWeight) -> dict[str, Any]:
    return {"name": one.name, "kind": one.kind, "self_weight": one.self_weight, "samples": one.self_samples}


def profile_report(profile: Profile, limit: int = 20, event: str | None = None) -> ProfileReport:
    """Gathers the report of a profile with samples; `limit` functions, all with 0.

    Raises:
        UsageError: There are no samples (of that event).
    """
    weights = Weights(profile, Selection(event=event))
    if not weights.event.num_samples:
        raise UsageError("there are no samples to report")
    [(start, end)] = profile.sql("SELECT min(ts_ns), max(ts_ns) FROM samples").fetchall()
    return ProfileReport(
        title=profile.title,
        inputs=inputs(profile),
        joins=[
            JoinedDump(join.path, join.pid, join.how, join.alignment, join.offset_ns, join.uncertainty_ns)
            for join in profile.joins
        ],
        unwound=_unwound(profile),
        start_ns=start,
        duration_ns=end - start,
        events=sorted(events(profile), key=lambda one: one != weights.event),
        top_self=[one for one in weights.functions(limit or None) if one.self_weight],
        top_total=[one for one in weights.functions(limit or None, order="total") if one.total_weight],
        processes=weights.groups("process"),
        threads=weights.groups("thread"),
        modules=weights.groups("module"),
        tiers=weights.groups("tier"),
        unnamed=_unnamed(profile, weights.event.name),
        diagnostics=diagnostic_counts(profile),
    )


def inputs(profile: Profile) -> list[Input]:
    """The files of a profile, in the order they were given or found."""
    rows = []
    for recording in profile.recordings:
        summary = recording.summary
        rows.append(Input(recording.path, recording.format, recording.version, summary.producer, summary.arch))
    return rows


def diagnostic_counts(profile: Profile) -> list[DiagnosticCount]:
    """The profile's diagnostics by code, the gravest first."""
    counts: Counter[tuple[str, str]] = Counter()
    paths: dict[str, set[str]] = {}
    for found in profile.diagnostics:
        counts[found.code, found.severity] += found.count
        paths.setdefault(found.code, set()).add(found.path)
    gravity = ("error", "data_loss", "warning", "info")
    ordered = sorted(counts.items(), key=lambda item: (gravity.index(item[0][1]), item[0][0]))
    return [DiagnosticCount(code, severity, count, len(paths[code])) for (code, severity), count in ordered]


def _unwound(profile: Profile) -> Unwound | None:
    told = profile.unwinding
    return Unwound(told.num_stacks, told.frames, told.stops, told.cut_bytes) if told else None


def _unnamed(profile: Profile, event: str) -> list[Unnamed]:
    literal = "'" + event.replace("'", "''") + "'"
    rows = profile.sql(f"""
        WITH lost AS (
            SELECT frame_id, coalesce(unnamed_because::VARCHAR, 'no reason recorded') AS reason,
                   coalesce(mappings.path::VARCHAR, '') AS module
            FROM frames LEFT JOIN mappings ON mappings.mapping_id = frames.mapping_id
            WHERE frames.function_id IS NULL),
        leaves AS (
            SELECT frame_id, count(*) AS samples FROM samples JOIN stacks ON stacks.stack_id = samples.stack_id
            WHERE event = {literal} GROUP BY 1)
        SELECT reason, module, count(*), coalesce(sum(samples), 0)::BIGINT AS leaf
        FROM lost LEFT JOIN leaves USING (frame_id) GROUP BY 1, 2 ORDER BY leaf DESC, 3 DESC, 1, 2""").fetchall()
    return [Unnamed(*row) for row in rows]
