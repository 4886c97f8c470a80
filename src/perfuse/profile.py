"""Several recordings on one clock: tables, SQL, exports."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import IO, TYPE_CHECKING, Any

from perfuse import _core
from perfuse.diagnostics import Diagnostic, diagnostic
from perfuse.errors import UsageError
from perfuse.joins import Join, Unwinding
from perfuse.selection import Selection
from perfuse.table import Table, Tables, names

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

    from perfuse._core import ArrowStream, CallStatistics
    from perfuse.analysis.allocations import Allocations
    from perfuse.analysis.exceptions import Exceptions
    from perfuse.analysis.flame import FlameGraph
    from perfuse.analysis.gc import GcActivity, Pause
    from perfuse.analysis.heap import Heap
    from perfuse.analysis.locks import Contention
    from perfuse.call_log import CallLog
    from perfuse.call_trace import CallTrace
    from perfuse.images import CodeImages
    from perfuse.query import Database
    from perfuse.recording import Recording
    from perfuse.runtime_log import RuntimeLog


class Profile:
    """Recordings joined on one clock; `perfuse.fuse` makes it. Tables are built when first used.

    Attributes:
        recordings: The open files, perf.data first.
        joins: How each dump was put together with the samples.
        title: What was recorded: a command line, or file names.
        selection: What of the samples is looked at.
    """

    def __init__(
        self,
        recordings: Sequence["Recording"],
        fusion: _core.Profile,
        *,
        joins: Sequence[Join],
        found: Sequence[Diagnostic],
        title: str,
        selection: Selection | None = None,
    ) -> None:
        self.recordings = tuple(recordings)
        self.joins = tuple(joins)
        self.title = title
        self._fusion = fusion
        self._found = tuple(found)
        self.selection = selection or Selection()

    @cached_property
    def tables(self) -> Tables:
        """All common tables."""
        return Tables(self._build, names())

    def sql(self, query: str) -> "DuckDBPyRelation":
        """Asks the common tables in SQL; a table is built when a query names it.

        Returns:
            A DuckDB relation: `.fetchall()`, `.df()`, `.pl()`, `.arrow()`, `.write_parquet(path)`; it prints itself.

        Raises:
            QueryError: It is no SQL, or names what there is not. What goes wrong only with the rows, a conversion say,
                DuckDB raises itself when they are fetched.
        """
        return self._database.sql(query)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What reading the recordings and putting them together found; `Recording.check` tells every habit."""
        checked = [d for recording in self.recordings for d in recording.findings()]
        naming = [
            replace(diagnostic(code, path, message, offset), count=count)
            for path, code, message, offset, count in self._fusion.naming_findings()
        ]
        return (*self._found, *naming, *self._stacks_lost(), *checked)

    def _stacks_lost(self) -> list[Diagnostic]:
        """That not all stacks could be unwound to their ends."""
        if self.unwinding is None:
            return []
        told, whole = [], f"of {self.unwinding.num_stacks:,} stacks"
        stops = dict(self.unwinding.stops)
        stops.pop("outermost", 0)
        path = next(recording.path for recording in self.recordings if recording.role == "samples")
        if cut := stops.pop("cut", 0):
            message = f"{cut:,} {whole} end where the copy of {self.unwinding.cut_bytes or 0:,} bytes does"
            told.append(replace(diagnostic("FU009", path, message), count=cut))
        if lost := sum(stops.values()):
            why = ", ".join(f"{count:,} {stop.replace('_', ' ')}" for stop, count in stops.items())
            told.append(replace(diagnostic("FU010", path, f"{lost:,} {whole} are not whole: {why}"), count=lost))
        return told

    @property
    def has_samples(self) -> bool:
        """Whether any of the recordings tells of samples, other than by what its calls add up to."""
        return self.has("callchains") or self.has("samples")

    @property
    def has_traces(self) -> bool:
        """Whether any of the recordings tells of calls."""
        return self.has("call_events") or self.has("call_sums")

    def has(self, table: str) -> bool:
        """Whether any of the recordings has rows for a table, as far as that can be told without making it."""
        return any(recording.has(table) for recording in self.recordings)

    @cached_property
    def unwinding(self) -> Unwinding | None:
        """How copies of stacks were unwound; None where nothing was to be unwound."""
        told = self._fusion.unwinding()
        return Unwinding(**told) if told else None

    @cached_property
    def span_ns(self) -> tuple[int, int] | None:
        """Time of the first and the last sample, or event of a call trace; None without any."""
        traced = self._fusion.trace_span() if self.selection == Selection() else None
        if traced and all(recording.role in ("call_trace", "runtime_log") for recording in self.recordings):
            return traced
        spans = [(first, last) for *_, first, last in _core.sampled_events(self.tables["samples"])]
        spans += [traced] if traced else []
        return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None

    def allocations(self) -> "Allocations":
        """What the selected threads allocated in the selected time: by type, by place, by thread."""
        from perfuse.analysis.allocations import Allocations

        return Allocations(self)

    def gc_pauses(self) -> "list[Pause]":
        """The times the world stood still for the garbage collector, in the selected time."""
        from perfuse.analysis.gc import gc_pauses

        return gc_pauses(self)

    def gc_activity(self) -> "GcActivity":
        """What the garbage collector did: pauses, collections, the size of the heap, finalizers."""
        from perfuse.analysis.gc import gc_activity
        from perfuse.analysis.objects import Objects

        return gc_activity(self, Objects(self))

    def contention(self) -> "Contention":
        """Who waited for which lock, and how long."""
        from perfuse.analysis.locks import contention
        from perfuse.analysis.objects import Objects

        return contention(self, Objects(self))

    def exceptions(self) -> "Exceptions":
        """What was thrown and where, and what handled it."""
        from perfuse.analysis.exceptions import exceptions
        from perfuse.analysis.objects import Objects

        return exceptions(self, Objects(self))

    def call_statistics(self, **options: Any) -> "CallStatistics":
        """What the calls of its traces cost, of the selected threads and time.

        Args:
            options: Those of the core: `by` (`function`, `thread` or `cpu`), `rank` (how percentiles are taken:
                `nearest` or `llvm`), `functions` (keys), `recursive_only`, `edges`, `paths`.
        """
        return _core.call_statistics(self._fusion, **self._chosen(), **options)

    def allocation_sums(self, by: str | None = None, *, stacks: bool = True) -> "ArrowStream":
        """What the selected threads allocated in the selected time, added up in one pass: a row each.

        Args:
            by: `type`, `stack` or `thread`; by all three where not given.
            stacks: Whether to look at stacks, which takes most of the time.
        """
        return _core.allocation_sums(self._fusion, by=by, stacks=stacks, **self._chosen())

    def stacks_of(self, table: str) -> "tuple[ArrowStream, ArrowStream]":
        """Tables `stacks` and `frames` with the stacks alone that `selected_rows` and `handle_sums` of a table name."""
        stacks, frames = (self._fusion.table(name, stacks_of=table) for name in ("stacks", "frames"))
        if stacks is None or frames is None:
            raise KeyError(table)
        return stacks, frames

    def selected_rows(self, table: str, columns: Sequence[str], **which: Any) -> "ArrowStream":
        """Some columns of the rows of a table that are of the selected threads and time.

        Args:
            table: A table that recordings fill by themselves. `slices` is without calls; keys of stacks are those of
                `stacks_of`.
            columns: Their names.
            which: `kinds`, only rows with these in column `kind`; `time` and `thread`, the columns of the time and the
                thread where they are not `ts_ns` and `thread_id`, None where all are wanted.
        """
        return _core.selected_rows(self._fusion, table, columns, self.selection.rows(self._threads, **which))

    def count_rows(self, table: str, **which: Any) -> int:
        """How many rows of a table are selected."""
        return _core.count_rows(self._fusion, table, self.selection.rows(self._threads, **which))

    def row_counts(self, table: str, columns: tuple[str, str], **which: Any) -> list[tuple[str, int | None, int]]:
        """How many selected rows have the same word and key: `(word, key, count)`."""
        return _core.row_counts(self._fusion, table, columns, self.selection.rows(self._threads, **which))

    def handle_sums(self, *, stacks: bool) -> "tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]":
        """Handles that the selected threads made or freed in the selected time.

        Returns:
            `(kind, created, destroyed, left, most alive)` and, of those made, `(kind, stack_id, created, left)`; with
            `stacks` by the stacks that made them.
        """
        return _core.handle_sums(self._fusion, stacks=stacks, **self._chosen())

    def object_origins(self, objects: Sequence[tuple[int, int]]) -> "ArrowStream":
        """Where objects were allocated, given as addresses with a time each: the collector's moves are followed back.

        A row for each, null where its allocation was not recorded.
        """
        addresses, times = [address for address, _ in objects], [ts_ns for _, ts_ns in objects]
        return _core.object_origins(self._fusion, addresses, times)

    def between(self, start_s: float, end_s: float) -> "Profile":
        """The samples and calls of a time range, in seconds from the first of them; all other tables stay whole.

        Calls that reach over an end of the range are cut there.
        """
        first = self._whole().span_ns
        zero = first[0] if first else 0
        start, end = zero + round(start_s * 1e9), zero + round(end_s * 1e9)
        return self._selected(replace(self.selection, start_ns=start, end_ns=end))

    def thread(self, thread: str | int) -> "Profile":
        """The samples and calls of one thread, by tid or name."""
        return self._selected(replace(self.selection, thread=thread))

    def flame(self, *, inverted: bool = False, event: str | None = None) -> "FlameGraph":
        """The flame graph of the samples; where none were taken, of recorded calls, else of allocations.

        Args:
            inverted: Whether to start from the functions that ran and go to their callers.
            event: Event: `allocated-bytes` and `allocations` are those of allocations.

        Raises:
            UsageError: The profile has no such event.
        """
        from perfuse.analysis.flame import FlameGraph

        return FlameGraph.of(self, inverted=inverted, event=event)

    @property
    def has_heap_shots(self) -> bool:
        """Whether any of the recordings can tell of heap shots; whether one does, table `heap_snapshots` says."""
        return self.has("heap_snapshots") or self.has("gc_handles")

    def heap(self, snapshot: int | None = None) -> "Heap":
        """A heap shot: what each object retains, what keeps it alive, what grew since another shot.

        Args:
            snapshot: Its key (`snapshot_id`); without one, the last shot.

        Raises:
            UsageError: There is none, or none with that key.
        """
        from perfuse.analysis.heap import Heap, snapshots

        shots = snapshots(self)
        chosen = shots[-1:] if snapshot is None else [shot for shot in shots if shot.snapshot_id == snapshot]
        if not chosen:
            hint = f"there are {', '.join(str(shot.snapshot_id) for shot in shots)}" if shots else None
            raise UsageError("no heap shot was recorded" if not shots else f"no heap shot {snapshot}", hint=hint)
        return Heap(self, chosen[0], _core.HeapShot(self._fusion, chosen[0].snapshot_id))

    def heap_sizes(self) -> dict[int, tuple[int, int]]:
        """Objects of each heap shot and their size in bytes, by its key; those of empty shots are left out."""
        from perfuse.analysis.heap_sums import shot_sizes

        return shot_sizes(_core.heap_sums(self._fusion)[0])

    @property
    def images(self) -> "CodeImages":
        """The JIT code as ELF files, and the perf.data that maps them."""
        from perfuse.images import CodeImages

        return CodeImages(self)

    @property
    def call_log(self) -> "CallLog":
        """What traces tell of calls, as an XRay log."""
        from perfuse.call_log import CallLog

        return CallLog(self)

    @property
    def runtime_log(self) -> "RuntimeLog":
        """What its runtime logged, as a Mono log."""
        from perfuse.runtime_log import RuntimeLog

        return RuntimeLog(self)

    def call_trace(self, progress: "Progress | None" = None) -> "CallTrace | None":
        """Calls, slices, counters and instants one by one, for files of timeline viewers; None where there are none.

        Args:
            progress: Called while they are looked over.
        """
        from perfuse.call_trace import CallTrace

        trace = CallTrace(self, progress)
        return None if trace.is_empty else trace

    def export(
        self,
        path: str | PathLike[str] | IO[bytes],
        *,
        to: str | None = None,
        progress: "Progress | None" = None,
        **options: Any,
    ) -> tuple[str, ...]:
        """Writes the profile for another tool, whole or not at all.

        Args:
            path: File to write, or directory for targets that make several files; `-` is standard output.
            to: Target (`firefox`, `collapsed`, ...); told from the file name where not given.
            progress: Called with what is being done, and how much of it is, by targets that take long.
            options: The target's own.

        Returns:
            The files that were written; the one that was asked for last.

        Raises:
            UsageError: No such target, or the name tells none.
            ExportError: The profile has nothing for it, or it cannot be written.
        """
        from perfuse.exporters import export

        return export(self, path, to=to, progress=progress, **options)

    def _build(self, name: str) -> "ArrowStream":
        if name == "samples" and self.selection.condition is not None:
            whole = self._whole()
            if self.has_traces or self.has("allocations"):
                return _core.selected_samples(self._fusion, **self._chosen())
            return whole.sql(f"SELECT * FROM samples WHERE {self.selection.condition}")  # type: ignore[return-value]
        if name == "diagnostics":
            return _core.diagnostics_table(
                [(d.path, d.code, d.message, d.offset, d.record_index, d.field, d.count) for d in self.diagnostics],
                [r.path for r in self.recordings],
            )
        stream = self._fusion.table(name)
        if stream is None:
            raise KeyError(name)
        return stream

    @cached_property
    def _database(self) -> "Database":
        from perfuse.query import Database

        return Database(self.tables)

    def _chosen(self) -> dict[str, Any]:
        """The selection, as the core takes it."""
        return {"threads": self._threads, "time_ns": self.selection.time_ns}

    @cached_property
    def _threads(self) -> list[int] | None:
        return None if self.selection.thread is None else self.selection.keys(self._whole().tables["threads"])

    def _whole(self) -> "Profile":
        return self if self.selection == Selection() else self._selected(Selection())

    def _selected(self, selection: Selection) -> "Profile":
        return Profile(
            self.recordings,
            self._fusion,
            joins=self.joins,
            found=self._found,
            title=self.title,
            selection=selection,
        )

    def __repr__(self) -> str:
        return f"<perfuse profile {self.title}: {', '.join(r.path for r in self.recordings)}>"

    def _repr_html_(self) -> str:
        from perfuse.reports.notebook import profile_html

        return profile_html(self)


Progress = Callable[[str, float], None]
"""Called with what is being done and how much of it is, from 0 to 1."""

__all__ = ["Join", "Profile", "Progress", "Selection", "Table", "Unwinding"]
