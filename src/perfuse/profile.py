"""Several recordings joined on one clock: tables, SQL, analyses, exports."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import isinf
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, Self, cast

from perfuse import _core
from perfuse.diagnostics import Diagnostic, diagnostic
from perfuse.errors import UsageError, require_addresses, require_in_range
from perfuse.filters.selection import Selection
from perfuse.filters.stacks import FILTERED_TABLES, DuringKind, FilteredStacks, StackFilter, Step
from perfuse.join_findings import incomplete_stacks, unseen_dumps, unverified_programs
from perfuse.joins import Join, Unwinding
from perfuse.opened import OpenedRecordings, Target
from perfuse.table import ClosedObject, Columns, Table, Tables, names
from perfuse.value_class import replace

if TYPE_CHECKING:
    from perfuse._core import ArrowStream, CallStatistics
    from perfuse.analysis.allocations import Allocations
    from perfuse.analysis.annotation import Annotation
    from perfuse.analysis.exceptions import Exceptions
    from perfuse.analysis.gc import GcActivity, Pause
    from perfuse.analysis.heap import Heap
    from perfuse.analysis.locks import Contention
    from perfuse.archive.contents import CodeChoice, LineChoice, NativeCode, SourceChoice
    from perfuse.archive.facts import EventSums
    from perfuse.archive.writing import SavedFile
    from perfuse.exporters.code_images import CodeImages
    from perfuse.formats.mono.profile_log import RuntimeLog
    from perfuse.formats.xray.profile_log import CallLog
    from perfuse.pictures.call_trace import CallTrace
    from perfuse.pictures.flame_graph import FlameGraph
    from perfuse.pictures.page import PageView
    from perfuse.query import Connections, Database, DuckDBRelation, Parameters
    from perfuse.recording import Recording

ASKED_WITHIN = frozenset(
    {
        *("code_targets", "native_module", "saved_sources"),
        *("omits_code_of", "process_pids", "require_stack_copies", "saved_path", "stated_events"),
    }
)
"""What modules of perfuse ask of a profile: not part of the public interface."""


class Profile:
    """Recordings joined on one clock; `perfuse.fuse` makes it. Tables are built when first used.

    Attributes:
        recordings: The open files, perf.data first.
        joins: How each dump was joined with the samples.
        title: What was recorded: a command line, or file names.
        selection: The selected threads and time.
        stack_filter: The filter of its stacks.
    """

    def __init__(
        self,
        opened: OpenedRecordings,
        *,
        joins: Sequence[Join],
        found: Sequence[Diagnostic],
        title: str,
        selection: Selection | None = None,
        stack_filter: StackFilter | None = None,
        owned: Sequence["Recording"] = (),
    ) -> None:
        self.recordings = opened.recordings
        self.joins = tuple(joins)
        self.title = title
        self._opened = opened
        self._found = tuple(found)
        self.selection = selection or Selection()
        self.stack_filter = stack_filter or StackFilter()
        self._owned = tuple(owned)
        self._connections: Connections = {}

    @cached_property
    def tables(self) -> Tables:
        """All common tables. Relations made of them may outlive the profile."""
        opened, parts = self._opened, self._opened.partial_tables(self.selection.time_ns)
        built_here = {"samples", "diagnostics"} if self.selection.condition is not None else {"diagnostics"}
        built_here |= set(FILTERED_TABLES) if self.stack_filter else set()
        if self.stack_filter and "functions" in parts["of_stacks"]:
            parts["of_stacks"]["functions"] = lambda _name: self._filtered_stacks.functions_of_stacks()
        scans = {name: opened.table for name in names() if name not in built_here}
        tables = Tables(self._build, names(), scans, opened.table_with_bytes, **parts)
        opened.refuse_missing(tables)
        return tables

    def sql(
        self,
        query: str,
        parameters: "Parameters | None" = None,
        frames: Mapping[str, Any] | None = None,
        *,
        memory: int | str | None = None,
        allow_files: bool = False,
    ) -> "DuckDBRelation":
        """Runs SQL over the common tables; a table is built when a query first names it.

        Large tables are not held in memory: they are built again each time that a query scans them. Any number of
        threads may run queries.

        Args:
            query: The SQL, in DuckDB's dialect: one statement that returns rows; those before it may create tables.
            parameters: Values of `$name` in the query, by name, or of its `?`, in order.
            frames: Tables of your own by name: pandas and polars data frames, relations, anything with Arrow streams.
            memory: Limit of the memory of the process, in bytes or as `4GB`, for this query and those that follow. What
                does not fit is written to temporary files.
            allow_files: Whether the query, and methods of its relation, may read and write files, load extensions and
                change settings.

        Returns:
            A DuckDB relation: `.fetchall()`, `.df()`, `.pl()`, `.arrow()`; it prints itself. With `allow_files` also
            `.write_parquet(path)` and the like.

        Raises:
            QueryError: The SQL is invalid, names a table or column that does not exist, or does what is not allowed. An
                error that depends on the rows, such as a failed conversion, or of a file that is cut while they are
                read, is raised by DuckDB.
            UsageError: The memory limit is not a size, or too small; or a frame has the name of a common table.
        """
        return self._database.sql(query, memory=memory, parameters=parameters, frames=frames, allow_files=allow_files)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Findings of reading and joining the recordings; `Recording.check` reports all violations of a file."""
        if (stated := self._opened.stated_diagnostics) is not None:
            return stated
        checked = [d for recording in self.recordings for d in recording.findings()]
        naming = [
            replace(diagnostic(code, path, message, offset), count=count)
            for path, code, message, offset, count in self._fusion.naming_findings()
        ]
        joined = (*incomplete_stacks(self), *unverified_programs(self), *unseen_dumps(self))
        return (*self._found, *naming, *joined, *checked)

    @property
    def has_samples(self) -> bool:
        """Whether a recording has samples, other than sums of its calls."""
        return self.has("callchains") or self.has("samples")

    @property
    def has_traces(self) -> bool:
        """Whether a recording has calls."""
        return self.has("call_events") or self.has("call_sums")

    def has(self, table: str) -> bool:
        """Whether a recording has rows for a table, as far as that is known without building it."""
        return any(recording.has(table) for recording in self.recordings)

    @cached_property
    def unwinding(self) -> Unwinding | None:
        """How copies of stacks were unwound; None where there were none."""
        return self._opened.unwinding

    @cached_property
    def span_ns(self) -> tuple[int, int] | None:
        """Time of the first and the last sample or event of a call trace; None where none has a time.

        Of calls and runtime logs: in selected time, its start and end; in selected threads of a call trace, their
        first and last event.
        """
        if self._is_whole and (stated := self._opened.stated_span_ns) is not None:
            return stated
        if all(recording.summary.span is None for recording in self.recordings):
            return None
        traced = None if self._opened.has_no_events else self._events.trace_span()
        if traced and self._roles <= {"call_trace", "runtime_log"}:
            return self._selected_part(traced)
        spans = [(first, last) for *_, first, last in _core.sampled_events(self.tables["samples"])]
        spans += [traced] if traced and self.selection == Selection() else []
        return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None

    def _selected_part(self, traced: tuple[int, int]) -> tuple[int, int] | None:
        """The selected part of the time from the first to the last event of traces; None where it is empty."""
        if (selected := self.selection.time_ns) is not None:
            start, end = max(selected[0], traced[0]), min(selected[1], traced[1])
            return (start, end) if start <= end else None
        if self.selection.selects_threads and self._roles == {"call_trace"}:
            totals = Columns(self.call_statistics(functions=[]).totals())
            ((first, last),) = totals.tuples("first_ns", "last_ns")
            return None if first is None else (first, last)
        return traced

    def allocations(self) -> "Allocations":
        """Allocations of the selected threads and time: by type, by stack, by thread."""
        from perfuse.analysis.allocations import Allocations

        return Allocations(self)

    def gc_pauses(self) -> "list[Pause]":
        """Pauses of the garbage collector that overlap the selected time: periods in which all threads were stopped.

        Of selected threads, all pauses of their processes while these threads exist, whichever thread ran them.
        """
        from perfuse.analysis.gc import gc_pauses

        return gc_pauses(self)

    def gc_activity(self) -> "GcActivity":
        """Activity of the garbage collector: pauses, collections, heap size, finalizers."""
        from perfuse.analysis.gc import gc_activity
        from perfuse.analysis.objects import Objects

        return gc_activity(self, Objects(self))

    def contention(self) -> "Contention":
        """Lock contention: which threads waited for which locks in the selected time; each wait is whole."""
        from perfuse.analysis.locks import contention
        from perfuse.analysis.objects import Objects

        return contention(self, Objects(self))

    def exceptions(self) -> "Exceptions":
        """Exceptions: their types and stacks, and the handlers that ran."""
        from perfuse.analysis.exceptions import exceptions
        from perfuse.analysis.objects import Objects

        return exceptions(self, Objects(self))

    def call_statistics(self, **options: Any) -> "CallStatistics":
        """Statistics of the calls of its traces, for the selected threads and time.

        Args:
            options: Options of the core: `by` (`function`, `thread` or `cpu`), `rank` (how percentiles are computed:
                `nearest` or `llvm`), `functions` (keys), `recursive_only`, `edges`, `paths`.
        """
        return _core.call_statistics(self._events, **self._selection_arguments(), **options)

    def _same_functions(self) -> list[int] | None:
        """For each function key, that of the one whose calls its own are added to; None where each is itself."""
        return self._events.same_functions()

    def allocation_sums(self, by: str | None = None, *, stacks: bool = True) -> "ArrowStream":
        """Sums of the allocations of the selected threads and time, computed in one pass: a row per group.

        Args:
            by: `type`, `stack` or `thread`; by default all three.
            stacks: Whether to resolve stacks, which takes most of the time.
        """
        return _core.allocation_sums(self._events, by=by, stacks=stacks, **self._selection_arguments())

    def stacks_of(self, table: str) -> "tuple[ArrowStream, ArrowStream]":
        """Tables `stacks` and `frames` with only the stacks to which `selected_rows` of a table refers."""
        stacks, frames = (self._rows_by().table(name, stacks_of=table) for name in ("stacks", "frames"))
        if stacks is None or frames is None:
            raise KeyError(table)
        return stacks, frames

    def selected_rows(self, table: str, columns: Sequence[str], **which: Any) -> "ArrowStream":
        """Some columns of the rows of a table that belong to the selected threads and time.

        Args:
            table: A table that recordings fill themselves. `slices` does not contain calls; keys of stacks are those of
                `stacks_of`.
            columns: Names of the columns.
            which: `kinds`, only rows with these values in column `kind`; `time` and `thread`, the columns of time and
                thread where they are not `ts_ns` and `thread_id`; None for rows of all times or threads. `source_id`
                and `process_id` in place of the thread are for rows that belong to its process.
        """
        return _core.selected_rows(self._rows_by(**which), table, columns, self._which(**which))

    def count_rows(self, table: str, **which: Any) -> int:
        """Number of selected rows of a table."""
        return _core.count_rows(self._rows_by(**which), table, self._which(**which))

    def row_counts(self, table: str, columns: tuple[str, str], **which: Any) -> list[tuple[str, int | None, int]]:
        """Number of selected rows by the values of a text and a key column: `(text, key, count)`."""
        return _core.row_counts(self._rows_by(**which), table, columns, self._which(**which))

    def handle_sums(self, *, stacks: bool) -> "tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]":
        """Sums of the handles that the selected threads created or freed in the selected time.

        Args:
            stacks: Whether to group the second list by stack.

        Returns:
            `(kind, created, destroyed, left, max_alive)`, and `(kind, stack_id, created, left)` for those created.
        """
        return _core.handle_sums(self._rows_by(), stacks=stacks, **self._selection_arguments())

    def object_origins(self, objects: Sequence[tuple[int, int]]) -> "ArrowStream":
        """Allocations of the objects that were at given addresses at given times; moves of the collector are undone.

        A row for each object, null where its allocation was not recorded.

        Raises:
            UsageError: An address is negative or has more than 64 bits.
        """
        require_addresses(address for address, _ in objects)
        return self._origins_of([address for address, _ in objects], [ts_ns for _, ts_ns in objects])

    def between(self, start_s: float, end_s: float) -> "Profile":
        """The samples and calls of a time range, in seconds from the first of them; other tables stay complete.

        Calls that extend over an end of the range are cut there.

        Raises:
            UsageError: The range is empty or outside the recorded time, or nothing has a time.
        """
        if (span := self._whole().span_ns) is None:
            raise UsageError("nothing here has a time to select by", hint="samples, calls and events of a runtime have")
        zero, last = span
        recorded = f"the recording is from 0 to {(last - zero) / 1e9:.9g} s"
        if not start_s < end_s:
            raise UsageError(f"there is no time between {start_s:.9g} and {end_s:.9g} s", hint=recorded)
        if end_s <= 0 or start_s * 1e9 > last - zero:
            text = f"before {end_s:.9g} s" if end_s <= 0 else f"after {start_s:.9g} s"
            raise UsageError(f"nothing was recorded {text}", hint=recorded)
        # An infinite end is that of the recording.
        start, end = zero + round(max(start_s, 0) * 1e9), last + 1 if isinf(end_s) else zero + round(end_s * 1e9)
        return self._selected(replace(self.selection, start_ns=start, end_ns=end))

    def between_calls(self, first: str | None, last: str | None) -> "Profile":
        """The time from the begin of the first call of a function to that of the first call of another after it.

        Args:
            first: The function at which the time starts, as in `only`; None for the start of the recording.
            last: The function at which it ends; None for the end of the recording.

        Raises:
            UsageError: No call was recorded, no function matches, or the last is not called after the first.
        """
        from perfuse.analysis.call_times import time_between

        start, end = time_between(self._whole(), first, last)
        return self._selected(replace(self.selection, start_ns=start, end_ns=end))

    def thread(self, thread: str | int) -> "Profile":
        """The samples and calls of one thread, by thread id, name, or handle such as `t3`.

        Raises:
            UsageError: There is no such thread; the hint has similar names, or all of them.
        """
        return self._selected(self.selection.of_thread(thread, self._whole().tables))

    def process(self, process: str | int) -> "Profile":
        """The samples and calls of the threads of a process, by pid, name, or handle such as `p3`.

        Several processes may have one name, or one pid after the other: all of them are selected.

        Raises:
            UsageError: No process is such, and the hint has similar ones, or all; or none of its threads is selected.
        """
        tables = self._whole().tables
        return self._selected(self.selection.of_process(process, tables["processes"], tables["threads"]))

    def only(self, pattern: str) -> "Profile":
        """Only samples with a matching function on their stack.

        Patterns of this and the following methods are names of functions, parts of them, globs, `/regex/`, handles
        (`f12`), and `module:libc*`, `path:*/lib/*`, `tier:turbofan`. Each sees the stacks that those before have made.

        Raises:
            UsageError: The pattern matches nothing, or is invalid; so with the following methods.
        """
        return self._with_step("only", pattern)

    def drop(self, pattern: str) -> "Profile":
        """Without the samples that have a matching function on their stack."""
        return self._with_step("drop", pattern)

    def hide(self, pattern: str) -> "Profile":
        """Without the frames of matching functions: what was measured in them is their caller's.

        A sample that consists of such frames only is dropped.
        """
        return self._with_step("hide", pattern)

    def root(self, pattern: str) -> "Profile":
        """Stacks that begin at the outermost matching function; samples without one are dropped."""
        return self._with_step("root", pattern)

    def leaf(self, pattern: str) -> "Profile":
        """Stacks that end at the outermost matching function: what it called is its own."""
        return self._with_step("leaf", pattern)

    def collapse_recursion(self) -> "Profile":
        """Stacks with each function once: what lies between two calls of it is left out."""
        return self._with_step("collapse-recursion")

    def collapse_module(self, pattern: str) -> "Profile":
        """Stacks in which consecutive frames of a matching module are one frame with the module's name."""
        return self._with_step("collapse-module", pattern)

    def tier(self, tier: str) -> "Profile":
        """Only samples taken in code of a tier; of a kind such as `native`, for code without tiers."""
        return self._with_step("tier", tier)

    def jit_only(self) -> "Profile":
        """Only JIT-compiled frames: what was measured in others is their caller's; samples without any are dropped."""
        return self._with_step("jit-only")

    def during(self, kind: DuringKind, pattern: str) -> "Profile":
        """Only samples taken while a matching slice of their thread was open.

        Args:
            kind: `slice` for all time ranges, calls too; `marker` for those that are not calls.
            pattern: Their name, or the name of the called function.
        """
        found = self.filtered(self.stack_filter.with_during(kind, pattern))
        found.tables["samples"].to_arrow()
        return found

    def filtered(self, stack_filter: StackFilter) -> "Profile":
        """The profile with a filter of its stacks, in place of the one that it has."""
        found = self._selected(self.selection)
        found.stack_filter = stack_filter
        own = self.__dict__.get("tables")
        if isinstance(own, Tables):
            is_same = stack_filter == self.stack_filter
            found.tables.take_built(own, names() if is_same else set(names()).difference(FILTERED_TABLES))
        return found

    def flame(self, *, inverted: bool = False, event: str | None = None) -> "FlameGraph":
        """The flame graph of the samples; without samples, of the recorded calls, else of the allocations.

        Args:
            inverted: Whether roots are the innermost functions and children their callers.
            event: Name of an event; `allocated-bytes` and `allocations` are the events of allocations.

        Raises:
            UsageError: The profile has no such event.
        """
        from perfuse.pictures.flame_graph import FlameGraph

        return FlameGraph.of(self, inverted=inverted, event=event)

    def view(self) -> "PageView":
        """Timeline, flame graph, call tree, functions and callers as a page, which a notebook displays.

        The page contains its data: it works without a server, up to 250,000 samples or calls. Larger recordings are for
        the command `perfuse view`, or for a part of the time (`between`).
        """
        from perfuse.pictures.page import PageView

        return PageView.of(self)

    def annotate(
        self, function: str, *, tier: str | None = None, event: str | None = None, intel: bool = False
    ) -> "Annotation":
        """The machine code of a function with its samples: each compilation, instruction by instruction.

        Args:
            function: A name, a part of one, a glob, `/regex/`, a handle (`f12`, `c34`), or an address.
            tier: Only compilations of this tier.
            event: Name of an event; by default the one with the most samples.
            intel: Whether x86 instructions are written in Intel's syntax.

        Raises:
            UsageError: No function, or several, are meant; or its code is not available.
        """
        from perfuse.analysis.annotation import Annotation

        return Annotation(self, function, tier=tier, event=event, intel=intel)

    @property
    def has_heap_snapshots(self) -> bool:
        """Whether a recording can contain heap snapshots; table `heap_snapshots` lists those that it does contain."""
        return self.has("heap_snapshots") or self.has("gc_handles")

    def heap(self, snapshot: int | None = None) -> "Heap":
        """A heap snapshot: what each object retains, what keeps it alive, what grew since another snapshot.

        Args:
            snapshot: Its key (`snapshot_id`); by default the last snapshot in the selected time.

        Raises:
            UsageError: There is none in the selected time, or none with the key.
        """
        from perfuse.analysis.heap import Heap, no_snapshot, snapshots

        rows = snapshots(self)
        selected = rows[-1:] if snapshot is None else [row for row in rows if row.snapshot_id == snapshot]
        if not rows:
            message, hint = no_snapshot(self)
            raise UsageError(message, hint=hint)
        if not selected:
            known = ", ".join(str(row.snapshot_id) for row in rows)
            raise UsageError(f"no heap snapshot {snapshot}", hint=f"there are {known}")
        return Heap(self, selected[0], _core.HeapSnapshot(self._heaps, selected[0].snapshot_id))

    def process_pids(self) -> dict[int, int]:
        """The pid, as viewers show it, of the process of each recording with counters or a heap, by `source_id`.

        Rows of counters, heap snapshots, GC handles and moves of objects belong to no thread: they are selected by the
        process of a selected thread.
        """
        return self._events.pids_of_recordings(self._threads)

    def heap_sizes(self) -> dict[int, tuple[int, int]]:
        """Number of objects and their size in bytes of each heap snapshot, by its key; without empty snapshots."""
        from perfuse.analysis.heap_sums import snapshot_sizes

        return snapshot_sizes(_core.heap_sums(self._heaps)[0])

    @property
    def images(self) -> "CodeImages":
        """A writer of the JIT code as ELF files, and of a perf.data that maps them."""
        from perfuse.exporters.code_images import CodeImages

        self._opened.require_all_code()
        return CodeImages(self)

    @property
    def call_log(self) -> "CallLog":
        """A writer of the calls of its traces as an XRay log."""
        from perfuse.formats.xray.profile_log import CallLog

        return CallLog(self)

    @property
    def runtime_log(self) -> "RuntimeLog":
        """A writer of its runtime events as a Mono log."""
        from perfuse.formats.mono.profile_log import RuntimeLog

        return RuntimeLog(self)

    def call_trace(self, progress: "Progress | None" = None) -> "CallTrace | None":
        """Calls, slices, counters and instants as streams, for files of timeline viewers; None where there are none.

        Args:
            progress: Called while they are counted.
        """
        from perfuse.pictures.call_trace import SOURCES, CallTrace

        trace = CallTrace(self, progress) if any(map(self.has, SOURCES)) else None
        return None if trace is None or trace.is_empty else trace

    def export(
        self,
        path: str | PathLike[str] | IO[bytes],
        *,
        to: str | None = None,
        progress: "Progress | None" = None,
        **options: Any,
    ) -> tuple[str, ...]:
        """Writes the profile in the format of another tool; files appear under their names only when they are complete.

        Args:
            path: File to write, or directory for targets that make several files; `-` is standard output.
            to: Target (`firefox`, `collapsed`, ...); by default the one of the file name.
            progress: Called with the name of the current step and the completed share (0 to 1), by slow targets.
            options: Options of the target.

        Returns:
            The files that were written; the requested one is last.

        Raises:
            UsageError: There is no such target, or the file name matches none.
            ExportError: The profile has no data for it, or it cannot be written.
        """
        from perfuse.exporters import export
        from perfuse.exporters.filtered import refuse_filters

        if self.stack_filter:
            refuse_filters(self.has_traces, to, path)
        return export(self, path, to=to, progress=progress, **options)

    def save(
        self,
        path: str | PathLike[str],
        *,
        code: "CodeChoice" = "none",
        sources: "SourceChoice" = "none",
        lines: "LineChoice" = "sampled",
        inputs: bool = False,
        progress: Callable[[str, float], None] | None = None,
    ) -> "SavedFile":
        """Saves the profile with everything that was resolved; `perfuse.fuse` and every verb open the file.

        Args:
            path: File to write; `-` is standard output.
            code: Machine code to save, which `annotate` and images of code need: `none`, `sampled` or `all`.
            sources: Source texts to save: `none`, `used` or `all`.
            lines: Code, `sampled` or `all`, whose rows of tables `line_rows`, `inline_calls` and, with dumps,
                `functions` and `code_objects` are saved as Parquet.
            inputs: Whether the recordings are saved as they are, with all code and all copies of stacks.
            progress: Called with the name of each step and the part of the work that is done, from 0 to 1.

        Raises:
            UsageError: The profile is a selection, or was opened from a saved profile.
            OSError: The file cannot be written.
        """
        from perfuse.archive.writing import Options, save

        return save(self, path, Options(code, sources, lines, inputs), progress)

    @property
    def saved_path(self) -> str | None:
        """The file that it was opened from, where it is a saved profile."""
        return self._opened.saved_path

    @property
    def stated_events(self) -> "list[EventSums] | None":
        """The events of all samples with their sums, where they are known without reading them."""
        return self._opened.stated_events

    def omits_code_of(self, source_id: int) -> bool:
        """Whether machine code that a recording has was not saved with it."""
        return self._opened.omits_code_of(source_id)

    def require_stack_copies(self) -> None:
        """Raises `UsageError` where copies of stacks that were recorded were not saved."""
        self._opened.require_stack_copies()

    def native_module(self, path: str, build_id: str | None) -> "NativeCode":
        """Code of a program or library that was mapped; of a saved profile, as it was when it was saved."""
        return self._opened.native_module(path, build_id)

    def saved_sources(self) -> Mapping[str, tuple[str, str]]:
        """Source texts that were saved, with the file that each is from, by path; only a saved profile has some."""
        return self._opened.sources

    def code_targets(self, process_id: int, at_ns: int, addresses: Sequence[int]) -> list[Target]:
        """What addresses of a process referred to at a time.

        Raises:
            UsageError: A number is negative, or an address has more than 64 bits, the key of a process more than 32.
        """
        require_in_range(process_id, 0, 2**32 - 1, "process_id")
        require_addresses(addresses)
        return self._opened.code_targets(process_id, at_ns, addresses)

    def _with_step(self, step: Step, pattern: str | None = None) -> "Profile":
        found = self.filtered(self.stack_filter.with_step(step, pattern))
        stacks = self._filtered_stacks if self.stack_filter else StackFilter().apply(*self._stacks_to_filter())
        found.__dict__["_filtered_stacks"] = stacks.then(found.stack_filter.steps[-1])
        return found

    def _build(self, name: str) -> "ArrowStream":
        if self.stack_filter and name in FILTERED_TABLES:
            return self._filtered_stacks.table(name)
        if name == "samples" and self.selection.condition is not None:
            if not self._has_only_samples:
                return _core.selected_samples(self._events, **self._selection_arguments())
            return self._whole().sql(f"SELECT * FROM samples WHERE {self.selection.condition}")  # type: ignore[return-value]
        if name == "diagnostics":
            return _core.diagnostics_table(
                [(d.path, d.code, d.message, d.offset, d.record_index, d.field, d.count) for d in self.diagnostics],
                [r.path for r in self.recordings],
            )
        return self._opened.table(name)

    @cached_property
    def _filtered_stacks(self) -> FilteredStacks:
        return self.stack_filter.apply(*self._stacks_to_filter())

    def _stacks_to_filter(self) -> tuple[Mapping[str, Any], bool]:
        """The tables that steps of the filter are applied to; whether rows of other tables refer to their stacks."""
        whole = self.filtered(StackFilter())
        tables = dict(whole.tables)
        if self.stack_filter.during:
            from perfuse.analysis.durations import samples_during

            tables["samples"] = samples_during(whole, self.stack_filter.during)
        return tables, any(map(self.has, ("allocations", "lock_events", "exceptions", "gc_handles")))

    @cached_property
    def _database(self) -> "Database":
        from perfuse.query import Database

        return Database(self.tables, self._connections)

    def _selection_arguments(self) -> dict[str, Any]:
        """The selection as arguments of the core."""
        if self.stack_filter:
            hint = "--between, --thread and --process select those; --tree, --by and --stacks show filters"
            raise UsageError("filters of stacks do not select single calls, allocations or handles", hint=hint)
        return {"threads": self._threads, "time_ns": self.selection.time_ns}

    @cached_property
    def _threads(self) -> list[int] | None:
        return None if not self.selection.selects_threads else self.selection.keys(self._whole().tables["threads"])

    def _which(self, *, thread: str | None = "thread_id", **which: Any) -> dict[str, Any]:
        """The arguments of the core for the selected rows of a table; see `selected_rows`."""
        keys = self._threads
        if keys is not None and thread == "source_id":
            keys = list(self.process_pids())
        elif keys is not None and thread == "process_id":
            process_of = dict(Columns(self._whole().tables["threads"]).tuples("thread_id", "process_id"))
            keys = sorted({process_of[key] for key in keys})
        return self.selection.rows(keys, thread=thread, **which)

    @property
    def _roles(self) -> set[str]:
        return {recording.role for recording in self.recordings}

    @property
    def _is_whole(self) -> bool:
        """Whether nothing was selected or filtered."""
        return self.selection == Selection() and not self.stack_filter

    def _whole(self) -> "Profile":
        return self if self._is_whole else self._selected(Selection()).filtered(StackFilter())

    def _selected(self, selection: Selection) -> Self:
        """The same recordings, which the selection does not own."""
        selected = type(self)(
            self._opened,
            joins=self.joins,
            found=self._found,
            title=self.title,
            selection=selection,
            stack_filter=self.stack_filter,
        )
        selected._connections = self._connections
        return selected

    @property
    def _is_closed(self) -> bool:
        return isinstance(self._opened, ClosedObject)

    @property
    def _has_only_samples(self) -> bool:
        """Whether no rows of `samples` are made of calls or allocations."""
        return self._opened.has_no_events or not (self.has_traces or self.has("allocations"))

    @property
    def _fusion(self) -> _core.Profile:
        """All recordings, joined."""
        return self._opened.fusion

    @property
    def _code(self) -> _core.Profile:
        """What has the tables of code and the machine code of its recordings."""
        return self._opened.code

    @property
    def _heaps(self) -> _core.Profile:
        """What has the heap snapshots, with all allocations and moves of objects."""
        return self._opened.heaps

    @property
    def _events(self) -> _core.Profile:
        """What has the calls and events of the selected time; others may be missing."""
        return self._opened.events(self.selection.time_ns)

    def _rows_by(self, *, time: str | None = "ts_ns", **_which: Any) -> _core.Profile:
        """What has the rows that are selected by a column of times; all rows where it is None."""
        return self._opened.events(None if time is None else self.selection.time_ns)

    @property
    def _timeline_tables(self) -> _core.Profile:
        """What has the tables that the page's timeline is made of."""
        return self._opened.timeline(self.selection.time_ns)

    def _slices_at(self, start_ns: int, end_ns: int) -> "ArrowStream | None":
        """Table `slices` with at least those at a time; None where all are read as soon."""
        is_of_time = self.selection.time_ns is not None and not self.stack_filter
        return self._opened.slices_at(start_ns, end_ns) if is_of_time else None

    def _origins_of(self, addresses: Sequence[int], times_ns: Sequence[int]) -> "ArrowStream":
        """Allocations of the objects at addresses at times: of the events of the selected time, else of all."""
        known = _core.object_origins(self._rows_by(), addresses, times_ns)
        return _core.object_origins(self._fusion, addresses, times_ns) if known is None else known  # type: ignore[return-value]

    def close(self) -> None:
        """Releases files, mappings and memory. What was taken from the profile stays valid: tables, results, reports.

        Recordings that `perfuse.fuse` opened are closed, too. Selections of the profile (`between`, `thread`) keep what
        they need until they are closed.
        """
        if self._is_closed:
            return
        self.tables.close()
        closed = ClosedObject(f"the profile {self.title}")
        self.__dict__.pop("_database", None)
        self._connections = {}
        self.tables = cast(Tables, closed)
        self._opened = cast(OpenedRecordings, closed)
        for recording in self._owned:
            recording.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        files = "closed" if self._is_closed else ", ".join(r.path for r in self.recordings)
        return f"<perfuse profile {self.title}: {files}>"

    def _repr_html_(self) -> str | None:
        from perfuse.reports.notebook import profile_html

        return None if self._is_closed else profile_html(self)


Progress = Callable[[str, float], None]
"""Called with the name of the current step and the completed share, from 0 to 1."""

__all__ = ["Join", "Profile", "Progress", "Selection", "Table", "Unwinding"]
