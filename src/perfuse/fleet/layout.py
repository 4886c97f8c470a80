"""The tables of a dataset: Delta tables beside each other, below one folder or prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from perfuse.errors import UsageError

if TYPE_CHECKING:
    from arro3.core import Schema
    from arro3.core import Table as ArrowTable

LAYOUT = 1
"""Version of the layout; a dataset of a newer one is not read."""

DESCRIPTION = "perfuse fleet, layout "
"""Description of each Delta table, followed by the version."""

Kind = Literal["text", "id", "integer", "flag"]

SQL_TYPES: Mapping[Kind, str] = {"text": "VARCHAR", "id": "BLOB", "integer": "BIGINT", "flag": "BOOLEAN"}


@dataclass(frozen=True, slots=True)
class FleetColumn:
    """A column: its name, type and meaning."""

    name: str
    kind: Kind
    doc: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class FleetTable:
    """A table of a dataset.

    Attributes:
        name: Its name, and that of its folder.
        doc: What a row is.
        columns: Its columns.
        partitioned: Whether its files are in folders by day and service.
        order: Columns that rows of a file are sorted by.
    """

    name: str
    doc: str
    columns: tuple[FleetColumn, ...]
    partitioned: bool = False
    order: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of its columns."""
        return [column.name for column in self.columns]

    def schema(self) -> Schema:
        """Its schema in Arrow."""
        from arro3.core import DataType, Field, Schema

        types = {
            "text": DataType.utf8(),
            "id": DataType.binary(),
            "integer": DataType.int64(),
            "flag": DataType.bool(),
        }
        return Schema([Field(one.name, types[one.kind], one.nullable) for one in self.columns])

    def arrow(self, rows: Sequence[Sequence[Any]]) -> ArrowTable:
        """Rows as an Arrow table, sorted by `order`."""
        from arro3.core import Array
        from arro3.core import Table as ArrowTable

        if self.order:
            rows = sorted(rows, key=itemgetter(*map(self.names.index, self.order)))
        schema = self.schema()
        columns = list(zip(*rows, strict=True)) or [()] * len(self.columns)
        arrays = [
            Array(list(values), type=schema.field(one.name).type)
            for values, one in zip(columns, self.columns, strict=True)
        ]
        return ArrowTable.from_arrays(arrays, schema=schema)


def _text(name: str, doc: str, nullable: bool = False) -> FleetColumn:
    return FleetColumn(name, "text", doc, nullable)


def _integer(name: str, doc: str, nullable: bool = False) -> FleetColumn:
    return FleetColumn(name, "integer", doc, nullable)


def _id(name: str, doc: str, nullable: bool = False) -> FleetColumn:
    return FleetColumn(name, "id", doc, nullable)


_OF_RECORDING = (
    _text("recording_id", "Recording."),
    _text("attempt_id", "Attempt that wrote the row; it counts where `recordings` names it."),
)
_PARTITION = (_text("day", "Day of the recording, in UTC."), _text("service", "Label `service`.", True))

