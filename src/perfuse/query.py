"""SQL over the common tables: the only module that imports DuckDB.

Works with DuckDB 1.5 and 2.0: `fetchall()` only, Arrow through the PyCapsule interface, no pyarrow.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import duckdb

from perfuse.errors import QueryError, panic_error

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from perfuse.table import Table

DuckDBRelation: TypeAlias = duckdb.DuckDBPyRelation
"""The result of a query, before it runs: `fetchall()`, `df()`, `pl()`, `arrow()`, `write_parquet(path)`."""


@contextmanager
def query_errors() -> Iterator[None]:
    """Raises errors of DuckDB as `QueryError`."""
    try:
        yield
    except duckdb.Error as error:
        panic = panic_error()
        if panic is not None:
            raise panic from error
        # The first line is the message; the second has the position, or a suggestion.
        message, *more = [line.rstrip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise QueryError(message, hint=more[0] if more else None) from error


class Database:
    """An in-memory database that registers a table when a query first names it."""

    def __init__(self, tables: "Mapping[str, Table]") -> None:
        self._tables = tables
        self._connection: DuckDBPyConnection | None = None
        self._registered: set[str] = set()

    def sql(self, query: str) -> DuckDBRelation:
        """A DuckDB relation; nothing runs before it is fetched or written.

        Raises:
            QueryError: The SQL is invalid, or names a table or column that does not exist.
        """
        connection = self._open()
        words = set(re.findall(r"\w+", query.lower()))
        for name in self._tables:
            if name in words and name not in self._registered:
                connection.register(name, self._tables[name].to_arrow())
                self._registered.add(name)
        with query_errors():
            return connection.sql(query)

    def _open(self) -> "DuckDBPyConnection":
        if self._connection is None:
            self._connection = duckdb.connect(":memory:")
            self._connection.execute("SET enable_progress_bar = false")
        return self._connection
