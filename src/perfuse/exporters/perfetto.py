"""Perfetto traces, for ui.perfetto.dev and Perfetto's trace processor."""

import warnings
from typing import IO, Literal, Protocol

from perfuse import _core
from perfuse.errors import ExportWarning
from perfuse.exporters.contents import contents
from perfuse.exporters.counts import heap_counts, snapshot_sizes
from perfuse.exporters.heap_dumps import HeapSource, selected_snapshots
from perfuse.exporters.queries import FRAME_ROWS, IS_SUM, STACK_ROWS, TRACK_PROCESSES, note_sums
from perfuse.exporters.source import Progress, Source, TraceSource, no_times_error
from perfuse.exporters.span import realtime_ns, span_ns
from perfuse.output.descriptor import descriptor_of
from perfuse.table import SUMS_OF_EVENTS

CLOCKS = {"realtime": 1, "monotonic": 3}
"""Perfetto's `BuiltinClock` by the kind of a clock in table `clocks`."""

_SAMPLES = f"""
    SELECT ts_ns, pid, coalesce(tid, thread_id)::INTEGER AS tid, s.cpu::UINTEGER AS cpu,
        s.stack_id::UINTEGER AS stack_id, weight::UBIGINT AS weight, event::VARCHAR AS event,
        weight_unit::VARCHAR AS weight_unit, coalesce(f.kind::VARCHAR, 'unknown') AS mode
    FROM samples s
    JOIN threads USING (thread_id) JOIN {TRACK_PROCESSES} USING (process_id)
    LEFT JOIN stacks k ON k.stack_id = s.stack_id LEFT JOIN frames f ON f.frame_id = k.frame_id
    WHERE NOT {IS_SUM} ORDER BY event::VARCHAR, ts_ns, sample_id
"""
_THREADS = f"""
    SELECT thread_id::UINTEGER AS thread_id, pid, coalesce(tid, thread_id)::INTEGER AS tid,
        t.name::VARCHAR AS name, p.name::VARCHAR AS process_name
    FROM threads t JOIN {TRACK_PROCESSES} p USING (process_id)
    WHERE thread_id IN (SELECT thread_id FROM samples WHERE NOT {IS_SUM})
"""
_ALLOCATIONS = f"""
    SELECT pid, stack_id::UINTEGER AS stack_id,
        coalesce(sum(weight) FILTER (event::VARCHAR = 'allocated-bytes'), 0)::UBIGINT AS bytes,
        coalesce(sum(weight) FILTER (event::VARCHAR = 'allocations'), 0)::UBIGINT AS objects
    FROM samples JOIN threads USING (thread_id) JOIN {TRACK_PROCESSES} USING (process_id)
    WHERE event::VARCHAR IN ('allocated-bytes', 'allocations')
    GROUP BY pid, stack_id ORDER BY pid, stack_id
"""


CONTENTS = contents(
    samples="each, with its time and stack",
    calls="each, with its times and arguments",
    allocations="heap profiles of processes with sums by stack",
    slices="slices on tracks of threads and processes",
    instants="instants",
    exceptions="instants",
    counters="counters",
    heap_snapshots="heap graphs with objects, references and roots, and counters of their sizes",
    handles="counters of those alive, by kind",
    moves="counters of moves so far",
)


class PerfettoSource(TraceSource, HeapSource, Protocol):
    """A profile with calls, samples and heap snapshots."""


def write(
    profile: PerfettoSource,
    out: IO[bytes],
    *,
    samples: Literal["stack", "perf"] = "stack",
    max_objects: int = 2_000_000,
    progress: Progress | None = None,
) -> None:
    """Writes calls, slices that are not calls, counters and instants as track events, and samples with their stacks.

    Allocations are a heap profile of their process, at the end of the recording; heap snapshots are heap graphs, and
    counters of their sizes; GC handles and moves of objects are counters.

    Args:
        profile: The profile.
        out: A binary file object.
        samples: Packets of samples: `StackSample`, or `PerfSample`, which older releases of Perfetto read too.
        max_objects: Number of objects of all heap graphs together; of more objects, the last snapshots are written.
        progress: Called with the name of the current step and the completed share (0 to 1).

    Raises:
        ExportError: The profile has none of these.
    """
    trace = profile.call_trace(progress)
    has_samples = bool(profile.has_samples and profile.sql(_THREADS).fetchall())
    has_allocations = profile.has("allocations") and bool(profile.sql(_ALLOCATIONS).fetchall())
    counts = list(heap_counts(profile))
    if trace is None and not (has_samples or has_allocations or counts):
        raise no_times_error(profile, "there are neither calls nor samples to show")
    if profile.has_samples:
        note_sums(profile, "Perfetto", *SUMS_OF_EVENTS)
    if trace is not None:
        trace.write_perfetto(out, _with_realtime(profile, CLOCKS.get(trace.clock or "")), progress)
    if has_samples or has_allocations or counts:
        _, end_ns = span_ns(profile) or (0, 0)
        _core.write_perfetto_stacks(
            descriptor_of(out),
            samples=profile.sql(_SAMPLES),
            allocations=profile.sql(_ALLOCATIONS),
            counts=counts,
            end_ns=max([end_ns, *(one.ts_ns for one in counts)]),
            stacks=profile.sql(STACK_ROWS),
            frames=profile.sql(FRAME_ROWS),
            threads=profile.sql(_THREADS),
            perf_samples=samples == "perf",
            clock=_clock(profile),
            progress=progress,
        )
    _write_heap_graphs(profile, max_objects, out, progress)


def _write_heap_graphs(profile: PerfettoSource, most: int, out: IO[bytes], progress: Progress | None) -> None:
    """Appends heap snapshots, the last ones first to be chosen."""
    sizes = snapshot_sizes(profile)
    if not sizes:
        return
    # Both are the selected snapshots with objects; those of one time are in the order of their keys.
    each = list(zip(selected_snapshots(profile), sizes, strict=True))
    left, first = most, len(each)
    while first and each[first - 1][1].num_objects <= left:
        first -= 1
        left -= each[first][1].num_objects
    if first:
        num = sum(size.num_objects for _, size in each)
        warnings.warn(
            f"of {len(each):,} heap snapshots with {num:,} objects, {len(each) - first:,} are written with all objects,"
            f" the others as sizes: -O max_objects={num}",
            ExportWarning,
            stacklevel=4,
        )
    for number, (snapshot, size) in enumerate(each[first:]):
        heap = profile.heap(snapshot.snapshot_id)
        heap.write_perfetto(out, number, size.pid, _clock(profile), progress)


def _with_realtime(profile: Source, clock: int | None) -> tuple[int, int | None] | None:
    """A number of a clock with what its times lack to nanoseconds since 1970, where that is known."""
    return None if clock is None else (clock, realtime_ns(profile, 0))


def _clock(profile: Source) -> tuple[int, int | None] | None:
    """Perfetto's number of the clock of the samples, and its distance to the time of day; None where it has none."""
    kinds = profile.sql("SELECT DISTINCT kind::VARCHAR FROM clocks").fetchall()
    return _with_realtime(profile, CLOCKS.get(kinds[0][0]) if len(kinds) == 1 else None)
