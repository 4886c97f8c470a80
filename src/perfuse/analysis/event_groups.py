"""Several events per function, and their ratios."""

from __future__ import annotations

import re
from collections.abc import Sequence

from perfuse.analysis.profiles import SampleProfile
from perfuse.analysis.sampled import Event, SampleFilter, events
from perfuse.analysis.weights import Weights
from perfuse.value_class import value_class


@value_class
class Ratio:
    """A ratio of two events.

    Attributes:
        name: What it is called.
        part: Name of the event that is divided.
        whole: Name of the event that it is divided by.
        is_share: Whether it is a share, in percent.
    """

    name: str
    part: str
    whole: str
    is_share: bool


_RATIOS = (
    ("IPC", "instructions", ("cycles", "cpu-cycles"), False),
    ("branch misses", "branch-misses", ("branches", "branch-instructions"), True),
    ("cache misses", "cache-misses", ("cache-references",), True),
    ("L1 data misses", "L1-dcache-load-misses", ("L1-dcache-loads",), True),
    ("last level misses", "LLC-load-misses", ("LLC-loads",), True),
    ("data TLB misses", "dTLB-load-misses", ("dTLB-loads",), True),
    ("instruction TLB misses", "iTLB-load-misses", ("iTLB-loads",), True),
    ("stalled in front", "stalled-cycles-frontend", ("cycles", "cpu-cycles"), True),
    ("stalled in back", "stalled-cycles-backend", ("cycles", "cpu-cycles"), True),
)


@value_class
class FunctionEvents:
    """A function's own weight of each event.

    Attributes:
        name: The function.
        module: File or pseudo-module that contains it.
        weights: Its self weight of each event, in the order of the events.
        ratios: Each ratio; None where the event below is 0.
    """

    name: str
    module: str | None
    weights: tuple[int, ...]
    ratios: tuple[float | None, ...]


@value_class
class EventGroup:
    """The events of a profile by function.

    Attributes:
        events: The events, those with the most samples first.
        ratios: The ratios that these events have.
        total: The whole recording.
        functions: The functions, the heaviest of the first event first.
    """

    events: list[Event]
    ratios: list[Ratio]
    total: FunctionEvents
    functions: list[FunctionEvents]


def event_group(profile: SampleProfile, first: str | None = None) -> EventGroup:
    """Every sampled event by function; `first` is the event to sort by."""
    found = [one for one in events(profile) if not one.is_sum]
    found.sort(key=lambda one: one.name != first)
    ratios = ratios_of([one.name for one in found])
    sums: dict[tuple[str, str | None], list[int]] = {}
    for index, event in enumerate(found):
        for one in Weights(profile, SampleFilter(event=event.name)).functions():
            if one.self_weight:
                sums.setdefault((one.name, one.module), [0] * len(found))[index] += one.self_weight
    names = [event.name for event in found]

    def row(name: str, module: str | None, weights: Sequence[int]) -> FunctionEvents:
        by_name = dict(zip(names, weights, strict=True))
        values = (by_name[one.part] / by_name[one.whole] if by_name[one.whole] else None for one in ratios)
        return FunctionEvents(name, module, tuple(weights), tuple(values))

    rows = [row(name, module, weights) for (name, module), weights in sums.items()]
    rows.sort(key=lambda one: (*(-weight for weight in one.weights), one.name, one.module or ""))
    return EventGroup(found, ratios, row("", None, [event.weight for event in found]), rows)


def ratios_of(names: Sequence[str]) -> list[Ratio]:
    """The known ratios of events with these names. Names of a PMU and modifiers do not matter: `cpu_core/cycles/u`."""
    plain = {_plain(name): name for name in reversed(names)}
    found = []
    for title, part, wholes, is_share in _RATIOS:
        whole = next((plain[name] for name in wholes if name in plain), None)
        if part in plain and whole is not None:
            found.append(Ratio(title, plain[part], whole, is_share))
    return found


def _plain(name: str) -> str:
    """The event without its PMU and its modifiers."""
    inner = re.fullmatch(r"[\w-]+/([\w.-]+)[^/]*/\w*", name)
    return inner[1] if inner else name.partition(":")[0]
