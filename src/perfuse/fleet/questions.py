"""Questions about all recordings of a dataset: what costs most, since when, on which hosts, in which recordings."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import sqrt
from statistics import linear_regression
from typing import TYPE_CHECKING, Any, Literal

from perfuse.analysis.student import t_quantile
from perfuse.errors import UsageError, nearest_hint
from perfuse.filters.names import FramePattern
from perfuse.fleet.selecting import Recordings, label_sql, natural_order
from perfuse.table import COUNTED_EVENTS

if TYPE_CHECKING:
    from perfuse.fleet.dataset import Fleet

Statistic = Literal["self", "total"]
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class FleetEvent:
    """An event of the selected recordings.

    Attributes:
        name: Its name.
        unit: Unit of weights.
        num_recordings: Recordings that have it.
        num_samples: Their samples; of sums, the calls or allocations that were added up.
        weight: Sum of their weights.
        unnamed_weight: That of samples whose innermost function has no name.
    """

    name: str
    unit: str
    num_recordings: int
    num_samples: int
    weight: int
    unnamed_weight: int


@dataclass(frozen=True, slots=True)
class FunctionShare:
    """A function over all selected recordings.

    Attributes:
        function_hash: Its identity, in hexadecimal.
        name: Its name.
        module: File that contains it.
        path: Its source file, where known.
        self: Weight of samples in it.
        total: Weight of samples with it on the stack.
        num_recordings: Recordings that have it.
        example: The recording in which its share is largest; `fleet open` opens it.
        example_share: That share.
    """

    function_hash: str
    name: str
    module: str | None
    path: str | None
    self: int
    total: int
    num_recordings: int
    example: str
    example_share: float


@dataclass(frozen=True, slots=True)
class GroupShare:
    """The share of a function in the recordings with one value of a label.

    Attributes:
        value: The value; None for recordings without the label.
        num_units: Recordings, or hosts, that the mean is over.
        mean: Mean share of one of them.
        low: Lower end of its 95 % interval; None of fewer than two.
        high: Upper end of it.
        median: Median share.
        p90: 90th percentile.
        p99: 99th percentile.
        max: Largest share.
        example: A recording with the largest share.
    """

    value: str | None
    num_units: int
    mean: float
    low: float | None
    high: float | None
    median: float
    p90: float
    p99: float
    max: float
    example: str | None


def events_of(fleet: Fleet, which: Recordings) -> list[FleetEvent]:
    """The events of a selection, the one that most recordings have first; times and bytes precede numbers of calls."""
    rows = fleet.only(which).rows(
        f"""SELECT event, unit, count(*), sum(num_samples)::BIGINT, sum(weight)::BIGINT, sum(unnamed_weight)::BIGINT
        FROM event_totals SEMI JOIN ({which.query}) AS r USING (recording_id)
        GROUP BY event, unit ORDER BY 3 DESC, 4 DESC, 1""",
        list(which.parameters),
    )
    counts = COUNTED_EVENTS.values()
    events = [FleetEvent(*row) for row in rows]
    numbers = {one.name: one.weight for one in events if one.name in counts}
    events = [
        replace(one, num_samples=numbers.get(COUNTED_EVENTS.get(one.name, one.name), one.num_samples)) for one in events
    ]
    return sorted(events, key=lambda one: (-one.num_recordings, -one.num_samples, one.name in counts))


def select_event(fleet: Fleet, which: Recordings, name: str | None) -> FleetEvent:
    """The event of a name, or the one that most recordings have.

    Raises:
        UsageError: No recording has it; or several have it in different units.
    """
    fleet.selected(which)
    found = events_of(fleet, which)
    chosen = [one for one in found if name in (None, one.name)]
    if not chosen:
        if not found:
            raise UsageError("none of these recordings has samples or calls", hint="`fleet report --heap` is for heaps")
        raise UsageError(f"no recording has event {name!r}", hint=nearest_hint(str(name), {one.name for one in found}))
    units = [one for one in chosen if one.name == chosen[0].name]
    if len(units) > 1:
        raise UsageError(
            f"weights of {chosen[0].name} are {' and '.join(one.unit for one in units)}: they cannot be added",
            hint="select recordings of one kind with --where",
        )
    return chosen[0]


def top_functions(
    fleet: Fleet,
    which: Recordings,
    event: FleetEvent,
    *,
    order: Statistic = "self",
    function: str | None = None,
    limit: int | None = 10,
) -> tuple[list[FunctionShare], int]:
    """Functions by their weight in all selected recordings, and how many there are.

    Args:
        fleet: The dataset.
        which: The recordings.
        event: The event.
        order: The weight that they are sorted by.
        function: Only matching functions: see `perfuse report --function`.
        limit: Number of rows; None for all.

    Raises:
        UsageError: No function matches.
    """
    condition, parameters = _function_condition(fleet, function)
    cut = "" if limit is None else f" LIMIT {int(limit)}"
    rows = fleet.only(which).rows(
        f"""WITH sums AS (
            SELECT function_hash, sum(self)::BIGINT AS self, sum(total)::BIGINT AS total, count(*) AS num_recordings
            FROM function_totals WHERE event = ? {condition} GROUP BY function_hash),
        best AS (SELECT *, count(*) OVER () AS num_functions FROM sums ORDER BY {order} DESC, function_hash{cut}),
        largest AS (
            SELECT function_hash,
                first(recording_id ORDER BY {order} / greatest(weight, 1) DESC, recording_id) AS example,
                max({order} / greatest(weight, 1)) AS share
            FROM (SELECT t.function_hash, t.recording_id, t.{order}, e.weight FROM function_totals AS t
                JOIN event_totals AS e USING (recording_id, event)
                WHERE t.event = ? AND t.function_hash IN (SELECT function_hash FROM best)) GROUP BY function_hash)
        SELECT lower(hex(function_hash)), name, module, path, self, total, num_recordings, example, share, num_functions
        FROM best JOIN largest USING (function_hash) JOIN functions USING (function_hash)
        ORDER BY {order} DESC, name, function_hash""",
        [event.name, *parameters, event.name],
    )
    return [FunctionShare(*row[:9]) for row in rows], rows[0][9] if rows else 0


def share_by(
    fleet: Fleet,
    which: Recordings,
    event: FleetEvent,
    functions: list[str],
    label: str,
    *,
    order: Statistic = "self",
    unit: Literal["recording", "host"] = "recording",
) -> dict[str, list[GroupShare]]:
    """The share of functions by the value of a label, with intervals and percentiles.

    Args:
        fleet: The dataset.
        which: The recordings.
        event: The event.
        functions: Identities of functions, in hexadecimal.
        label: A label, or a column of `recordings`.
        order: The weight that shares are of.
        unit: What varies: single recordings, or hosts, which count once however many recordings they have.

    Raises:
        UsageError: No recording has the label.
    """
    # Sums of fractions depend on their order, and that of rows is of threads and files.
    fleet.require_labels(label)
    column, names = label_sql(label)
    per = "recording_id" if unit == "recording" else "host"
    rows = fleet.only(which).rows(
        f"""WITH r AS MATERIALIZED (SELECT *, {column} AS value FROM ({which.query})),
        wanted AS (SELECT unhex(unnest(?)) AS function_hash),
        shares AS (
            SELECT w.function_hash, r.value, coalesce(r.{per}, r.recording_id) AS unit, r.recording_id,
                coalesce(t.{order}, 0) / greatest(e.weight, 1) AS share
            FROM r JOIN event_totals AS e USING (recording_id) CROSS JOIN wanted AS w
            LEFT JOIN function_totals AS t
                ON t.recording_id = r.recording_id AND t.event = e.event AND t.function_hash = w.function_hash
            WHERE e.event = ?),
        units AS (
            SELECT function_hash, value, unit, avg(share ORDER BY share) AS share,
                first(recording_id ORDER BY share DESC, recording_id) AS example
            FROM shares GROUP BY ALL)
        SELECT lower(hex(function_hash)), value, count(*), avg(share ORDER BY share),
            coalesce(var_samp(share ORDER BY share), 0),
            quantile_disc(share, 0.5), quantile_disc(share, 0.9), quantile_disc(share, 0.99), max(share),
            first(example ORDER BY share DESC, example)
        FROM units GROUP BY function_hash, value ORDER BY {natural_order("value")} NULLS LAST, value""",
        [*names, *which.parameters, functions, event.name],
    )
    found: dict[str, list[GroupShare]] = {one: [] for one in functions}
    for key, value, count, mean, variance, *percentiles, example in rows:
        reach = t_quantile((1 + CONFIDENCE) / 2, count - 1) * sqrt(variance / count) if count > 1 else None
        low, high = (None, None) if reach is None else (max(0.0, mean - reach), min(1.0, mean + reach))
        half, p90, p99, largest = percentiles
        found[key].append(GroupShare(value, count, mean, low, high, half, p90, p99, largest, example))
    return found


@dataclass(frozen=True, slots=True)
class CallPercentiles:
    """The calls of a function on one value of a label.

    Attributes:
        function: Its name.
        value: The value; None without the label.
        num_recordings: Recordings with calls of it.
        unit: Unit of times.
        calls: Number of calls.
        sum: Time in them; None where that was not recorded.
        median: Median of the medians of recordings: percentiles of calls cannot be added up.
        p99: Median of their 99th percentiles.
        worst_p99: The largest 99th percentile.
        max: The longest call.
        example: The recording with that call.
    """

    function: str
    value: str | None
    num_recordings: int
    unit: str
    calls: int
    sum: int | None
    median: int | None
    p99: int | None
    worst_p99: int | None
    max: int | None
    example: str


def call_percentiles(fleet: Fleet, which: Recordings, function: str | None, label: str) -> list[CallPercentiles]:
    """Percentiles of the calls of functions by the value of a label, those with the longest time first.

    Raises:
        UsageError: No recording has calls, or the label; or no function matches.
    """
    fleet.selected(which)
    condition, parameters = _function_condition(fleet, function)
    fleet.require_labels(label)
    column, names = label_sql(label)
    rows = fleet.only(which).rows(
        f"""SELECT f.name, r.value, count(*), c.unit, sum(c.calls)::BIGINT, sum(c.sum)::BIGINT AS time,
            quantile_disc(c.median, 0.5), quantile_disc(c.p99, 0.5), max(c.p99), max(c.max),
            first(c.recording_id ORDER BY c.max DESC NULLS LAST, c.recording_id)
        FROM call_stats AS c JOIN (SELECT *, {column} AS value FROM ({which.query})) AS r USING (recording_id)
        JOIN functions AS f USING (function_hash) WHERE true {condition}
        GROUP BY c.function_hash, f.name, r.value, c.unit ORDER BY time DESC NULLS LAST, f.name,
            {natural_order("r.value")} NULLS LAST, r.value, c.function_hash""",
        [*names, *which.parameters, *parameters],
    )
    if not rows:
        raise UsageError("none of these recordings has calls", hint="XRay logs and Mono logs with calls have them")
    return [CallPercentiles(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class HeapGrowth:
    """Objects of a type in the last heap snapshots of recordings.

    Attributes:
        type: The type; None for all whose type was not recorded.
        days: For each day, its mean size in bytes in a recording, and their number.
        slope_bytes: Change of the size for each day, by least squares; None of one day.
        example: The recording with the largest size.
    """

    type: str | None
    days: list[tuple[str, int, int]]
    slope_bytes: float | None
    example: str


def heap_growth(fleet: Fleet, which: Recordings, limit: int | None = 10) -> list[HeapGrowth]:
    """Types on the heap by day, the fastest growing first; the first row is all types together, `(all)`.

    Raises:
        UsageError: No recording has heap snapshots.
    """
    from datetime import date

    fleet.selected(which)
    rows = fleet.only(which).rows(
        f"""WITH r AS MATERIALIZED ({which.query}),
        h AS (SELECT * FROM heap_types SEMI JOIN r USING (recording_id) WHERE is_last),
        n AS (SELECT day, count(DISTINCT recording_id) AS num FROM h GROUP BY day),
        sizes AS (
            SELECT type, recording_id, day, size_bytes, false AS is_all FROM h
            UNION ALL SELECT '(all)', recording_id, day, sum(size_bytes), true FROM h GROUP BY recording_id, day)
        SELECT is_all, type, day, (sum(size_bytes) / any_value(num))::BIGINT, any_value(num),
            first(recording_id ORDER BY size_bytes DESC, recording_id), max(size_bytes)
        FROM sizes JOIN n USING (day) GROUP BY is_all, type, day ORDER BY is_all DESC, type, day""",
        list(which.parameters),
    )
    if not rows:
        raise UsageError("none of these recordings has heap snapshots", hint="Mono logs with heapshots have them")
    every = {row[2]: row[4] for row in rows}
    grouped: dict[tuple[bool, str | None], list[Any]] = {}
    for row in rows:
        grouped.setdefault((row[0], row[1]), []).append(row)
    found = []
    for (is_all, name), group in grouped.items():
        sizes = {row[2]: row[3] for row in group}
        days = [(day, sizes.get(day, 0), number) for day, number in sorted(every.items())]
        points = [(date.fromisoformat(day).toordinal(), size) for day, size, _ in days]
        example = max(group, key=lambda row: row[6])[5]
        found.append((not is_all, HeapGrowth(name, days, _slope(points), example)))
    found.sort(key=lambda one: (one[0], -(one[1].slope_bytes or 0), -one[1].days[-1][1], one[1].type or ""))
    return [one for _, one in found][: None if limit is None else limit + 1]


def _slope(points: list[tuple[int, int]]) -> float | None:
    if len(points) < 2:
        return None
    days, sizes = zip(*points, strict=True)
    return linear_regression(days, sizes).slope


@dataclass(frozen=True, slots=True)
class FoundRecording:
    """A recording that contains a function or a chain of calls.

    Attributes:
        recording_id: Its identity.
        day: Its day.
        build: Label `build`.
        host: Label `host`.
        title: What was recorded.
        weight: Weight of the samples that contain it.
        share: Share of all samples of the event.
        inputs: Its files as JSON.
    """

    recording_id: str
    day: str
    build: str | None
    host: str | None
    title: str
    weight: int
    share: float
    inputs: str


def find_recordings(fleet: Fleet, which: Recordings, event: FleetEvent, chain: str) -> list[FoundRecording]:
    """The recordings whose samples contain a function, or functions that call each other, the largest share first.

    Args:
        fleet: The dataset.
        which: The recordings.
        event: The event.
        chain: A pattern of names; `a>b` for b called by a, directly; `a>>b` with others between them.

    Raises:
        UsageError: No function matches a pattern.
    """
    patterns, arrows = parse_chain(chain)
    hashes = [_matching(fleet, pattern) for pattern in patterns]
    parameters: list[Any] = [*hashes, event.name]
    hits = _stacks_with(arrows)
    if len(hashes) == len(hashes[0]) == 1:
        # The sums of one function are stored; those of several functions would count stacks that contain two of them.
        hits = """hits AS (SELECT recording_id, total AS weight FROM function_totals
            WHERE function_hash = unhex(?) AND event = ?)"""
        parameters = [hashes[0][0], event.name]
    rows = fleet.only(which).rows(
        f"""WITH RECURSIVE r AS MATERIALIZED ({which.query}), {hits}
        SELECT r.recording_id, r.day, r.build, r.host, r.title, hits.weight::BIGINT,
            hits.weight / greatest(e.weight, 1), r.inputs
        FROM hits JOIN r USING (recording_id) JOIN event_totals AS e ON e.recording_id = r.recording_id AND e.event = ?
        WHERE hits.weight > 0 ORDER BY 7 DESC, r.start_ns, r.recording_id""",
        [*which.parameters, *parameters, event.name],
    )
    return [FoundRecording(*row) for row in rows]


def parse_chain(chain: str) -> tuple[list[str], list[str]]:
    """The patterns of a chain of calls, and the arrows between them; with `<` in a name, arrows need spaces.

    Raises:
        UsageError: A pattern is empty.
    """
    space = r"\s+" if "<" in chain or "/" in chain else r"\s*"
    parts = [part.strip() for part in re.split(f"{space}(>>|>){space}", chain)]
    if not all(parts):
        raise UsageError(f"{chain!r} is not a chain of calls", hint="write 'parse', 'main > parse' or 'main >> parse'")
    return parts[::2], parts[1::2]


def _stacks_with(arrows: list[str]) -> str:
    """SQL for the stacks that contain a chain, and their weight by recording, as `hits`."""
    steps = ["stack_0 AS (SELECT stack_hash FROM stacks WHERE function_hash IN (SELECT unhex(unnest(?))))"]
    for number, arrow in enumerate(arrows, 1):
        before = f"stack_{number - 1}"
        if arrow == ">>":
            steps.append(
                f"below_{number} AS (SELECT stack_hash FROM {before} UNION SELECT s.stack_hash FROM stacks AS s"
                f" JOIN below_{number} AS b ON s.parent_hash = b.stack_hash)"
            )
            before = f"below_{number}"
        steps.append(
            f"stack_{number} AS (SELECT s.stack_hash FROM stacks AS s JOIN {before} AS b"
            " ON s.parent_hash = b.stack_hash WHERE s.function_hash IN (SELECT unhex(unnest(?))))"
        )
    last = f"stack_{len(arrows)}"
    steps.append(
        f"inside AS (SELECT stack_hash FROM {last} UNION SELECT s.stack_hash FROM stacks AS s"
        " JOIN inside AS b ON s.parent_hash = b.stack_hash)"
    )
    steps.append(
        "hits AS (SELECT recording_id, sum(weight) AS weight FROM stack_totals SEMI JOIN inside USING (stack_hash)"
        " WHERE event = ? GROUP BY recording_id)"
    )
    return ", ".join(steps)


def _matching(fleet: Fleet, pattern: str) -> list[str]:
    """Identities of functions that match a pattern, in hexadecimal."""
    names = fleet.head.rows("SELECT lower(hex(function_hash)), name FROM functions")
    matches = FramePattern(pattern, "name", pattern).test({name for _, name in names})
    found = [key for key, name in names if matches(name)]
    if not found:
        raise UsageError(f"no function matches {pattern!r}", hint=nearest_hint(pattern, {name for _, name in names}))
    return found


def _function_condition(fleet: Fleet, function: str | None) -> tuple[str, list[Any]]:
    if function is None:
        return "", []
    return "AND function_hash IN (SELECT unhex(unnest(?)))", [_matching(fleet, function)]
