"""SQL over the common tables: the only file that knows DuckDB.

Works with DuckDB 1.5 and 2.0: `fetchall()` only, Arrow through the PyCapsule interface, no pyarrow.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import duckdb

from perfuse.errors import QueryError, panic_error

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from perfuse.table import Table


@contextmanager
def query_errors() -> Iterator[None]:
    """Raises what DuckDB raises as `QueryError`."""
    try:
        yield
    except duckdb.Error as error:
        panic = panic_error()
        if panic is not None:
            raise panic from error
        # The first line says what is wrong, the next where, or what was meant.
        what, *more = [line.rstrip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise QueryError(what, hint=more[0] if more else None) from error


class Database:
    """An in-memory database that shows tables by name and builds one only when a query names it."""

    def __init__(self, tables: "Mapping[str, Table]") -> None:
        self._tables = tables
        self._connection: DuckDBPyConnection | None = None
        self._shown: set[str] = set()

    def sql(self, query: str) -> "DuckDBPyRelation":
        """A DuckDB relation; nothing runs before it is fetched or written.

        Raises:
            QueryError: It is no SQL, or names what there is not.
        """
        connection = self._open()
        words = set(re.findall(r"\w+", query.lower()))
        for name in self._tables:
            if name in words and name not in self._shown:
                connection.register(name, self._tables[name].to_arrow())
                self._shown.add(name)
        with query_errors():
            return connection.sql(query)

    def _open(self) -> "DuckDBPyConnection":
        if self._connection is None:
            self._connection = duckdb.connect(":memory:")
            self._connection.execute("SET enable_progress_bar = false")
        return self._connection
