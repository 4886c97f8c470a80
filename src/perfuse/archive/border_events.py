"""Calls and events of a range of time of a saved profile, without the copies of its recordings."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from perfuse import _core

if TYPE_CHECKING:
    from perfuse.archive.manifest import Manifest
    from perfuse.clock import Clock
    from perfuse.recording import Recording

BORDER_EVENTS = "resolved/border_events.parquet"
"""Rows of `call_events` that calls of any range need."""

EVENT_OBJECTS = "resolved/event_objects.parquet"
"""Objects of runtime events with their allocations, which may be at any time before."""

SLICES = "resolved/slices.parquet"
"""Rows of `slices` that are not calls, where `slices` is not saved."""

ROLES = frozenset({"samples", "code_dump", "unwind_tables", "call_trace", "runtime_log"})
"""Roles of recordings whose calls and events of a range are read from the saved tables."""

RUNTIME_TABLES = (
    *("functions", "modules", "types", "frames", "stacks", "samples", "processes", "threads", "code_objects"),
    *("instants", "lock_events", "exceptions", "counters", "counter_samples", "coverage"),
    *("allocations", "object_moves", "gc_handles"),
)
"""Tables that ranges of runtime logs are read of."""

ALL_TIMES = (-(2**63), 2**63 - 1)


RecordingRow = tuple[str, Sequence[str], Mapping[str, int], tuple[int, int] | None, "Clock", int | None]
"""Format, tables with rows of it, number of keys of each kind, span, clock, process."""


class Contents(Protocol):
    """What a saved profile contains.

    Attributes:
        core: The open file.
        manifest: What it states.
        members: Names of its members.
    """

    core: _core.Recording
    manifest: "Manifest"
    members: frozenset[str]

    @property
    def recordings(self) -> "Sequence[Recording]":
        """Its recordings."""
        ...

    def row(self, number: int) -> "RecordingRow | None":
        """What the core needs of a recording without its copy; None where the file does not state it."""
        ...

    def has_all(self, tables: Iterable[str]) -> bool:
        """Whether tables are answered from the file alone."""
        ...

    def readable(self) -> AbstractContextManager[None]:
        """An error about what the file states is one of the file."""
        ...


def events_of_range(contents: Contents, time_ns: tuple[int, int]) -> _core.Profile | None:
    """What has the calls and events of a range of time; None where they are read from the copies.

    Raises:
        UnreadableInput: The file is damaged, or contradicts itself.
    """
    manifest = contents.manifest
    logs_events = any(one.role == "runtime_log" for one in contents.recordings)
    if not (_has_events(contents) if logs_events else BORDER_EVENTS in contents.members):
        return None
    if not contents.has_all(("call_events",)):
        return None
    rows = []
    for number in range(len(manifest.inputs)):
        row = contents.row(number)
        if row is None or contents.recordings[number].role not in ROLES:
            return None
        rows.append(row)
    with contents.readable():
        return _core.saved_range(contents.core, time_ns, rows, manifest.made_rows, manifest.partial)


def _has_events(contents: Contents) -> bool:
    """Whether the file has what events of a range need of a runtime log."""
    is_stated = EVENT_OBJECTS in contents.members and contents.manifest.traced_samples is not None
    return is_stated and contents.has_all(RUNTIME_TABLES)
