"""Samples as V8's CPU profiles: files `.cpuprofile`, and the events `Profile` and `ProfileChunk` of Chrome's traces.

Viewers let a sample last until the next one of its profile. Where the event is a clock, a thread that was not sampled
for twice as long as a sample represents is `(idle)` after that time.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from perfuse.analysis.sampled import Event
from perfuse.exporters.queries import FRAMES, IS_SUM, TRACK_PROCESSES, with_function_files
from perfuse.exporters.source import Source
from perfuse.table import sql_text

_IDLE, _NO_STACK = -1, -2
"""What samples have in place of the key of a stack."""

_TIMED = f"""
    SELECT thread_id, event::VARCHAR AS event, sample_id, ts_ns, stack_id,
        if(weight_unit::VARCHAR = 'ns', least(weight, 1_000_000_000_000)::BIGINT, NULL) AS length_ns,
        lead(ts_ns) OVER (PARTITION BY thread_id, event ORDER BY ts_ns, sample_id) AS next_ns
    FROM samples WHERE NOT {IS_SUM}
"""


class CpuProfile(NamedTuple):
    """The samples of an event in a thread; times are microseconds.

    Attributes:
        pid: The process.
        tid: The thread.
        name: Its name.
        event: The event.
        start_us: Time of the first sample.
        end_us: Time of the end.
        stacks: What each sample is in, for `Nodes`.
        deltas: Time of each sample after the one before it, as a JSON array; of the first one, 0.
    """

    pid: int
    tid: int
    name: str
    event: str
    start_us: int
    end_us: int
    stacks: list[int]
    deltas: str

    @property
    def num_samples(self) -> int:
        """Number of samples, without idle times."""
        return len(self.stacks) - self.stacks.count(_IDLE)


def cpu_profiles(profile: Source, zero_ns: int, event: str | None = None) -> list[CpuProfile]:
    """A profile for each thread and event, the main thread of each process first; times are after `zero_ns`."""
    which = "" if event is None else f" AND event::VARCHAR = {sql_text(event)}"
    rows = profile.sql(f"""
        WITH timed AS ({_TIMED}{which}),
        moments AS (
            SELECT thread_id, event, sample_id, false AS is_idle, ts_ns,
                coalesce(stack_id::BIGINT, {_NO_STACK}) AS stack
            FROM timed
            UNION ALL
            SELECT thread_id, event, sample_id, true, ts_ns + length_ns, {_IDLE}
            FROM timed WHERE length_ns IS NOT NULL AND (next_ns IS NULL OR next_ns - ts_ns > 2 * length_ns)
        ),
        in_order AS (
            SELECT *, (ts_ns - {zero_ns} + 500) // 1000 AS at_us,
                row_number() OVER (PARTITION BY thread_id, event ORDER BY ts_ns, sample_id, is_idle) AS i
            FROM moments
        ),
        deltas AS (
            SELECT *, at_us - lag(at_us, 1, at_us) OVER (PARTITION BY thread_id, event ORDER BY i) AS delta_us
            FROM in_order
        )
        SELECT pid, coalesce(tid, thread_id) AS number,
            any_value(coalesce(t.name::VARCHAR, p.name::VARCHAR, 'thread')), event, min(at_us), max(at_us),
            list(stack ORDER BY i), to_json(list(delta_us ORDER BY i))
        FROM deltas JOIN threads t USING (thread_id) JOIN {TRACK_PROCESSES} p USING (process_id)
        GROUP BY pid, tid, number, event ORDER BY pid, tid IS DISTINCT FROM pid, number, count(*) DESC, event
    """).fetchall()
    return [CpuProfile(*row) for row in rows]


def sums_in_sequence(profile: Source, event: Event) -> list[CpuProfile]:
    """A profile for each thread of sums by stack, one after the other: microseconds are 1,000 ns, or 1 of its unit."""
    unit = 1_000 if event.unit == "ns" else 1
    rows = profile.sql(f"""
        WITH sums AS (
            SELECT thread_id, coalesce(stack_id::BIGINT, {_NO_STACK}) AS stack,
                row_number() OVER by_thread AS i, (sum(weight) OVER by_thread / {unit})::BIGINT AS end_us
            FROM samples WHERE event::VARCHAR = {sql_text(event.name)}
            WINDOW by_thread AS (PARTITION BY thread_id ORDER BY sample_id ROWS UNBOUNDED PRECEDING)
        ),
        lengths AS (
            SELECT *, end_us - lag(end_us, 1, 0) OVER (PARTITION BY thread_id ORDER BY i) AS length_us FROM sums
        )
        SELECT pid, coalesce(tid, thread_id), any_value(coalesce(t.name::VARCHAR, p.name::VARCHAR, 'thread')),
            list(stack ORDER BY i), list(length_us ORDER BY i), max(end_us)
        FROM lengths LEFT JOIN threads t USING (thread_id) LEFT JOIN {TRACK_PROCESSES} p USING (process_id)
        GROUP BY pid, tid, thread_id ORDER BY pid, tid IS DISTINCT FROM pid, 2
    """).fetchall()
    return [
        CpuProfile(pid or 0, tid or 0, name, event.name, 0, end_us, stacks, json.dumps([0, *lengths[:-1]]))
        for pid, tid, name, stacks, lengths, end_us in rows
    ]


class Nodes:
    """The call tree of a profile: nodes are functions below their callers, and a number each, parents first."""

    _ROOT = 1

    def __init__(self, profile: Source) -> None:
        functions = "label, func_place, function_line, function_column, line"
        rows = profile.sql(f"SELECT frame_id, {functions} FROM ({with_function_files(profile, FRAMES)})").fetchall()
        frames = {frame: (function, line) for frame, *function, line in rows}
        self._names: list[tuple[int, tuple[Any, ...]]] = [(0, ()), (0, ("(root)",))]
        self._of: dict[int, int] = {}
        self._lines: dict[int, int | None] = {}
        known: dict[tuple[int, tuple[Any, ...]], int] = {}

        def node(parent: int, *function: Any) -> int:
            key = (parent, function)
            if key not in known:
                known[key] = len(self._names)
                self._names.append(key)
            return known[key]

        self._of[_IDLE] = node(self._ROOT, "(idle)")
        self._of[_NO_STACK] = node(self._ROOT, "[no stack]")
        parents_first = "SELECT stack_id, parent_stack_id, frame_id FROM stacks ORDER BY stack_id"
        for stack, parent, frame in profile.sql(parents_first).fetchall():
            function, self._lines[stack] = frames[frame]
            self._of[stack] = node(self._ROOT if parent is None else self._of[parent], *function)

    def of(self, stacks: Iterable[int]) -> list[int]:
        """The node of each stack."""
        return [self._of[stack] for stack in stacks]

    def lines(self, stacks: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Node and line of each stack whose line is known."""
        for stack in stacks:
            line = self._lines.get(stack)
            if line is not None:
                yield self._of[stack], line

    def needed(self, nodes: Iterable[int]) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Nodes and those above them: number, number of the parent (0: none), and V8's description of the function."""
        used = {self._ROOT}
        for one in nodes:
            node = one
            while node not in used:
                used.add(node)
                node = self._names[node][0]
        for node in sorted(used):
            parent, function = self._names[node]
            yield node, parent, _call_frame(*function)


