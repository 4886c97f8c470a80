"""The slowest calls of a function: what happened inside each, and how it differs from a median call."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from perfuse.errors import UsageError, nearest_hint
from perfuse.filters.names import FramePattern, handle_key
from perfuse.filters.selection import Selection
from perfuse.table import SUM_EVENTS
from perfuse.value_class import value_class


class SlowCallProfile(Protocol):
    """A profile with call traces; `perfuse.Profile` is one."""

    @property
    def selection(self) -> Selection:
        """The selected threads and time."""
        ...

    def has(self, table: str) -> bool:
        """Whether a recording has rows for a table, as far as that is known without building it."""
        ...

    def sql(
        self, query: str, parameters: Mapping[str, object] | None = None, frames: Mapping[str, Any] | None = None, /
    ) -> Any:
        """Runs SQL over the common tables."""
        ...

    def _same_functions(self) -> list[int] | None:
        """For each function key, that of the one whose calls its own are added to; None where each is itself."""
        ...

    def _slices_at(self, start_ns: int, end_ns: int, /) -> Any:
        """Table `slices` with at least those at a time in the selected one; None where all are read as soon."""
        ...


@value_class
class CallPart:
    """A part of a slow call, in time order.

    Attributes:
        start_ns: Time after the start of the call.
        duration_ns: Its duration.
        depth: Number of calls around it, within the call; 0 is the call itself.
        name: Function, or name of the slice.
        kind: `call`, `gc`, `lock`, `jit` or `custom`; `self` for time of a function outside of listed calls.
        num_calls: Calls in it that are not listed.
        is_tail_call: Whether it ended with a jump to the function that follows.
    """

    start_ns: int
    duration_ns: int
    depth: int
    name: str
    kind: str
    num_calls: int = 0
    is_tail_call: bool = False


@value_class
class FunctionChange:
    """Time of a function itself within a call, compared with a median call.

    Attributes:
        name: The function.
        self_ns: Its self time in this call.
        num_calls: Its calls in it.
        median_self_ns: Its self time in a median call.
        median_num_calls: Its calls in that.
    """

    name: str
    self_ns: int
    num_calls: int
    median_self_ns: int
    median_num_calls: int

    @property
    def excess_ns(self) -> int:
        """By how much it is longer here."""
        return self.self_ns - self.median_self_ns


@value_class
class SampledFunction:
    """Samples that were taken in a function during a call."""

    name: str
    num_samples: int


@value_class
class SlowCall:
    """One of the slowest calls: where it was, what happened in it, and what took longer than usual.

    Attributes:
        slice_id: Its key.
        start_ns: Its start on the profile's clock.
        duration_ns: Its duration.
        thread_id: Key of its thread.
        thread: Name and id of its thread.
        cpu: Processor at its start; None where not recorded.
        end_reason: How it ended.
        path: Functions around it, outermost first, and its own.
        parts: What happened inside, in time order; short parts are summed up.
        changes: Functions, those that are longer than in a median call first.
        samples: Samples of its thread that were taken during it, by innermost function; the most first.
    """

    slice_id: int
    start_ns: int
    duration_ns: int
    thread_id: int
    thread: str
    cpu: int | None
    end_reason: str
    path: tuple[str, ...]
    parts: tuple[CallPart, ...]
    changes: tuple[FunctionChange, ...]
    samples: tuple[SampledFunction, ...]


@value_class
class SlowCalls:
    """The slowest calls of a function.

    Attributes:
        functions: Names of the functions.
        num_calls: Calls with known start and end, of which none is within another.
        num_nested: Calls within another, which are not ranked.
        num_incomplete: Calls without recorded start or end, whose duration is not known.
        median_ns: Median of the durations.
        p99_ns: 99th percentile.
        max_ns: The longest.
        first_ns: Start of the recording's first call of any function.
        median_slice_id: The call that others are compared with.
        calls: The slowest, the longest first.
    """

    functions: tuple[str, ...]
    num_calls: int
    num_nested: int
    num_incomplete: int
    median_ns: int
    p99_ns: int
    max_ns: int
    first_ns: int
    median_slice_id: int
    calls: tuple[SlowCall, ...]


_LISTED_SHARE = 100
"""Calls within a call are listed where they last at least one part in so many of it."""


def slowest_calls(profile: SlowCallProfile, pattern: str, limit: int | None = 5) -> SlowCalls:
    """The slowest calls of the functions that match a pattern, in the selected threads and time.

    Args:
        profile: A profile with a call trace.
        pattern: Functions: a name, a part of it, a glob, `/regex/` or a handle.
        limit: Largest number of calls; None for all.

    Raises:
        UsageError: No function matches, or none of its calls has a known duration.
    """
    if not profile.has("call_events"):
        raise UsageError("no single calls were recorded", hint="XRay's FDR and Basic modes and mono -profiler:calls do")
    ranked = _ranked_calls(profile, _declared_functions(profile, pattern), limit)
    if ranked is None or not ranked.num_calls:
        # Another function of that name may be the called one.
        keys, _ = matching_functions(profile, pattern)
        ranked = _ranked_calls(profile, keys, limit)
    if ranked is None or not ranked.num_calls:
        raise UsageError(f"no call of {pattern} has a recorded start and end", hint="they may be open at the end")
    chosen, median = ranked.rows[:limit], ranked.of_rank(ranked.num_calls // 2 + 1)
    details = _Details(profile, [*chosen, median])
    return SlowCalls(
        functions=ranked.functions,
        num_calls=ranked.num_calls,
        num_nested=ranked.num_nested,
        num_incomplete=ranked.num_incomplete,
        median_ns=ranked.percentile(50).duration_ns,
        p99_ns=ranked.percentile(99).duration_ns,
        max_ns=ranked.of_rank(1).duration_ns,
        first_ns=ranked.first_ns,
        median_slice_id=median.slice_id,
        calls=tuple(details.call(one.slice_id, median.slice_id) for one in chosen),
    )


@value_class
class _Call:
    """A call by its key, rank (1 is the longest), thread and time."""

    slice_id: int
    rank: int
    thread_id: int
    start_ns: int
    duration_ns: int


@value_class
class _RankedCalls:
    """The longest calls of some functions, and those at the percentiles, by rank."""

    functions: tuple[str, ...]
    num_calls: int
    num_nested: int
    num_incomplete: int
    first_ns: int
    rows: list[_Call]

    def of_rank(self, rank: int) -> _Call:
        """The call with a rank."""
        return next(one for one in self.rows if one.rank == rank)

    def percentile(self, percent: int) -> _Call:
        """The shortest call whose duration so many percent do not exceed."""
        return self.of_rank(_rank_of_percentile(self.num_calls, percent))


def _rank_of_percentile(num_calls: int, percent: int) -> int:
    return num_calls + 1 - max(-(-num_calls * percent // 100), 1)


def _declared_functions(profile: SlowCallProfile, pattern: str) -> list[int]:
    """Keys of the functions that match a pattern, whether they were called or not."""
    rows = profile.sql("SELECT function_id, name::VARCHAR FROM functions").fetchall()
    return _matching(rows, pattern)


def _ranked_calls(profile: SlowCallProfile, keys: list[int], limit: int | None) -> _RankedCalls | None:
    """The calls of functions, read in one pass over all calls; None where there are none."""
    if not keys:
        return None
    where = profile.selection.where("start_ns")
    last = "true" if limit is None else f"rank <= {int(limit)}"
    begin = _ALL_CALLS if profile.selection.time_ns is None else _CALLS_OF_TIME
    query = _CALLS.format(calls=begin.format(where=where or "true"), last=last)
    rows = profile.sql(query, {"functions": keys}).fetchall()
    [(first_ns, num_calls, num_nested, num_incomplete, names)] = [row[1:6] for row in rows if row[0] is None]
    if names is None:
        return None
    calls = sorted((_Call(*row[6:]) for row in rows if row[0] is not None), key=lambda one: one.rank)
    return _RankedCalls(tuple(sorted(names)), num_calls, num_nested, num_incomplete, first_ns, calls)


def matching_functions(profile: SlowCallProfile, pattern: str) -> tuple[list[int], list[str]]:
    """Keys and names of the called functions that match a pattern.

    Raises:
        UsageError: None matches.
    """
    rows = profile.sql(
        "SELECT function_id, name::VARCHAR FROM functions WHERE function_id IN (SELECT function_id FROM call_events)"
    ).fetchall()
    names = {name for _, name in rows}
    found = _matching(rows, pattern)
    if not found:
        raise UsageError(
            f"no called function matches {pattern!r}", hint=nearest_hint(pattern.strip("/*"), sorted(names))
        )
    of = dict(rows)
    return found, sorted({of[key] for key in found})


def _matching(rows: Sequence[tuple[int, str]], pattern: str) -> list[int]:
    """Keys of the functions, of rows with key and name, that match a pattern."""
    names = {name for _, name in rows}
    key = handle_key(pattern, "f")
    if key is not None and pattern not in names:
        return [one for one, _ in rows if one == key]
    test = FramePattern.parse(pattern).test(names)
    return sorted(one for one, name in rows if test(name))


_COLUMNS = """slice_id, thread_id, function_id, start_ns, duration_ns,
    whole := start_reason::VARCHAR = 'entry' AND end_reason::VARCHAR <> 'truncated'"""

_ALL_CALLS = f"""
    whole AS MATERIALIZED (
        SELECT min(start_ns) AS first_ns, list(struct_pack({_COLUMNS})) FILTER (
            WHERE kind::VARCHAR = 'call' AND function_id IN (SELECT unnest($functions)) AND {{where}}
        ) AS calls
        FROM slices
    ),
    calls AS (SELECT unnest(calls, recursive := true) FROM whole)
