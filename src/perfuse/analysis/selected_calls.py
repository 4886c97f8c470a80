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
    """The selected calls of a function; times are in nanoseconds.

    Attributes:
        name: The function.
        function_id: Its key.
        num_calls: Number of calls.
        min_ns: Shortest duration.
        median_ns: 50th percentile: the smallest duration that so many percent do not exceed.
        p90_ns: 90th percentile.
        p99_ns: 99th percentile.
        max_ns: Longest duration.
        sum_ns: Sum of the durations.
        self_ns: Time in the function itself.
    """

    name: str
    function_id: int
    num_calls: int
    min_ns: int
    median_ns: int
    p90_ns: int
    p99_ns: int
    max_ns: int
    sum_ns: int
    self_ns: int


def selected_calls(profile: SlowCallProfile, condition: CallCondition) -> list[SelectedCalls]:
    """Statistics of the calls that satisfy a condition, by function, the greatest sum first.

    Only calls with recorded start and end, in the selected threads and time.

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
    rows = profile.sql(
        f"""
        SELECT f.name::VARCHAR, {own}, count(*), min(s.duration_ns),
            quantile_disc(s.duration_ns, 0.5), quantile_disc(s.duration_ns, 0.9), quantile_disc(s.duration_ns, 0.99),
            max(s.duration_ns), sum(s.duration_ns)::BIGINT, sum(s.self_ns)::BIGINT
        FROM slices s {join} LEFT JOIN functions f ON f.function_id = {own}
        WHERE s.kind::VARCHAR = 'call' AND s.start_reason::VARCHAR = 'entry' AND s.end_reason::VARCHAR <> 'truncated'
            AND s.duration_ns >= $longer_than AND {" AND ".join(where)}
        GROUP BY 1, 2 ORDER BY 9 DESC, 1, 2
        """,
        parameters,
    ).fetchall()
    if not rows:
        raise UsageError("no call is left", hint="shorter times, other callers or greater depths select more")
    return [SelectedCalls(name or f"function {key}", key, *rest) for name, key, *rest in rows]
