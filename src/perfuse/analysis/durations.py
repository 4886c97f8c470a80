"""Samples by what went on when they were taken: calls, collections and other slices."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from perfuse.errors import UsageError, nearest_hint
from perfuse.filters.names import FramePattern
from perfuse.filters.stacks import During
from perfuse.table import SUM_EVENTS


class DuringProfile(Protocol):
    """A profile with slices; `perfuse.Profile` is one."""

    def sql(self, query: str, parameters: Mapping[str, object] | None = None, /) -> Any:
        """Runs SQL over the common tables."""
        ...


_ALL_SLICES = """
    SELECT s.thread_id, s.kind::VARCHAR AS kind, coalesce(s.name::VARCHAR, f.name::VARCHAR, '') AS name,
        s.start_ns, s.start_ns + s.duration_ns AS end_ns
    FROM slices s LEFT JOIN functions f USING (function_id)
"""
_SLICES = _ALL_SLICES.replace("FROM slices", "FROM slices_of_time")
"""Those that samples of the selected time may be taken in."""


def samples_during(profile: DuringProfile, conditions: Sequence[During]) -> Any:
    """Table `samples` with only those that were taken during slices; of several conditions, all hold.

    Slices are of the sample's thread; of collections, which stop all threads, also of others of its process.

    Raises:
        UsageError: There is no such slice, none while a sample was taken, or the samples have no points in time.
    """
    samples = f"SELECT * FROM samples WHERE event::VARCHAR NOT IN {SUM_EVENTS}"
    [(num_timed,)] = profile.sql(f"SELECT count(*) FROM ({samples})").fetchall()
    if not num_timed:
        raise UsageError(
            f"{conditions[0]} needs samples that have a time, and there are none",
            hint="calls and allocations are sums by stack: --root, --only and --between select those",
        )
    ctes, names = [], {}
    for number, one in enumerate(conditions):
        names[f"names{number}"] = _matching_names(profile, one)
        ctes.append(_spans(number, one))
        samples = f"""
            SELECT s.* FROM ({samples}) s ASOF JOIN spans{number} p
            ON s.thread_id = p.thread_id AND s.ts_ns >= p.start_ns
            WHERE s.ts_ns < p.end_ns
        """
    from arro3.core import Table

    found = Table.from_arrow(profile.sql(f"WITH {', '.join(ctes)} {samples} ORDER BY sample_id", names))
    if not found.num_rows:
        raise UsageError(
            f"no sample was taken during {' and '.join(f'{one.kind} {one.pattern}' for one in conditions)}",
            hint="samples and slices are of the same thread; more frequent samples hit shorter slices",
        )
    return found


def _matching_names(profile: DuringProfile, one: During) -> list[str]:
    """The names of slices that a pattern matches."""
    where = "WHERE kind <> 'call'" if one.kind == "marker" else ""
    names: set[str] = set()
    found: list[str] = []
    for slices in (_SLICES, _ALL_SLICES):
        if not found:
            names = {name for (name,) in profile.sql(f"SELECT DISTINCT name FROM ({slices}) {where}").fetchall()}
            found = sorted(filter(FramePattern.parse(one.pattern).test(names), names))
    if not found:
        known = sorted(names)
        hint = nearest_hint(one.pattern, known) if known else f"there is no {one.kind} in the recording"
        raise UsageError(f"{one} matches no {one.kind}", hint=hint)
    return found


def _spans(number: int, one: During) -> str:
    """The time ranges of a condition by thread, those that overlap merged."""
    kinds = "AND kind <> 'call'" if one.kind == "marker" else ""
    return f"""
        found{number} AS (
            SELECT * FROM ({_SLICES}) WHERE name IN (SELECT unnest($names{number})) {kinds}
        ),
        all{number} AS (
            SELECT thread_id, start_ns, end_ns FROM found{number} WHERE kind <> 'gc'
            UNION ALL
            SELECT others.thread_id, f.start_ns, f.end_ns
            FROM found{number} f JOIN threads own USING (thread_id) JOIN threads others USING (process_id)
            WHERE f.kind = 'gc'
        ),
        begun{number} AS (
            SELECT *, start_ns > coalesce(max(end_ns) OVER (
                PARTITION BY thread_id ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), start_ns - 1) AS begins FROM all{number}
        ),
        numbered{number} AS (
            SELECT *, sum(begins::INTEGER) OVER (
                PARTITION BY thread_id ORDER BY start_ns, end_ns ROWS UNBOUNDED PRECEDING
            ) AS number FROM begun{number}
        ),
        spans{number} AS (
            SELECT thread_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns
            FROM numbered{number} GROUP BY thread_id, number
        )
    """
