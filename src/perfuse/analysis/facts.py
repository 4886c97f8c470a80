"""The numbers of a profile for assertions, each computed on first use."""

import difflib
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from perfuse.analysis.allocations import Allocations
from perfuse.analysis.counters import counters
from perfuse.analysis.distribution import Distribution
from perfuse.analysis.exceptions import exceptions
from perfuse.analysis.gc import gc_activity
from perfuse.analysis.handles import Handles
from perfuse.analysis.latency import CallAccount
from perfuse.analysis.locks import contention
from perfuse.analysis.objects import Objects
from perfuse.analysis.profiles import UNSELECTED, read_selected
from perfuse.analysis.sampled import events
from perfuse.errors import UsageError
from perfuse.profile import Profile

T = TypeVar("T")
Fact = Callable[..., float]
_DISTRIBUTION_FIELDS = ("count", "sum", "min", "median", "p90", "p99", "max")
_LATENCY = ("count", "self", "sum", "total", "min", "median", "p90", "p99", "max")


def facts_of(profile: Profile) -> dict[str, Fact]:
    """Facts by name, for the tables that have rows. Sizes are in bytes, times in nanoseconds, shares in percent.

    A name with `[]` is of a list: the fact is a function of an element's name.
    """
    found: dict[str, Fact] = {"duration": lambda: _duration(profile)}
    for table, make in _FACTS_BY_TABLES.items():
        if any(profile.has(name) for name in table.split()):
            found |= make(profile)
    return found


def _duration(profile: Profile) -> float:
    first, last = profile.span_ns or (0, 0)
    return last - first


def _allocations(profile: Profile) -> dict[str, Fact]:
    analysis = cache(lambda: Allocations(profile))

    def of_type(what: str) -> Fact:
        return lambda name: getattr(analysis().of_type(name), what, 0)

    return {
        "allocations.bytes": lambda: analysis().bytes,
        "allocations.count": lambda: analysis().count,
        "allocations[].bytes": of_type("bytes"),
        "allocations[].count": of_type("count"),
    }


def _gc(profile: Profile) -> dict[str, Fact]:
    analysis = cache(lambda: gc_activity(profile, Objects(profile)))

    def generation(name: str) -> Distribution:
        empty = Distribution(0, 0, 0, 0, 0, 0, 0)
        return next((one.pauses for one in analysis().generations if one.name == name), empty)

    def collections(name: str) -> int:
        return next((one.collections.count for one in analysis().generations if one.name == name), 0)

    found = _distribution_facts("gc.pauses", lambda: analysis().pauses)
    for name in ("nursery", "major"):
        found |= _distribution_facts(f"gc.{name}.pauses", lambda name=name: generation(name))  # type: ignore[misc]
        found[f"gc.{name}.collections"] = lambda name=name: collections(name)
    return {
        **found,
        "gc.pauses.share": lambda: 100 * analysis().pauses.sum / max(_duration(profile), 1),
        "gc.moves": lambda: analysis().num_moves,
        "heap.bytes": lambda: analysis().max_heap_bytes or 0,
        "finalizers.sum": lambda: sum(one.durations.sum for one in analysis().finalizers),
        "finalizers.max": lambda: max((one.durations.max for one in analysis().finalizers), default=0),
    }


def _locks(profile: Profile) -> dict[str, Fact]:
    analysis = cache(lambda: contention(profile, Objects(profile)))
    return {
        "locks.contentions": lambda: analysis().num_contentions,
        "locks.failed": lambda: analysis().num_failed,
        **_distribution_facts("locks.waits", lambda: analysis().waits),
    }


def _exceptions(profile: Profile) -> dict[str, Fact]:
    analysis = cache(lambda: exceptions(profile, Objects(profile)))
    return {
        "exceptions.count": lambda: analysis().count,
        "exceptions[].count": lambda name: dict(analysis().by_type).get(name, 0),
    }


def _handles(profile: Profile) -> dict[str, Fact]:
    analysis = cache(lambda: Handles(profile))
    return {
        "handles.created": lambda: sum(one.num_created for one in analysis().kinds),
        "handles.left": lambda: sum(one.num_left for one in analysis().kinds),
    }


def _counters(profile: Profile) -> dict[str, Fact]:
    analysis = cache(lambda: {one.name: one for one in counters(profile)})

    def of(what: str) -> Fact:
        return lambda name: getattr(_named(analysis(), name, "counter"), what) or 0

    return {f"counters[].{what}": of(what) for what in ("last", "min", "max")}


def _samples(profile: Profile) -> dict[str, Fact]:
    @cache
    def count() -> int:
        return sum(one.num_samples for one in events(profile) if not one.is_sum)

    return {"samples.count": count}


def _calls(profile: Profile) -> dict[str, Fact]:
    account = cache(lambda: CallAccount(profile))

    @cache
    def named() -> dict[str, dict[str, int | None]]:
        found: dict[str, dict[str, int | None]] = {}
        for one in account().functions():
            latency = one.latency
            values = {name: getattr(latency, f"{name}_ns") for name in _LATENCY[1:]}
            found.setdefault(one.function.name, {"count": latency.num_calls, **values})
        return found

    def time_of(name: str, what: str) -> float:
        value = _named(named(), name, "function that was called")[what]
        if account().unit != "ns":
            raise UsageError("times are ticks of an unknown rate", field="assert", hint="give it with --tsc-hz")
        if value is None:
            hint = "a recording of sums has calls, self, sum and total"
            raise UsageError(f"no durations of single calls of {name!r} were recorded", field="assert", hint=hint)
        return value

    def of(what: str) -> Fact:
        return lambda name: time_of(name, what)

    return {
        "calls.count": lambda: account().totals.num_calls,
        "calls.unwound": lambda: account().totals.num_unwound,
        "calls[].count": lambda name: named().get(name, {}).get("count") or 0,
        **{f"calls[].{what}": of(what) for what in _LATENCY[1:]},
    }


def _code(profile: Profile) -> dict[str, Fact]:
    @cache
    def analysis() -> tuple[int, int]:
        sizes = [size for (size,) in read_selected(profile, "code_objects", "size_bytes", kinds=["jit"], **UNSELECTED)]
        return len(sizes), sum(sizes)

    return {"code.count": lambda: analysis()[0], "code.bytes": lambda: analysis()[1]}


def _named(known: Mapping[str, T], name: str, what: str) -> T:
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3)
    raise UsageError(
        f"there is no {what} {name!r}", field="assert", hint=f"did you mean {' or '.join(near)}?" if near else None
    )


def _distribution_facts(prefix: str, read: Callable[[], Distribution]) -> dict[str, Fact]:
    return {f"{prefix}.{name}": lambda name=name: getattr(read(), name) for name in _DISTRIBUTION_FIELDS}


_FACTS_BY_TABLES: dict[str, Callable[[Profile], dict[str, Fact]]] = {
    "allocations": _allocations,
    "slices instants object_moves": _gc,
    "lock_events": _locks,
    "exceptions": _exceptions,
    "gc_handles": _handles,
    "counter_samples": _counters,
    "samples callchains": _samples,
    "call_events call_sums": _calls,
    "code_objects": _code,
}
"""Functions that make the facts, by the tables of which one is required."""
