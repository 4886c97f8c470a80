"""What the garbage collector did: pauses, collections, the size of the heap, finalizers."""

from dataclasses import dataclass
from typing import Any

from perfuse.analysis.distribution import Distribution, distribution_of, sum_by_bin
from perfuse.analysis.objects import Objects, object_address
from perfuse.analysis.profiles import RuntimeProfile, read_selected, sort_by_time

BINS = 60
"""Parts of the recorded time that a timeline has."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A time the world stood still: from when every thread was stopped to when they went on.

    Attributes:
        start_ns: When, on the profile's clock.
        duration_ns: How long.
        generation: `nursery` or `major`.
    """

    start_ns: int
    duration_ns: int
    generation: str


@dataclass(frozen=True, slots=True)
class Generation:
    """Collections of a generation.

    Attributes:
        name: `nursery` or `major`.
        collections: How long they took; one is often within a pause.
        pauses: How long the world stood still for them.
    """

    name: str
    collections: Distribution
    pauses: Distribution


@dataclass(frozen=True, slots=True)
class Finalizers:
    """Finalizers of a type.

    Attributes:
        type_name: The type; None where the allocation of the objects was not recorded.
        durations: How long they took.
    """

    type_name: str | None
    durations: Distribution


@dataclass(frozen=True, slots=True)
class GcActivity:
    """What the collector did in the selected time.

    Attributes:
        pauses: All pauses.
        generations: By generation.
        timeline_ns: Time stood still, in `BINS` parts of the recorded time.
        num_open: Pauses that had not ended when the recording did.
        num_resizes: Times the heap was given more memory.
        max_heap_bytes: The largest size it was given; None where that was not recorded.
        num_moves: Objects moved.
        finalizers: By type, the ones that took longest first.
        finalizer_rounds: How long each time took that finalizers were run.
    """

    pauses: Distribution
    generations: list[Generation]
    timeline_ns: list[int]
    num_open: int
    num_resizes: int
    max_heap_bytes: int | None
    num_moves: int
    finalizers: list[Finalizers]
    finalizer_rounds: Distribution


def gc_pauses(profile: RuntimeProfile) -> list[Pause]:
    """The pauses that ended, in the order of time."""
    return _pauses(_slices(profile))


def _slices(profile: RuntimeProfile) -> list[tuple[Any, ...]]:
    """What the collector did: `(start_ns, duration_ns, name, end_reason, args)`, in the order of time."""
    columns = ("start_ns", "duration_ns", "name", "end_reason", "args")
    return sort_by_time(read_selected(profile, "slices", *columns, kinds=["gc"], time="start_ns"))


def _pauses(slices: list[tuple[Any, ...]]) -> list[Pause]:
    return [
        Pause(start, duration, name.split()[0])
        for start, duration, name, end, _ in slices
        if end == "exit" and name.endswith(" pause")
    ]


def gc_activity(profile: RuntimeProfile, objects: Objects) -> GcActivity:
    """Everything the collector did."""
    slices = _slices(profile)
    pauses = _pauses(slices)
    ended: dict[str, list[int]] = {}
    finalized: dict[str | None, list[int]] = {}
    for start, duration, name, end, args in slices:
        if end == "exit":
            ended.setdefault(name, []).append(duration)
            if name == "finalizer":
                known = objects.at(object_address(args), start)
                finalized.setdefault(known.type_name, []).append(duration)
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
        num_moves=profile.count_rows("object_moves", thread=None) if profile.has("object_moves") else 0,
        finalizers=sorted(finalizers, key=lambda one: (-one.durations.sum, one.type_name or "")),
        finalizer_rounds=distribution_of(ended.get("finalizers", [])),
    )


def _resizes(profile: RuntimeProfile) -> tuple[int, int | None]:
    sizes = [int(size) for (size,) in read_selected(profile, "instants", "name", kinds=["gc_resize"])]
    return len(sizes), max(sizes, default=None)
