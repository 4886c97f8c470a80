"""What timelines show as counters: sizes of heap snapshots, and sums of allocations, GC handles and moves over time."""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

from perfuse.errors import ExportWarning
from perfuse.exporters.queries import TRACK_PROCESSES
from perfuse.exporters.source import EventSource
from perfuse.exporters.span import selected, selected_of_processes


class Count(NamedTuple):
    """The value of a counter of a process from a time on.

    Attributes:
        pid: The process.
        ts_ns: The time, on the profile's clock.
        name: Name of the counter.
        is_bytes: Whether the value is in bytes; otherwise it is a number of things.
        value: The value.
    """

    pid: int
    ts_ns: int
    name: str
    is_bytes: bool
    value: int


class SnapshotSize(NamedTuple):
    """A heap snapshot: its process, time, number of objects, and their size."""

    pid: int
    ts_ns: int
    num_objects: int
    size_bytes: int


_NUM_POINTS = 1000
"""Times at most of a counter that is a sum over many rows."""


def snapshot_sizes(profile: EventSource) -> list[SnapshotSize]:
    """The heap snapshots of selected processes and time, in time order; those without objects are left out."""
    if not profile.has("heap_snapshots"):
        return []
    rows = profile.sql(f"""
        SELECT snapshot_id, source_id, ts_ns FROM heap_snapshots
        WHERE {selected_of_processes(profile)} ORDER BY ts_ns, snapshot_id
    """).fetchall()
    sizes = profile.heap_sizes() if rows else {}
    pids = profile.process_pids() if rows else {}
    return [SnapshotSize(pids.get(source, 0), ts_ns, *sizes[key]) for key, source, ts_ns in rows if key in sizes]


def heap_counts(profile: EventSource) -> Iterator[Count]:
    """Sizes of heap snapshots, GC handles that are alive, and objects that were moved so far; each in time order."""
    for pid, ts_ns, num_objects, size_bytes in snapshot_sizes(profile):
        yield Count(pid, ts_ns, "Heap snapshot: bytes", True, size_bytes)
        yield Count(pid, ts_ns, "Heap snapshot: objects", False, num_objects)
    if profile.has("gc_handles"):
        # A handle whose creation was not recorded was there before.
        changes = """
            SELECT source_id, kind::VARCHAR AS kind, coalesce(created_ns, -9223372036854775808) AS ts_ns, 1 AS change
            FROM gc_handles
            UNION ALL
            SELECT source_id, kind::VARCHAR, destroyed_ns, -1 FROM gc_handles WHERE destroyed_ns IS NOT NULL
        """
        for pid, kind, ts_ns, alive in _sums_so_far(profile, changes):
            yield Count(pid, ts_ns, f"GC handles: {kind.replace('_', ' ')}", False, alive)
    if profile.has("object_moves"):
        changes = "SELECT source_id, '' AS kind, ts_ns, 1 AS change FROM object_moves"
        for pid, _, ts_ns, moved in _sums_so_far(profile, changes):
            yield Count(pid, ts_ns, "Objects moved so far", False, moved)


def _sums_so_far(profile: EventSource, changes: str) -> list[tuple[int, str, int, int]]:
    """Sums of changes from the start of the recording, at no more than 1,000 selected times: `(pid, kind, ts_ns, sum)`.

    `changes` selects columns `source_id`, `kind`, `ts_ns` and `change`.
    """
    pids = profile.process_pids()
    rows = profile.sql(f"""
        WITH summed AS (
            SELECT source_id, kind, ts_ns, (sum(change) OVER until_now)::BIGINT AS so_far
            FROM ({changes})
            WINDOW until_now AS (PARTITION BY source_id, kind ORDER BY ts_ns RANGE UNBOUNDED PRECEDING)
        ),
        selected AS (SELECT * FROM summed WHERE {selected_of_processes(profile)} AND ts_ns > -9223372036854775808),
        span AS (SELECT min(ts_ns) AS first_ns, max(ts_ns) - min(ts_ns) + 1 AS length_ns FROM selected)
        SELECT source_id, kind, max(ts_ns) AS last_ns, arg_max(so_far, ts_ns)
        FROM selected, span
        GROUP BY source_id, kind, (ts_ns - first_ns)::HUGEINT * {_NUM_POINTS} // length_ns
        ORDER BY source_id, kind, last_ns
    """).fetchall()
    return [(pids.get(source, 0), *row) for source, *row in rows]


def allocation_counts(profile: EventSource) -> Iterator[Count]:
    """What processes allocated so far, at no more than 1,000 times each.

    A filter of stacks selects samples, and not these rows: none are then counted, with a warning.
    """
    if not profile.has("allocations"):
        return
    if profile.stack_filter:
        warnings.warn(
            "filters of stacks select samples: counters of allocations are not written", ExportWarning, stacklevel=5
        )
        return
    rows = profile.sql(f"""
        WITH selected AS (
            SELECT pid, ts_ns, size_bytes
            FROM allocations JOIN threads USING (thread_id) JOIN {TRACK_PROCESSES} USING (process_id)
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
    for pid, ts_ns, size_bytes, num_objects in rows:
        yield Count(pid, ts_ns, "Allocated so far: bytes", True, size_bytes)
        yield Count(pid, ts_ns, "Allocated so far: objects", False, num_objects)
