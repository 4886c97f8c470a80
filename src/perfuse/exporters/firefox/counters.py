"""`profile.counters`: what counters counted, each as a graph of its process."""

import json
from dataclasses import replace
from typing import Any

from perfuse.exporters.source import MomentSource

_UNITS = {"bytes": "bytes", "percentage": "percent"}


def counters_json(profile: MomentSource, start_ns: int, tracks: list[tuple[str, bool]]) -> str | None:
    """The array of counters; None where there are none.

    `tracks` has the pid of each track, and whether it is the main thread's.
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
    # The front end adds up differences, and takes no notice of the first: one of 0 goes before.
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
