"""The common tables in Python: by name, as Arrow, and their columns as Python values."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from perfuse import _core
from perfuse.errors import UsageError, core_error, nearest_hint, require_known

if TYPE_CHECKING:
    from arro3.core import RecordBatchReader
    from arro3.core import Table as ArrowTable

    from perfuse._core import ArrowStream


Scan = Callable[[str], Any]
"""Builds the stream of the table with that name; called for each scan of the table by a database."""

Near = tuple[str, int, int]
"""A column of integers, with the least and the greatest value that is needed."""

BuildNear = Callable[[str, Near], "ArrowStream"]
"""Builds the stream of the parts of a table that may have values of a column in a range."""

Parts = Mapping[str, BuildNear]
"""What builds parts of tables, by their names."""

OFF_CPU_EVENTS = ("off-cpu", "offcpu-time")
"""Events whose weights are times off the processor: between context switches, and as a BPF program measured them."""

SUM_EVENTS = ("wall-time", "calls", "allocated-bytes", "allocations", "samples", *OFF_CPU_EVENTS)
"""Events of table `samples` whose rows are not samples but durations or sums: recorded calls, allocations, samples that
a file of collapsed stacks counts, and times off the processor."""

REALTIME_OFFSET = "SELECT min(realtime_offset_ns) FROM clocks"
"""Nanoseconds from a time on a profile's clock to one since 1970-01-01; null where no recording has the time of day."""

HAS_ONLY_NUMBER = """coalesce(
    starts_with(name::VARCHAR || ' ', 'function ' || native_id || ' ')
    OR starts_with(name::VARCHAR || ' ', 'function ' || (native_id::HUGEINT - 4294967296) || ' '), false
)"""
"""Whether a row of `functions` has a number in place of a name, as those of XRay logs without an instrumentation map.

Numbers of Basic mode are signed, of 32 bits. With several logs, the name of the log follows the number.
"""

COUNTED_EVENTS = {"wall-time": "calls", "allocated-bytes": "allocations"}
"""For events that are sums: the event with the numbers of what was added up."""

SUMS_OF_EVENTS = (*COUNTED_EVENTS, *COUNTED_EVENTS.values())
"""Events of table `samples` that are sums over the rows of tables of calls and of allocations."""

RETAINED = "retained"
"""The event of samples that are made of the retained sizes of a heap snapshot."""

WEIGHTS = {"bytes": "allocated-bytes", "count": "allocations", "time": "wall-time", "calls": "calls"}
"""Events by the values of `--weight`; another one is `RETAINED`."""


ON_REQUEST: Mapping[str, tuple[str, ...]] = {"code_objects": ("code",)}
"""Columns of raw bytes by table: they are null unless a query or `columns=` names them."""


