"""`profile.threads` and `profile.counters`: tracks of samples and markers, and graphs of counters."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from perfuse.exporters.firefox.shared import STACK_ROWS, Strings, json_object
from perfuse.exporters.source import EventSource, Source

MARKER_SCHEMA: list[dict[str, Any]] = [
    {
        "name": "slice",
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "tooltipLabel": "{marker.name}",
        "tableLabel": "{marker.name}",
        "fields": [
            {"key": "kind", "label": "Kind", "format": "string"},
            {"key": "arguments", "label": "Arguments", "format": "string"},
            {"key": "end_reason", "label": "Ended by", "format": "string"},
        ],
    },
    {
        "name": "exception",
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "tooltipLabel": "{marker.name}",
        "tableLabel": "{marker.data.object}",
        "fields": [{"key": "object", "label": "Object", "format": "string"}],
    },
]
"""`meta.markerSchema`."""

_INSTANT, _INTERVAL = 0, 1

MarkerRow = tuple[str, float, float | None, dict[str, Any]]
"""Name, start and end in milliseconds, and data of a marker."""


def span_ns(profile: EventSource) -> tuple[int, int]:
    """Time of the first sample or marker, and end of the last one."""
    times = ["SELECT ts_ns AS first, ts_ns AS last FROM samples"]
    if profile.has("slices"):
        times.append(f"SELECT start_ns, start_ns + duration_ns FROM slices WHERE {_selected(profile, 'start_ns')}")
    if profile.has("exceptions"):
        times.append(
            f"SELECT ts_ns, ts_ns FROM exceptions WHERE kind::VARCHAR = 'throw' AND {_selected(profile, 'ts_ns')}"
        )
    ((first, last),) = profile.sql(f"SELECT min(first), max(last) FROM ({' UNION ALL '.join(times)})").fetchall()
    return first, last


def markers(profile: EventSource, start_ns: int) -> dict[int, list[MarkerRow]]:
    """The selected markers by thread, in time order; times are after `start_ns`."""
    found: dict[int, list[MarkerRow]] = {}
    if profile.has("slices"):
        rows = profile.sql(f"""
            SELECT thread_id, coalesce(name::VARCHAR, kind::VARCHAR), start_ns, start_ns + duration_ns,
                kind::VARCHAR, args::VARCHAR, end_reason::VARCHAR
            FROM slices WHERE kind::VARCHAR <> 'call' AND {_selected(profile, "start_ns")}
        """).fetchall()
        for thread, name, start, end, kind, args, end_reason in rows:
            data = {"type": "slice", "kind": kind, "arguments": args, "end_reason": end_reason}
            data = {key: value for key, value in data.items() if value is not None}
            found.setdefault(thread, []).append((name, (start - start_ns) / 1e6, (end - start_ns) / 1e6, data))
    if profile.has("exceptions"):
        rows = profile.sql(f"""
            WITH numbered AS ({STACK_ROWS})
            SELECT thread_id, ts_ns, object_address, i
            FROM exceptions LEFT JOIN numbered USING (stack_id)
            WHERE kind::VARCHAR = 'throw' AND {_selected(profile, "ts_ns")}
        """).fetchall()
        for thread, ts_ns, address, stack in rows:
            time = (ts_ns - start_ns) / 1e6
            data = {"type": "exception"} if address is None else {"type": "exception", "object": f"{address:#x}"}
            if stack is not None:
                data["cause"] = {"stack": stack, "time": time}
            found.setdefault(thread, []).append(("throw", time, None, data))
    for marked in found.values():
        marked.sort(key=lambda marker: marker[1])
    return found


def _selected(profile: EventSource, time: str) -> str:
    return profile.selection.where(time, "thread_id") or "true"


def markers_json(rows: list[MarkerRow], strings: Strings) -> str:
    """`thread.markers`."""
    table = {
        "data": [data for _, _, _, data in rows],
        "name": [strings.index(name) for name, _, _, _ in rows],
        "startTime": [start for _, start, _, _ in rows],
        "endTime": [end for _, _, end, _ in rows],
        "phase": [_INSTANT if end is None else _INTERVAL for _, _, end, _ in rows],
        "category": [0] * len(rows),
        "length": len(rows),
    }
    return json.dumps(table, ensure_ascii=False, separators=(",", ":"))


_EVENTS = "if(weight_unit::VARCHAR = 'ns', weight / 1e6, weight::DOUBLE)"


# Rows of collapsed stacks represent as many samples as their weight; other samples count once, without a column.
_COUNTS = (
    "if(bool_and(weight_unit::VARCHAR = 'samples'), to_json(list(weight ORDER BY ts_ns, sample_id))::VARCHAR, 'null')"
)


def threads_json(
    profile: Source, interval_ns: int, weight: str, marked: dict[int, list[MarkerRow]], strings: Strings, start_ns: int
) -> tuple[str, list[tuple[str, bool]]]:
    """The array of threads; times are milliseconds after `start_ns`. A thread's markers are on its first track.

    Also returns the pid of each track, and whether it is of a main thread.
    """
    # Each sample has the CPU time of its thread since the preceding sample, so that gaps are idle: the time that the
    # sample represents where the event is a clock, else one sampling interval.
    rows = profile.sql(f"""
        WITH numbered AS ({STACK_ROWS}),
        origin AS (SELECT {start_ns}::BIGINT AS first_ns),
        tracks AS (
            SELECT thread_id, event::VARCHAR AS event, count(*)::VARCHAR AS length,
                {_in_time_order("i")} AS stack,
                {_in_time_order("(ts_ns - first_ns) / 1e6")} AS time,
                {_in_time_order(f"if(weight_unit::VARCHAR = 'ns', weight, {interval_ns})")} AS cpu,
                bool_and(weight_unit::VARCHAR = 'ns') AS in_ns,
                {_in_time_order(_EVENTS) if weight == "events" else _COUNTS} AS weight
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
    members = {
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
        {key: json.dumps(value, ensure_ascii=False) for key, value in members.items()}
        | {"samples": json_object(table), "markers": markers}
    )


_UNITS = {"bytes": "bytes", "percentage": "percent"}


def counters_json(profile: EventSource, start_ns: int, tracks: list[tuple[str, bool]]) -> str | None:
    """The array of counters; None where there are none.

    `tracks` has the pid of each track, and whether it is of the main thread.
    """
    if not profile.has("counter_samples"):
        return None
    pids = dict(
        profile.sql("""
            SELECT source_id, min(pid)::VARCHAR
            FROM instants JOIN threads USING (thread_id) JOIN processes USING (process_id) GROUP BY 1
        """).fetchall()
    )
    rows = profile.sql(f"""
        SELECT any_value(c.source_id), any_value(section::VARCHAR), any_value(name::VARCHAR), any_value(unit::VARCHAR),
            list(ts_ns ORDER BY s.ts_ns, s.record_offset), list(value ORDER BY s.ts_ns, s.record_offset)
        FROM counter_samples s JOIN counters c USING (counter_id)
        WHERE isfinite(value) AND {replace(profile.selection, thread=None).where("s.ts_ns") or "true"}
        GROUP BY counter_id ORDER BY counter_id
    """).fetchall()
    counters = [_counter(row, start_ns, pids, tracks) for row in rows]
    return json.dumps(counters, ensure_ascii=False, separators=(",", ":"))


def _counter(
    row: tuple[Any, ...], start_ns: int, pids: dict[int, str], tracks: list[tuple[str, bool]]
) -> dict[str, Any]:
    source, section, name, unit, ts_ns, values = row
    pid = pids.get(source, tracks[0][0])
    of_process = [index for index, (of, _) in enumerate(tracks) if of == pid] or [0]
    label = f"{section}: {name}" if section else name
    # The front end sums differences and ignores the first one, which therefore is 0.
    steps = [after - before for before, after in zip([0, *values], values, strict=False)]
    times = [(ts - start_ns) / 1e6 for ts in ts_ns]
    shown = _UNITS.get(unit, "number")
    return {
        "name": name,
        "category": section or "",
        "description": label,
        "pid": tracks[of_process[0]][0],
        "mainThreadIndex": next((index for index in of_process if tracks[index][1]), of_process[0]),
        "samples": {"time": [times[0], *times], "count": [0, *steps], "length": len(times) + 1},
        "display": {
            "graphType": "line-accumulated",
            "unit": shown,
            "color": "orange" if unit == "bytes" else "grey",
            "markerSchemaLocation": None,
            "sortWeight": 50,
            "label": label,
            "tooltipRows": [{"type": "value", "source": "accumulated", "format": {"unit": shown}, "label": label}],
        },
    }
