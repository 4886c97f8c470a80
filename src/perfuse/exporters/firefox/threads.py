"""`profile.threads`: one track a thread, and one more for each further event that was sampled in it."""

import json
from collections.abc import Iterable
from typing import Any

from perfuse.exporters.firefox.markers import Row, markers_json
from perfuse.exporters.firefox.shared import STACK_ROWS
from perfuse.exporters.firefox.strings import Strings, json_object
from perfuse.exporters.source import Source

_EVENTS = "if(weight_unit::VARCHAR = 'ns', weight / 1e6, weight::DOUBLE)"


def threads_json(
    profile: Source, interval_ns: int, weight: str, marked: dict[int, list[Row]], strings: Strings, start_ns: int
) -> tuple[str, list[tuple[str, bool]]]:
    """The array of threads; times are milliseconds after `start_ns`. A thread's markers are on its first track.

    Gives the pid of each track, too, and whether it is a main thread's.
    """
    # Each sample tells how much CPU its thread used since the one before, so that gaps read as idle: what the
    # sample stands for where the event is a clock, else one sampling interval.
    rows = profile.sql(f"""
        WITH numbered AS ({STACK_ROWS}),
        origin AS (SELECT {start_ns}::BIGINT AS first_ns),
        tracks AS (
            SELECT thread_id, event::VARCHAR AS event, count(*)::VARCHAR AS length,
                {_in_time_order("i")} AS stack,
                {_in_time_order("(ts_ns - first_ns) / 1e6")} AS time,
                {_in_time_order(f"if(weight_unit::VARCHAR = 'ns', weight, {interval_ns})")} AS cpu,
                bool_and(weight_unit::VARCHAR = 'ns') AS in_ns,
                {_in_time_order(_EVENTS) if weight == "events" else "'null'"} AS weight
            FROM samples CROSS JOIN origin LEFT JOIN numbered USING (stack_id)
            GROUP BY thread_id, event
            UNION ALL
            SELECT thread_id, NULL, '0', '[]', '[]', '[]', NULL, {"'[]'" if weight == "events" else "'null'"}
            FROM threads WHERE thread_id IN ({_listed(marked)}) AND thread_id NOT IN (SELECT thread_id FROM samples)
        )
        SELECT thread_id, pid, coalesce(tid, thread_id), p.name::VARCHAR, t.name::VARCHAR,
            (p.start_ns - first_ns) / 1e6, (p.end_ns - first_ns) / 1e6,
            (t.start_ns - first_ns) / 1e6, (t.end_ns - first_ns) / 1e6, event,
            (SELECT count(DISTINCT event) FROM tracks), in_ns, length, stack, time, cpu, weight
        FROM tracks CROSS JOIN origin JOIN threads t USING (thread_id) JOIN processes p USING (process_id)
        ORDER BY pid, tid IS DISTINCT FROM pid, coalesce(tid, thread_id), event
    """).fetchall()
    left = dict(marked)
    tracks = [_thread(row, weight, markers_json(left.pop(thread, []), strings)) for thread, *row in rows]
    return "[" + ",".join(tracks) + "]", [(f"{pid}", pid == tid) for _, pid, tid, *_ in rows]


def _listed(threads: Iterable[int]) -> str:
    return ", ".join(map(str, threads)) or "NULL"


def _in_time_order(value: str) -> str:
    return f"to_json(list({value} ORDER BY ts_ns, sample_id))"


def _thread(row: list[Any], weight: str, markers: str) -> str:
    pid, tid, process, name, process_start, process_end, start, end, event, num_events, in_ns, *samples = row
    length, stack, time, cpu, weights = samples
    title = name or process or f"{tid}"
    about = {
        "processType": "default",
        "processStartupTime": max(process_start or 0, 0),
        "processShutdownTime": process_end,
        "registerTime": max(start or 0, 0),
        "unregisterTime": end,
        "pausedRanges": [],
        "name": f"{title} ({event})" if event and num_events > 1 else title,
        "isMainThread": pid == tid,
        "processName": process or f"{pid}",
        "pid": f"{pid}",
        "tid": tid,
    }
    table = {
        "stack": stack,
        "time": time,
        "weight": weights,
        "weightType": '"tracing-ms"' if weight == "events" and in_ns else '"samples"',
        "threadCPUDelta": cpu,
        "length": length,
    }
    return json_object(
        {key: json.dumps(value, ensure_ascii=False) for key, value in about.items()}
        | {"samples": json_object(table), "markers": markers}
    )
