"""Handles: what native code holds on to."""

from dataclasses import dataclass

from perfuse.analysis.backtraces import Backtrace, backtraces
from perfuse.analysis.runtime import Managed


@dataclass(frozen=True, slots=True)
class HandleKind:
    """Handles of a kind.

    Attributes:
        kind: `weak`, `weak_track_resurrection`, `normal` or `pinned`.
        num_created: How many were made.
        num_destroyed: How many were freed.
        num_left: Made, and never freed.
        max_alive: Most at a time.
    """

    kind: str
    num_created: int
    num_destroyed: int
    num_left: int
    max_alive: int


@dataclass(frozen=True, slots=True)
class HandleSite:
    """Handles of a kind that one stack made.

    Attributes:
        kind: Their kind.
        backtrace: Functions, outermost first; empty where none was taken.
        num_created: How many.
        num_left: Of them, those never freed.
    """

    kind: str
    backtrace: Backtrace
    num_created: int
    num_left: int


@dataclass(frozen=True, slots=True)
class Handles:
    """Handles made or freed in the selected threads and time: by kind, and by who made them, most left over first."""

    kinds: list[HandleKind]
    sites: list[HandleSite]


def handles(profile: Managed) -> Handles:
    """Counts handles that were made or freed within what is selected."""
    made = profile.selection.where("created_ns", "created_thread_id") or "created_ns IS NOT NULL"
    freed = profile.selection.where("destroyed_ns", "destroyed_thread_id") or "destroyed_ns IS NOT NULL"
    kinds = profile.sql(f"""
        WITH steps AS (
            SELECT kind, created_ns AS ts_ns, 1 AS step FROM gc_handles WHERE {made}
            UNION ALL
            SELECT kind, destroyed_ns, -1 FROM gc_handles WHERE {freed}
        ), alive AS (
            SELECT *, sum(step) OVER (PARTITION BY kind ORDER BY ts_ns, step DESC ROWS UNBOUNDED PRECEDING) AS n
            FROM steps
        ), left_over AS (
            SELECT kind, count(*) AS num FROM gc_handles WHERE {made} AND destroyed_ns IS NULL GROUP BY 1
        )
        SELECT kind::VARCHAR, count(*) FILTER (step = 1), count(*) FILTER (step = -1),
            coalesce(any_value(num), 0), greatest(max(n), 0)::BIGINT
        FROM alive LEFT JOIN left_over USING (kind) GROUP BY 1 ORDER BY 2 DESC, 1
    """).fetchall()
    sites = profile.sql(f"""
        SELECT kind::VARCHAR, created_stack_id, count(*) AS n, count(*) FILTER (destroyed_ns IS NULL) AS num_left
        FROM gc_handles WHERE {made} GROUP BY 1, 2 ORDER BY num_left DESC, n DESC, 1, 2
    """).fetchall()
    stacks = backtraces(profile, [stack for _, stack, *_ in sites])
    return Handles(
        [HandleKind(*row) for row in kinds],
        [HandleSite(kind, stacks[stack], count, left) for kind, stack, count, left in sites],
    )
