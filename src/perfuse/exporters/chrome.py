"""Chrome's trace events as JSON: chrome://tracing, Perfetto, speedscope and many more open it."""

import json
from collections.abc import Iterator
from itertools import chain
from typing import IO, Any

from perfuse.exporters import cpu_profiles
from perfuse.exporters.contents import contents
from perfuse.exporters.counts import Count, allocation_counts, heap_counts
from perfuse.exporters.queries import IS_SUM, TRACK_PROCESSES, note_sums
from perfuse.exporters.source import Progress, Source, TraceSource, no_times_error
from perfuse.exporters.span import realtime_ns, utc_text
from perfuse.table import SUMS_OF_EVENTS

_THREADS = f"""
    SELECT pid, coalesce(tid, thread_id), t.name::VARCHAR, p.name::VARCHAR, thread_id
    FROM threads t JOIN {TRACK_PROCESSES} p USING (process_id)
    WHERE thread_id IN (SELECT thread_id FROM samples WHERE NOT {IS_SUM}) ORDER BY 1, 2
"""


CONTENTS = contents(
    samples="CPU profiles of threads with the time and stack of each",
    calls="each, with its times and arguments",
    allocations="counters of what was allocated so far",
    slices="slices on tracks of threads and processes",
    instants="instants",
    exceptions="instants",
    counters="counters",
    heap_snapshots="counters of their sizes",
    handles="counters of those alive, by kind",
    moves="counters of moves so far",
)


def write(profile: TraceSource, out: IO[bytes], *, progress: Progress | None = None) -> None:
    """Writes calls, slices that are not calls, counters and instants as trace events, and samples as V8's CPU profiles.

    Heap snapshots are counters of their sizes; allocations, counters of what was allocated so far. Times are
    microseconds after the first event; `otherData` has its time on the profile's clock, and its time of day if known.

    Args:
        profile: The profile.
        out: A binary file object.
        progress: Called with the name of the current step and the completed share (0 to 1).

    Raises:
        ExportError: The profile has none of these.
    """
    trace = profile.call_trace(progress)
    threads = profile.sql(_THREADS).fetchall() if profile.has_samples else []
    counts = [*heap_counts(profile), *allocation_counts(profile)]
    firsts = [count.ts_ns for count in counts]
    if trace is not None and trace.first_ns is not None:
        firsts.append(trace.first_ns)
    if threads:
        firsts += profile.sql(f"SELECT min(ts_ns) FROM samples WHERE NOT {IS_SUM}").fetchall()[0]
    if not firsts:
        raise no_times_error(profile, "there are neither calls nor samples to show")
    if profile.has_samples:
        note_sums(profile, "Chrome trace events", *SUMS_OF_EVENTS)
    zero_ns = min(firsts)
    clock = _clock(profile) if trace is None else trace.clock
    about = {"title": profile.title, "clock": clock or "unknown", "start_ns": zero_ns}
    started_ns = realtime_ns(profile, zero_ns)
    if started_ns is not None:
        about["start_utc"] = utc_text(started_ns)
    members = {"displayTimeUnit": "ns", "otherData": about}
    out.write(json.dumps(members)[:-1].encode() + b', "traceEvents": [\n')
    separator = b""
    if trace is not None:
        trace.write_chrome(out, progress, zero_ns=zero_ns)
        separator = b",\n"
    named = set() if trace is None else set(trace.thread_ids)
    samples = cpu_profiles.events(profile, zero_ns) if threads else ()
    names = (event for *thread, key in threads if key not in named for event in _names(*thread))
    # Speedscope takes a trace for one of samples where its first event has a category.
    for event in chain(samples, map(json.dumps, names), (_count(zero_ns, count) for count in counts)):
        out.write(separator + event.encode())
        separator = b",\n"
    out.write(b"\n]}\n")


def _names(pid: int, tid: int, name: str | None, process_name: str | None) -> Iterator[dict[str, Any]]:
    """Events that name a process and a thread."""
    for what, value in (("process_name", process_name), ("thread_name", name)):
        if value is not None:
            yield {"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": value}}


def _count(zero_ns: int, count: Count) -> str:
    unit = "bytes" if count.is_bytes else "count"
    ts = (count.ts_ns - zero_ns) / 1000
    return json.dumps({"name": count.name, "ph": "C", "pid": count.pid, "ts": ts, "args": {unit: count.value}})


def _clock(profile: Source) -> str | None:
    """Kind of the profile's clock; None where recordings have different ones."""
    kinds = profile.sql("SELECT DISTINCT kind::VARCHAR FROM clocks").fetchall()
    return kinds[0][0] if len(kinds) == 1 else None
