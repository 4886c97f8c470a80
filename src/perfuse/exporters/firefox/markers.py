"""Markers: slices that are no calls, and exceptions, on the threads they are of."""

import json
from typing import Any

from perfuse.exporters.firefox.shared import STACK_ROWS
from perfuse.exporters.firefox.strings import Strings
from perfuse.exporters.source import MomentSource

SCHEMA: list[dict[str, Any]] = [
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

Row = tuple[str, float, float | None, dict[str, Any]]
"""Name, start and end in milliseconds, and what else is told."""


def span_ns(profile: MomentSource) -> tuple[int, int]:
    """When the first sample or marker is, and when the last ends."""
    times = ["SELECT ts_ns AS first, ts_ns AS last FROM samples"]
    if profile.has("slices"):
        times.append(f"SELECT start_ns, start_ns + duration_ns FROM slices WHERE {_selected(profile, 'start_ns')}")
    if profile.has("exceptions"):
        times.append(
            f"SELECT ts_ns, ts_ns FROM exceptions WHERE kind::VARCHAR = 'throw' AND {_selected(profile, 'ts_ns')}"
        )
    ((first, last),) = profile.sql(f"SELECT min(first), max(last) FROM ({' UNION ALL '.join(times)})").fetchall()
    return first, last


def markers(profile: MomentSource, start_ns: int) -> dict[int, list[Row]]:
    """The selected markers by thread, in time order; times are after `start_ns`."""
    found: dict[int, list[Row]] = {}
    if profile.has("slices"):
        rows = profile.sql(f"""
            SELECT thread_id, coalesce(name::VARCHAR, kind::VARCHAR), start_ns, start_ns + duration_ns,
                kind::VARCHAR, args::VARCHAR, end_reason::VARCHAR
            FROM slices WHERE kind::VARCHAR <> 'call' AND {_selected(profile, "start_ns")}
        """).fetchall()
        for thread, name, start, end, kind, args, end_reason in rows:
            data = {"type": "slice", "kind": kind, "arguments": args, "end_reason": end_reason}
            told = {key: value for key, value in data.items() if value is not None}
            found.setdefault(thread, []).append((name, (start - start_ns) / 1e6, (end - start_ns) / 1e6, told))
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


def _selected(profile: MomentSource, time: str) -> str:
    return profile.selection.where(time, "thread_id") or "true"


def markers_json(rows: list[Row], strings: Strings) -> str:
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
