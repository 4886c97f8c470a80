"""The Firefox Profiler's processed profile: https://profiler.firefox.com opens it.

One track per thread. Categories are JIT tiers, native code and the kernel. JavaScript functions are marked for the
"JavaScript" stack filter. Addresses, libraries and symbols are for the assembly view.
"""

import json
import warnings
from typing import IO, Any, Literal

from perfuse.errors import ExportWarning, UsageError
from perfuse.exporters.contents import contents
from perfuse.exporters.firefox.calls import CallSamples, call_samples
from perfuse.exporters.firefox.counters import counters_json
from perfuse.exporters.firefox.frames import categories_json, frame_table
from perfuse.exporters.firefox.markers import MARKER_SCHEMA, markers
from perfuse.exporters.firefox.shared import Strings, json_object, libs_json, no_stack, shared_json
from perfuse.exporters.firefox.tracks import sampled_tracks, threads_json
from perfuse.exporters.queries import IS_SUM
from perfuse.exporters.source import EventSource, Source, no_samples_error
from perfuse.exporters.span import realtime_ns, span_ns

# The newest version in its changelog; later front ends upgrade it on loading.
_PROCESSED_VERSION = 70
# Version of the format Firefox itself writes: unused, but the front end expects a number.
_GECKO_VERSION = 36


CONTENTS = contents(
    samples="each, with its time and stack",
    calls="each, with its time and as a marker, of more than `max_calls` sums by stack",
    call_sums="sums by stack",
    allocations="sums by stack",
    slices="markers",
    instants="markers",
    exceptions="markers with stacks",
    counters="graphs",
    heap_snapshots="graphs of their sizes",
    handles="graphs of those alive, by kind",
    moves="graphs of moves so far",
)


def write(
    profile: EventSource,
    out: IO[bytes],
    *,
    weight: Literal["samples", "events"] = "samples",
    max_calls: int = 500_000,
) -> None:
    """Writes a processed profile as JSON: samples; calls, other slices, exceptions and instants as markers; counters.

    Recorded calls are samples that last as long as the time between two events of their thread. Sums over allocations,
    and over calls that were not recorded one by one, are samples at the time of the first allocation or call of their
    stack, weighted by what they add up: bytes, milliseconds, numbers.

    Args:
        profile: The profile.
        out: A binary file object.
        weight: Weight of a sample: `samples`, 1 each, or `events`, what it represents: milliseconds where the event is
            a clock, else numbers of events.
        max_calls: Of more calls than this, only sums are written.

    Raises:
        UsageError: `weight` is neither.
        ExportError: The profile has neither samples nor events.
    """
    out.write(processed_profile(profile, weight, max_calls).encode())


def processed_profile(profile: EventSource, weight: Literal["samples", "events"], max_calls: int) -> str:
    """The processed profile; arguments are the options of `write`."""
    if weight not in ("samples", "events"):
        raise UsageError(f"weight is 'samples' or 'events', not {weight!r}", field="weight")
    timed = _has_timed_calls(profile, max_calls)
    span = span_ns(profile, with_calls=timed)
    if span is None:
        raise no_samples_error(profile)
    start_ns, _ = span
    interval = interval_ns(profile)
    strings = Strings()
    without_stack = no_stack(profile)
    calls: dict[tuple[int, str], CallSamples] = call_samples(profile) if timed else {}
    marked = markers(profile, start_ns, calls=timed)
    sampled = sampled_tracks(profile, interval or _DEFAULT_INTERVAL_NS, weight, start_ns, without_stack, calls)
    threads, tracks = threads_json(profile, sampled, marked, strings, start_ns)
    counters = counters_json(profile, start_ns, tracks)
    with frame_table(profile) as frames:
        members = {
            "meta": meta_json(profile, frames, interval, span, has_markers=bool(marked)),
            "libs": libs_json(profile, frames),
            "shared": shared_json(profile, frames, strings, has_no_stack=without_stack is not None),
            "threads": threads,
        }
    return json_object(members if counters is None else members | {"counters": counters})


_DEFAULT_INTERVAL_NS = 1_000_000
_NO_INTERVAL_NS = 1
"""The front end extends the timeline by an interval after the last sample."""


def _has_timed_calls(profile: EventSource, max_calls: int) -> bool:
    """Whether calls are written one by one; warns where they are too many."""
    if not profile.has("call_events") or profile.sql("SELECT 1 FROM call_sums LIMIT 1").fetchall():
        return False
    num_calls = profile.count_rows("call_events", kinds=("enter",))
    if num_calls <= max_calls:
        return True
    warnings.warn(
        f"of {num_calls:,} calls only the sums are written; -O max_calls={num_calls} writes each of them",
        ExportWarning,
        stacklevel=5,
    )
    return False


def interval_ns(profile: Source) -> int | None:
    """Time between samples: what a sample represents where the event is a clock, else the median gap in a thread.

    None where samples are not of points in time.
    """
    ((of_weight, of_gap),) = profile.sql(f"""
        SELECT median(weight) FILTER (weight_unit::VARCHAR = 'ns'), median(gap)
        FROM (
            SELECT weight, weight_unit, ts_ns - lag(ts_ns) OVER thread AS gap
            FROM samples WHERE NOT {IS_SUM} WINDOW thread AS (PARTITION BY thread_id, event ORDER BY ts_ns)
        )
    """).fetchall()
    found = of_weight or of_gap
    return None if found is None else round(found)


def meta_json(
    profile: EventSource, frames: str, interval: int | None, span_ns: tuple[int, int], *, has_markers: bool
) -> str:
    """`profile.meta`.

    Args:
        profile: The profile.
        frames: The table of `frame_table`.
        interval: In nanoseconds; None without samples in time.
        span_ns: First and last time.
        has_markers: Whether there are markers.
    """
    start_ns, end_ns = span_ns
    ((clocks, arch, has_js),) = profile.sql(f"""
        SELECT (SELECT list(DISTINCT kind::VARCHAR) FROM clocks),
            (SELECT any_value(arch)::VARCHAR FROM sources), (SELECT bool_or(javascript) FROM {frames})
    """).fetchall()
    meta: dict[str, Any] = {
        "version": _GECKO_VERSION,
        "preprocessedProfileVersion": _PROCESSED_VERSION,
        "product": profile.title,
        "importedFrom": "perfuse",
        "interval": (interval or _NO_INTERVAL_NS) / 1e6,
        # 0 where the time of day is not recorded.
        "startTime": (realtime_ns(profile, start_ns) or 0) / 1e6,
        "profilingStartTime": 0,
        "profilingEndTime": (end_ns - start_ns + (interval or 0)) / 1e6,
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
    return json_object(texts | {"categories": categories_json(profile, frames)})


def _recordings(profile: Source) -> list[dict[str, Any]]:
    """A section for the front end's "more info" panel: the files the profile is from."""
    rows = profile.sql("""
        SELECT path::VARCHAR, concat_ws(', ', format::VARCHAR || coalesce(' ' || version::VARCHAR, ''),
                                        'by ' || producer::VARCHAR, kind::VARCHAR || ' clock')
        FROM sources LEFT JOIN clocks USING (clock_id) ORDER BY sources.source_id
    """).fetchall()
    entries = [{"label": path, "format": "string", "value": about} for path, about in rows]
    return [{"label": "Recordings", "entries": entries}]
