"""What an exporter asks of a profile: SQL over the common tables, and a title. Never a format."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from perfuse.analysis.columns import Columns
from perfuse.analysis.sampled import SUMMED as SUMMED_EVENTS
from perfuse.errors import ExportError

if TYPE_CHECKING:
    from perfuse.call_log import CallLog
    from perfuse.call_trace import CallTrace
    from perfuse.images import CodeImages
    from perfuse.runtime_log import RuntimeLog
    from perfuse.selection import Selection

SUMMED = ", ".join(f"'{event}'" for event in SUMMED_EVENTS)
"""Events of calls and allocations, as a list in SQL: a sample of these stands for all of a stack in a thread."""

Progress = Callable[[str, float], None]
"""Called with what is being done and how much of it is, from 0 to 1."""


class Relation(Protocol):
    """The result of a query."""

    def fetchall(self) -> list[Any]:
        """Every row, as tuples."""
        ...


class Source(Protocol):
    """A profile, as far as exporters know it; `perfuse.Profile` is one."""

    @property
    def title(self) -> str:
        """What was recorded: a command line, or file names."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...

    def sql(self, query: str, /) -> Relation:
        """Asks the common tables, which are visible by name and built only when named."""
        ...


class MomentSource(Source, Protocol):
    """A profile, as far as exporters of what happened at a time know it."""

    @property
    def selection(self) -> "Selection":
        """What of it is looked at; tables other than `samples` have all."""
        ...

    def has(self, table: str) -> bool:
        """Whether a table has rows of recordings' own, as far as that can be told without making it."""
        ...


class TraceSource(Source, Protocol):
    """A profile, as far as exporters of timelines know it."""

    @property
    def has_samples(self) -> bool:
        """Whether it has samples that are no sums over calls."""
        ...

    def call_trace(self, progress: Progress | None = None) -> "CallTrace | None":
        """Its calls, slices, counters and instants; None where there are none."""
        ...


class ImageSource(Protocol):
    """A profile, as far as exporters of machine code know it."""

    @property
    def images(self) -> "CodeImages":
        """Its JIT code as ELF files."""
        ...


class CallSource(Protocol):
    """A profile, as far as exporters of traces as logs know it."""

    @property
    def call_log(self) -> "CallLog":
        """Its calls as a log."""
        ...


class RuntimeSource(Protocol):
    """A profile, as far as exporters of runtimes' own logs know it."""

    @property
    def runtime_log(self) -> "RuntimeLog":
        """What its runtime logged."""
        ...


def text(value: str) -> str:
    """A string literal in SQL."""
    return "'" + value.replace("'", "''") + "'"


def nothing_sampled(profile: Source) -> ExportError:
    """What to say where samples are wanted and there are none."""
    moments = any(len(Columns(profile.tables[table])) for table in ("slices", "exceptions", "counter_samples"))
    hint = "open the perf.data that goes with the dump as well"
    if moments:
        hint = "what happened when is drawn by perfetto, chrome and firefox; `perfuse report` tells what was recorded"
    return ExportError("there are no samples, calls or allocations to show", hint=hint)


def is_sum(event: str) -> bool:
    """Whether an event's samples are sums over calls, of which there are no numbers to tell."""
    return text(event) in SUMMED.split(", ")


def columns_as_json(profile: Source, columns: dict[str, str], query: str) -> dict[str, str]:
    """Columns of a query as JSON arrays, in the order of its column `i`, and its `length`.

    `columns` maps each array's name to an expression over the query's columns.
    """
    arrays = ", ".join(f"to_json(coalesce(list({value} ORDER BY i), []))" for value in columns.values())
    ((*values,),) = profile.sql(f"SELECT {arrays}, count(*)::VARCHAR FROM ({query})").fetchall()
    return dict(zip([*columns, "length"], values, strict=True))
