"""Time of the first and the last event of a profile, for exporters that state how long the recording took."""

from datetime import UTC, datetime

from perfuse.exporters.source import EventSource, Source
from perfuse.table import REALTIME_OFFSET


def selected(profile: EventSource, time: str) -> str:
    """The condition of the selected rows of a table."""
    return profile.selection.where(time, "thread_id") or "true"


def selected_of_processes(profile: EventSource, row: str = "") -> str:
    """The condition of the selected rows of a table whose rows belong to processes; `row` qualifies its columns."""
    parts = [profile.selection.of_all_threads.where(f"{row}ts_ns") or "true"]
    if profile.selection.selects_threads:
        sources = ", ".join(map(str, profile.process_pids())) or "NULL"
        parts.append(f"{row}source_id IN ({sources})")
    return " AND ".join(parts)


def selected_times(profile: EventSource) -> tuple[str, str]:
    """Start and end of a row of `slices` in SQL, cut at the ends of the selection."""
    start, end = "start_ns", "start_ns + duration_ns"
    if profile.selection.start_ns is not None:
        start = f"greatest({start}, {profile.selection.start_ns})"
    if profile.selection.end_ns is not None:
        end = f"least({end}, {profile.selection.end_ns})"
    return start, end


def selected_calls(profile: EventSource) -> str:
    """The condition of the calls that extend into the selection."""
    selection = profile.selection
    parts = ["true"]
    if selection.start_ns is not None:
        parts.append(f"start_ns + duration_ns >= {selection.start_ns}")
    if selection.end_ns is not None:
        parts.append(f"start_ns < {selection.end_ns}")
    if selection.threads is not None:
        parts.append(f"thread_id IN ({selection.threads})")
    return " AND ".join(parts)


def span_ns(profile: EventSource, *, with_processes: bool = False, with_calls: bool = False) -> tuple[int, int] | None:
    """Time of the first sample or event, and end of the last one; None without any.

    Args:
        profile: The profile.
        with_processes: Whether starts and ends of processes and threads are events.
        with_calls: Whether calls extend into the selected time from events outside of it, which needs all calls.
    """
    times = ["SELECT ts_ns AS first, ts_ns AS last FROM samples"]
    if with_calls:
        start, end = selected_times(profile)
        times.append(
            f"SELECT {start}, {end} FROM slices_of_time WHERE kind::VARCHAR = 'call' AND {selected_calls(profile)}"
        )
    if profile.has("slices"):
        where = selected(profile, "start_ns")
        times.append(
            f"SELECT start_ns, start_ns + duration_ns FROM slices_of_time WHERE kind::VARCHAR <> 'call' AND {where}"
        )
    for table in ("call_events", "exceptions", "instants"):
        if profile.has(table):
            times.append(f"SELECT ts_ns, ts_ns FROM {table} WHERE {selected(profile, 'ts_ns')}")
    if profile.has("counter_samples"):
        times.append(f"SELECT ts_ns, ts_ns FROM counter_samples WHERE {selected_of_processes(profile)}")
    if with_processes:
        for table in ("processes", "threads"):
            for time in ("start_ns", "end_ns"):
                is_selected = profile.selection.of_all_threads.where(time) or "true"
                times.append(f"SELECT {time}, {time} FROM {table} WHERE {is_selected}")
    ((first, last),) = profile.sql(f"SELECT min(first), max(last) FROM ({' UNION ALL '.join(times)})").fetchall()
    return None if first is None else (first, last)


def realtime_ns(profile: Source, ts_ns: int) -> int | None:
    """A time on the profile's clock in nanoseconds since 1970-01-01; None where no recording has the time of day."""
    ((offset_ns,),) = profile.sql(REALTIME_OFFSET).fetchall()
    return None if offset_ns is None else int(ts_ns + offset_ns)


def utc_text(realtime_ns: int) -> str:
    """Nanoseconds since 1970-01-01 as a text of ISO 8601 with all nine digits.

    >>> utc_text(1_795_226_852_446_346_338)
    '2026-11-21T02:07:32.446346338Z'
    """
    seconds, fraction_ns = divmod(realtime_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction_ns:09}Z"
