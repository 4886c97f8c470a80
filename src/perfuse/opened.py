"""What a profile reads: recordings that are joined now.

`archive/saved_contents.py` answers the same of a saved profile.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from perfuse import _core
from perfuse.joins import Unwinding
from perfuse.table import OF_DUMPS, Parts, Scan, Tables, with_bytes

if TYPE_CHECKING:
    from perfuse._core import ArrowStream
    from perfuse.archive.contents import NativeCode
    from perfuse.archive.facts import EventSums
    from perfuse.diagnostics import Diagnostic
    from perfuse.recording import Recording

WITHOUT_EVENTS = frozenset({"samples", "code_dump", "unwind_tables"})
"""Roles of recordings without calls and allocations."""

TimeRange = tuple[int, int] | None
"""Start and end (not included) on the profile's clock; None for all times."""

Target = tuple[int | None, str | None, int, str | None] | None
"""What an address referred to: code object, name, offset in it, file; None where that is not known."""


class PartialTables(TypedDict):
    """What builds parts of tables, by their names: see `Tables`."""

    parts: Parts
    of_stacks: dict[str, Scan]
    of_time: dict[str, Scan]


class OpenedRecordings:
    """Recordings that are joined now.

    Attributes:
        recordings: The recordings.
        saved_path: The file that they were opened from, where it is a saved profile.
    """

    saved_path: str | None = None

    def __init__(self, recordings: "Sequence[Recording]", fusion: _core.Profile) -> None:
        self.recordings = tuple(recordings)
        self._fusion: _core.Profile | None = fusion

    @property
    def fusion(self) -> _core.Profile:
        """All recordings, joined."""
        assert self._fusion is not None
        return self._fusion

    @property
    def code(self) -> _core.Profile:
        """What has the tables of code, and machine code."""
        return self.fusion

    @property
    def heaps(self) -> _core.Profile:
        """What has the heap snapshots, with all allocations and moves of objects."""
        return self.fusion

    def events(self, time_ns: TimeRange) -> _core.Profile:  # noqa: ARG002 - saved profiles
        """What has the calls and events of a time; others may be missing."""
        return self.fusion

    def timeline(self, time_ns: TimeRange) -> _core.Profile:  # noqa: ARG002 - saved profiles
        """What has the tables that the timeline of a time is made of."""
        return self.fusion

    def slices_at(self, start_ns: int, end_ns: int) -> "ArrowStream | None":  # noqa: ARG002 - saved profiles
        """Table `slices` with at least those at a time, which includes its end; None where all are read as soon."""
        return None

    def table(self, name: str) -> "ArrowStream":
        """A table of all threads and times."""
        stream = self.fusion.table(name)
        if stream is None:
            raise KeyError(name)
        return stream

    def table_with_bytes(self, name: str) -> "ArrowStream":
        """The same with columns of raw bytes."""
        return with_bytes(self.code, name)

    def partial_tables(self, time_ns: TimeRange) -> PartialTables:  # noqa: ARG002 - saved profiles
        """What builds parts of tables that are read sooner than the whole."""
        has_dumps = any(recording.role == "code_dump" for recording in self.recordings)
        fewer = dict.fromkeys(OF_DUMPS, self.fusion.rows_of_stacks) if has_dumps else {}
        return {"parts": {}, "of_stacks": {**fewer}, "of_time": {}}

    def refuse_missing(self, tables: Tables) -> None:
        """Makes tables raise `UsageError` that need what was not saved."""

    def require_all_code(self) -> None:
        """Raises `UsageError` where machine code that recordings have was not saved with them."""

    def require_stack_copies(self) -> None:
        """Raises `UsageError` where copies of stacks that were recorded were not saved."""

    def omits_code_of(self, source_id: int) -> bool:  # noqa: ARG002 - saved profiles
        """Whether machine code that a recording has was not saved with it."""
        return False

    @property
    def has_no_events(self) -> bool:
        """Whether the recordings are none of calls or of a runtime."""
        return all(one.role in WITHOUT_EVENTS for one in self.recordings)

    @property
    def stated_events(self) -> "list[EventSums] | None":
        """The events of all samples with their sums, where they are known without reading them."""
        return None

    @property
    def stated_span_ns(self) -> tuple[int, int] | None:
        """Time of the first and the last sample or event, where it is known without reading them."""
        return None

    @property
    def stated_diagnostics(self) -> "tuple[Diagnostic, ...] | None":
        """Findings of reading and joining the recordings, where they were made when the profile was saved."""
        return None

    @property
    def unwinding(self) -> Unwinding | None:
        """How copies of stacks were unwound; None where there were none."""
        return Unwinding(**facts) if (facts := self.fusion.unwinding()) else None

    def native_module(self, path: str, build_id: str | None) -> "NativeCode":
        """Code of a program or library that was mapped."""
        return _core.NativeModule(self.fusion, path, build_id)

    def code_targets(self, process_id: int, at_ns: int, addresses: Sequence[int]) -> list[Target]:
        """What addresses of a process referred to at a time."""
        return _core.code_targets(self.code, process_id, at_ns, addresses)

    @property
    def sources(self) -> Mapping[str, tuple[str, str]]:
        """Source texts that were saved, with the file that each is from, by path."""
        return {}
