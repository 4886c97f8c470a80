"""Sizes of heap snapshots, which timelines show as counters."""

from dataclasses import replace
from typing import NamedTuple

from perfuse.exporters.source import EventSource


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
        WHERE {replace(profile.selection, thread=None).where() or "true"} ORDER BY ts_ns
    """).fetchall()
    sizes = profile.heap_sizes() if rows else {}
    return [SnapshotSize(pid, ts_ns, *sizes[key]) for key, pid, ts_ns in rows if key in sizes]
