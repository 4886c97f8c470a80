"""The common tables in Python: by name, as Arrow, and their columns as Python values."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from perfuse import _core
from perfuse.errors import UsageError, core_error, nearest_hint

if TYPE_CHECKING:
    from arro3.core import RecordBatchReader
    from arro3.core import Table as ArrowTable

    from perfuse._core import ArrowStream


Scan = Callable[[str], Any]
"""Builds the stream of the table with that name; called for each scan of the table by a database."""

SUM_EVENTS = ("wall-time", "calls", "allocated-bytes", "allocations", "samples")
"""Events of table `samples` whose rows are sums over a stack in a thread, without a point in time: recorded calls,
allocations, and samples that a file of collapsed stacks counts."""


@cache
def names() -> tuple[str, ...]:
    """Names of all common tables, in the order the documentation lists them."""
    return tuple(table["name"] for table in _core.tables())


class Table:
    """A common table: built on first use, and cached.

    Any Arrow library accepts it, through the PyCapsule interface: `polars.DataFrame(table)`,
    `pyarrow.table(table)`, `duckdb.sql("... FROM table")`.
    """

    def __init__(self, name: str, build: Callable[[], "ArrowStream"], scan: Scan | None = None) -> None:
        self.name = name
        self._build = build
        self._scan = scan
        self._arrow: ArrowTable | None = None

    def to_arrow(self) -> "ArrowTable":
        """The whole table, as an `arro3.core.Table`."""
        if self._arrow is None:
            # Before the import, because the core may work on the table while Arrow is loaded.
            built = self._build()
            from arro3.core import Table as ArrowTable

            try:
                self._arrow = ArrowTable.from_arrow(built)
            except Exception as error:
                raise core_error(error) or error from error
        return self._arrow

    def stream(self) -> "RecordBatchReader":
        """The table in record batches, built as they are read and not cached: for tables larger than memory."""
        built = self._build()
        from arro3.core import RecordBatchReader

        return RecordBatchReader.from_arrow(built)

    def scanned(self) -> "ArrowTable | _core.ScannedTable":
        """The table for a database that scans it any number of times: a large one is built again for each scan.

        The first build starts at once, so that its errors are raised here.
        """
        scan = self._scan
        if self._arrow is not None or scan is None:
            return self.to_arrow()
        # The database may not refer to this table, nor to the profile, which owns the database.
        first = iter([scan(self.name)])
        name = self.name
        return _core.ScannedTable(name, lambda: next(first, None) or scan(name))

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
        built = "not built yet" if self._arrow is None else f"{self.num_rows:,} rows"
        return f"<perfuse table {self.name}: {built}; {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        from perfuse.reports.notebook import table_html

        return table_html(self)


class Tables(Mapping[str, Table]):
    """Tables by name, each built when first used."""

    def __init__(
        self,
        build: Callable[[str], "ArrowStream"],
        available: tuple[str, ...],
        scans: Mapping[str, Scan] | None = None,
    ) -> None:
        self._available = available
        scans = scans or {}
        self._tables = {name: Table(name, lambda name=name: build(name), scans.get(name)) for name in available}  # type: ignore[misc]

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

    def __repr__(self) -> str:
        return f"<perfuse tables: {', '.join(self._available)}>"


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

        self._table = Table.from_arrow(stream)
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
    return sorted(rows, key=key) if limit is None else nsmallest(limit, rows, key=key)
