"""Branches that the processor recorded with samples."""

from dataclasses import dataclass

from perfuse.profile import Profile


@dataclass(frozen=True, slots=True)
class BranchPair:
    """Branches from one function to another, or within one.

    Attributes:
        source: Function of the branches; None where it has no name.
        target: Function of their targets; None where it has no name.
        kind: Kind of the instruction; None where not recorded.
        count: Number of branches.
        mispredicted: How many of them were predicted wrongly.
        predicted: How many were predicted right; the rest was recorded without a prediction.
        mean_cycles: Mean number of processor cycles since the branch before; None where not recorded.
        counters: Sums of the counters, in the order of the events; empty where not recorded.
    """

    source: str | None
    target: str | None
    kind: str | None
    count: int
    mispredicted: int
    predicted: int
    mean_cycles: float | None
    counters: tuple[int, ...]


_PAIRS = """
    WITH names AS (
        SELECT frame_id, f.name AS name FROM frames LEFT JOIN functions_of_stacks f USING (function_id)),
    pairs AS (
        SELECT a.name AS source, b.name AS target, kind::VARCHAR AS kind, mispredicted, cycles, counters
        FROM branches {join}
            LEFT JOIN names a ON a.frame_id = from_frame_id LEFT JOIN names b ON b.frame_id = to_frame_id
        {where}),
    counted AS (
        SELECT source, target, kind, count(*) AS num, count(*) FILTER (mispredicted) AS wrong,
            count(*) FILTER (NOT mispredicted) AS correct, avg(cycles) AS mean
        FROM pairs GROUP BY ALL),
    sums AS (
        SELECT source, target, kind, list(total ORDER BY position) AS totals FROM (
            SELECT source, target, kind, position, sum(value)::BIGINT AS total
            FROM (SELECT source, target, kind, unnest(counters) AS value,
                generate_subscripts(counters, 1) AS position FROM pairs)
            GROUP BY ALL)
        GROUP BY ALL)
    SELECT c.source, c.target, c.kind, num, wrong, correct, mean, coalesce(totals, [])
    FROM counted c LEFT JOIN sums s ON c.source IS NOT DISTINCT FROM s.source
        AND c.target IS NOT DISTINCT FROM s.target AND c.kind IS NOT DISTINCT FROM s.kind
    ORDER BY num DESC, c.source, c.target, c.kind"""


def branch_pairs(profile: Profile) -> list[BranchPair]:
    """Branches by function and target, the most frequent first."""
    if not profile.has("branches"):
        return []
    condition = profile.selection.where("branches.ts_ns")
    join = "JOIN samples USING (sample_id)" if profile.selection.selects_threads else ""
    query = _PAIRS.format(join=join, where=f"WHERE {condition}" if condition else "")
    rows = profile.sql(query).fetchall()
    return [BranchPair(*(*row[:7], tuple(row[7]))) for row in rows]
