"""Protocols: what exporters require of a profile. `perfuse.Profile` implements all of them."""

from collections.abc import Callable, Iterable, Mapping
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol

from perfuse.analysis.recorded import why_no_samples
from perfuse.analysis.sampled import nothing_selected
from perfuse.declared_formats import format_named
from perfuse.errors import ExportError
from perfuse.table import Columns

if TYPE_CHECKING:
    from perfuse.exporters.code_images import CodeImages
    from perfuse.filters.selection import Selection
    from perfuse.filters.stacks import StackFilter
    from perfuse.pictures.call_trace import CallTrace

Progress = Callable[[str, float], None]
"""Called with the name of the current step and the completed share, from 0 to 1."""


class Relation(Protocol):
    """The result of a query."""

    def fetchall(self) -> list[Any]:
        """Every row, as tuples."""
        ...


class Source(Protocol):
    """A profile with tables and SQL."""

    @property
    def title(self) -> str:
        """What was recorded: a command line, or file names."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...

    def sql(self, query: str, /) -> Relation:
        """Runs SQL over the common tables; a table is built when a query names it."""
        ...


class EventSource(Source, Protocol):
    """A profile with slices, exceptions and counters."""

    @property
    def selection(self) -> "Selection":
        """The selected threads and time; tables other than `samples` contain all rows."""
        ...

    @property
    def stack_filter(self) -> "StackFilter":
        """The filter of the stacks of its samples; tables of events contain all rows."""
        ...

    def has(self, table: str) -> bool:
        """Whether a recording has rows for a table, as far as that is known without building it."""
        ...

    def process_pids(self) -> dict[int, int]:
        """The pid, as viewers show it, of the selected process of each recording with counters or a heap, by source."""
        ...

    def heap_sizes(self) -> dict[int, tuple[int, int]]:
        """Number of objects and their size in bytes of each heap snapshot, by its key; without empty snapshots."""
        ...

    def count_rows(self, table: str, **which: Any) -> int:
        """Number of selected rows of a table; `kinds` are the values of column `kind` to count."""
        ...


class TraceSource(EventSource, Protocol):
    """A profile with call traces."""

    @property
    def has_samples(self) -> bool:
        """Whether it has samples that are not sums over calls."""
        ...

    def call_trace(self, progress: Progress | None = None) -> "CallTrace | None":
        """Its calls, slices, counters and instants; None where there are none."""
        ...


class ImageSource(Protocol):
    """A profile with JIT code."""

    @property
    def images(self) -> "CodeImages":
        """Its JIT code as ELF files."""
        ...

    def require_stack_copies(self) -> None:
        """Raises `UsageError` where copies of stacks that were recorded were not saved."""
        ...


class WrittenLog(Protocol):
    """What a writer of logs returns: what it could not write."""

    def notes(self) -> list[str]:
        """What the log does not represent, a line each."""
        ...


class CallLogWriter(Protocol):
    """Writes the calls of a profile as an XRay log."""

    def write(
        self,
        descriptor: int,
        *,
        mode: Literal["fdr", "basic"] | None = None,
        version: int | None = None,
        endian: Literal["little", "big"] | None = None,
        hz: int | None = None,
        yaml: bool = False,
    ) -> WrittenLog:
        """Writes a log to an open file, given as its descriptor."""
        ...


class CallSource(Protocol):
    """A profile whose calls can be written as an XRay log."""

    @property
    def call_log(self) -> CallLogWriter:
        """The writer of its calls."""
        ...


class RuntimeLogWriter(Protocol):
    """Writes the events of a profile as a Mono log."""

    @property
    def is_of_mono_logs(self) -> bool:
        """Whether it writes Mono logs again, and not the tables of other recorders."""
        ...

    def write(
        self,
        out: IO[bytes],
        *,
        version: int | None = None,
        kinds: Iterable[str] | None = None,
        any_run: bool = False,
        event: str | None = None,
    ) -> WrittenLog:
        """Writes a log."""
        ...


class RuntimeSource(Source, Protocol):
    """A profile whose events can be written as a Mono log."""

    @property
    def has_samples(self) -> bool:
        """Whether a recording has samples, other than sums of its calls."""
        ...

    @property
    def runtime_log(self) -> RuntimeLogWriter:
        """The writer of its events."""
        ...


def no_samples_error(profile: Source) -> ExportError:
    """The error of an exporter that needs samples, for a profile without any."""
    if (left := nothing_selected(profile)) is not None:
        return ExportError(str(left), hint=left.hint)
    # Events of calls are asked for first: with them there are slices, which would all be made to count them.
    events = ("call_events WHERE kind::VARCHAR <> 'argument'", "exceptions", "counter_samples", "slices")
    has_events = any(profile.sql(f"SELECT 1 FROM {one} LIMIT 1").fetchall() for one in events)
    roles = {format_named(name).role for name in Columns(profile.tables["sources"])["format"]}
    if has_events:
        hint = "perfetto, chrome and firefox show slices, exceptions and counters; `perfuse report` prints a summary"
    elif "samples" in roles:
        kinds = (kind for (kind,) in profile.sql("SELECT DISTINCT kind::VARCHAR FROM records").fetchall())
        hint = (
            f"no sample was taken: {why_no_samples(kinds)};"
            " `perfuse info` counts the records, and `perf record -e cpu-clock` samples on every machine"
        )
    elif "code_dump" in roles:
        hint = "open the perf.data that goes with the dump as well"
    else:
        hint = "`perfuse report` prints what was recorded"
    return ExportError("there are no samples, calls or allocations to show", hint=hint)


def no_code_error() -> ExportError:
    """The error of an exporter that needs JIT code, for a profile without any."""
    return ExportError("no process has JIT code", hint="open the dump as well")


def no_times_error(profile: Source, message: str) -> ExportError:
    """The error of an exporter that needs points in time, for a profile without any."""
    if (left := nothing_selected(profile)) is not None:
        return ExportError(str(left), hint=left.hint)
    hint = "open the recording that has them as well"
    if len(Columns(profile.tables["samples"])):
        message, hint = "there are only sums, without times", "sums go into firefox, speedscope, pprof and collapsed"
    return ExportError(message, hint=hint)
