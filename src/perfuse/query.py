"""SQL over the common tables: the only file that knows DuckDB.

Works with DuckDB 1.5 and 2.0: `fetchall()` only, Arrow through the PyCapsule interface, no pyarrow.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from perfuse.table import Table

Error = duckdb.Error
"""What DuckDB raises."""


class Database:
    """An in-memory database that shows tables by name and builds one only when a query names it."""

    def __init__(self, tables: "Mapping[str, Table]") -> None:
        self._tables = tables
        self._connection: DuckDBPyConnection | None = None
        self._shown: set[str] = set()

    def sql(self, query: str) -> "DuckDBPyRelation":
        """A DuckDB relation; nothing runs before it is fetched or written."""
        connection = self._open()
        words = set(re.findall(r"\w+", query.lower()))
        for name in self._tables:
            if name in words and name not in self._shown:
                connection.register(name, self._tables[name].to_arrow())
                self._shown.add(name)
        return connection.sql(query)

    def _open(self) -> "DuckDBPyConnection":
        if self._connection is None:
            self._connection = duckdb.connect(":memory:")
            self._connection.execute("SET enable_progress_bar = false")
        return self._connection
