"""pprof's profile.proto, which `go tool pprof`, speedscope, Grafana Pyroscope and Polar Signals read."""

from typing import IO

from perfuse import _core
from perfuse.exporters.contents import contents
from perfuse.exporters.queries import FRAME_ROWS, STACK_ROWS, USUAL_WEIGHTS, type_names, with_exceptions
from perfuse.exporters.source import EventSource, Progress, no_samples_error
from perfuse.exporters.span import realtime_ns, span_ns
from perfuse.output.descriptor import descriptor_of
from perfuse.table import sql_text

_EVENTS = f"""
    SELECT event, unit, NOT is_sum, weight FROM ({USUAL_WEIGHTS}) ORDER BY num_samples DESC, unit <> 'ns', event
"""
_SUMS = """
    SELECT stack_id::UINTEGER AS stack_id, pid, coalesce(tid, t.thread_id)::INTEGER AS tid,
        any_value(t.name::VARCHAR) AS thread, any_value(p.name::VARCHAR) AS process,
        any_value(c.tier::VARCHAR) AS tier, CASE event {names} END AS event,
        count(*)::BIGINT AS num_samples, least(sum(weight), 9223372036854775807)::UBIGINT AS weight
    FROM ({samples}) JOIN threads t USING (thread_id) JOIN processes p USING (process_id)
    LEFT JOIN stacks k USING (stack_id) LEFT JOIN frames f USING (frame_id)
    LEFT JOIN code_objects_of_stacks c USING (code_object_id)
    GROUP BY ALL ORDER BY stack_id, pid, tid, event
"""
_MAPPINGS = """
    SELECT mapping_id::UINTEGER AS mapping_id, start_address::UBIGINT AS start_address,
        end_address::UBIGINT AS end_address, file_offset::UBIGINT AS file_offset,
        path::VARCHAR AS path, build_id::VARCHAR AS build_id
    FROM mappings ORDER BY mapping_id
"""
_MAIN_MAPPING = r"""
    WITH busiest AS (
        SELECT process_id, p.name::VARCHAR AS name
        FROM samples JOIN threads USING (thread_id) JOIN processes p USING (process_id)
        GROUP BY ALL ORDER BY count(*) DESC, process_id LIMIT 1
    )
    SELECT mapping_id::BIGINT FROM mappings JOIN busiest USING (process_id)
    WHERE executable AND starts_with(path::VARCHAR, '/') AND NOT regexp_matches(path::VARCHAR, '\.so(\.|$)|^//|^/dev/')
    ORDER BY starts_with(parse_filename(path::VARCHAR), name) DESC NULLS LAST, start_ns NULLS FIRST, start_address
    LIMIT 1
"""
"""The program of the process with the most samples: its file is called like it, else it is mapped first."""
_MAX_INT64 = 2**63 - 1


CONTENTS = contents(
    samples="sums by stack and thread",
    calls="sums by stack and thread",
    call_sums="sums by stack and thread",
    allocations="sums by stack and thread",
    exceptions="numbers of those thrown by stack and thread",
)


def write(profile: EventSource, out: IO[bytes], *, progress: Progress | None = None) -> None:
    """Writes sums of samples by stack and thread, with lines and inlined calls; every event is a value type, and so are
    the exceptions thrown.

    Labels are `pid`, `tid`, the names `thread` and `process`, and `tier`, that of the innermost function. The first
    mapping is that of the main program.

    Args:
        profile: The profile.
        out: A binary file object.
        progress: Called with the name of the current step and the completed share (0 to 1).

    Raises:
        ExportError: The profile has neither samples nor exceptions.
    """
    events = profile.sql(_EVENTS).fetchall()
    samples, has_exceptions = with_exceptions(profile)
    if has_exceptions:
        events.append(("exceptions", "count", False, 1))
    if not events:
        raise no_samples_error(profile)
    names = type_names(event for event, *_ in events)
    named = " ".join(f"WHEN {sql_text(event)} THEN {sql_text(name)}" for event, name in names.items())
    first_ns, last_ns = span_ns(profile, with_processes=True) or (0, 0)
    main = profile.sql(_MAIN_MAPPING).fetchall()
    _core.write_pprof(
        descriptor_of(out),
        samples=profile.sql(_SUMS.format(samples=samples, names=named)),
        stacks=profile.sql(STACK_ROWS),
        frames=profile.sql(FRAME_ROWS),
        mappings=profile.sql(_MAPPINGS),
        main_mapping=main[0][0] if main else None,
        events=[
            (names[event], unit, counted, 1 if period is None else min(period, _MAX_INT64))
            for event, unit, counted, period in events
        ],
        title=profile.title,
        time_ns=realtime_ns(profile, first_ns),
        duration_ns=last_ns - first_ns,
        progress=progress,
    )
