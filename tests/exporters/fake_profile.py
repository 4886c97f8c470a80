"""A profile made of rows: the common tables, without a recording."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
from arro3.core import Table

from perfuse import _core
from perfuse.filters.selection import Selection
from perfuse.filters.stacks import StackFilter
from perfuse.table import MADE_BY_CORE, STACK_SUFFIX

DUCKDB_TYPES = {
    "UInt8": "UTINYINT",
    "UInt16": "USMALLINT",
    "UInt32": "UINTEGER",
    "UInt64": "UBIGINT",
    "Int32": "INTEGER",
    "Int64": "BIGINT",
    "Float64": "DOUBLE",
    "Boolean": "BOOLEAN",
    "Binary": "BLOB",
    "List(UInt64)": "UBIGINT[]",
    "Dictionary(Int32, Utf8)": "VARCHAR",
}
"""Types of columns in DuckDB, by their Arrow types."""
_DEFAULTS = {"source_id": 0, "record_offset": 0, "code_index": 0, "size_bytes": 0}


class Relations(Mapping[str, Any]):
    """Tables of a made profile, as Arrow streams."""

    def __init__(self, profile: "FakeProfile") -> None:
        self._profile = profile

    def __getitem__(self, name: str) -> Any:
        return self._profile.sql(f"FROM {name}")

    def __iter__(self) -> Iterator[str]:
        return (table["name"] for table in _core.tables())

    def __len__(self) -> int:
        return len(_core.tables())


class FakeProfile:
    """Answers SQL over tables of the real schema."""

    has_traces = False

    def __init__(self, title: str = "made by hand") -> None:
        self.title = title
        self.selection = Selection()
        self.stack_filter = StackFilter()
        self.tables = Relations(self)
        self._connection = duckdb.connect()
        self._columns: dict[str, dict[str, str]] = {}
        for table in _core.tables():
            columns = {name: DUCKDB_TYPES[data_type] for name, data_type, _, _ in table["columns"]}
            self._columns[table["name"]] = columns
            declared = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            self._connection.execute(f"CREATE TABLE {table['name']} ({declared})")
        for name in ("functions", "code_objects"):
            self._connection.execute(f"CREATE VIEW {name}{STACK_SUFFIX} AS FROM {name}")

    def change(self, statement: str) -> None:
        """Changes existing rows."""
        self._connection.execute(statement)

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        for name, made_of in MADE_BY_CORE.items():
            if name in query:
                self._connection.register(name, Table.from_arrow(made_of(self.tables)))
        return self._connection.sql(query)

    def has(self, table: str) -> bool:
        return self.sql(f"SELECT count(*) FROM {table}").fetchall() != [(0,)]

    def count_rows(self, table: str, kinds: tuple[str, ...] = ()) -> int:
        where = f"kind IN ({', '.join(map(repr, kinds))})" if kinds else "true"
        ((count,),) = self.sql(f"SELECT count(*) FROM {table} WHERE {where}").fetchall()
        return int(count)

    def heap_sizes(self) -> dict[int, tuple[int, int]]:
        return {}

    @property
    def has_samples(self) -> bool:
        return self.sql("SELECT count(*) FROM samples").fetchall() != [(0,)]

    def call_trace(self, _progress: Any = None) -> None:
        """Returns None: only recordings have single calls."""

    def add(self, table: str, **columns: Any) -> None:
        """One row; columns left out are null."""
        self.add_all(table, [columns])

    def add_all(self, table: str, rows: list[dict[str, Any]]) -> None:
        known = self._columns[table]
        assert all(set(row) <= set(known) for row in rows), f"{table} has columns {list(known)}"
        shape = json.dumps([{name: kind for name, kind in known.items() if kind != "BLOB"}])
        values = json.dumps([{name: row.get(name, _DEFAULTS.get(name)) for name in known} for row in rows])
        columns = ", ".join(f'"{name}"' for name, kind in known.items() if kind != "BLOB")
        query = f"INSERT INTO {table} ({columns}) SELECT unnest(from_json(?, ?), recursive := true)"
        self._connection.execute(query, [values, shape])

    def use_dictionaries(self) -> "FakeProfile":
        """Makes every text column an enumeration, which is what DuckDB sees of an Arrow dictionary."""
        for table, columns in self._columns.items():
            for column, kind in columns.items():
                if kind != "VARCHAR":
                    continue
                values = self.sql(f'SELECT DISTINCT "{column}" FROM {table} WHERE "{column}" IS NOT NULL').fetchall()
                if values:
                    literals = ", ".join("'" + value.replace("'", "''") + "'" for (value,) in values)
                    self._connection.execute(f'ALTER TABLE {table} ALTER "{column}" TYPE ENUM({literals})')
        return self