"""
"""The calls, and the first start of all slices, in one pass over these."""

_CALLS_OF_TIME = f"""
    whole AS (SELECT min(start_ns) AS first_ns FROM slices_of_time),
    calls AS (
        SELECT unnest(struct_pack({_COLUMNS})) FROM slices
        WHERE kind::VARCHAR = 'call' AND function_id IN (SELECT unnest($functions)) AND {{where}}
    )
"""
"""The same of a range of time, of which a saved profile has the rows by their time."""

_CALLS = """
    WITH {calls},
    judged AS MATERIALIZED (
        SELECT *, CASE WHEN coalesce(max(start_ns + duration_ns) OVER (
                PARTITION BY thread_id ORDER BY start_ns, slice_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) > start_ns, false) THEN 'nested' WHEN whole THEN 'complete' ELSE 'cut' END AS state
        FROM calls
    ),
    ranked AS MATERIALIZED (
        SELECT *, row_number() OVER (ORDER BY duration_ns DESC, start_ns, slice_id) AS rank, count(*) OVER () AS n
        FROM judged WHERE state = 'complete'
    )
    SELECT NULL AS row, (SELECT first_ns FROM whole), count(*) FILTER (WHERE state = 'complete'),
        count(*) FILTER (WHERE state = 'nested'), count(*) FILTER (WHERE state = 'cut'),
        (SELECT list(DISTINCT name::VARCHAR) FROM functions WHERE function_id IN (SELECT function_id FROM judged)),
        NULL, NULL, NULL, NULL, NULL
    FROM judged
    UNION ALL
    SELECT rank, NULL, NULL, NULL, NULL, NULL, slice_id, rank, thread_id, start_ns, duration_ns FROM ranked
    WHERE {last} OR rank = 1 OR rank = n // 2 + 1
        OR rank = n + 1 - greatest((n * 50 + 99) // 100, 1) OR rank = n + 1 - greatest((n * 99 + 99) // 100, 1)
"""

_WITHIN = """
    WITH chosen AS (
        SELECT slice_id AS call_id, thread_id, start_ns, start_ns + duration_ns AS end_ns, duration_ns
        FROM nearby WHERE slice_id IN (SELECT unnest($calls))
    ),
    inside AS (
        SELECT c.call_id, s.slice_id, s.parent_slice_id, s.start_ns - c.start_ns AS start_ns, s.duration_ns, s.self_ns,
            coalesce(f.name::VARCHAR, s.name::VARCHAR, '?') AS name, s.kind::VARCHAR AS kind,
            s.end_reason::VARCHAR AS end_reason, c.duration_ns AS whole_ns, s.depth
        FROM nearby s JOIN chosen c ON s.thread_id = c.thread_id AND s.start_ns >= c.start_ns
            AND s.start_ns + s.duration_ns <= c.end_ns
            AND (s.slice_id >= c.call_id OR s.kind::VARCHAR <> 'call')
        LEFT JOIN functions f USING (function_id)
    )
"""


class _Details:
    """Everything about some calls, read by a few queries for all of them."""

    def __init__(self, profile: SlowCallProfile, calls: Sequence[_Call]) -> None:
        self._profile = profile
        self._calls = {"calls": sorted({one.slice_id for one in calls})}
        self._nearby = _nearby(profile, calls)
        self._rows = {row[0]: row[1:] for row in self._sql(_FACTS)}
        self._paths: dict[int, list[str]] = defaultdict(list)
        for call, name in self._sql(_PATHS):
            self._paths[call].append(name)
        self._sums: dict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
        for call, name, count, own in self._sql(
            _WITHIN
            + "SELECT call_id, name, count(*), sum(self_ns)::BIGINT FROM inside WHERE kind = 'call' GROUP BY ALL"
        ):
            self._sums[call][name] = (own, count)
        self._listed: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        for call, *row in self._sql(
            _WITHIN
            + f"""SELECT call_id, slice_id, parent_slice_id, start_ns, duration_ns, name, kind, end_reason FROM inside
            WHERE slice_id = call_id OR kind <> 'call' OR duration_ns * {_LISTED_SHARE} >= whole_ns
            ORDER BY call_id, start_ns, slice_id"""
        ):
            self._listed[call].append(tuple(row))
        self._short: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for call, parent, start, duration in self._sql(_WITHIN + _SHORT):
            self._short[call, parent].append((start, duration))
        self._collections = defaultdict(list)
        for call, start, duration, name in self._sql(_COLLECTIONS):
            self._collections[call].append(CallPart(start, duration, 1, name, "gc"))
        self._samples: dict[int, list[SampledFunction]] = defaultdict(list)
        if profile.has("samples") or profile.has("callchains"):
            for call, name, count in self._sql(_SAMPLES):
                self._samples[call].append(SampledFunction(name, count))

    def call(self, slice_id: int, median_id: int) -> SlowCall:
        """One of the calls, compared with another."""
        start, duration, thread_id, thread, cpu, end_reason = self._rows[slice_id]
        return SlowCall(
            slice_id=slice_id,
            start_ns=start,
            duration_ns=duration,
            thread_id=thread_id,
            thread=thread,
            cpu=cpu,
            end_reason=end_reason,
            path=tuple(self._paths[slice_id]),
            parts=tuple(self._parts(slice_id)),
            changes=tuple(self._changes(slice_id, median_id)),
            samples=tuple(self._samples[slice_id]),
        )

    def _sql(self, query: str) -> list[tuple[Any, ...]]:
        if self._nearby is None:
            query = query.replace(_NEARBY, "slices")
        frames = None if self._nearby is None else {_NEARBY: self._nearby}
        return self._profile.sql(query, self._calls, frames).fetchall()  # type: ignore[no-any-return]

    def _changes(self, slice_id: int, median_id: int) -> list[FunctionChange]:
        here, median = self._sums[slice_id], self._sums[median_id]
        found = [FunctionChange(name, *here.get(name, (0, 0)), *median.get(name, (0, 0))) for name in {*here, *median}]
        return sorted(found, key=lambda one: (-one.excess_ns, one.name))

    def _parts(self, slice_id: int) -> list[CallPart]:
        rows = self._listed[slice_id]
        children: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        listed = {row[0] for row in rows}
        for row in rows:
            if row[0] != slice_id:
                # A call between that is not listed is shorter than what it contains: there is none.
                children[row[1] if row[1] in listed else slice_id].append(row)
        [whole] = [row for row in rows if row[0] == slice_id]
        parts: list[CallPart] = []
        open_rows: list[tuple[Any, int]] = [(whole, 0)]
        while open_rows:
            row, depth = open_rows.pop()
            if isinstance(row, CallPart):
                parts.append(row)
                continue
            key, _, start, duration, name, kind, end_reason = row
            parts.append(CallPart(start, duration, depth, name, kind, is_tail_call=end_reason == "tail_call"))
            below = children[key]
            inner: list[tuple[Any, int]] = []
            at = start
            for child in below:
                inner += self._gap(slice_id, key, at, child[2], depth + 1, name)
                inner.append((child, depth + 1))
                at = max(at, child[2] + child[3])
            if below or self._short[slice_id, key]:
                inner += self._gap(slice_id, key, at, start + duration, depth + 1, name)
            open_rows += reversed(inner)
        parts += self._collections[slice_id]
        return sorted(parts, key=lambda part: part.start_ns) if self._collections[slice_id] else parts

    def _gap(self, call: int, parent: int, start: int, end: int, depth: int, name: str) -> list[tuple[CallPart, int]]:
        """The time between two listed calls: of the function itself, and of calls too short to be listed."""
        short = [duration for at, duration in self._short[call, parent] if start <= at < end]
        whole = self._rows[call][1]
        if (end - start) * _LISTED_SHARE < whole:
            return []
        own = end - start - sum(short)
        return [(CallPart(start, own, depth, name, "self", len(short)), depth)] if own or short else []


_NEARBY = "nearby"
"""The slices that overlap with some calls: a query scans those instead of the slices of the whole recording."""

_MOST_INTERVALS = 64


def _nearby(profile: SlowCallProfile, calls: Sequence[_Call]) -> Any:
    """The slices of the threads of calls, and collections of any, at their time; None where the calls are many."""
    intervals = {(one.thread_id, one.start_ns, one.start_ns + one.duration_ns) for one in calls}
    if len(intervals) > _MOST_INTERVALS:
        return None
    from arro3.core import Table

    conditions = " OR ".join(
        f"start_ns <= {end} AND start_ns + duration_ns >= {start} AND (thread_id = {thread} OR kind::VARCHAR = 'gc')"
        for thread, start, end in sorted(intervals)
    )
    slices = None
    if calls:
        slices = profile._slices_at(min(start for _, start, _ in intervals), max(end for *_, end in intervals))
    if slices is None:
        return Table.from_arrow(profile.sql(f"SELECT * FROM slices WHERE {conditions}"))
    return Table.from_arrow(profile.sql(f"SELECT * FROM at_calls WHERE {conditions}", None, {"at_calls": slices}))


_SHORT = f"""
    SELECT i.call_id, i.parent_slice_id, i.start_ns, i.duration_ns
    FROM inside i JOIN inside p ON p.call_id = i.call_id AND p.slice_id = i.parent_slice_id
    WHERE i.kind = 'call' AND i.duration_ns * {_LISTED_SHARE} < i.whole_ns
        AND (p.slice_id = p.call_id OR p.duration_ns * {_LISTED_SHARE} >= p.whole_ns)
    ORDER BY 1, 2, 3
"""

_FACTS = """
    SELECT slice_id, s.start_ns, duration_ns, thread_id,
        coalesce(t.name::VARCHAR || ' ', 'thread ') || coalesce(t.tid, thread_id), cpu, end_reason::VARCHAR
    FROM nearby s JOIN threads t USING (thread_id) WHERE slice_id IN (SELECT unnest($calls))
"""

_PATHS = """
    WITH chosen AS (
        SELECT slice_id AS call_id, thread_id, start_ns, start_ns + duration_ns AS end_ns, depth
        FROM nearby WHERE slice_id IN (SELECT unnest($calls))
    )
    SELECT c.call_id, coalesce(f.name::VARCHAR, '?')
    FROM nearby s JOIN chosen c ON s.thread_id = c.thread_id AND s.start_ns <= c.start_ns
        AND s.start_ns + s.duration_ns >= c.end_ns AND (s.depth < c.depth OR s.slice_id = c.call_id)
    LEFT JOIN functions f USING (function_id)
    WHERE s.kind::VARCHAR = 'call' ORDER BY c.call_id, s.depth
"""

_COLLECTIONS = """
    WITH chosen AS (
        SELECT slice_id AS call_id, thread_id, start_ns, start_ns + duration_ns AS end_ns
        FROM nearby WHERE slice_id IN (SELECT unnest($calls))
    )
    SELECT c.call_id, s.start_ns - c.start_ns, s.duration_ns, s.name::VARCHAR
    FROM chosen c JOIN threads own ON own.thread_id = c.thread_id
    JOIN nearby s ON s.start_ns < c.end_ns AND s.start_ns + s.duration_ns > c.start_ns AND s.thread_id <> c.thread_id
    JOIN threads t ON t.thread_id = s.thread_id AND t.process_id = own.process_id
    WHERE s.kind::VARCHAR = 'gc' ORDER BY 1, 2
"""

_SAMPLES = f"""
    WITH chosen AS (
        SELECT slice_id AS call_id, thread_id, start_ns, start_ns + duration_ns AS end_ns
        FROM nearby WHERE slice_id IN (SELECT unnest($calls))
    )
    SELECT c.call_id, coalesce(f.name::VARCHAR, '[no stack]') AS name, count(*) AS n
    FROM chosen c
    JOIN samples s ON s.thread_id = c.thread_id AND s.ts_ns >= c.start_ns AND s.ts_ns < c.end_ns
    LEFT JOIN stacks st ON st.stack_id = s.stack_id LEFT JOIN names_of_frames f USING (frame_id)
    WHERE s.event::VARCHAR NOT IN {SUM_EVENTS} GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2
"""
