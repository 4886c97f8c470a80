"""`profile.meta`: what was recorded, and how the front end is to show it."""

import json
from typing import Any

from perfuse.exporters.firefox.categories import categories_json
from perfuse.exporters.firefox.frame_rows import FRAME_ROWS
from perfuse.exporters.firefox.markers import SCHEMA
from perfuse.exporters.firefox.strings import json_object
from perfuse.exporters.source import Source

# The newest version that its changelog describes; later front ends upgrade it as they load.
_PROCESSED_VERSION = 70
# Version of the format Firefox itself writes: unused, but the front end expects a number.
_GECKO_VERSION = 36


def interval_ns(profile: Source) -> int:
    """Time between samples: what one stands for where the event is a clock, else a thread's usual gap."""
    ((of_weight, of_gap),) = profile.sql("""
        SELECT median(weight) FILTER (weight_unit::VARCHAR = 'ns'), median(gap)
        FROM (
            SELECT weight, weight_unit, ts_ns - lag(ts_ns) OVER thread AS gap
            FROM samples WINDOW thread AS (PARTITION BY thread_id, event ORDER BY ts_ns)
        )
    """).fetchall()
    return round(of_weight or of_gap or 1_000_000)


def meta_json(profile: Source, interval: int, span_ns: tuple[int, int], *, has_markers: bool) -> str:
    """`profile.meta`; `interval` in nanoseconds, `span_ns` when what is shown begins and ends."""
    start_ns, end_ns = span_ns
    ((clocks, arch, has_js),) = profile.sql(f"""
        SELECT (SELECT list(DISTINCT kind::VARCHAR) FROM clocks),
            (SELECT any_value(arch)::VARCHAR FROM sources), (SELECT bool_or(javascript) FROM ({FRAME_ROWS}))
    """).fetchall()
    meta: dict[str, Any] = {
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": _PROCESSED_VERSION,
        "product": profile.title,
        "importedFrom": "perfuse",
        "interval": interval / 1e6,
        # The time of day is not recorded, so what comes first is time 0.
        "startTime": 0,
        "profilingStartTime": 0,
        "profilingEndTime": (end_ns - start_ns + interval) / 1e6,
        "processType": 0,
        "stackwalk": 1,
        "debug": False,
        "symbolicated": True,
        "platform": "Linux",
        "oscpu": f"Linux {arch}" if arch else "Linux",
        "abi": arch or "",
        "toolkit": "",
        "markerSchema": SCHEMA if has_markers else [],
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        # Without JavaScript, to choose between all, JavaScript and native stacks is to choose all or none.
        "usesOnlyOneStackType": not has_js,
        "sourceCodeIsNotOnSearchfox": True,
        "extra": _recordings(profile),
    }
    if clocks == ["monotonic"]:
        meta["startTimeAsClockMonotonicNanosecondsSinceBoot"] = start_ns
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in meta.items()}
    return json_object(texts | {"categories": categories_json(profile, FRAME_ROWS)})


def _recordings(profile: Source) -> list[dict[str, Any]]:
    """A section for the front end's "more info" panel: the files the profile is from."""
    rows = profile.sql("""
        SELECT path::VARCHAR, concat_ws(', ', format::VARCHAR || coalesce(' ' || version::VARCHAR, ''),
                                        'by ' || producer::VARCHAR, kind::VARCHAR || ' clock')
        FROM sources LEFT JOIN clocks USING (clock_id) ORDER BY sources.source_id
    """).fetchall()
    entries = [{"label": path, "format": "string", "value": about} for path, about in rows]
    return [{"label": "Recordings", "entries": entries}]
