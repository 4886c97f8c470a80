"""pprof's profile.proto: `go tool pprof`, Speedscope, Grafana Pyroscope, Polar Signals and the like read it."""

from typing import IO

from perfuse import _core
from perfuse.exporters.sampled import FRAME_ROWS, IS_SUM, STACK_ROWS
from perfuse.exporters.source import Progress, Source, nothing_sampled
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
_MOST = 2**63 - 1


def write(profile: Source, out: IO[bytes], *, progress: Progress | None = None) -> None:
    """Writes sums of samples by stack and thread, with lines and inlined calls; every event is a type of value.

    Threads are labels: `pid`, `tid` and `thread`.

    Args:
        profile: What to write.
        out: Where to.
        progress: Called with what is being done, and how much of it is.

    Raises:
        ExportError: There are no samples.
    """
    events = profile.sql(_EVENTS).fetchall()
    if not events:
        raise nothing_sampled(profile)
    _core.write_pprof(
        descriptor_of(out),
        samples=profile.sql(_SUMS),
        stacks=profile.sql(STACK_ROWS),
        frames=profile.sql(FRAME_ROWS),
        events=[
            (event, unit, counted, None if period is None else min(period, _MOST))
            for event, unit, counted, period, _ in events
        ],
        title=profile.title,
        duration_ns=max(duration for *_, duration in events),
        progress=progress,
    )