def sql_text(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


@cache
def names() -> tuple[str, ...]:
    """Names of all common tables, in the order the documentation lists them."""
    return tuple(table["name"] for table in _core.tables())


def _closed() -> "ArrowStream":
    raise UsageError("the recording or profile of this table is closed", hint="take what you need of it before")


def collected(stream: Any) -> Any:
    """A stream with all of its batches computed: without the interpreter's lock, and stopped by signals."""
    return stream.collected() if isinstance(stream, _core.ArrowStream) else stream


class ClosedObject:
    """Stands in the place of an object of the core that was released: whatever is asked of it raises `UsageError`."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UsageError(f"{self._what} is closed", hint="take what you need of it before")

    def __getitem__(self, key: object) -> Any:
        return self.__getattr__(str(key))

    def __iter__(self) -> Any:
        return self.__getattr__("iterator")


class Table:
    """A common table: built on first use, and cached.

    Any Arrow library accepts it, through the PyCapsule interface: `polars.DataFrame(table)`,
    `pyarrow.table(table)`, `duckdb.sql("... FROM table")`.
    """

    def __init__(
        self,
        name: str,
        build: Callable[[], "ArrowStream"],
        scan: Scan | None = None,
        build_whole: Callable[[str], "ArrowStream"] | None = None,
        build_near: "BuildNear | None" = None,
        of_stacks: "Table | None" = None,
        of_time: "Table | None" = None,
    ) -> None:
        self.name = name
        self._build = build
        self._scan = scan
        self._build_whole = build_whole
        self._build_near = build_near
        self._of_stacks = of_stacks
        self._of_time = of_time
        self._arrow: ArrowTable | None = None

    def to_arrow(self, columns: Sequence[str] | None = None) -> "ArrowTable":
        """The whole table, as an `arro3.core.Table`; with `columns` only these, including those of `ON_REQUEST`.

        Raises:
            UsageError: The table has no such column.
        """
        if columns is not None:
            return self.stream(columns).read_all()
        if self._arrow is None:
            built = self._build()
            from arro3.core import Table as ArrowTable

            try:
                self._arrow = ArrowTable.from_arrow(collected(built))
            except Exception as error:
                reason = core_error(error)
                if reason is None:
                    raise
                raise reason from error
        return self._arrow

    def stream(self, columns: Sequence[str] | None = None) -> "RecordBatchReader":
        """The table in record batches, built as they are read and not cached: for tables larger than memory.

        Args:
            columns: Only these columns, including those of `ON_REQUEST`; by default all others.

        Raises:
            UsageError: The table has no such column.
        """
        for column in columns or ():
            require_known(column, self.columns, f"column of {self.name}")
        whole = self._build_whole if columns is not None and self._is_requested(columns) else None
        built = self._build() if whole is None else whole(self.name)
        from arro3.core import RecordBatchReader

        reader = RecordBatchReader.from_arrow(built)
        if columns is None:
            return reader
        names = list(columns)
        schema = RecordBatchReader.from_batches(reader.schema, []).read_all().select(names).schema
        return RecordBatchReader.from_batches(schema, (batch.select(names) for batch in reader))

    def _is_requested(self, columns: Iterable[str]) -> bool:
        return not set(ON_REQUEST.get(self.name, ())).isdisjoint(columns)

    def scanned(self, words: Iterable[str] = ()) -> "ArrowTable | _core.ScannedTable":
        """The table for a database that scans it any number of times: a large one is built again for each scan.

        The first build starts at once, so that its errors are raised here.

        Args:
            words: Words of the query; columns of `ON_REQUEST` are filled if they are among them.
        """
        scan = self._build_whole if self._is_requested(words) else None
        if scan is None:
            scan = self._scan
            if self._arrow is not None or scan is None:
                return self.to_arrow()
        # The database may not refer to this table, nor to the profile, which owns the database.
        name, build = self.name, scan
        first = iter([build(name)])
        return _core.ScannedTable(name, lambda: next(first, None) or build(name))

    @property
    def of_stacks(self) -> "Table":
        """The table, or one with only some of its rows: all that frames refer to, where these are read sooner.

        Of functions it has the last one, too, whose key is the greatest.
        """
        return self if self._of_stacks is None or self._arrow is not None else self._of_stacks

    @property
    def of_time(self) -> "Table":
        """The table, or one with at least the rows of the selected time, where these are read sooner.

        Its own keys count from another start, in the same order, and own times of calls are not right.
        """
        return self if self._of_time is None or self._arrow is not None else self._of_time

    @property
    def columns_with_ranges(self) -> tuple[str, ...]:
        """Columns of which `near` finds the rows with values in a range; none where the table has no parts."""
        if self._build_near is None or self._arrow is not None:
            return ()
        return tuple(name for name, kind, *_ in specification(self.name)["columns"] if kind == "Int64")

    def near(self, needed: Near) -> "_core.ScannedTable":
        """All rows with values of a column in a range, and others that are stored with them, for a database.

        Args:
            needed: One of `columns_with_ranges`, with the least and the greatest value.
        """
        name, build = self.name, self._build_near
        assert build is not None
        first = iter([build(name, needed)])
        return _core.ScannedTable(name, lambda: next(first, None) or build(name, needed))

    def take_built(self, other: "Table") -> None:
        """Has the rows of a table with the same rows, where these are built."""
        self._arrow = other._arrow
        if self._of_stacks is not None and other._of_stacks is not None:
            self._of_stacks._arrow = other._of_stacks._arrow

    def close(self) -> None:
        """Lets go of what the table is built from; it stays valid if it was built."""
        self._build, self._scan, self._build_whole, self._build_near = _closed, None, None, None
        for fewer in (self._of_stacks, self._of_time):
            if fewer is not None:
                fewer.close()

    @property
    def _is_closed(self) -> bool:
        return self._build is _closed

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame` (extra `perfuse[pandas]`)."""
        import pyarrow as pa

        return pa.table(self).to_pandas()

    def to_polars(self) -> Any:
        """The table as a `polars.DataFrame` (extra `perfuse[polars]`)."""
        import polars as pl

        return pl.DataFrame(self)

    @property
    def num_rows(self) -> int:
        """Number of rows; builds the table."""
        return self.to_arrow().num_rows

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names, without building the table."""
        return tuple(name for name, *_ in specification(self.name)["columns"])

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        unbuilt = "closed" if self._is_closed else "not built yet"
        built = unbuilt if self._arrow is None else f"{self.num_rows:,} rows"
        return f"<perfuse table {self.name}: {built}; {', '.join(self.columns)}>"

    def _repr_html_(self) -> str | None:
        """What notebooks show; None where that is the text."""
        if self._arrow is None and self._is_closed:
            return None
        from perfuse.reports.notebook import table_html

        return table_html(self)


class Tables(Mapping[str, Table]):
    """Tables by name, each built when first used."""

    def __init__(
        self,
        build: Callable[[str], "ArrowStream"],
        available: tuple[str, ...],
        scans: Mapping[str, Scan] | None = None,
        build_whole: Callable[[str], "ArrowStream"] | None = None,
        parts: Parts | None = None,
        of_stacks: Mapping[str, Scan] | None = None,
        of_time: Mapping[str, Scan] | None = None,
    ) -> None:
        self._available = available
        scans = scans or {}
        fewer, timed = (
            {
                name: Table(name, partial(one, name), one if name in scans else None)
                for name, one in (some or {}).items()
            }
            for some in (of_stacks, of_time)
        )
        near = {name: one for name, one in (parts or {}).items() if name in scans}
        self._tables = {
            name: Table(
                name,
                partial(build, name),
                scans.get(name),
                build_whole,
                near.get(name),
                fewer.get(name),
                timed.get(name),
            )
            for name in available
        }

    def __getitem__(self, name: str) -> Table:
        if name not in self._tables:
            raise UsageError(f"no table {name!r}", hint=nearest_hint(name, self._available))
        return self._tables[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._available)

    def __len__(self) -> int:
        return len(self._available)

    def refuse(self, name: str, refusal: Callable[[], None], *, whole_only: bool = False) -> None:
        """Makes a table, or only its columns of `ON_REQUEST`, call a function that raises, before it is built."""
        before = self._tables[name]

        def build() -> "ArrowStream":
            refusal()
            return before._build()

        def build_whole(_name: str) -> "ArrowStream":
            return build()

        if whole_only:
            before._build_whole = build_whole
        else:
            self._tables[name] = Table(name, build)

    def take_built(self, other: "Tables", names: Iterable[str]) -> None:
        """Has tables with the same rows as those of another profile, where it has built them."""
        for name in names:
            self._tables[name].take_built(other._tables[name])

    def close(self) -> None:
        """Lets go of what tables are built from. Those that were built stay valid."""
        for table in self._tables.values():
            table.close()

    def __repr__(self) -> str:
        return f"<perfuse tables: {', '.join(self._available)}>"


STACK_SUFFIX = "_of_stacks"
"""In queries of perfuse itself, the end of the name of a table with at least the rows that frames refer to."""

TIME_SUFFIX = "_of_time"
"""The same of a table with at least the rows of the selected time: see `Table.of_time`."""


MADE_BY_CORE: Mapping[str, Callable[[Mapping[str, "Table"]], "ArrowStream"]] = {
    "names_of_frames": lambda tables: _core.frame_names(TablesOfStacks(tables)),
    "shown_processes": lambda tables: _core.shown_processes(tables["processes"]),
}
"""In queries of perfuse itself, tables of rules that the core applies too, and what makes them of the common tables.

`names_of_frames` has the name of each frame, as reports have it, whether its path can be one of its function, and the
origin of its code.
`shown_processes` has processes with a pid of their own: one whose pid an earlier one has gets a free pid, and a name
that ends with its own.
"""


def internal_tables(tables: Mapping[str, Table], words: Iterable[str]) -> dict[str, Table]:
    """The tables for perfuse's own queries that words of a query name: those above, and parts of common tables."""
    found: dict[str, Table] = {}
    for word in words:
        if tables and word in MADE_BY_CORE:
            found[word] = Table(word, partial(MADE_BY_CORE[word], tables))
        is_of_stacks = word.endswith(STACK_SUFFIX)
        name = word.removesuffix(STACK_SUFFIX if is_of_stacks else TIME_SUFFIX)
        if name != word and name in tables:
            found[word] = tables[name].of_stacks if is_of_stacks else tables[name].of_time
    return found


OF_DUMPS = ("code_objects", "functions")
"""Tables of the code of dumps: most of their rows are of code that no frame refers to."""


class TablesOfStacks(Mapping[str, Any]):
    """Tables of which those about code may have only the rows that frames refer to.

    Args:
        tables: Tables by name.
    """

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables = tables

    def __getitem__(self, name: str) -> Any:
        table = self._tables[name]
        return table.of_stacks if isinstance(table, Table) else table

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def specification(name: str) -> dict[str, Any]:
    """The declaration of a table: `name`, `doc`, `columns` as `(name, type, nullable, doc)`."""
    return _specifications()[name]


@cache
def _specifications() -> dict[str, dict[str, Any]]:
    return {table["name"]: {**table} for table in _core.tables()}


_BULK_VALUES = 50
"""Reading one value takes as long as reading this many of a whole column."""


class Columns:
    """The columns of an Arrow stream as Python lists; a column is converted on first use, and cached.

    Args:
        stream: An object with the Arrow C stream interface.
    """

    def __init__(self, stream: Any) -> None:
        from arro3.core import Table

        self._table = Table.from_arrow(collected(stream))
        self._lists: dict[str, list[Any]] = {}
        self._num_reads: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._table.num_rows

    def __contains__(self, name: object) -> bool:
        return name in self._table.column_names

    def __getitem__(self, name: str) -> list[Any]:
        """A whole column."""
        if name not in self._lists:
            column: Any = self._table[name]
            self._lists[name] = column.to_pylist()
        return self._lists[name]

    def value(self, name: str, row: int) -> Any:
        """One value; a column of which many values are read is converted as a whole."""
        self._num_reads[name] += 1
        if name in self._lists or self._num_reads[name] * _BULK_VALUES > len(self):
            return self[name][row]
        return self._table[name][row].as_py()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every row, as a dictionary."""
        names = self._table.column_names
        return (dict(zip(names, row, strict=True)) for row in self.tuples(*names))

    def tuples(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Some columns of every row, a tuple per row."""
        return zip(*map(self.__getitem__, names), strict=True)

    def take(self, rows: Sequence[int], names: Iterable[str]) -> list[tuple[Any, ...]]:
        """Some columns of some rows, a tuple per row."""
        columns = [self._some(name, rows) for name in names]
        return list(zip(*columns, strict=True))

    def _some(self, name: str, rows: Sequence[int]) -> list[Any]:
        if name in self._lists or len(rows) * _BULK_VALUES > len(self):
            column = self[name]
            return [column[row] for row in rows]
        lazy = self._table[name]
        return [lazy[row].as_py() for row in rows]


def smallest_rows(rows: Iterable[int], limit: int | None, key: Callable[[int], Any]) -> list[int]:
    """The `limit` rows with the smallest keys, sorted by key; None for all."""
    if limit is None:
        return sorted(rows, key=key)
    from heapq import nsmallest

    return nsmallest(limit, rows, key=key)


def with_bytes(fusion: _core.Profile, name: str) -> "ArrowStream":
    """A common table with its columns of raw bytes."""
    stream = fusion.table(name, True)
    if stream is None:
        raise KeyError(name)
    return stream
