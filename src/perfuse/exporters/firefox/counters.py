"""`profile.counters`: graphs of counters, of the size of the heap, of heap snapshots, GC handles and moves."""

import json
from itertools import groupby
from typing import Any

from perfuse.exporters.counts import heap_counts
from perfuse.exporters.firefox.markers import HEAP_SIZE
from perfuse.exporters.queries import TRACK_PROCESSES
from perfuse.exporters.source import EventSource
from perfuse.exporters.span import selected, selected_of_processes

_UNITS = {"bytes": "bytes", "percentage": "percent"}
_HEAP_TITLE = "GC heap size"


def counters_json(profile: EventSource, start_ns: int, tracks: list[tuple[str, bool]]) -> str | None:
    """The array of counters; None where there are none.

    `tracks` has the pid of each track, and whether it is of the main thread.
    """
    rows: list[Any] = []
    if profile.has("counter_samples"):
        pids = profile.process_pids()
        by_source = profile.sql(f"""
            SELECT any_value(c.source_id) AS source, any_value(section::VARCHAR) AS section,
                any_value(name::VARCHAR) AS name, any_value(unit::VARCHAR) AS unit,
                list(ts_ns ORDER BY s.ts_ns, s.record_offset), list(value ORDER BY s.ts_ns, s.record_offset)
            FROM counter_samples s JOIN counters c USING (counter_id)
            WHERE isfinite(value) AND {selected_of_processes(profile, "s.")}
            GROUP BY counter_id ORDER BY counter_id
        """).fetchall()
        rows += [(pids.get(source, 0), *row) for source, *row in by_source]
    if profile.has("instants"):
        rows += profile.sql(f"""
            SELECT pid, NULL, '{_HEAP_TITLE}', 'bytes', list(ts_ns ORDER BY ts_ns, record_offset),
                list(i.name::VARCHAR::DOUBLE ORDER BY ts_ns, record_offset)
            FROM instants i JOIN threads USING (thread_id) JOIN {TRACK_PROCESSES} USING (process_id)
            WHERE kind::VARCHAR = '{HEAP_SIZE}' AND try_cast(i.name::VARCHAR AS DOUBLE) IS NOT NULL
                AND {selected(profile, "ts_ns")}
            GROUP BY pid ORDER BY pid
        """).fetchall()
    counters = [_counter(str(pid), row, start_ns, tracks) for pid, *row in rows]
    by_counter = sorted(heap_counts(profile), key=lambda one: (one.pid, one.name, one.ts_ns))
    for (pid, name), counts in groupby(by_counter, key=lambda one: (one.pid, one.name)):
        ts_ns, values, are_bytes = zip(*((one.ts_ns, one.value, one.is_bytes) for one in counts), strict=True)
        counters.append(
            _counter(str(pid), [None, name, "bytes" if any(are_bytes) else None, ts_ns, values], start_ns, tracks)
        )
    if not counters:
        return None
    return json.dumps(counters, ensure_ascii=False, separators=(",", ":"))


def _counter(pid: str, row: list[Any], start_ns: int, tracks: list[tuple[str, bool]]) -> dict[str, Any]:
    section, name, unit, ts_ns, values = row
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
