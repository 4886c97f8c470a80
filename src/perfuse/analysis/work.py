"""Units of work of a run, by which its numbers can be divided."""

import re
from typing import Any

from perfuse.analysis.sampled import events
from perfuse.errors import UsageError, nearest_hint

SECONDS, CALLS = "seconds", "calls"
_FUNCTION = re.compile(r"function\s+(.+)", re.DOTALL)


def units_of_work(profile: Any, per: str) -> float:
    """The number of units of work in a profile.

    Args:
        profile: The profile.
        per: `seconds` from the first to the last sample or call; `calls` for all recorded calls; `function F` for the
            calls of a function; or the name of an event (the sum of its samples) or of a counter (its last value).

    Raises:
        UsageError: The profile does not have what is counted.
    """
    if per == SECONDS:
        if profile.span_ns is None:
            raise UsageError(f"nothing in {profile.title} has a time", field="per", hint="divide by a counter")
        first, last = profile.span_ns
        return float(last - first) / 1e9
    function = _FUNCTION.fullmatch(per)
    if per == CALLS or function:
        return float(_calls(profile, function[1].strip() if function else None))
    return _counted(profile, per)


def _calls(profile: Any, function: str | None) -> int:
    if not profile.has_traces:
        raise UsageError(
            f"{profile.title} has no calls to divide by",
            field="per",
            hint="calls are recorded by XRay and by Mono; for samples give seconds, an event or a counter",
        )
    from perfuse.analysis.latency import CallAccount

    account = CallAccount(profile)
    if function is None:
        return account.totals.num_calls
    rows = account.functions()
    found = [one.latency.num_calls for one in rows if one.function.name == function]
    if not found:
        raise UsageError(
            f"no calls of {function!r} in {profile.title}",
            field="per",
            hint=nearest_hint(function, [one.function.name for one in rows]),
        )
    return sum(found)


def _counted(profile: Any, name: str) -> float:
    weights = {event.name: float(event.weight) for event in events(profile)}
    if name in weights:
        return weights[name]
    values: dict[str, float] = {}
    if profile.has("counter_samples"):
        from perfuse.analysis.counters import counters_by_name

        values = {one.name: one.last for one in counters_by_name(profile).values() if one.last is not None}
        if name in values:
            return values[name]
    known = [SECONDS, *([CALLS, "function NAME"] if profile.has_traces else []), *weights, *values]
    raise UsageError(f"no counter or event {name!r} in {profile.title}", field="per", hint=nearest_hint(name, known))