def _call_frame(
    name: str, path: str | None = None, line: int | None = None, column: int | None = None
) -> dict[str, Any]:
    """V8's description of a function; lines and columns count from 0, -1 is unknown."""
    return {
        "functionName": name,
        "scriptId": 0,
        "url": path or "",
        "lineNumber": (line or 0) - 1,
        "columnNumber": (column or 0) - 1,
    }


def events(profile: Source, zero_ns: int) -> Iterator[str]:
    """Trace events of the samples, in JSON."""
    nodes = Nodes(profile)
    for number, one in enumerate(cpu_profiles(profile, zero_ns), 1):
        event = {
            "cat": "disabled-by-default-v8.cpu_profiler",
            "ph": "P",
            "id": f"{number:#x}",
            "pid": one.pid,
            "tid": one.tid,
        }
        data = {"startTime": one.start_us, "event": one.event}
        yield json.dumps(event | {"name": "Profile", "ts": one.start_us, "args": {"data": data}}, ensure_ascii=False)
        samples = nodes.of(one.stacks)
        listed = [
            {"id": node} | ({"parent": parent} if parent else {}) | {"callFrame": frame | {"codeType": "other"}}
            for node, parent, frame in nodes.needed(set(samples))
        ]
        chunk = event | {"name": "ProfileChunk", "ts": one.end_us, "args": None}
        text = json.dumps({"nodes": listed, "samples": samples}, ensure_ascii=False, separators=(",", ":"))
        data_text = f'{{"cpuProfile": {text}, "timeDeltas": {one.deltas}, "endTime": {one.end_us}}}'
        yield f'{json.dumps(chunk)[:-5]}{{"data": {data_text}}}}}'