RECORDINGS = FleetTable(
    "recordings",
    "One row for each recording that was read, or could not be: the last row that is written of it.",
    (
        *_OF_RECORDING,
        _text("state", "`ok`; `partial`, where recorded data is lost; `failed`, where it cannot be read."),
        *_PARTITION,
        _text("build", "Label `build`.", True),
        _text("host", "Label `host`; without it the host name in the recording.", True),
        _text("labels", "All labels, as a JSON object."),
        _text("title", "What was recorded: a command line, or file names."),
        _integer("start_ns", "Start in nanoseconds since 1970-01-01 (UTC)."),
        _text("start_source", "Origin of the start: `recording`, or `file` (time of its last change)."),
        _integer("duration_ns", "Time between first and last sample or call; null without times.", True),
        _text("arch", "Architecture of the recorded machine.", True),
        _text("formats", "Formats of its files, separated by commas."),
        _text("inputs", "Its files, as a JSON array of objects with `path`, `sha256` and `size_bytes`."),
        _integer("input_bytes", "Size of its files."),
        _text("tool_version", "Version of perfuse that read it."),
        _text("error_code", "Why it failed: a rule, or the kind of error.", True),
        _text("error", "The message of that error.", True),
        _text("diagnostics", "Findings of reading it, as a JSON object: number of each code."),
        _integer("decode_ms", "Time that reading it took, in milliseconds."),
        _integer("peak_rss_bytes", "Largest resident memory of the worker until then."),
        _integer("added_ns", "Time of the row, in nanoseconds since 1970-01-01 (UTC)."),
        _text("pack", "Its saved profile, as a path below the dataset; null where none is kept.", True),
    ),
)
EVENT_TOTALS = FleetTable(
    "event_totals",
    "One row for each event of a recording.",
    (
        *_OF_RECORDING,
        *_PARTITION,
        _text("event", "Name of the event, such as `cpu-clock`."),
        _text("unit", "Unit of weights."),
        _integer("num_samples", "Number of samples."),
        _integer("weight", "Sum of their weights."),
        _integer("unnamed_weight", "Weight of samples whose innermost function has no name."),
    ),
    partitioned=True,
    order=("event", "recording_id"),
)
FUNCTION_TOTALS = FleetTable(
    "function_totals",
    "One row for each function of an event of a recording.",
    (
        *_OF_RECORDING,
        *_PARTITION,
        _text("event", "Name of the event."),
        _id("function_hash", "Function."),
        _text("tier", "Compiler tier with most of its own weight; null for native code.", True),
        _integer("self", "Weight of samples in the function itself."),
        _integer("total", "Weight of samples with it on the stack; recursion counts once."),
        _integer("self_samples", "Number of samples in the function itself."),
        _integer("total_samples", "Number of samples with it on the stack."),
    ),
    partitioned=True,
    order=("event", "function_hash", "recording_id"),
)
STACK_TOTALS = FleetTable(
    "stack_totals",
    "One row for each stack of an event of a recording that samples were taken in.",
    (
        *_OF_RECORDING,
        *_PARTITION,
        _text("event", "Name of the event."),
        _id("stack_hash", "Stack."),
        _integer("weight", "Weight of the samples with exactly this stack."),
        _integer("num_samples", "Number of these samples."),
    ),
    partitioned=True,
    order=("event", "stack_hash", "recording_id"),
)
CALL_STATS = FleetTable(
    "call_stats",
    "One row for each function of a recording of calls.",
    (
        *_OF_RECORDING,
        *_PARTITION,
        _id("function_hash", "Function."),
        _text("unit", "Unit of all times: `ns`, or `ticks` of an unknown rate."),
        _integer("calls", "Number of calls."),
        _integer("sum", "Time in its calls.", True),
        _integer("self", "Time in the function itself.", True),
        _integer("min", "Shortest call.", True),
        _integer(
            "median",
            "Median of its calls; null where only sums were recorded, or several functions share a row.",
            True,
        ),
        _integer("p90", "90th percentile.", True),
        _integer("p99", "99th percentile.", True),
        _integer("max", "Longest call.", True),
    ),
    partitioned=True,
    order=("function_hash", "recording_id"),
)
HEAP_TYPES = FleetTable(
    "heap_types",
    "One row for each type of objects in a heap snapshot of a recording.",
    (
        *_OF_RECORDING,
        *_PARTITION,
        _integer("snapshot", "Number of the snapshot in its recording, from 0."),
        FleetColumn("is_last", "flag", "Whether it is the last snapshot of the recording."),
        _text("type", "Name of the type; null where it was not recorded.", True),
        _integer("num_objects", "Number of objects."),
        _integer("size_bytes", "Sum of their own sizes."),
    ),
    partitioned=True,
    order=("snapshot", "recording_id"),
)
FUNCTIONS = FleetTable(
    "functions",
    "Functions. Take one row of each hash: they may differ in folders of modules and numbers in names.",
    (
        _id(
            "function_hash",
            "Hash of normalized name, module's file name, and source file of JIT-compiled code and of shared names.",
        ),
        _text("name", "Name to display."),
        _text("module", "File that contains it.", True),
        _text("path", "Source file that declares it.", True),
        _text("kind", "`native`, `kernel`, `jit`, `type` or another kind of code."),
    ),
    order=("function_hash",),
)
STACKS = FleetTable(
    "stacks",
    "Stacks: a function on top of its caller's stack. Take one row of each hash: they are equal.",
    (
        _id("stack_hash", "Hash of the caller's stack and the function."),
        _id("parent_hash", "The caller's stack; null for outermost functions.", True),
        _id("function_hash", "Function."),
    ),
    order=("stack_hash",),
)

TABLES: Mapping[str, FleetTable] = {
    table.name: table
    for table in (
        FUNCTIONS,
        STACKS,
        EVENT_TOTALS,
        FUNCTION_TOTALS,
        STACK_TOTALS,
        CALL_STATS,
        HEAP_TYPES,
        RECORDINGS,
    )
}
"""All tables. `recordings` is the last one: a row in it is what makes a recording part of the dataset."""

OF_RECORDINGS = tuple(name for name, table in TABLES.items() if table.partitioned)
"""Tables whose rows belong to a recording and count where `recordings` names their attempt."""

DICTIONARIES = ("functions", "stacks")
"""Tables whose rows are equal for equal hashes."""


def check_layout(description: str | None, uri: str) -> None:
    """Refuses a Delta table that is not of a dataset, or of a newer layout.

    Raises:
        UsageError: It is.
    """
    if not (description or "").startswith(DESCRIPTION):
        raise UsageError(f"{uri} is a Delta table, and not one of a perfuse dataset")
    version = (description or "").removeprefix(DESCRIPTION)
    if not version.isdecimal() or int(version) > LAYOUT:
        raise UsageError(
            f"{uri} has layout {version}; this perfuse reads layouts up to {LAYOUT}", hint="install a newer perfuse"
        )
