"""The Firefox Profiler's processed profile: https://profiler.firefox.com opens it.

One track a thread; categories tell JIT tiers, native code and the kernel apart; JavaScript functions are
marked so that the "JavaScript" stack filter works; addresses, libraries and symbols serve the assembly view.
"""

import json
from typing import IO, Any, Literal

from perfuse.errors import UsageError
from perfuse.exporters.firefox.frames import FRAME_ROWS, categories_json
from perfuse.exporters.firefox.shared import Strings, json_object, libs_json, shared_json
from perfuse.exporters.firefox.tracks import MARKER_SCHEMA, counters_json, markers, span_ns, threads_json
from perfuse.exporters.source import EventSource, Source, no_samples_error

# The newest version that its changelog describes; later front ends upgrade it as they load.
_PROCESSED_VERSION = 70
# Version of the format Firefox itself writes: unused, but the front end expects a number.
_GECKO_VERSION = 36


def write(profile: EventSource, out: IO[bytes], *, weight: Literal["samples", "events"] = "samples") -> None:
    """Writes a processed profile as JSON: samples; slices that are not calls and throws as markers; counters.

    Args:
        profile: The profile.
        out: A binary file object.
        weight: What a sample counts: `samples`, each the same, or `events`, what it stands for: milliseconds
            where the event is a clock, else numbers of events.

    Raises:
        UsageError: `weight` is neither.
        ExportError: There is nothing to show.
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
        "markerSchema": MARKER_SCHEMA if has_markers else [],
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
