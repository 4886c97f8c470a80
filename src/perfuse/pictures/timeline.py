"""The timeline of a profile: slices of threads and processes, for pictures of any part of the time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from perfuse import _core
from perfuse.errors import UsageError
from perfuse.filters.selection import Selection
from perfuse.table import Columns

SLICE_BYTES = 18
"""Memory of a slice and its part of the index."""


class TimelineProfile(Protocol):
    """A profile with events in time; `perfuse.Profile` is one."""

    @property
    def _timeline_tables(self) -> _core.Profile:
        """What has the tables that timelines are made of."""
        ...

    @property
    def tables(self) -> Any:
        """The common tables by name."""
        ...

    @property
    def selection(self) -> Selection:
        """The selected threads and time."""
        ...


@dataclass(frozen=True, slots=True)
class Track:
    """The slices of one kind of a thread or process.

    Attributes:
        number: Its number.
        kind: `calls`, `samples` (runs of equal frames of consecutive samples), `gc`, `jit`, `lock`, `custom`, `compile`
            (code objects, at the time from which they can run), `instants`, `state` (running, runnable or sleeping,
            from context switches) or `cpu` (the thread on a processor).
        thread_id: Key of its thread; None for other tracks.
        process_id: Key of its process; None for other tracks.
        cpu: Number of its processor; None for other tracks.
        slices: Number of slices by depth.
        span_ns: First start and last end; None without slices.
        busy_ns: Sum of the durations of the outermost slices.
    """

    number: int
    kind: str
    thread_id: int | None
    process_id: int | None
    cpu: int | None
    slices: tuple[int, ...]
    span_ns: tuple[int, int] | None
    busy_ns: int


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice, with its place: track, depth, and position in that row. Times are on the profile's clock."""

    track: int
    depth: int
    position: int
    start_ns: int
    duration_ns: int
    symbol: int

    @property
    def place(self) -> tuple[int, int, int]:
        """Track, depth and position."""
        return self.track, self.depth, self.position


@dataclass(frozen=True, slots=True)
class Symbol:
    """What slices are called.

    Attributes:
        number: Its number in tiles.
        name: Its name.
        short_name: The name without arguments.
        group: Symbols of one function in several tiers have the same.
        function_id: Key of its function; None where it is not a function.
        module: File that contains it.
        tier: Its tier.
        origin: Origin of its code.
        path: Source file.
        line: Line in it.
        unnamed_because: Why it has no name.
    """

    number: int
    name: str
    short_name: str
    group: int
    function_id: int | None
    module: str | None
    tier: str | None
    origin: str
    path: str | None
    line: int | None
    unnamed_because: str | None


