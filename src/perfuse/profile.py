"""Several recordings on one clock: tables, SQL, exports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import IO, TYPE_CHECKING, Any

from perfuse import _core
from perfuse.diagnostics import Diagnostic, diagnostic
from perfuse.errors import UsageError
from perfuse.table import Table, Tables, names

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation

    from perfuse._core import ArrowStream, CallStatistics
    from perfuse.analysis.flame import FlameGraph
    from perfuse.analysis.heap import Heap
    from perfuse.call_log import CallLog
    from perfuse.call_trace import CallTrace
    from perfuse.images import CodeImages
    from perfuse.query import Database
    from perfuse.recording import Recording
    from perfuse.runtime_log import RuntimeLog


@dataclass(frozen=True, slots=True)
class Join:
    """How a dump was put together with the samples.

    Attributes:
        path: The dump.
        pid: Process of the recording that wrote it; None where none did.
        how: `marker` (the process mapped the file), `header_pid`, `only_one` (one dump, one JIT process) or
            `unmatched`.
        alignment: `same_clock`, `marker`, `marker_and_rate`, `time_conv` or `none`.
        offset_ns: Nanoseconds added to the dump's times.
        uncertainty_ns: How far off that may be; None where it is exact or unknown.
    """

    path: str
    pid: int | None
    how: str
    alignment: str
    offset_ns: int
    uncertainty_ns: int | None


@dataclass(frozen=True, slots=True)
class Unwinding:
    """How copies of stacks, of `perf record --call-graph dwarf`, were unwound.

    Attributes:
        num_stacks: Stacks that were unwound.
        frames: Frames by what found them, as in column `frames.unwound_by`.
        stops: Stacks by why they end where they do: `outermost` (they are whole), `cut` (the rest was not copied),
            `no_rule` (nothing tells how to leave a function), `bad_read`, `lost_register`, `not_monotonic`,
            `bad_return_address` or `depth_limit`.
        cut_bytes: Size of the copies that stacks were cut at; None where none were.
    """

    num_stacks: int
    frames: dict[str, int]
    stops: dict[str, int]
    cut_bytes: int | None


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a profile's samples and calls is looked at."""

    start_ns: int | None = None
    end_ns: int | None = None
    thread: str | int | None = None

    @property
    def condition(self) -> str | None:
        """The selection as an SQL condition over `samples`; None where everything is selected."""
        parts = []
        if self.start_ns is not None:
            parts.append(f"ts_ns >= {self.start_ns}")
        if self.end_ns is not None:
            parts.append(f"ts_ns < {self.end_ns}")
        if self.threads is not None:
            parts.append(f"thread_id IN ({self.threads})")
        return " AND ".join(parts) or None

    @property
    def threads(self) -> str | None:
        """An SQL query for the keys of the selected threads; None where all are selected."""
        if self.thread is None:
            return None
        name = str(self.thread).replace("'", "''")
        condition = f"tid = {self.thread}" if isinstance(self.thread, int) else f"name = '{name}'"
        return f"SELECT thread_id FROM threads WHERE {condition}"

    @property
    def time_ns(self) -> tuple[int, int] | None:
        """Start and end, as far as any clock goes where one of them is open; None where all time is selected."""
        if self.start_ns is None and self.end_ns is None:
            return None
        first, last = -(2**63), 2**63 - 1
        return first if self.start_ns is None else self.start_ns, last if self.end_ns is None else self.end_ns


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
        fusion: _core.Fusion,
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
        path = next(recording.path for recording in self.recordings if "callchains" in recording.fills)
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
        return any({"callchains", "samples"} & {*recording.fills} for recording in self.recordings)

    @property
    def has_traces(self) -> bool:
        """Whether any of the recordings tells of calls."""
        return any({"call_events", "call_sums"} & {*recording.fills} for recording in self.recordings)

    @cached_property
    def unwinding(self) -> Unwinding | None:
        """How copies of stacks were unwound; None where nothing was to be unwound."""
        told = self._fusion.unwinding()
        return Unwinding(**told) if told else None

    @cached_property
    def span_ns(self) -> tuple[int, int] | None:
        """Time of the first and the last sample, or event of a call trace; None without any."""
        traced = self._fusion.trace_span() if self.selection == Selection() else None
        if traced and all("call_events" in recording.fills for recording in self.recordings):
            return traced
        ((first, last),) = self.sql("SELECT min(ts_ns), max(ts_ns) FROM samples").fetchall()
        if first is None or traced is None:
            return traced if first is None else (first, last)
        return min(first, traced[0]), max(last, traced[1])

    def call_statistics(self, **options: Any) -> "CallStatistics":
        """What the calls of its traces cost, of the selected threads and time.

        Args:
            options: Those of the core: `by` (`function`, `thread` or `cpu`), `rank` (how percentiles are taken:
                `nearest` or `llvm`), `functions` (keys), `recursive_only`, `edges`, `paths`.
        """
        return _core.call_statistics(self._fusion, **self._chosen(), **options)

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

    def flame(self, *, inverted: bool = False) -> "FlameGraph":
        """The flame graph of the samples."""
        from perfuse.analysis.flame import FlameGraph

        return FlameGraph.of(self, inverted=inverted)

    @property
    def has_heap_shots(self) -> bool:
        """Whether any of the recordings can tell of heap shots; whether one does, table `heap_snapshots` says."""
        return any("heap_snapshots" in recording.fills for recording in self.recordings)

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
        return {shot: (count, size) for shot, count, size in _core.heap_sizes(self._fusion)}

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
        """The calls and instants one by one, for files of timeline viewers; None where there are none.

        Args:
            progress: Called while they are looked over.
        """
        from perfuse.call_trace import CallTrace

        trace = CallTrace(self, progress)
        return trace if trace.num_events or trace.num_instants else None

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
            if self.has_traces:
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
        query = self.selection.threads
        threads = None if query is None else [key for (key,) in self._whole().sql(query).fetchall()]
        return {"threads": threads, "time_ns": self.selection.time_ns}

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
