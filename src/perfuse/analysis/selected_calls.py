"""Calls that are longer than a time, made by a function, or less deep than a limit: statistics by function."""

from dataclasses import dataclass

from perfuse.analysis.slow_calls import SlowCallProfile, matching_functions
from perfuse.errors import UsageError


@dataclass(frozen=True, slots=True)
class CallCondition:
    """Conditions on calls; all hold.

    Attributes:
        longer_than_ns: They last at least so long.
        caller: They are made by a function that matches: a name, a part of it, a glob, `/regex/` or a handle.
        depth: Fewer calls are around them.
        function: Their function matches.
    """

    longer_than_ns: int = 0
    caller: str | None = None
    depth: int | None = None
    function: str | None = None


@dataclass(frozen=True, slots=True)
class SelectedCalls:
    """The selected calls of a function; times are in nanoseconds, and None where no call is whole.

    Attributes:
        name: The function.
        function_id: Its key.
        num_calls: Number of calls with recorded start and end, of which the times are.
        min_ns: Shortest duration.
        median_ns: 50th percentile: the smallest duration that so many percent do not exceed.
        p90_ns: 90th percentile.
        p99_ns: 99th percentile.
        max_ns: Longest duration.
        sum_ns: Sum of the durations.
        self_ns: Time in the function itself.
        num_lost: Further calls that began before the recording, and of which the recorded part is long enough.
        num_truncated: Further calls that were open at its end, also those that began before it.
        longest_part_ns: The longest recorded part of such a call.
    """

    name: str
    function_id: int
    num_calls: int
    min_ns: int | None
    median_ns: int | None
    p90_ns: int | None
    p99_ns: int | None
    max_ns: int | None
    sum_ns: int
    self_ns: int
    num_lost: int
    num_truncated: int
    longest_part_ns: int | None


def selected_calls(profile: SlowCallProfile, condition: CallCondition) -> list[SelectedCalls]:
    """Statistics of the calls that satisfy a condition, by function, the greatest sum first.

    Of calls that begin in the selected threads and time. A call whose start or end was not recorded lasts at least as
    long as its recorded part.

    Raises:
        UsageError: No single calls were recorded, no function matches, or no call is left.
    """
    if not profile.has("call_events"):
        raise UsageError("no single calls were recorded", hint="XRay's FDR and Basic modes and mono -profiler:calls do")
    parameters: dict[str, object] = {"longer_than": condition.longer_than_ns}
    where = [profile.selection.where("s.start_ns", "s.thread_id") or "true"]
    join = ""
    if condition.function is not None:
        parameters["functions"], _ = matching_functions(profile, condition.function)
        where.append("s.function_id IN (SELECT unnest($functions))")
    if condition.caller is not None:
        parameters["callers"], _ = matching_functions(profile, condition.caller)
        join = "JOIN slices p ON p.slice_id = s.parent_slice_id AND p.function_id IN (SELECT unnest($callers))"
    if condition.depth is not None:
        where.append(f"s.depth < {int(condition.depth)}")
    # A function that several recordings contain, or one several times, is one.
    parameters["same"] = profile._same_functions() or []
    own = "coalesce($same[s.function_id + 1], s.function_id)"
    of_whole, of_parts = "FILTER (WHERE is_whole)", "FILTER (WHERE NOT is_whole)"
    rows = profile.sql(
        f"""
        WITH calls AS (
            SELECT {own} AS function_id, s.duration_ns, s.self_ns, s.end_reason::VARCHAR = 'truncated' AS is_open,
                s.start_reason::VARCHAR = 'entry' AND NOT is_open AS is_whole
            FROM slices s {join}
            WHERE s.kind::VARCHAR = 'call' AND s.duration_ns >= $longer_than
                AND (is_whole OR s.duration_ns > 0) AND {" AND ".join(where)}
        )
        SELECT f.name::VARCHAR, function_id, count(*) {of_whole}, min(duration_ns) {of_whole},
            quantile_disc(duration_ns, 0.5) {of_whole}, quantile_disc(duration_ns, 0.9) {of_whole},
            quantile_disc(duration_ns, 0.99) {of_whole}, max(duration_ns) {of_whole},
            coalesce(sum(duration_ns) {of_whole}, 0)::BIGINT, coalesce(sum(self_ns) {of_whole}, 0)::BIGINT,
            count(*) FILTER (WHERE NOT is_whole AND NOT is_open), count(*) FILTER (WHERE is_open),
            max(duration_ns) {of_parts}
        FROM calls LEFT JOIN functions f USING (function_id)
        GROUP BY 1, 2 ORDER BY 9 DESC, 13 DESC NULLS LAST, 1, 2
        """,
        parameters,
    ).fetchall()
    if not rows:
        hint = "shorter times, other callers or greater depths select more"
        if profile.selection.time_ns is not None:
            hint += "; of --between, the calls that begin in it"
        raise UsageError("no call is left", hint=hint)
    return [SelectedCalls(name or f"function {key}", key, *rest) for name, key, *rest in rows]
