"""The numbers of a profile for assertions, each computed on first use."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from perfuse.analysis.allocations import Allocations
from perfuse.analysis.counters import counters_by_name
from perfuse.analysis.distribution import Distribution
from perfuse.analysis.exceptions import exceptions
from perfuse.analysis.gc import gc_activity
from perfuse.analysis.handles import Handles
from perfuse.analysis.heap import Heap, snapshots
from perfuse.analysis.heap_rows import HeapClass
from perfuse.analysis.latency import CallAccount, Latency
from perfuse.analysis.locks import contention
from perfuse.analysis.objects import UNKNOWN_TYPE, Objects, type_names
from perfuse.analysis.profiles import UNSELECTED, read_selected
from perfuse.analysis.recorded import not_recorded
from perfuse.analysis.sampled import events
from perfuse.errors import UsageError
from perfuse.profile import Profile
from perfuse.table import Columns

Fact = Callable[..., float]
_DISTRIBUTION_FIELDS = ("count", "sum", "min", "median", "p90", "p99", "max")
_LATENCY = ("count", "self", "sum", "total", "min", "median", "p90", "p99", "max")


class NotRecorded(Exception):  # noqa: N818 - an answer, not an error
    """A fact has no value: what it is about was not recorded. The text says how to record it."""


class UnknownNameError(UsageError):
    """A recording does not contain a type, a function or a counter.

    Attributes:
        misspelt: Whether it contains a similar name. Else the program may never have used what has the name.
    """

    def __init__(self, message: str, hint: str | None, *, misspelt: bool) -> None:
        super().__init__(message, field="assert", hint=hint)
        self.misspelt = misspelt


_MISSPELT = 0.75
"""Similarity of two names from which one is taken for a misspelling of the other."""


def facts_of(profile: Profile) -> dict[str, Fact]:
    """Facts by name. Sizes are in bytes, times in nanoseconds, shares in percent.

    A name with `[]` is of a list: the fact is a function of an element's name. A fact is 0 where it was recorded and
    nothing happened; where it was not recorded, its function raises `NotRecorded`.
    """
    found: dict[str, Fact] = {"duration": lambda: _duration(profile)}
    for tables, make in _FACTS_BY_TABLES.items():
        for name, fact in make(profile).items():
            found[name] = _recorded(profile, _subject(name), tables.split(), fact)
    return found


_SUBJECTS = {"code": "jit"}
"""Subjects of facts whose names do not start with them."""


def _subject(name: str) -> str:
    """What has to be recorded for a fact: `allocations` for `allocations[].bytes`."""
    if name == "heap.bytes":
        return "gc"
    if name == "gc.moves":
        return "moves"
    family = name.partition(".")[0].removesuffix("[]")
    return _SUBJECTS.get(family, family)


def _recorded(profile: Profile, subject: str, tables: Iterable[str], fact: Fact) -> Fact:
    """A fact that raises `NotRecorded` where its subject was not recorded."""

    def checked(*names: str) -> float:
        how = not_recorded(profile, subject, tables)
        if how is not None:
            raise NotRecorded(f"not recorded ({how})")
        return fact(*names)

    return checked


def _duration(profile: Profile) -> float:
    span = profile.span_ns
    if span is None:
        raise NotRecorded("not recorded (no sample, call or event has a time)")
    return span[1] - span[0]


def _type_names(profile: Profile) -> set[str]:
    return {*type_names(profile).values(), UNKNOWN_TYPE}


def _allocations(profile: Profile) -> dict[str, Fact]:
    analysis = cache(lambda: Allocations(profile))
    types = cache(lambda: _type_names(profile))

    def of_type(what: str) -> Fact:
        return lambda name: getattr(analysis().of_type(_known(types(), name, "type")), what, 0)

    return {
        "allocations.bytes": lambda: analysis().bytes,
        "allocations.count": lambda: analysis().count,
        "allocations[].bytes": of_type("bytes"),
        "allocations[].count": of_type("count"),
    }


@dataclass(frozen=True, slots=True)
class _LiveHeap:
    """Types of the first and the last heap snapshot of a file; of the first None where there is only one."""

    last: Heap
    classes: dict[str, HeapClass]
    earlier: dict[str, HeapClass] | None


def _live_heap(profile: Profile) -> _LiveHeap:
    every = snapshots(profile)
    if not every:
        if snapshots(profile, of_all_times=True):
            raise NotRecorded("no heap snapshot is in the selected time")
        raise NotRecorded("no heap snapshot was taken: the program ended before its first major collection")
    of_file = [one for one in every if one.source_id == every[-1].source_id]
    earlier = _by_type(profile.heap(of_file[0].snapshot_id).classes()) if len(of_file) > 1 else None
    last = profile.heap(of_file[-1].snapshot_id)
    return _LiveHeap(last, _by_type(last.classes()), earlier)


_CLASS_SUMS = {"objects": "num_objects", "bytes": "size_bytes", "retained_bytes": "retained_bytes"}


def _by_type(classes: Iterable[HeapClass]) -> dict[str, HeapClass]:
    return {one.type or UNKNOWN_TYPE: one for one in classes}


def _heap(profile: Profile) -> dict[str, Fact]:
    live = cache(lambda: _live_heap(profile))
    types = cache(lambda: _type_names(profile))

    def of(classes: Mapping[str, HeapClass], name: str, what: str) -> int:
        one = classes.get(_known(types(), name, "type"))
        return 0 if one is None else int(getattr(one, _CLASS_SUMS[what]))

    def earlier() -> dict[str, HeapClass]:
        found = live().earlier
        if found is None:
            raise NotRecorded("growth takes two heap snapshots, and one was taken")
        return found

    def total(classes: Mapping[str, HeapClass], what: str) -> int:
        return sum(int(getattr(one, _CLASS_SUMS[what])) for one in classes.values())

    def growth(what: str) -> Fact:
        return lambda: total(live().classes, what) - total(earlier(), what)

    def type_growth(what: str) -> Fact:
        return lambda name: of(live().classes, name, what) - of(earlier(), name, what)

    return {
        "heap.live_bytes": lambda: live().last.size_bytes,
        "heap.live_objects": lambda: live().last.num_objects,
        "heap.live_bytes[]": lambda name: of(live().classes, name, "bytes"),
        "heap.live_objects[]": lambda name: of(live().classes, name, "objects"),
        "heap.retained_bytes[]": lambda name: of(live().classes, name, "retained_bytes"),
        "heap.growth.bytes": growth("bytes"),
        "heap.growth.objects": growth("objects"),
        **{f"heap.growth[].{what}": type_growth(what) for what in _CLASS_SUMS},
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
        "gc.moves": lambda: analysis().num_moves or 0,
        "heap.bytes": lambda: _heap_bytes(analysis().max_heap_bytes),
        "finalizers.sum": lambda: sum(one.durations.sum for one in analysis().finalizers),
        "finalizers.max": lambda: max((one.durations.max for one in analysis().finalizers), default=0),
    }


def _heap_bytes(largest: int | None) -> float:
    if largest is None:
        raise NotRecorded("the collector never reported the size of its heap")
    return largest


def _locks(profile: Profile) -> dict[str, Fact]:
    analysis = cache(lambda: contention(profile, Objects(profile)))
    return {
        "locks.contentions": lambda: analysis().num_contentions,
        "locks.failed": lambda: analysis().num_failed,
        **_distribution_facts("locks.waits", lambda: analysis().waits),
    }


def _exceptions(profile: Profile) -> dict[str, Fact]:
    analysis = cache(lambda: exceptions(profile, Objects(profile)))

    def of_type(name: str) -> float:
        _known(_type_names(profile), name, "type")
        counts = dict(analysis().by_type)
        if counts.get(None) and not_recorded(profile, "allocations", ["allocations"]) is not None:
            how = not_recorded(profile, "allocations", ["allocations"])
            raise NotRecorded(
                f"the types of exceptions are those of their allocations, which were not recorded ({how})"
            )
        return counts.get(name, 0)

    return {"exceptions.count": lambda: analysis().count, "exceptions[].count": of_type}


def _handles(profile: Profile) -> dict[str, Fact]:
    analysis = cache(lambda: Handles(profile))
    return {
        "handles.created": lambda: sum(one.num_created for one in analysis().kinds),
        "handles.left": lambda: sum(one.num_left for one in analysis().kinds),
    }


def _counters(profile: Profile) -> dict[str, Fact]:
    analysis = cache(lambda: counters_by_name(profile))

    def of(what: str) -> Fact:
        return lambda name: getattr(analysis()[_known(analysis(), name, "counter")], what) or 0

    return {f"counters[].{what}": of(what) for what in ("last", "min", "max")}


def _samples(profile: Profile) -> dict[str, Fact]:
    @cache
    def count() -> int:
        return sum(one.num_samples for one in events(profile) if not one.is_sum)

    return {"samples.count": count}


def _calls(profile: Profile) -> dict[str, Fact]:
    account = cache(lambda: CallAccount(profile))

    @cache
    def functions() -> set[str]:
        # Types are functions too: those of the innermost frames of allocations.
        return set(Columns(profile.tables["functions"])["name"]) - _type_names(profile) | set(named())

    @cache
    def named() -> dict[str, list[Latency]]:
        found: dict[str, list[Latency]] = {}
        for one in account().functions():
            found.setdefault(one.function.name, []).append(one.latency)
        return found

    def count_of(name: str) -> float:
        return sum(one.num_calls for one in named().get(_known(functions(), name, "function"), ()))

    def time_of(name: str, what: str) -> float:
        if not count_of(name):
            return 0
        values: list[int | None] = [getattr(one, f"{what}_ns") for one in named()[name]]
        if len(values) > 1 and what not in ("self", "sum"):
            hint = "count, self and sum are those of all of them; rename one, or use perfuse query"
            raise UsageError(f"{len(values)} functions have the name {name!r}", field="assert", hint=hint)
        known = [value for value in values if value is not None]
        if account().unit != "ns":
            raise UsageError("times are ticks of an unknown rate", field="assert", hint="give it with --tsc-hz")
        if len(known) < len(values):
            hint = "a recording of sums has calls, self, sum and total"
            raise UsageError(f"no durations of single calls of {name!r} were recorded", field="assert", hint=hint)
        return sum(known)

    def of(what: str) -> Fact:
        return lambda name: time_of(name, what)

    return {
        "calls.count": lambda: account().totals.num_calls,
        "calls.unwound": lambda: account().totals.num_unwound,
        "calls[].count": count_of,
        **{f"calls[].{what}": of(what) for what in _LATENCY[1:]},
    }


def _code(profile: Profile) -> dict[str, Fact]:
    @cache
    def analysis() -> tuple[int, int]:
        sizes = [size for (size,) in read_selected(profile, "code_objects", "size_bytes", kinds=["jit"], **UNSELECTED)]
        return len(sizes), sum(sizes)

    return {"code.count": lambda: analysis()[0], "code.bytes": lambda: analysis()[1]}


def _known(names: Iterable[str], name: str, what: str) -> str:
    """A name that the recording contains.

    Raises:
        UsageError: It does not contain the name.
    """
    all_names = set(names)
    if name in all_names:
        return name
    near = difflib.get_close_matches(name, all_names, n=3)
    short = [one for one in sorted(all_names) if name.lower() in one.lower()][:3]
    found = list(dict.fromkeys([*short, *near]))[:3]
    misspelt = bool(short or difflib.get_close_matches(name, all_names, n=1, cutoff=_MISSPELT))
    hint = f"did you mean {' or '.join(found)}?" if found else None
    raise UnknownNameError(f"there is no {what} {name!r}", hint, misspelt=misspelt or what == "counter")


def _distribution_facts(prefix: str, read: Callable[[], Distribution]) -> dict[str, Fact]:
    return {f"{prefix}.{name}": lambda name=name: getattr(read(), name) for name in _DISTRIBUTION_FIELDS}


_FACTS_BY_TABLES: dict[str, Callable[[Profile], dict[str, Fact]]] = {
    "allocations": _allocations,
    "slices instants object_moves": _gc,
    "heap_snapshots": _heap,
    "lock_events": _locks,
    "exceptions": _exceptions,
    "gc_handles": _handles,
    "counter_samples": _counters,
    "samples callchains": _samples,
    "call_events call_sums": _calls,
    "code_objects": _code,
}
"""Functions that make the facts, by the tables of which one is required."""
