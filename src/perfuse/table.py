"""The common tables, as Python meets them."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from perfuse import _core
from perfuse.errors import UsageError, panic_error

if TYPE_CHECKING:
    from arro3.core import RecordBatchReader
    from arro3.core import Table as ArrowTable

    from perfuse._core import ArrowStream


@cache
def names() -> tuple[str, ...]:
    """Names of all common tables, in the order the documentation lists them."""
    return tuple(table["name"] for table in _core.tables())


class Table:
    """A common table: built when it is asked for, and kept.

    Any Arrow library takes it as it is, through the PyCapsule interface: `polars.DataFrame(table)`,
    `pyarrow.table(table)`, `duckdb.sql("... FROM table")`.
    """

    def __init__(self, name: str, build: Callable[[], "ArrowStream"]) -> None:
        self.name = name
        self._build = build
        self._arrow: ArrowTable | None = None

    def to_arrow(self) -> "ArrowTable":
        """The whole table, as an `arro3.core.Table`."""
        if self._arrow is None:
            # First, as the core may begin with it while Arrow is loaded.
            built = self._build()
            from arro3.core import Table as ArrowTable

            try:
                self._arrow = ArrowTable.from_arrow(built)
            except Exception as error:
                raise panic_error() or error from error
        return self._arrow

    def stream(self) -> "RecordBatchReader":
        """The table in record batches, made as they are pulled and not kept: for one larger than memory."""
        built = self._build()
        from arro3.core import RecordBatchReader

        return RecordBatchReader.from_arrow(built)

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

    def __init__(self, build: Callable[[str], "ArrowStream"], available: tuple[str, ...]) -> None:
        self._available = available
        self._tables = {name: Table(name, lambda name=name: build(name)) for name in available}  # type: ignore[misc]

    def __getitem__(self, name: str) -> Table:
        if name not in self._tables:
            raise UsageError(f"no table {name!r}", hint=f"there are {', '.join(self._available)}")
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
    """What the documentation says of a table: `name`, `doc`, `columns` as `(name, type, nullable, doc)`."""
    return _specifications()[name]


@cache
def _specifications() -> dict[str, dict[str, Any]]:
    return {table["name"]: {**table} for table in _core.tables()}
