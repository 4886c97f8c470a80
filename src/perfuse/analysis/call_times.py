"""The time between calls of two functions, by which a call trace is cut."""

from perfuse.analysis.slow_calls import SlowCallProfile, matching_functions
from perfuse.errors import UsageError


def time_between(profile: SlowCallProfile, first: str | None, last: str | None) -> tuple[int | None, int | None]:
    """From the begin of the first call of a function to that of the first call of another after it.

    Args:
        profile: A profile with a call trace.
        first: The function at which the time starts: a name, a part of it, a glob, `/regex/` or a handle; None for the
            start of the recording.
        last: The function at which it ends; None for the end of the recording.

    Returns:
        Start and end, which is not included, on the profile's clock.

    Raises:
        UsageError: There are no calls, no function matches, or none is called after the first one.
    """
    if not profile.has("call_events"):
        raise UsageError("only call traces are cut between functions", hint="--between 2..5.5 are seconds")
    start = None if first is None else _begin(profile, first, None)
    end = None if last is None else _begin(profile, last, start)
    if first is not None and start is None:
        raise UsageError(f"no call of {first} has a recorded start")
    if last is not None and end is None:
        after = f" after the first call of {first}" if first else ""
        raise UsageError(f"no call of {last} starts{after}")
    return start, end


def _begin(profile: SlowCallProfile, pattern: str, after: int | None) -> int | None:
    keys, _ = matching_functions(profile, pattern)
    later = "" if after is None else f" AND ts_ns > {after}"
    [(found,)] = profile.sql(
        "SELECT min(ts_ns) FROM call_events WHERE kind::VARCHAR = 'enter'"
        f" AND function_id IN (SELECT unnest($functions)){later}",
        {"functions": keys},
    ).fetchall()
    return None if found is None else int(found)
