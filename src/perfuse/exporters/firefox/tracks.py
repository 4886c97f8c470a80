"""`profile.threads`: a track of samples for each thread and event, with the thread's markers on its first track."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from perfuse.exporters.firefox.calls import WALL_TIME, CallSamples
from perfuse.exporters.firefox.markers import MarkerRow, markers_json
from perfuse.exporters.firefox.shared import STACK_ROWS, Strings, json_object
from perfuse.exporters.queries import IS_SUM, TRACK_PROCESSES
from perfuse.exporters.source import Source
from perfuse.table import sql_text

_IN_UNITS = "if(weight_unit::VARCHAR = 'ns', weight / 1e6, weight::DOUBLE)"
_WEIGHT_TYPES = {"ns": "tracing-ms", "bytes": "bytes"}
"""Types of weights that represent an amount by its unit; other weights count."""


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of a track: columns as JSON."""

    stack: str = "[]"
    time: str = "[]"
    weight: str = "null"
    weight_type: str = "samples"
    cpu: str | None = None
    length: int = 0

    def as_json(self) -> str:
        table = {
            "stack": self.stack,
            "time": self.time,
            "weight": self.weight,
            "weightType": json.dumps(self.weight_type),
        }
        if self.cpu is not None:
            table["threadCPUDelta"] = self.cpu
        return json_object({**table, "length": f"{self.length}"})


Tracks = dict[tuple[int, str | None], Samples]
"""The samples of each track, by thread and event."""


def threads_json(
    profile: Source, sampled: Tracks, marked: dict[int, list[MarkerRow]], strings: Strings, start_ns: int
) -> tuple[str, list[tuple[str, bool]]]:
    """The array of threads; times are milliseconds after `start_ns`. A thread's markers are on its first track.

    Also returns the pid of each track, and whether it is of a main thread.
    """
    with_samples = {thread for thread, _ in sampled}
    tracks = sampled | {(thread, None): Samples() for thread in marked if thread not in with_samples}
    events_of: dict[int, list[str | None]] = {}
    for thread, event in sorted(tracks, key=lambda track: track[1] or ""):
        events_of.setdefault(thread, []).append(event)
    num_events = len({event for _, event in tracks})
    left = dict(marked)
    written, tasks = [], []
    for thread, track in _threads(profile, events_of, start_ns):
        for event in events_of[thread]:
            members = track.members(event if num_events > 1 else None)
            texts = {key: json.dumps(value, ensure_ascii=False) for key, value in members.items()}
            texts["samples"] = tracks[thread, event].as_json()
            texts["markers"] = markers_json(left.pop(thread, []), strings, start_ns)
            written.append(json_object(texts))
            tasks.append((f"{track.pid}", track.is_main))
    return "[" + ",".join(written) + "]", tasks


def sampled_tracks(
    profile: Source,
    interval_ns: int,
    weight: str,
    start_ns: int,
    without_stack: int | None,
    calls: dict[tuple[int, str], CallSamples],
) -> Tracks:
    """The samples of all tracks; times are milliseconds after `start_ns`.

    Args:
        profile: The profile.
        interval_ns: Time between samples.
        weight: Option `weight` of the exporter.
        start_ns: Time of the first sample or marker.
        without_stack: Index of the stack of samples without addresses.
        calls: Calls as samples, by thread and event; these replace the sums over calls of table `samples`.
    """
    tracks: Tracks = {of: _call_track(samples, start_ns, in_time=of[1] == WALL_TIME) for of, samples in calls.items()}
    replaced = ", ".join(map(sql_text, sorted({event for _, event in calls}))) or "''"
    # Each sample has the CPU time of its thread since the preceding sample, so that gaps are idle: the time that the
    # sample represents where the event is a clock, else one sampling interval. Sums are of no such time.
    rows = profile.sql(f"""
        WITH numbered AS ({STACK_ROWS})
        SELECT thread_id, event::VARCHAR, any_value(weight_unit::VARCHAR), bool_or({IS_SUM}), count(*),
            {_in_time_order("i" if without_stack is None else f"coalesce(i, {without_stack})")},
            {_in_time_order(f"(ts_ns - {start_ns}) / 1e6")}, {_in_time_order(_IN_UNITS)},
            {_in_time_order(f"if(weight_unit::VARCHAR = 'ns', weight, {interval_ns})")}
        FROM samples LEFT JOIN numbered USING (stack_id)
        WHERE event::VARCHAR NOT IN ({replaced})
        GROUP BY thread_id, event
    """).fetchall()
    for thread, event, unit, is_sum, length, stacks, times, weights, cpu in rows:
        is_weighted = is_sum or weight == "events"
        tracks[thread, event] = Samples(
            stack=stacks,
            time=times,
            weight=weights if is_weighted else "null",
            weight_type=_WEIGHT_TYPES.get(unit, "samples") if is_weighted else "samples",
            cpu=None if is_sum else cpu,
            length=length,
        )
    return tracks


def _call_track(samples: CallSamples, start_ns: int, *, in_time: bool) -> Samples:
    return Samples(
        stack=json.dumps(samples.stacks),
        time=json.dumps([(time - start_ns) / 1e6 for time in samples.times_ns]),
        weight=json.dumps([weight / 1e6 for weight in samples.weights_ns]) if in_time else "null",
        weight_type="tracing-ms" if in_time else "samples",
        length=len(samples.stacks),
    )


def _in_time_order(value: str) -> str:
    return f"to_json(list({value} ORDER BY ts_ns, sample_id))::VARCHAR"


@dataclass(frozen=True, slots=True)
class _Thread:
    """A thread with its process; times are milliseconds after the start of the profile."""

    pid: int
    tid: int
    process: str | None
    name: str | None
    process_start: float | None
    process_end: float | None
    start: float | None
    end: float | None

    @property
    def is_main(self) -> bool:
        """Whether it is the main thread of its process."""
        return self.pid == self.tid

    def members(self, event: str | None) -> dict[str, Any]:
        """The members of a track before its tables; `event` is part of its name where tracks are of several events."""
        title = self.name or self.process or f"{self.tid}"
        return {
            "processType": "default",
            "processStartupTime": max(self.process_start or 0, 0),
            "processShutdownTime": self.process_end,
            "registerTime": max(self.start or 0, 0),
            "unregisterTime": self.end,
            "pausedRanges": [],
            "name": f"{title} ({event})" if event else title,
            "isMainThread": self.is_main,
            "processName": self.process or f"{self.pid}",
            "pid": f"{self.pid}",
            "tid": self.tid,
        }


def _threads(profile: Source, keys: Iterable[int], start_ns: int) -> Iterator[tuple[int, _Thread]]:
    """Threads with their keys: by process, the main thread first."""
    times = ("p.start_ns", "p.end_ns", "t.start_ns", "t.end_ns")
    after_start = ", ".join(f"({column} - {start_ns}) / 1e6" for column in times)
    rows = profile.sql(f"""
        SELECT thread_id, pid, coalesce(tid, thread_id), p.name::VARCHAR, t.name::VARCHAR, {after_start}
        FROM threads t JOIN {TRACK_PROCESSES} p USING (process_id)
        WHERE thread_id IN ({", ".join(map(str, sorted(keys))) or "NULL"})
        ORDER BY pid, tid IS DISTINCT FROM pid, coalesce(tid, thread_id)
    """)
    for key, *facts in rows.fetchall():
        yield key, _Thread(*facts)