class Timeline:
    """Slices of a profile in rows that state what any part of the time looks like at any resolution.

    Args:
        profile: The profile.
        event: Name of the event whose samples are shown; None for none.
        zero_ns: First moment of the profile: tiles are counted from it.
        memory_bytes: Most memory of the slices.
        num_events: Number of events of calls, for the share of progress.
        progress: Called with the name of the step and the completed share.

    Raises:
        UsageError: The slices need more memory.
    """

    def __init__(
        self,
        profile: TimelineProfile,
        *,
        event: str | None,
        zero_ns: int,
        memory_bytes: int,
        num_events: int | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> None:
        selection = profile.selection
        threads = selection.keys(profile.tables["threads"]) if selection.selects_threads else None
        self._profile = profile
        self.zero_ns = zero_ns
        try:
            self.core = _core.Timeline(
                profile._timeline_tables,
                event=event,
                zero_ns=zero_ns,
                max_slices=memory_bytes // SLICE_BYTES,
                threads=threads,
                time_ns=selection.time_ns,
                num_events=num_events,
                progress=progress,
            )
        except MemoryError:
            raise UsageError(
                f"the slices need more than {memory_bytes / 1e9:.3g} GB of memory",
                hint="select a part of the time with --between A..B, or allow more with --memory",
            ) from None
        self.num_bytes = self.core.num_bytes
        self.tracks = [
            Track(
                number,
                kind,
                thread_id=key if owner == "thread" else None,
                process_id=key if owner == "process" else None,
                cpu=key if owner == "processor" else None,
                slices=tuple(slices),
                span_ns=span,
                busy_ns=busy,
            )
            for number, (kind, owner, key, slices, span, busy) in enumerate(self.core.tracks())
        ]

    @property
    def num_slices(self) -> int:
        """Number of slices of all tracks."""
        return sum(sum(track.slices) for track in self.tracks)

    @cached_property
    def symbols(self) -> list[Symbol]:
        """The symbols, by their numbers: functions, then other names."""
        columns = Columns(self.core.symbols())
        names = (
            "name",
            "short_name",
            "group_id",
            "function_id",
            "module",
            "tier",
            "origin",
            "path",
            "line",
            "unnamed_because",
        )
        found = [Symbol(number, *row) for number, row in enumerate(columns.tuples(*names))]
        labels = self.core.labels()
        functions = self._functions() if any(function_id is not None for _, function_id, *_ in labels) else {}
        threads = self._threads() if any(thread_id is not None for _, _, thread_id, *_ in labels) else {}
        # A function that several recordings contain has a key in each.
        groups: dict[Any, int] = {
            functions[symbol.function_id]: symbol.group for symbol in reversed(found) if symbol.function_id in functions
        }
        first = max((symbol.group for symbol in found), default=-1) + 1
        for name, function_id, thread_id, tier, origin in labels:
            unknown = (name if function_id is None else f"function {function_id}", None, None, None, None)
            declared = unknown if function_id is None else functions.get(function_id, unknown)
            shown, module, path, line, _ = declared
            if thread_id is not None:
                shown = threads.get(thread_id, f"thread {thread_id}")
            group = groups.setdefault(shown if function_id is None else declared, first + len(groups))
            found.append(Symbol(len(found), shown, shown, group, function_id, module, tier, origin, path, line, None))
        return found

    def _threads(self) -> dict[int, str]:
        """Labels of threads by their keys."""
        from perfuse.analysis.sampled import thread_labels

        return dict(thread_labels(self._profile))

    def _functions(self) -> dict[int, tuple[str, str | None, str | None, int | None, int | None]]:
        """Name, module, path, line and column of functions by their keys."""
        modules = dict(Columns(self._profile.tables["modules"]).tuples("module_id", "name"))
        names = ("function_id", "name", "module_id", "path", "line", "column")
        rows = Columns(self._profile.tables["functions"]).tuples(*names)
        return {key: (name, modules.get(module), path, line, column) for key, name, module, path, line, column in rows}

    def slice(self, place: tuple[int, int, int]) -> Slice | None:
        """The slice at a place."""
        row = self.core.slice(place)
        return None if row is None else Slice(*row)

    def self_ns(self, place: tuple[int, int, int]) -> int:
        """The time of a slice outside of those one level below it."""
        return self.core.self_ns(place) or 0

    def parents(self, place: tuple[int, int, int]) -> list[Slice]:
        """The slices around a slice, outermost first."""
        return [Slice(*row) for row in self.core.parents(place)]

    def neighbour(self, place: tuple[int, int, int], *, is_next: bool, same_symbol: bool) -> Slice | None:
        """The slice after or before a slice: in its row, or the nearest in its track with its symbol."""
        row = self.core.neighbour(place, is_next, same_symbol)
        return None if row is None else Slice(*row)

    def longest(
        self,
        time_ns: tuple[int, int],
        *,
        threads: Sequence[int] | None = None,
        symbol: int | None = None,
        limit: int = 20,
    ) -> list[Slice]:
        """The longest slices that start in a time range, the longest first."""
        rows = self.core.longest(time_ns=time_ns, threads=threads, symbol=symbol, limit=limit)
        return [Slice(*row) for row in rows]
