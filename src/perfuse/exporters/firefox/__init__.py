"""The Firefox Profiler's processed profile: https://profiler.firefox.com opens it.

One track per thread. Categories are JIT tiers, native code and the kernel. JavaScript functions are marked for the
"JavaScript" stack filter. Addresses, libraries and symbols are for the assembly view.
"""

import json
from typing import IO, Any, Literal

from perfuse.errors import UsageError
from perfuse.exporters.firefox.frames import FRAME_ROWS, categories_json
from perfuse.exporters.firefox.shared import Strings, json_object, libs_json, shared_json
from perfuse.exporters.firefox.tracks import MARKER_SCHEMA, counters_json, markers, span_ns, threads_json
from perfuse.exporters.source import EventSource, Source, no_samples_error

# The newest version in its changelog; later front ends upgrade it on loading.
_PROCESSED_VERSION = 70
# Version of the format Firefox itself writes: unused, but the front end expects a number.
_GECKO_VERSION = 36


def write(profile: EventSource, out: IO[bytes], *, weight: Literal["samples", "events"] = "samples") -> None:
    """Writes a processed profile as JSON: samples; slices that are not calls and exceptions as markers; counters.

    Args:
        profile: The profile.
        out: A binary file object.
        weight: Weight of a sample: `samples`, 1 each, or `events`, what it represents: milliseconds where the event is
            a clock, else numbers of events.

    Raises:
        UsageError: `weight` is neither.
        ExportError: The profile has neither samples nor events.
    """
    if weight not in ("samples", "events"):
        raise UsageError(f"weight is 'samples' or 'events', not {weight!r}", field="weight")
    span = start_ns, _ = span_ns(profile)
    if start_ns is None:
        raise no_samples_error(profile)
    interval = interval_ns(profile)
    strings = Strings()
    marked = markers(profile, start_ns)
    threads, tracks = threads_json(profile, interval, weight, marked, strings, start_ns)
    counters = counters_json(profile, start_ns, tracks)
    members = {
        "meta": meta_json(profile, interval, span, has_markers=bool(marked)),
        "libs": libs_json(profile),
        "shared": shared_json(profile, strings),
        "threads": threads,
    }
    out.write(json_object(members if counters is None else members | {"counters": counters}).encode())


def interval_ns(profile: Source) -> int:
    """Time between samples: what a sample represents where the event is a clock, else the median gap in a thread."""
    ((of_weight, of_gap),) = profile.sql("""
        SELECT median(weight) FILTER (weight_unit::VARCHAR = 'ns'), median(gap)
        FROM (
            SELECT weight, weight_unit, ts_ns - lag(ts_ns) OVER thread AS gap
            FROM samples WINDOW thread AS (PARTITION BY thread_id, event ORDER BY ts_ns)
        )
    """).fetchall()
    return round(of_weight or of_gap or 1_000_000)


def meta_json(profile: Source, interval: int, span_ns: tuple[int, int], *, has_markers: bool) -> str:
    """`profile.meta`; `interval` in nanoseconds, `span_ns` first and last time."""
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
        # The time of day is not recorded, so the first time is 0.
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
        "markerSchema": MARKER_SCHEMA if has_markers else [],
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        # Without JavaScript, the choice between all, JavaScript and native stacks is useless.
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
