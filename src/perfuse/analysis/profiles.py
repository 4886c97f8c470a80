"""Protocols: what analyses require of a profile. `perfuse.Profile` implements all of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from perfuse import _core
from perfuse.analysis.recorded import RecordedProfile
from perfuse.filters.selection import Selection
from perfuse.table import Columns


class TableProfile(Protocol):
    """A profile with tables."""

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...


class SourceProfile(TableProfile, Protocol):
    """A profile whose code has source files."""

    def saved_sources(self) -> Mapping[str, tuple[str, str]]:
        """Source texts that were saved with the profile, with the file that each is from, by path."""
        ...


class SampleProfile(TableProfile, Protocol):
    """A profile with samples."""

    @property
    def title(self) -> str:
        """What was recorded."""
        ...

    def sql(self, query: str, /) -> Any:
        """Runs SQL over the common tables."""
        ...


class CallProfile(TableProfile, Protocol):
    """A profile with call traces."""

    @property
    def title(self) -> str:
        """What was recorded."""
        ...

    @property
    def has_traces(self) -> bool:
        """Whether it has call traces."""
        ...

    def call_statistics(self, **options: Any) -> _core.CallStatistics:
        """Statistics of the calls; `options` are those of `_core.call_statistics`."""
        ...


class RuntimeProfile(TableProfile, RecordedProfile, Protocol):
    """A profile of a program on a managed runtime."""

    @property
    def title(self) -> str:
        """What was recorded."""
        ...

    @property
    def selection(self) -> Selection:
        """The selected threads and time."""
        ...

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """Its first and last time."""
        ...

    def sql(self, query: str, /) -> Any:
        """Runs SQL over the common tables."""
        ...

    def has(self, table: str) -> bool:
        """Whether a table has rows, as far as that is known without building it."""
        ...

    def allocation_sums(self, by: str | None = None, *, stacks: bool = True) -> _core.ArrowStream:
        """Sums of allocations by thread, type and stack, or by one of them."""
        ...

    def stacks_of(self, table: str) -> tuple[_core.ArrowStream, _core.ArrowStream]:
        """Tables `stacks` and `frames` with only the stacks that rows of a table refer to."""
        ...

    def selected_rows(self, table: str, columns: Sequence[str], **which: Any) -> _core.ArrowStream:
        """Some columns of the rows of a table that belong to the selected threads and time."""
        ...

    def count_rows(self, table: str, **which: Any) -> int:
        """Number of selected rows of a table."""
        ...

    def row_counts(self, table: str, columns: tuple[str, str], **which: Any) -> list[tuple[str, int | None, int]]:
        """Number of selected rows by the values of a text and a key column."""
        ...

    def handle_sums(self, *, stacks: bool) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Handles by kind, and by kind and stack."""
        ...

    def process_pids(self) -> dict[int, int]:
        """The pid of the selected process of each recording with counters or a heap, by `source_id`."""
        ...

    def object_origins(self, objects: list[tuple[int, int]]) -> _core.ArrowStream:
        """Allocations of the objects that were at given addresses at given times."""
        ...


UNSELECTED = {"time": None, "thread": None}
"""Options of `read_selected` for the rows of all threads and times, whatever is selected."""


def read_selected(profile: RuntimeProfile, table: str, *columns: str, **which: Any) -> Iterator[tuple[Any, ...]]:
    """Some columns of the selected rows of a table, a tuple per row; `which` is that of `Profile.selected_rows`."""
    return Columns(profile.selected_rows(table, columns, **which)).tuples(*columns)


def collector_slices(profile: RuntimeProfile, *columns: str) -> Iterator[tuple[Any, ...]]:
    """Slices of the collector that overlap the selected time: `start_ns`, `duration_ns` and some more columns.

    Of selected threads, those that they ran, and the pauses of their processes: these stop every thread that exists.
    """
    overlaps, is_of_thread = profile.selection.overlaps, _stopped_threads(profile)
    own = ("start_ns", "duration_ns", "thread_id", "name")
    rows = read_selected(profile, "slices", *own, *columns, kinds=["gc"], time=None, thread=None)
    for start, duration, thread, name, *rest in rows:
        if overlaps(start, start + duration) and is_of_thread(thread, name, start, start + duration):
            yield start, duration, *rest


def _stopped_threads(profile: RuntimeProfile) -> Callable[[int, str, int, int], bool]:
    """Whether a slice of the collector, by its thread, name, start and end, is of the selected threads."""
    if not profile.selection.selects_threads:
        return lambda *_: True
    threads = Columns(profile.tables["threads"])
    process_of = dict(threads.tuples("thread_id", "process_id"))
    identities = threads.tuples("thread_id", "tid", "native_id", "name")
    selected = {one[0] for one in identities if profile.selection.has_thread(*one)}
    lives: dict[int, list[tuple[int | None, int | None]]] = {}
    for thread, process, start, end in threads.tuples("thread_id", "process_id", "start_ns", "end_ns"):
        if thread in selected:
            lives.setdefault(process, []).append((start, end))

    def is_of_thread(thread: int, name: str, start: int, end: int) -> bool:
        if thread in selected or not name.endswith(" pause"):
            return thread in selected
        lived = lives.get(process_of.get(thread, -1), [])
        return any((born is None or born < end) and (died is None or died > start) for born, died in lived)

    return is_of_thread


def lock_events(profile: RuntimeProfile) -> list[tuple[Any, ...]]:
    """Events of locks in the selected time, and the start and end of waits that overlap it, by thread and time.

    Each is `(thread_id, ts_ns, record_offset, object_address, kind, stack_id)`.
    """
    columns = ("thread_id", "ts_ns", "record_offset", "object_address", "kind", "stack_id")
    rows = sorted(read_selected(profile, "lock_events", *columns, time=None), key=lambda row: row[:3])
    if profile.selection.time_ns is None:
        return rows
    overlaps = profile.selection.overlaps
    selected = {index for index, row in enumerate(rows) if overlaps(row[1], row[1])}
    waiting: dict[tuple[int, int], int] = {}
    for index, (thread, ts_ns, _, address, kind, _) in enumerate(rows):
        if kind == "contention":
            # A thread may report a wait more than once: the first report is its start.
            waiting.setdefault((thread, address), index)
        elif (since := waiting.pop((thread, address), None)) is not None and overlaps(rows[since][1], ts_ns):
            selected |= {since, index}
    selected.update(index for index in waiting.values() if overlaps(rows[index][1], None))
    return [rows[index] for index in sorted(selected)]


def sort_by_time(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows by their first column; rows of equal times stay in the order of the table."""
    return sorted(rows, key=lambda row: row[0])
