"""Perfetto's own packets: ui.perfetto.dev draws the threads of large traces, and its trace processor takes SQL."""

from typing import IO

from perfuse.exporters.sampled import IS_SUM
from perfuse.exporters.source import Progress, TraceSource

CLOCKS = {"realtime": 1, "monotonic": 3}
"""Perfetto's `BuiltinClock` by our names."""

_SAMPLES = f"""
    SELECT ts_ns, pid, tid, s.cpu::UINTEGER AS cpu, s.stack_id::UINTEGER AS stack_id, weight::UBIGINT AS weight,
        event::VARCHAR AS event, weight_unit::VARCHAR AS weight_unit, coalesce(f.kind::VARCHAR, 'unknown') AS mode
    FROM samples s
    JOIN threads USING (thread_id) JOIN processes USING (process_id)
    LEFT JOIN stacks k ON k.stack_id = s.stack_id LEFT JOIN frames f ON f.frame_id = k.frame_id
    WHERE NOT {IS_SUM} ORDER BY event::VARCHAR, ts_ns, sample_id
"""
_THREADS = f"""
    SELECT thread_id::UINTEGER AS thread_id, pid, tid, t.name::VARCHAR AS name, p.name::VARCHAR AS process_name
    FROM threads t JOIN processes p USING (process_id)
    WHERE thread_id IN (SELECT thread_id FROM samples WHERE NOT {IS_SUM})
"""


def write(profile: TraceSource, out: IO[bytes], *, progress: Progress | None = None) -> None:
    """Writes calls and instants as track events, and samples with their stacks.

    Args:
        profile: What to write.
        out: Where to.
        progress: Called with what is being done, and how much of it is.

    Raises:
        ExportError: There is neither a call nor an instant nor a sample.
    """
    trace = profile.call_trace(progress)
    if trace is not None:
        trace.write_perfetto(out, _clock(trace.clock), progress)
    if profile.has_samples:
        ...
