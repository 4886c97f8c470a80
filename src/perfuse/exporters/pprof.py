"""pprof's profile.proto, which `go tool pprof`, speedscope, Grafana Pyroscope and Polar Signals read."""

from typing import IO

from perfuse import _core
from perfuse.exporters.queries import FRAME_ROWS, IS_SUM, STACK_ROWS
from perfuse.exporters.source import Progress, Source, no_samples_error
from perfuse.output_descriptor import descriptor_of

_EVENTS = f"""
    SELECT event::VARCHAR, any_value(weight_unit::VARCHAR), NOT bool_or({IS_SUM}),
        if(bool_or({IS_SUM}), NULL, mode(weight)), max(ts_ns) - min(ts_ns)
    FROM samples GROUP BY event ORDER BY count(*) DESC, bool_or(weight_unit::VARCHAR <> 'ns'), event::VARCHAR
"""
_SUMS = """
    SELECT stack_id::UINTEGER AS stack_id, pid, coalesce(tid, thread_id)::INTEGER AS tid,
        any_value(t.name::VARCHAR) AS thread, event::VARCHAR AS event,
        count(*)::BIGINT AS num_samples, least(sum(weight), 9223372036854775807)::UBIGINT AS weight
    FROM samples JOIN threads t USING (thread_id) JOIN processes p USING (process_id)
    GROUP BY ALL ORDER BY stack_id, pid, tid, event
"""
_MAX_INT64 = 2**63 - 1


def write(profile: Source, out: IO[bytes], *, progress: Progress | None = None) -> None:
    """Writes sums of samples by stack and thread, with lines and inlined calls; every event is a value type.

    Threads are labels: `pid`, `tid` and `thread`.

    Args:
        profile: The profile.
        out: A binary file object.
        progress: Called with the name of the current step and the completed share (0 to 1).

    Raises:
        ExportError: There are no samples.
    """
    events = profile.sql(_EVENTS).fetchall()
    if not events:
        raise no_samples_error(profile)
    _core.write_pprof(
        descriptor_of(out),
        samples=profile.sql(_SUMS),
        stacks=profile.sql(STACK_ROWS),
        frames=profile.sql(FRAME_ROWS),
        events=[
            (event, unit, counted, None if period is None else min(period, _MAX_INT64))
            for event, unit, counted, period, _ in events
        ],
        title=profile.title,
        duration_ns=max(duration for *_, duration in events),
        progress=progress,
    )
