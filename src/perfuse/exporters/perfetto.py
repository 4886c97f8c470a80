"""Perfetto traces, for ui.perfetto.dev and Perfetto's trace processor."""

from typing import IO

from perfuse import _core
from perfuse.exporters.contents import contents
from perfuse.exporters.heap_sizes import snapshot_sizes
from perfuse.exporters.queries import FRAME_ROWS, IS_SUM, STACK_ROWS
from perfuse.exporters.source import Progress, Source, TraceSource, no_times_error
from perfuse.exporters.span import span_ns
from perfuse.output_descriptor import descriptor_of

CLOCKS = {"realtime": 1, "monotonic": 3}
"""Perfetto's `BuiltinClock` by the kind of a clock in table `clocks`."""

_SAMPLES = f"""
    SELECT ts_ns, pid, coalesce(tid, thread_id)::INTEGER AS tid, s.cpu::UINTEGER AS cpu,
        s.stack_id::UINTEGER AS stack_id, weight::UBIGINT AS weight, event::VARCHAR AS event,
        weight_unit::VARCHAR AS weight_unit, coalesce(f.kind::VARCHAR, 'unknown') AS mode
    FROM samples s
    JOIN threads USING (thread_id) JOIN processes USING (process_id)
    LEFT JOIN stacks k ON k.stack_id = s.stack_id LEFT JOIN frames f ON f.frame_id = k.frame_id
    WHERE NOT {IS_SUM} ORDER BY event::VARCHAR, ts_ns, sample_id
"""
_THREADS = f"""
    SELECT thread_id::UINTEGER AS thread_id, pid, coalesce(tid, thread_id)::INTEGER AS tid,
        t.name::VARCHAR AS name, p.name::VARCHAR AS process_name
    FROM threads t JOIN processes p USING (process_id)
    WHERE thread_id IN (SELECT thread_id FROM samples WHERE NOT {IS_SUM})
"""
_ALLOCATIONS = """
    SELECT pid, stack_id::UINTEGER AS stack_id,
        coalesce(sum(weight) FILTER (event::VARCHAR = 'allocated-bytes'), 0)::UBIGINT AS bytes,
        coalesce(sum(weight) FILTER (event::VARCHAR = 'allocations'), 0)::UBIGINT AS objects
    FROM samples JOIN threads USING (thread_id) JOIN processes USING (process_id)
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
    heap_snapshots="counters of their sizes",
    not_yet=("handles", "moves"),
)


def write(profile: TraceSource, out: IO[bytes], *, progress: Progress | None = None) -> None:
    """Writes calls, slices that are not calls, counters and instants as track events, and samples with their stacks.

    Allocations are a heap profile of their process, at the end of the recording; heap snapshots are counters of their
    sizes.

    Args:
        profile: The profile.
        out: A binary file object.
        progress: Called with the name of the current step and the completed share (0 to 1).

    Raises:
        ExportError: The profile has none of these.
    """
    trace = profile.call_trace(progress)
    has_samples = bool(profile.has_samples and profile.sql(_THREADS).fetchall())
    has_allocations = profile.has("allocations") and bool(profile.sql(_ALLOCATIONS).fetchall())
    snapshots = snapshot_sizes(profile)
    if trace is None and not (has_samples or has_allocations or snapshots):
        raise no_times_error(profile, "there are neither calls nor samples to show")
    if trace is not None:
        trace.write_perfetto(out, CLOCKS.get(trace.clock or ""), progress)
    if has_samples or has_allocations or snapshots:
        _, end_ns = span_ns(profile) or (0, 0)
        _core.write_perfetto_stacks(
            descriptor_of(out),
            samples=profile.sql(_SAMPLES),
            allocations=profile.sql(_ALLOCATIONS),
            snapshots=snapshots,
            end_ns=max([end_ns, *(one.ts_ns for one in snapshots)]),
            stacks=profile.sql(STACK_ROWS),
            frames=profile.sql(FRAME_ROWS),
            threads=profile.sql(_THREADS),
            clock=_clock(profile),
            progress=progress,
        )


def _clock(profile: Source) -> int | None:
    """Perfetto's number of the clock of the samples; None where it has none."""
    kinds = profile.sql("SELECT DISTINCT kind::VARCHAR FROM clocks").fetchall()
    return CLOCKS.get(kinds[0][0]) if len(kinds) == 1 else None
