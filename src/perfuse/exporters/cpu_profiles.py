"""Samples as V8's CPU profiles, which Chrome's traces contain as events `Profile` and `ProfileChunk`.

Viewers let a sample last until the next one of its profile. Where the event is a clock, a thread that was not sampled
for twice as long as a sample represents is `(idle)` after that time.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from perfuse.exporters.queries import FRAMES, IS_SUM
from perfuse.exporters.source import Source

_ROOT, _IDLE, _NO_STACK, _FIRST_STACK = 1, 2, 3, 4
"""Numbers of nodes; that of a stack is its key and the last."""
_OWN_NODES = {_ROOT: "(root)", _IDLE: "(idle)", _NO_STACK: "[no stack]"}

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
        event: The event.
        start_us: Time of the first sample.
        end_us: Time of the end.
        samples: The node of each sample.
        deltas: Time of each sample after the one before it; of the first one, 0.
    """

    pid: int
    tid: int
    event: str
    start_us: int
    end_us: int
    samples: list[int]
    deltas: str


def cpu_profiles(profile: Source, zero_ns: int) -> list[CpuProfile]:
    """A profile for each thread and event, the main thread of each process first; times are after `zero_ns`."""
    rows = profile.sql(f"""
        WITH timed AS ({_TIMED}),
        moments AS (
            SELECT thread_id, event, sample_id, false AS is_idle, ts_ns,
                coalesce(stack_id::BIGINT + {_FIRST_STACK}, {_NO_STACK}) AS node
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
        SELECT pid, coalesce(tid, thread_id) AS number, event, min(at_us), max(at_us),
            list(node ORDER BY i), to_json(list(delta_us ORDER BY i))
        FROM deltas JOIN threads USING (thread_id) JOIN processes USING (process_id)
        GROUP BY pid, tid, number, event ORDER BY pid, tid IS DISTINCT FROM pid, number, count(*) DESC, event
    """).fetchall()
    return [CpuProfile(*row) for row in rows]


class Nodes:
    """The nodes of profiles: stacks, each with the function on top of its caller's."""

    def __init__(self, profile: Source) -> None:
        functions = "label, coalesce(function_path, path), function_line, function_column"
        rows = profile.sql(f"SELECT frame_id, {functions} FROM ({FRAMES})").fetchall()
        self._functions = {frame: _call_frame(*function) for frame, *function in rows}
        rows = profile.sql("SELECT stack_id, parent_stack_id, frame_id FROM stacks").fetchall()
        self._stacks = {stack: (parent, frame) for stack, parent, frame in rows}

    def of(self, samples: list[int]) -> Iterator[dict[str, Any]]:
        """The nodes of samples and of their callers, each after its caller."""
        used = set(samples)
        pending = [node - _FIRST_STACK for node in used if node >= _FIRST_STACK]
        while pending:
            parent, _ = self._stacks[pending.pop()]
            if parent is not None and parent + _FIRST_STACK not in used:
                used.add(parent + _FIRST_STACK)
                pending.append(parent)
        yield {"id": _ROOT, "callFrame": _call_frame(_OWN_NODES[_ROOT])}
        for node in sorted(used):
            if node < _FIRST_STACK:
                yield {"id": node, "parent": _ROOT, "callFrame": _call_frame(_OWN_NODES[node])}
                continue
            parent, frame = self._stacks[node - _FIRST_STACK]
            caller = _ROOT if parent is None else parent + _FIRST_STACK
            yield {"id": node, "parent": caller, "callFrame": self._functions[frame]}


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
        "codeType": "other",
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
        content = {"nodes": list(nodes.of(one.samples)), "samples": one.samples}
        chunk = event | {"name": "ProfileChunk", "ts": one.end_us, "args": None}
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        data_text = f'{{"cpuProfile": {text}, "timeDeltas": {one.deltas}, "endTime": {one.end_us}}}'
        yield f'{json.dumps(chunk)[:-5]}{{"data": {data_text}}}}}'
