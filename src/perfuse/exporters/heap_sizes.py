"""Sizes of heap snapshots and sums of allocations over time, which timelines show as counters."""

from dataclasses import replace
from typing import NamedTuple

from perfuse.exporters.source import EventSource
from perfuse.exporters.span import selected


class SnapshotSize(NamedTuple):
    """A heap snapshot: its process, time, number of objects, and their size."""

    pid: int
    ts_ns: int
    num_objects: int
    size_bytes: int


BYTES, OBJECTS = "Heap snapshot: bytes", "Heap snapshot: objects"
"""Names of the counters."""


def snapshot_sizes(profile: EventSource) -> list[SnapshotSize]:
    """The heap snapshots in the selected time, in time order; those without objects are left out."""
    if not profile.has("heap_snapshots"):
        return []
    rows = profile.sql(f"""
        WITH pids AS (
            SELECT source_id, min(pid) AS pid
            FROM instants JOIN threads USING (thread_id) JOIN processes USING (process_id) GROUP BY 1
        )
        SELECT snapshot_id, coalesce(pid, (SELECT min(pid) FROM processes), 0), ts_ns
        FROM heap_snapshots LEFT JOIN pids USING (source_id)
        WHERE {replace(profile.selection, thread=None).where() or "true"} ORDER BY ts_ns, snapshot_id
    """).fetchall()
    sizes = profile.heap_sizes() if rows else {}
    return [SnapshotSize(pid, ts_ns, *sizes[key]) for key, pid, ts_ns in rows if key in sizes]


_NUM_POINTS = 1000


def allocated_so_far(profile: EventSource) -> list[tuple[int, int, int, int]]:
    """What processes allocated so far, at no more than 1,000 times each: `(pid, ts_ns, bytes, objects)`."""
    if not profile.has("allocations"):
        return []
    return profile.sql(f"""
        WITH selected AS (
            SELECT pid, ts_ns, size_bytes
            FROM allocations JOIN threads USING (thread_id) JOIN processes USING (process_id)
            WHERE {selected(profile, "ts_ns")}
        ),
        span AS (SELECT min(ts_ns) AS first_ns, max(ts_ns) - min(ts_ns) + 1 AS length_ns FROM selected),
        steps AS (
            SELECT pid, max(ts_ns) AS ts_ns, sum(size_bytes) AS num_bytes, count(*) AS num_objects
            FROM selected, span GROUP BY pid, (ts_ns - first_ns)::HUGEINT * {_NUM_POINTS} // length_ns
        )
        SELECT pid, ts_ns, (sum(num_bytes) OVER so_far)::BIGINT, (sum(num_objects) OVER so_far)::BIGINT
        FROM steps WINDOW so_far AS (PARTITION BY pid ORDER BY ts_ns) ORDER BY pid, ts_ns
    """).fetchall()
