"""What exporters write: the kinds of data in a profile, and the form that each has in a target's files."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfuse.errors import ExportWarning
from perfuse.table import COUNTED_EVENTS

if TYPE_CHECKING:
    from perfuse.analysis.profiles import SampleProfile
    from perfuse.exporters.source import EventSource

DATA: dict[str, tuple[str, str]] = {
    "samples": ("samples", "samples"),
    "calls": ("calls", "call_events"),
    "call_sums": ("sums of calls", "call_sums"),
    "allocations": ("allocations", "allocations"),
    "slices": ("collections, pauses and lock waits", "slices"),
    "instants": ("instants", "instants"),
    "exceptions": ("exceptions", "exceptions"),
    "counters": ("counters", "counter_samples"),
    "heap_snapshots": ("heap snapshots", "heap_snapshots"),
    "handles": ("GC handles", "gc_handles"),
    "moves": ("object moves", "object_moves"),
    "code": ("JIT code", "code_objects"),
    "coverage": ("coverage", "coverage"),
    "unwind_tables": ("unwind tables", "unwind_functions"),
}
"""Kinds of data: a title for people, and the table that has rows of it."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What files of a target contain.

    Attributes:
        forms: The form of each kind of data that is written.
        not_yet: Kinds that the target's format could hold, and that are not written yet. Others it cannot hold.
    """

    forms: Mapping[str, str]
    not_yet: tuple[str, ...] = ()


def contents(*, not_yet: tuple[str, ...] = (), **forms: str) -> Contents:
    """What files of a target contain: the form of each kind of data, by its name in `DATA`."""
    assert DATA.keys() >= forms.keys() | set(not_yet), "a kind of data is not in the list"
    assert not forms.keys() & set(not_yet), "a kind of data is written and is not"
    return Contents(forms, not_yet)


STACKS_OF_ONE_EVENT = contents(
    samples="sums by stack, of one event",
    calls="sums by stack, of one event",
    call_sums="sums by stack, of one event",
    allocations="sums by stack, of one event",
)
"""Of flame graphs and collapsed stacks."""


OTHERS_NAMED = 10
"""Events that are named as not written; a recording of system calls has hundreds."""


def note_what_is_missing(profile: "EventSource", title: str, written: Contents) -> None:
    """Warns of data of a profile that a target's format could hold and that is not written."""
    missing = [DATA[name][0] for name in written.not_yet if profile.has(DATA[name][1])]
    if missing:
        warnings.warn(f"not written to {title}: {', '.join(missing)}", ExportWarning, stacklevel=4)


def note_other_events(profile: "SampleProfile", written: str, *also: str) -> None:
    """Warns of the events that a target of one event, and of what others are sums of, does not write.

    Time and numbers of calls, and bytes and numbers of allocations, are of the same calls and allocations.
    """
    from perfuse.analysis.sampled import events

    same = next((pair for pair in COUNTED_EVENTS.items() if written in pair), (written,))
    others = [event.name for event in events(profile) if event.name not in (*same, *also)]
    if others:
        more = f" and {len(others) - OTHERS_NAMED:,} more" if len(others) > OTHERS_NAMED else ""
        message = f"only event {written} is written, not {', '.join(others[:OTHERS_NAMED])}{more}"
        warnings.warn(ExportWarning(message, option="event"), stacklevel=4)
