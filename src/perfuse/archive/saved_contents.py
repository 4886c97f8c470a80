"""What a saved profile contains: the copies of its recordings, and everything that was resolved when it was saved."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from threading import RLock
from typing import TYPE_CHECKING

from perfuse import _core
from perfuse.archive.border_events import ALL_TIMES
from perfuse.archive.manifest import Manifest, unreadable_manifest
from perfuse.archive.saved_recording import SavedRecording
from perfuse.errors import UsageError
from perfuse.joins import Unwinding
from perfuse.opened import OpenedRecordings, PartialTables, Target, TimeRange
from perfuse.recording import Recording
from perfuse.table import OF_DUMPS, Near, Tables

if TYPE_CHECKING:
    from perfuse._core import ArrowStream
    from perfuse.archive.border_events import RecordingRow
    from perfuse.archive.contents import NativeCode
    from perfuse.archive.facts import EventSums, Facts, RecordingFacts
    from perfuse.archive.resolved_code import ResolvedCode
    from perfuse.diagnostics import Diagnostic


MADE_AGAIN = frozenset({"diagnostics", "instructions", "line_rows", "inline_calls"})
"""Tables that are not answered from the file, whatever it has of them."""

OF_TIMELINES = (
    *("samples", "stacks", "frames", "functions", "code_objects", "modules", "mappings"),
    *("processes", "threads", "sched_states"),
)
"""Tables that timelines of samples are made of."""


OF_HEAPS = ("heap_snapshots", "heap_objects", "heap_references", "heap_roots")
"""Tables of heap snapshots."""
MADE_OF_HEAPS = ("heap_dominators", "heap_classes", "heap_sites")
"""Tables that are made of these."""

TABLES_OF_CODE = frozenset({*OF_DUMPS, "line_rows", "inline_calls"})
"""Tables of which a file may have only some rows. The others are those of recordings with code."""

MOST_RANGES = 4
"""Ranges of time whose events are kept open."""


class SavedContents(OpenedRecordings):
    """What a saved profile contains. Its recordings are unpacked when something needs more than the saved tables.

    Nothing is looked up on this machine.

    Attributes:
        saved_path: The file.
        core: The open file.
        manifest: What it states.
        members: Names of its members.
        tables: Tables that are answered from their members alone.
        recordings: Its recordings.
    """

    saved_path: str

    def __init__(self, file: Recording, manifest: Manifest) -> None:
        self.saved_path, self.core, self.manifest = file.path, file._core, manifest
        self.recordings = tuple(SavedRecording(self, number) for number in range(len(manifest.inputs)))
        self._lock = RLock()
        self._cores: dict[int, _core.Recording] = {}
        self._wholes: dict[int, _core.Recording] = {}
        self._fusion: _core.Profile | None = None
        self._code: _core.Profile | None = None
        self._ranges: dict[tuple[int, int], _core.Profile | None] = {}
        self.members = frozenset(name for name, _ in _core.saved_members(self.core))
        self.tables = frozenset(
            row["name"]
            for row in manifest.tables
            if row.get("complete", True) and row["name"] not in MADE_AGAIN and row["member"] in self.members
        )

    def unpacked(self, number: int) -> "_core.Recording":
        """A recording, unpacked, without the events that are counted in an earlier one.

        Raises:
            UnreadableInput: Its copy is damaged.
        """
        with self._lock:
            if number not in self._cores:
                core, one = self._whole(number), self.manifest.inputs[number]
                if any(found.code == "FU024" and found.path == one.path for found in self.manifest.diagnostics):
                    earlier = [
                        self._whole(other)
                        for other, its in enumerate(self.manifest.inputs[:number])
                        if its.format == one.format
                    ]
                    core, _ = core.without_copies_of(earlier) or (core, 0)
                self._cores[number] = core
            return self._cores[number]

    def _whole(self, number: int) -> "_core.Recording":
        """A recording, unpacked."""
        if number not in self._wholes:
            one = self.manifest.inputs[number]
            with self.readable():
                self._wholes[number] = _core.saved_recording(self.core, one.member, one.path, one.size_bytes, one.code)
        return self._wholes[number]

    @property
    def fusion(self) -> _core.Profile:
        """The recordings with what was resolved when they were saved.

        Raises:
            UnreadableInput: The file is damaged, or contradicts itself.
        """
        with self._lock:
            if self._fusion is None:
                self._fusion = self._fused(range(len(self.manifest.inputs)))
            return self._fusion

    @property
    def code(self) -> _core.Profile:
        """The same, in which only recordings with code are unpacked: for their tables and machine code.

        Raises:
            UnreadableInput: The file is damaged, or contradicts itself.
        """
        with self._lock:
            if self._code is None:
                known = self._facts.recordings
                with_code = {
                    number
                    for number, one in enumerate(known)
                    if one is None or one.keys is None or not TABLES_OF_CODE.isdisjoint(one.tables)
                }
                is_whole = self.manifest.joined_rows is None or len(with_code) == len(known)
                is_whole |= self._fusion is not None
                self._code = self.fusion if is_whole else self._fused(with_code)
            return self._code

    def _fused(self, unpacked: Container[int]) -> _core.Profile:
        """The recordings of which some are unpacked, with what was resolved when they were saved."""
        manifest = self.manifest
        recordings: list[_core.Placed | RecordingRow] = []
        with self.readable():
            for number, lines in enumerate(self._definitions()):
                known = None if number in unpacked else self.row(number)
                recordings.append(known or self._placed(number, lines))
            return _core.saved_profile(self.core, recordings, manifest.made_rows, manifest.partial)

    def _placed(self, number: int, lines: "_core.DefinedLines | None") -> _core.Placed:
        one = self.manifest.inputs[number]
        return _core.Placed(self.unpacked(number), one.clock, one.pid, lines, dict(one.nth_of_pid))

    def row(self, number: int) -> "RecordingRow | None":
        """What the core needs of a recording without its copy; None where the file does not state it.

        Raises:
            UnreadableInput: The file is damaged.
        """
        known, one = self.facts(number), self.manifest.inputs[number]
        if known is None or known.keys is None:
            return None
        pid = one.pid
        if pid is None and self.recordings[number].role == "runtime_log":
            pid = known.summary.header.get("pid")
        return one.format, sorted(known.tables), known.keys, known.span, one.clock, pid

    def facts(self, number: int) -> "RecordingFacts | None":
        """What is known of a recording without its copy; None where the file does not state it.

        Raises:
            UnreadableInput: The file is damaged.
        """
        return self._facts.recordings[number]

    @cached_property
    def _facts(self) -> "Facts":
        from perfuse.archive.facts import MEMBER, Facts, read_facts

        if MEMBER not in self.members:
            return Facts((None,) * len(self.manifest.inputs), frozenset(), None)
        member = _core.saved_member(self.core, MEMBER)
        try:
            return read_facts(member, len(self.manifest.inputs))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise unreadable_manifest(self.saved_path, error) from error

    @property
    def stated_events(self) -> "list[EventSums] | None":
        """The events of its samples with their sums; None where the file does not state them.

        Raises:
            UnreadableInput: The file is damaged.
        """
        return self._facts.events

    @property
    def stated_span_ns(self) -> tuple[int, int] | None:
        """Time of the first and the last sample or event."""
        return self.manifest.span_ns

    @property
    def stated_diagnostics(self) -> "tuple[Diagnostic, ...]":
        """Findings of reading and joining the recordings, when the profile was saved."""
        return self.manifest.diagnostics

    @property
    def unwinding(self) -> Unwinding | None:
        """How copies of stacks were unwound; None where there were none."""
        return self.manifest.unwinding

    def _definitions(self) -> "Sequence[_core.DefinedLines | None]":
        """Lines of functions that recordings were given."""
        numbers = [one.definitions for one in self.manifest.inputs]
        if all(number is None for number in numbers):
            return [None] * len(numbers)
        from perfuse.archive.definitions import MEMBER, read_definitions

        return read_definitions(_core.saved_member(self.core, MEMBER), numbers)

    def table(self, name: str, near: Near | None = None) -> "ArrowStream":
        """A table as it was saved; nothing else of the file is read.

        Args:
            name: Name of the table.
            near: A column of integers and a range: parts of a large table without a value in it are left out, unread.

        Raises:
            UnreadableInput: It is damaged.
        """
        if name in self.tables:
            stream = _core.saved_table(self.core, name, near)
        elif name in self._facts.empty_tables:
            stream = _core.empty_table(name)
        elif name == "slices" and (slices := self.slices_at(*self._starts(near))) is not None:
            stream = slices
        else:
            made_by = self.code if name in TABLES_OF_CODE else self.heaps if name in MADE_OF_HEAPS else self.fusion
            stream = made_by.table(name)
        if stream is None:
            raise KeyError(name)
        return stream

    @staticmethod
    def _starts(near: Near | None) -> tuple[int, int]:
        """The least and the greatest start of the slices with values in a range."""
        return near[1:] if near is not None and near[0] == "start_ns" else ALL_TIMES

    def slices_at(self, start_ns: int, end_ns: int) -> "ArrowStream | None":
        """At least all slices at a time, which includes its end; None where the saved tables are not enough.

        Raises:
            UnreadableInput: The file is damaged, or contradicts itself.
        """
        if not self.tables.issuperset({"call_events"}):
            return None
        # Ends of ranges are not in them, but for the last of all times.
        events = self._events_of((start_ns, min(end_ns + 1, ALL_TIMES[1])))
        return None if events is None else _core.slices_of_range(events)

    def has_all(self, tables: Iterable[str]) -> bool:
        """Whether tables are answered from the file alone."""
        return self.tables.union(self._facts.empty_tables).issuperset(tables)

    @property
    def tables_of_stacks(self) -> frozenset[str]:
        """Tables of which the file has only the rows that frames refer to, which may be none, and the last function."""
        complete = {str(row["name"]) for row in self.manifest.tables if row.get("complete", True)}
        return frozenset(OF_DUMPS if self.manifest.has_last_function else ("code_objects",)) - complete

    def rows_of_stacks(self, name: str) -> "ArrowStream":
        """What the file has of one of `tables_of_stacks`.

        Raises:
            UnreadableInput: It is damaged.
        """
        stream = _core.saved_table(self.core, name)
        if stream is None:
            # Without a row, the file has no such table.
            is_lost = name in self.manifest.partial
            stream = self.code.table(name) if is_lost else _core.empty_table(name)
        return stream  # type: ignore[return-value]

    def partial_tables(self, time_ns: TimeRange) -> PartialTables:
        """What builds parts of tables that are read sooner than the whole."""
        parted = dict.fromkeys(self.tables, self.table)
        if self.tables.issuperset({"call_events"}):
            parted["slices"] = self.table
        fewer = dict.fromkeys(self.tables_of_stacks, self.rows_of_stacks)
        timed = {} if time_ns is None else {"slices": partial(self.table_of_time, time_ns)}
        return {"parts": parted, "of_stacks": {**fewer}, "of_time": {**timed}}

    def events(self, time_ns: TimeRange) -> _core.Profile:
        """What has the calls and events of a time: of the saved tables alone, where these are enough.

        Raises:
            UnreadableInput: The file is damaged, or contradicts itself.
        """
        found = self._events_of(time_ns or ALL_TIMES)
        return self.fusion if found is None else found

    def timeline(self, time_ns: TimeRange) -> _core.Profile:
        """What has the tables that the timeline of a time is made of: the saved ones alone, where these are all.

        Raises:
            UnreadableInput: The file is damaged, or contradicts itself.
        """
        if not (self.has_no_events and self.has_all(set(OF_TIMELINES) - set(OF_DUMPS))):
            return self.events(time_ns)
        return _core.saved_tables_profile(self.core, time_ns or ALL_TIMES) if self.has_all(OF_DUMPS) else self.code

    def _events_of(self, time_ns: tuple[int, int]) -> _core.Profile | None:
        """The same of a range of time; None where the saved tables are not enough."""
        from perfuse.archive.border_events import events_of_range

        with self._lock:
            if time_ns not in self._ranges:
                if len(self._ranges) >= MOST_RANGES:
                    self._ranges.clear()
                self._ranges[time_ns] = events_of_range(self, time_ns)
            return self._ranges[time_ns]

    @property
    def heaps(self) -> _core.Profile:
        """What has the heap snapshots, and the allocations and moves of all times.

        Raises:
            UnreadableInput: The file is damaged, or contradicts itself.
        """
        with self._lock:
            is_unpacked = self._fusion is not None or not self.has_all(OF_HEAPS)
        return self.fusion if is_unpacked else self.events(ALL_TIMES)

    def table_of_time(self, time_ns: tuple[int, int], name: str) -> "ArrowStream":
        """A table with at least the rows of a range of time.

        Raises:
            UnreadableInput: It is damaged.
        """
        stream = self.events(time_ns).table(name)
        if stream is None:
            raise KeyError(name)
        return stream

    @contextmanager
    def readable(self) -> Iterator[None]:
        """An error about what the file states is one of the file."""
        try:
            yield
        except (ValueError, TypeError, OverflowError) as error:
            raise unreadable_manifest(self.saved_path, error) from error

    def refuse_missing(self, tables: Tables) -> None:
        """Makes tables raise `UsageError` that need machine code which was not saved."""
        if any(one.code is not None for one in self.manifest.inputs):
            tables.refuse("instructions", self.require_all_code)
            tables.refuse("code_objects", self.require_all_code, whole_only=True)

    def require_all_code(self) -> None:
        """Raises `UsageError` where machine code that recordings have was not saved with them."""
        if any(one.code is not None for one in self.manifest.inputs):
            raise UsageError(
                f"{self.saved_path} does not contain all machine code",
                path=self.saved_path,
                hint="`perfuse pack --code all` saves it",
            )

    def require_stack_copies(self) -> None:
        """Raises `UsageError` where copies of stacks that were recorded were not saved."""
        if self.unwinding is not None and not all(one.whole for one in self.manifest.inputs):
            raise UsageError(
                f"{self.saved_path} does not contain the copies of stacks that were recorded",
                path=self.saved_path,
                hint="`perfuse pack --inputs` saves them",
            )

    def omits_code_of(self, source_id: int) -> bool:
        """Whether machine code that a recording has was not saved with it."""
        return self.manifest.inputs[source_id].code is not None

    def native_module(self, path: str, build_id: str | None) -> "NativeCode":
        """Code of a program or library that was mapped, as it was when the profile was saved."""
        return self._resolved.module(path, build_id)

    def code_targets(self, process_id: int, at_ns: int, addresses: Sequence[int]) -> list[Target]:
        """What addresses of a process referred to at a time."""
        of_code = super().code_targets(process_id, at_ns, addresses)
        return self._resolved.targets(process_id, at_ns, addresses, of_code)

    @property
    def sources(self) -> Mapping[str, tuple[str, str]]:
        """Source texts that were saved, with the file that each is from, by path."""
        return self._resolved.sources

    @cached_property
    def _resolved(self) -> "ResolvedCode":
        from perfuse.archive.resolved_code import BYTES, FACTS, ResolvedCode

        members = {name: _core.saved_member(self.core, name) for name in (FACTS, BYTES) if name in self.members}
        return ResolvedCode(self.saved_path, members)
