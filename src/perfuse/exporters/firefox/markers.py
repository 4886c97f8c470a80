"""`profile.meta.markerSchema` and `thread.markers`: calls, other slices, exceptions and instants."""

import json
from typing import Any

from perfuse.exporters.firefox.shared import STACK_ROWS, Strings
from perfuse.exporters.source import EventSource
from perfuse.exporters.span import selected, selected_calls, selected_times

_DISPLAY = ["marker-chart", "marker-table", "timeline-overview"]
_LABELS = {
    "kind": "Kind",
    "arguments": "Arguments",
    "start_reason": "Started by",
    "end_reason": "Ended by",
    "object": "Object",
    "payload": "Payload",
    "payload_hex": "Payload in hexadecimal",
}
_FIELDS = {
    "call": ("arguments", "start_reason", "end_reason"),
    "slice": ("kind", "arguments", "end_reason"),
    "exception": ("object",),
    "instant": ("kind", "payload", "payload_hex"),
}
"""The fields of each type of markers."""

MARKER_SCHEMA: list[dict[str, Any]] = [
    {
        "name": name,
        "display": _DISPLAY,
        "tooltipLabel": "{marker.name}",
        "tableLabel": "{marker.data.object}" if name == "exception" else "{marker.name}",
        "fields": [{"key": key, "label": _LABELS[key], "format": "string"} for key in fields],
    }
    for name, fields in _FIELDS.items()
]
"""`meta.markerSchema`."""

_INSTANT, _INTERVAL = 0, 1

MarkerRow = tuple[str, int, int | None, str]
"""Name, start and end in nanoseconds on the profile's clock, and data of a marker as JSON."""

HEAP_SIZE = "gc_resize"
"""The kind of instants that are drawn as a counter."""


def markers(profile: EventSource, start_ns: int, *, calls: bool) -> dict[int, list[MarkerRow]]:
    """The selected markers by thread, in time order.

    Args:
        profile: The profile.
        start_ns: Time of the first sample or marker.
        calls: Whether each call is a marker.
    """
    found: dict[int, list[MarkerRow]] = {}
    for query in (_slices(profile, calls=calls), _instants(profile)):
        for thread, *row in profile.sql(query).fetchall() if query else ():
            found.setdefault(thread, []).append(tuple(row))
    for thread, row in _exceptions(profile, start_ns):
        found.setdefault(thread, []).append(row)
    for marked in found.values():
        marked.sort(key=lambda marker: marker[1])
    return found


def _slices(profile: EventSource, *, calls: bool) -> str | None:
    start, end = selected_times(profile)
    of_kinds = []
    if profile.has("slices"):
        of_kinds.append(f"(kind::VARCHAR <> 'call' AND {selected(profile, 'start_ns')})")
    if calls:
        of_kinds.append(f"(kind::VARCHAR = 'call' AND {selected_calls(profile)})")
    if not of_kinds:
        return None
    start_reason, end_reason = (f"to_json({reason}::VARCHAR)" for reason in ("start_reason", "end_reason"))
    is_call = "s.kind::VARCHAR = 'call'"
    members = (
        f'if({is_call}, \'"type":"call"\', \'"type":"slice","kind":\' || to_json(s.kind::VARCHAR))',
        "',\"arguments\":' || to_json(args::VARCHAR)",
        f"if({is_call} AND start_reason::VARCHAR <> 'entry', ',\"start_reason\":' || {start_reason}, '')",
        f"if(NOT {is_call} OR end_reason::VARCHAR <> 'exit', ',\"end_reason\":' || {end_reason}, '')",
    )
    return f"""
        SELECT thread_id, coalesce(if({is_call}, f.name::VARCHAR, s.name::VARCHAR), s.kind::VARCHAR),
            if({is_call}, {start}, start_ns), if({is_call}, {end}, start_ns + duration_ns),
            concat('{{', {", ".join(members)}, '}}')
        FROM slices_of_time s LEFT JOIN functions f USING (function_id) WHERE {" OR ".join(of_kinds)} ORDER BY slice_id
    """


def _instants(profile: EventSource) -> str | None:
    if not profile.has("instants"):
        return None
    text = "try(decode(payload))"
    members = (
        '\'"type":"instant","kind":\' || to_json(kind::VARCHAR)',
        f"',\"payload\":' || to_json({text})",
        f"if({text} IS NULL, ',\"payload_hex\":' || to_json(lower(hex(payload))), '')",
    )
    return f"""
        SELECT thread_id, coalesce(name::VARCHAR, kind::VARCHAR), ts_ns, NULL, concat('{{', {", ".join(members)}, '}}')
        FROM instants WHERE kind::VARCHAR <> '{HEAP_SIZE}' AND {selected(profile, "ts_ns")}
        ORDER BY ts_ns, record_offset
    """


def _exceptions(profile: EventSource, start_ns: int) -> list[tuple[int, MarkerRow]]:
    if not profile.has("exceptions"):
        return []
    rows = profile.sql(f"""
        WITH numbered AS ({STACK_ROWS})
        SELECT thread_id, ts_ns, object_address, i
        FROM exceptions LEFT JOIN numbered USING (stack_id)
        WHERE kind::VARCHAR = 'throw' AND {selected(profile, "ts_ns")}
    """).fetchall()
    found: list[tuple[int, MarkerRow]] = []
    for thread, ts_ns, address, stack in rows:
        data: dict[str, Any] = {"type": "exception"}
        if address is not None:
            data["object"] = f"{address:#x}"
        if stack is not None:
            data["cause"] = {"stack": stack, "time": (ts_ns - start_ns) / 1e6}
        found.append((thread, ("throw", ts_ns, None, json.dumps(data, separators=(",", ":")))))
    return found


def markers_json(rows: list[MarkerRow], strings: Strings, start_ns: int) -> str:
    """`thread.markers`; times are milliseconds after `start_ns`."""
    table = {
        "name": [strings.index(name) for name, _, _, _ in rows],
        "startTime": [(start - start_ns) / 1e6 for _, start, _, _ in rows],
        "endTime": [None if end is None else (end - start_ns) / 1e6 for _, _, end, _ in rows],
        "phase": [_INSTANT if end is None else _INTERVAL for _, _, end, _ in rows],
        "category": [0] * len(rows),
        "length": len(rows),
    }
    members = json.dumps(table, separators=(",", ":"))
    return f'{{"data":[{",".join(data for *_, data in rows)}],{members[1:]}'
