"""speedscope's own JSON: https://speedscope.app draws threads in time order, left heavy, or a sandwich."""

import json
import warnings
from typing import IO, Any, Literal

from perfuse.analysis.sampled import select_event
from perfuse.errors import ExportWarning, UsageError
from perfuse.exporters.contents import contents
from perfuse.exporters.queries import FRAMES, IS_SUM, TRACK_PROCESSES, with_function_files
from perfuse.exporters.source import Progress, Source, TraceSource, no_samples_error

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_COUNTED = f"if(weight_unit::VARCHAR = 'ns' OR {IS_SUM}, weight, 1)"
_UNITS = {"ns": "nanoseconds", "bytes": "bytes"}
_WEIGHTS = {"samples": _COUNTED, "events": "weight"}
_PARENTS_FIRST = """
    SELECT stack_id, coalesce(parent_stack_id::BIGINT, -1), frame_id FROM stacks ORDER BY stack_id
"""


CONTENTS = contents(
    samples="each, in the order of time",
    calls="each, with its times, beside samples sums by stack",
    call_sums="sums by stack",
    allocations="sums by stack, not beside calls",
    not_yet=("slices",),
)


def write(
    profile: TraceSource,
    out: IO[bytes],
    *,
    weight: Literal["samples", "events"] = "samples",
    progress: Progress | None = None,
) -> None:
    """Writes a speedscope file: one profile per thread and event, the one with the most samples first.

    Without samples, each call is written: one profile per thread, the one with the most calls first.

    Args:
        profile: The profile.
        out: A binary file object.
        weight: Length of a sample where its event is not a clock: `samples`, 1 each, or `events`, the number of events
            it represents. Where the event is a clock, a sample is as long as the time it represents; a sample of
            allocations, as many bytes or objects.
        progress: Called with the name of the current step and the completed share (0 to 1).

    Raises:
        UsageError: `weight` is neither.
        ExportError: There are neither samples nor calls.
    """
    if weight not in _WEIGHTS:
        raise UsageError(f"weight is 'samples' or 'events', not {weight!r}", field="weight")
    members = {"$schema": _SCHEMA, "exporter": "perfuse", "name": profile.title}
    trace = None if profile.has_samples else profile.call_trace(progress)
    if trace is not None and trace.num_events:
        if profile.has("allocations"):
            warnings.warn(
                "calls are written, allocations are not: firefox and pprof hold both", ExportWarning, stacklevel=4
            )
        out.write(json.dumps(members, ensure_ascii=False)[:-1].encode() + b", ")
        trace.write_speedscope(out, progress)
        out.write(b"}\n")
    else:
        _write_samples(profile, out, members, weight)


def _write_samples(profile: Source, out: IO[bytes], members: dict[str, Any], weight: str) -> None:
    tracks = profile.sql(f"""
        SELECT pid, coalesce(tid, thread_id) AS number,
            coalesce(t.name::VARCHAR, p.name::VARCHAR, 'thread'), event::VARCHAR,
            min(weight_unit::VARCHAR),
            list(coalesce(stack_id::BIGINT, -1) ORDER BY ts_ns, sample_id),
            to_json(list({_WEIGHTS[weight]} ORDER BY ts_ns, sample_id)), sum({_WEIGHTS[weight]})
        FROM samples JOIN threads t USING (thread_id) JOIN {TRACK_PROCESSES} p USING (process_id)
        GROUP BY pid, tid, number, t.name, p.name, event ORDER BY pid, tid IS DISTINCT FROM pid, number, event::VARCHAR
    """).fetchall()
    if not tracks:
        raise no_samples_error(profile)
    frames, stacks = _stacks(profile)
    shown = select_event(profile, None).name
    busiest = max(range(len(tracks)), key=lambda track: (tracks[track][3] == shown, len(tracks[track][5])))
    head = {
        **members,
        "activeProfileIndex": busiest,
        "shared": {"frames": frames},
    }
    out.write(json.dumps(head, ensure_ascii=False)[:-1].encode() + b', "profiles": [')
    for number, (pid, tid, name, event, unit, samples, weights, end) in enumerate(tracks):
        track = {
            "type": "sampled",
            "name": f"{name} {pid}/{tid} {event}",
            "unit": _UNITS.get(unit, "none"),
            "startValue": 0,
            "endValue": end,
        }
        out.write((", " if number else "").encode() + json.dumps(track, ensure_ascii=False)[:-1].encode())
        out.write(b', "samples": [' + ",".join(map(stacks.__getitem__, samples)).encode() + b"]")
        out.write(b', "weights": ' + weights.encode() + b"}")
    out.write(b"]}\n")


def _stacks(profile: Source) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """The file's frames, which are functions to it, and each stack as JSON, root first."""
    index: dict[tuple[str, str | None, int | None, int | None], int] = {}
    functions = "label, func_place, function_line, function_column"
    frames_of_files = with_function_files(profile, FRAMES)
    rows = profile.sql(f"SELECT frame_id, {functions} FROM ({frames_of_files}) ORDER BY frame_id").fetchall()
    of_frame = {frame: index.setdefault(tuple(function), len(index)) for frame, *function in rows}
    columns = ("name", "file", "line", "col")
    frames = [{key: value for key, value in zip(columns, row, strict=True) if value is not None} for row in index]
    stacks = {-1: "[]"}
    for stack, parent, frame in profile.sql(_PARENTS_FIRST).fetchall():
        above = stacks[parent]
        stacks[stack] = f"[{of_frame[frame]}]" if above == "[]" else f"{above[:-1]},{of_frame[frame]}]"
    return frames, stacks
