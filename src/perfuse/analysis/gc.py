"""Garbage collector activity: pauses, collections, heap size, finalizers."""

import sys
from bisect import bisect_right
from typing import Any

from perfuse.analysis.distribution import Distribution, distribution_of, sum_by_bin
from perfuse.analysis.objects import Objects, object_address
from perfuse.analysis.profiles import RuntimeProfile, collector_slices, read_selected, sort_by_time
from perfuse.analysis.recorded import not_recorded
from perfuse.value_class import value_class

BINS = 60
"""Number of parts of a timeline."""


@value_class
class Pause:
    """A pause: the time from when every thread was stopped until they were resumed.

    Attributes:
        start_ns: Start, on the profile's clock.
        duration_ns: Duration.
        generation: `nursery` or `major`.
    """

    start_ns: int
    duration_ns: int
    generation: str


@value_class
class Generation:
    """Collections of a generation.

    Attributes:
        name: `nursery` or `major`.
        collections: Durations of collections; a collection is often within a pause.
        pauses: Durations of their pauses.
    """

    name: str
    collections: Distribution
    pauses: Distribution


@value_class
class Finalizers:
    """Finalizers of a type.

    Attributes:
        type_name: The type; None where the allocation of the objects was not recorded.
        durations: Their durations.
    """

    type_name: str | None
    durations: Distribution


@value_class
class GcActivity:
    """Garbage collector activity in the selected time.

    Attributes:
        pauses: All pauses.
        generations: By generation.
        timeline_ns: Time in pauses, in `BINS` parts of the recorded time.
        num_open: Pauses that were open at the end of the recording.
        num_resizes: Number of times the heap was resized.
        max_heap_bytes: Largest heap size; None where that was not recorded.
        num_moves: Object moves; None where those were not recorded.
        finalizers: By type, those with the longest total time first.
        finalizer_rounds: Durations of the rounds in which finalizers ran.
    """

    pauses: Distribution
    generations: list[Generation]
    timeline_ns: list[int]
    num_open: int
    num_resizes: int
    max_heap_bytes: int | None
    num_moves: int | None
    finalizers: list[Finalizers]
    finalizer_rounds: Distribution


def gc_pauses(profile: RuntimeProfile) -> list[Pause]:
    """Completed pauses that overlap the selected time, in time order; each is whole."""
    return _pauses(_slices(profile))


def _slices(profile: RuntimeProfile) -> list[tuple[Any, ...]]:
    """Slices of the collector: `(start_ns, duration_ns, name, end_reason, args)`, in time order."""
    return sort_by_time(collector_slices(profile, "name", "end_reason", "args"))


def _pauses(slices: list[tuple[Any, ...]]) -> list[Pause]:
    return [
        Pause(start, duration, name.split()[0])
        for start, duration, name, end, _ in slices
        if end == "exit" and name.endswith(" pause")
    ]


def gc_activity(profile: RuntimeProfile, objects: Objects) -> GcActivity:
    """The garbage collector activity of a profile."""
    slices = _slices(profile)
    pauses = _pauses(slices)
    ended: dict[str, list[int]] = {}
    finalized: dict[str | None, list[int]] = {}
    for start, duration, name, end, args in slices:
        if end == "exit":
            ended.setdefault(name, []).append(duration)
            if name == "finalizer":
                finalized_object = objects.at(object_address(args), start)
                finalized.setdefault(finalized_object.type_name, []).append(duration)
    generations = [
        Generation(
            name, distribution_of(ended.get(f"{name} collection", [])), distribution_of(ended.get(f"{name} pause", []))
        )
        for name in ("nursery", "major")
    ]
    finalizers = [Finalizers(name, distribution_of(durations)) for name, durations in finalized.items()]
    resizes, largest = _resizes(profile)
    return GcActivity(
        pauses=distribution_of([one.duration_ns for one in pauses]),
        generations=[one for one in generations if one.collections.count or one.pauses.count],
        timeline_ns=sum_by_bin([(one.start_ns, one.duration_ns) for one in pauses], profile.span_ns or (0, 0), BINS),
        num_open=sum(1 for _, _, name, end, _ in slices if name.endswith(" pause") and end != "exit"),
        num_resizes=resizes,
        max_heap_bytes=largest,
        num_moves=_num_moves(profile),
        finalizers=sorted(finalizers, key=lambda one: (-one.durations.sum, one.type_name or "")),
        finalizer_rounds=distribution_of(ended.get("finalizers", [])),
    )


def _num_moves(profile: RuntimeProfile) -> int | None:
    if profile.has("object_moves"):
        if not profile.selection.selects_threads:
            return profile.count_rows("object_moves", thread="source_id")
        # The collector moves objects while threads are stopped.
        slices = collector_slices(profile, "source_id", "name")
        pauses = [(source, start, start + lasted) for start, lasted, source, name in slices if name.endswith(" pause")]
        pauses.sort()
        moves = read_selected(profile, "object_moves", "source_id", "ts_ns", thread="source_id")
        return sum(_is_within(move, pauses) for move in moves)
    return 0 if not_recorded(profile, "moves", ["object_moves"]) is None else None


def _is_within(move: tuple[int, int], pauses: list[tuple[int, int, int]]) -> bool:
    """Whether a time of a recording is in one of its pauses, which are sorted."""
    source, ts_ns = move
    last = pauses[max(bisect_right(pauses, (source, ts_ns, sys.maxsize)) - 1, 0)] if pauses else (-1, 0, 0)
    return last[0] == source and last[1] <= ts_ns <= last[2]


def _resizes(profile: RuntimeProfile) -> tuple[int, int | None]:
    sizes = [int(size) for (size,) in read_selected(profile, "instants", "name", kinds=["gc_resize"])]
    return len(sizes), max(sizes, default=None)
