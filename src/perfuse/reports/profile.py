"""What a fused profile tells: gathered once, then printed or given as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from perfuse.reports.weights import Event, FunctionWeight, Share, Weights, events

if TYPE_CHECKING:
    from perfuse.profile import Profile


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
    start_ns: int
    duration_ns: int
    events: list[Event]
    top_self: list[FunctionWeight]
    top_total: list[FunctionWeight]
    processes: list[Share]
    threads: list[Share]
    modules: list[Share]
    tiers: list[Share]
    unnamed: list[Unnamed]
    diagnostics: list[DiagnosticCount]

    @property
    def event(self) -> Event:
        """The event that is reported: the one with the most samples."""
        return self.events[0]

    def as_json(self) -> dict[str, Any]:
        """The contract of `report --json` for samples."""
        return {"kind": "samples", **asdict(self)}


def profile_report(profile: Profile, limit: int = 20, event: str | None = None) -> ProfileReport:
    """Gathers the report of a profile with samples; `limit` functions, all with 0.

    Raises:
        ValueError: There are no samples (of that event).
    """
    found = events(profile)
    if event is not None:
        found.sort(key=lambda one: one.name != event)
    if not found or (event is not None and found[0].name != event):
        raise ValueError(f"no samples of event {event}" if event else "no samples")
    name = found[0].name
    [(start, end)] = profile.sql("SELECT min(ts_ns), max(ts_ns) FROM samples").fetchall()
    weights = Weights(profile, name)
    return ProfileReport(
        title=profile.title,
        inputs=inputs(profile),
        joins=[
            JoinedDump(join.path, join.pid, join.how, join.alignment, join.offset_ns, join.uncertainty_ns)
            for join in profile.joins
        ],
        start_ns=start,
        duration_ns=end - start,
        events=found,
        top_self=weights.functions("self", limit),
        top_total=weights.functions("total", limit),
        processes=weights.threads(_task_names(profile, "processes")),
        threads=weights.threads(_task_names(profile, "threads")),
        modules=weights.modules(),
        tiers=weights.tiers(),
        unnamed=_unnamed(profile, name),
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


def _task_names(profile: Profile, table: str) -> dict[int, str]:
    """What to call each thread's `threads` or `processes` row, by `thread_id`: `MainThread 2612`."""
    number = "tid" if table == "threads" else "pid"
    rows = profile.sql(f"""
        SELECT thread_id, coalesce({table}.name::VARCHAR, '?') || ' ' || {number}
        FROM threads JOIN processes USING (process_id)""").fetchall()
    return dict(rows)


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
