"""SQL over the common tables: the only module that imports DuckDB.

Queries read the tables and what they are given; they reach no file, no extension and no Python variable unless that is
allowed. Works with DuckDB 1.5 and 2.0: `fetchall()` only, Arrow through the PyCapsule interface, no pyarrow.
"""

import itertools
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias
from weakref import WeakSet

import duckdb

from perfuse import _core
from perfuse import memory as process_memory
from perfuse.errors import QueryError, UsageError, core_error, nearest_hint
from perfuse.memory import limit_memory, memory_bytes, resident_bytes
from perfuse.output.temporary import process_directory
from perfuse.query_ranges import needed_ranges, with_ranges
from perfuse.table import ON_REQUEST, internal_tables, sql_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from perfuse.table import Table

DuckDBRelation: TypeAlias = duckdb.DuckDBPyRelation
"""The result of a query, before it runs: `fetchall()`, `df()`, `pl()`, `arrow()`, `write_parquet(path)`."""
Connections: TypeAlias = dict[bool, duckdb.DuckDBPyConnection]
"""The connections of a profile that were opened first: without access to files, and with."""


_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")
_NO_COLUMN = re.compile(r'Referenced column "([^"]+)" not found')
_NO_COLUMN_OF = re.compile(r'"([^"]+)" does not have a column named "([^"]+)"')
_NAME_AND_ALIAS = re.compile(r'(\w+)"?(?:\s+(?:as\s+)?"?(\w+))?', re.IGNORECASE)


@contextmanager
def query_errors(hint_for: Callable[[str], str | None] = lambda _message: None) -> Iterator[None]:
    """Raises errors of DuckDB as `QueryError`.

    Args:
        hint_for: Returns the hint for a message; None for DuckDB's own.
    """
    try:
        yield
    except duckdb.Error as error:
        failure = core_error(error)
        if failure is not None:
            raise failure from error
        # The first line is the message; the second has the position, or a suggestion.
        message, *more = [line.rstrip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        hint = hint_for(message) or (more[0] if more else None)
        if isinstance(error, duckdb.PermissionException):
            hint = ALLOW_FILES
        elif isinstance(error, duckdb.OutOfMemoryException):
            message = "the query needs more memory than its limit"
            hint = "give the query more memory (--memory, memory=), or let it return, group or sort fewer rows"
        raise QueryError(message, hint=hint) from error


class Database:
    """An in-memory database over the common tables. Tables are not copied: each scan of a large one builds it again.

    Its worker threads end before a fork of this process and start again after it: in the child they would be missing,
    and its end would wait for them.

    Args:
        tables: The tables.
        roots: To open a connection takes longer than most queries, so selections of a profile share them; names of
            tables are of each thread's own connection.
    """

    _all: ClassVar["WeakSet[Database]"] = WeakSet()
    _opening: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, tables: "Mapping[str, Table]", roots: Connections | None = None) -> None:
        self._all.add(self)
        self._tables = tables
        self._roots = {} if roots is None else roots
        self._threads = threading.local()

    def sql(
        self,
        query: str,
        *,
        memory: "int | str | None" = None,
        parameters: "Parameters | None" = None,
        frames: Mapping[str, Any] | None = None,
        allow_files: bool = False,
    ) -> DuckDBRelation:
        """A DuckDB relation; nothing runs before it is fetched or written. The arguments are those of `Profile.sql`."""
        if memory is not None:
            available_bytes(memory_bytes(memory))
            limit_memory(memory)
        words = set(re.findall(r"\w+", query.lower()))
        names = names_in(query)
        # Tables with bytes are built for this query alone.
        with_bytes = any(table in words and not names.isdisjoint(columns) for table, columns in ON_REQUEST.items())
        query = _without_end(query)
        session = self._session(allow_files, of_its_own=bool(frames) or with_bytes)
        for name, frame in (frames or {}).items():
            if name.lower() in self._tables:
                raise UsageError(f"{name} is a common table", hint="give the frame another name")
            session.connection.register(name, _registrable(frame))
        if memory is not None:
            self._limit_memory(session.connection, memory_bytes(memory))
        if not frames and not with_bytes:
            # First: of tables in ranges, the whole is not begun.
            with query_errors(lambda message: self._hint(message, query)):
                in_ranges = self._in_ranges(query, words, parameters, allow_files)
                if in_ranges is not None:
                    return in_ranges
        for name in words & set(self._tables) - session.registered:
            session.connection.register(name, self._tables[name].scanned(names))
            session.registered.add(name)
        for name, part in internal_tables(self._tables, words - session.registered - set(frames or ())).items():
            session.connection.register(name, part.scanned(names))
            session.registered.add(name)
        with query_errors(lambda message: self._hint(message, query)):
            _check_statements(session.connection, query, allow_files)
            if self._tables and _SHOW_TABLES.fullmatch(query):
                # DuckDB would list those that earlier queries of this thread named.
                return session.connection.sql("SELECT unnest(?) AS name", params=[list(self._tables)])
            self._running.connection = session.connection
            return session.connection.sql(query, params=parameters)

    def _in_ranges(
        self, query: str, words: set[str], parameters: "Parameters | None", allow_files: bool
    ) -> DuckDBRelation | None:
        """The query with only those parts of tables that its conditions need.

        None where tables have no parts, or the query has no such conditions.
        """
        columns = {name: self._tables[name].columns_with_ranges for name in words & set(self._tables)}
        columns = {name: found for name, found in columns.items() if not words.isdisjoint(found)}
        if not columns or "where" not in words:
            return None
        connection = self._session(allow_files, of_its_own=True).connection
        _check_statements(connection, query, allow_files)
        try:
            [(parsed,)] = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
            ranges = needed_ranges(query, json.loads(parsed), columns, parameters)
            if not ranges:
                return None
            names = {needed: f"{needed.table}_part_{number}" for number, needed in enumerate(ranges)}
            for needed, name in names.items():
                connection.register(name, self._tables[needed.table].near(needed.near))
            for name in words & set(self._tables) - {needed.table for needed in ranges}:
                connection.register(name, self._tables[name].scanned(words))
            for name, part in internal_tables(self._tables, words).items():
                connection.register(name, part.scanned(words))
            self._running.connection = connection
            return connection.sql(with_ranges(query, ranges, names.__getitem__), params=parameters)
        except duckdb.Error:
            return None  # what is wrong with the query is stated of the query as it is

    def interrupter(self) -> Callable[[], None]:
        """A function that stops, from any thread, the query that the calling thread runs."""
        return self._running.interrupt

    @property
    def _running(self) -> "_Running":
        """What the calling thread runs."""
        running: _Running = self._threads.__dict__.setdefault("running", _Running())
        return running

    def _hint(self, message: str, query: str) -> str | None:
        """Names of common tables and their columns that are similar to one that DuckDB does not find."""
        if missing := _NO_TABLE.search(message):
            if "/" in missing[1]:
                return ALLOW_FILES
            return nearest_hint(missing[1], self._tables)
        if not (missing := _NO_COLUMN.search(message) or _NO_COLUMN_OF.search(message)):
            return None
        *alias, column = missing.groups()
        named = self._tables_named(query)
        tables = {table for name, table in named.items() if name in (alias or named)}
        if not tables:
            return None
        hint = nearest_hint(column, dict.fromkeys(name for table in tables for name in self._tables[table].columns))
        elsewhere = [name for name, table in self._tables.items() if column in table.columns]
        return f"{hint}; {column} is a column of {', '.join(elsewhere)}" if elsewhere else hint

    def _tables_named(self, query: str) -> dict[str, str]:
        """The common tables that a query names, by their names and aliases."""
        named = {}
        for at in re.finditer(r"\w+", query):
            table = at[0].lower()
            if table in self._tables and (match := _NAME_AND_ALIAS.match(query, at.start())):
                named.update(dict.fromkeys((table, match[2] or table), table))
        return named

    def _session(self, allow_files: bool, of_its_own: bool) -> "_Session":
        """The session of the calling thread, or one for a single query with tables of its own.

        A connection runs one query at a time, and the threads of a process share none.
        """
        with self._opening:
            root = self._roots.get(allow_files)
            if root is None:
                root = self._roots[allow_files] = self._open(allow_files)
        if of_its_own:
            return _Session(root.cursor())
        sessions: dict[bool, _Session] = self._threads.__dict__.setdefault("sessions", {})
        if allow_files not in sessions:
            sessions[allow_files] = _Session(root.cursor())
        return sessions[allow_files]

    def _open(self, allow_files: bool) -> "DuckDBPyConnection":
        connection = _connect()
        connection.execute("SET enable_progress_bar = false")
        # DuckDB's default is a directory in the current one.
        # DuckDB creates it when it first needs it, and removes it with the database.
        spilled = process_directory() / f"query-{next(_NUMBERS)}"
        connection.execute(f"SET temp_directory = {sql_text(str(spilled))}")
        if process_memory.requested_limit is not None:
            self._limit_memory(connection, process_memory.requested_limit)
        else:
            available = max(round(_core.memory_limit() * SHARE) - resident_bytes() - SCAN_BYTES, LEAST_BYTES)
            connection.execute(f"SET memory_limit = '{available}B'")
        connection.execute("SET python_enable_replacements = false")
        if not allow_files:
            connection.execute("SET allow_persistent_secrets = false")
            connection.execute("SET enable_external_access = false")
        return connection

    def _limit_memory(self, connection: "DuckDBPyConnection", limit: int) -> None:
        """Limits DuckDB to what the rest of the process leaves."""
        connection.execute(f"SET memory_limit = '{available_bytes(limit)}B'")

    @classmethod
    def end_threads(cls) -> None:
        """Ends the worker threads of all databases, in the calling thread's own time."""
        # The number takes effect when the next query starts; a cursor leaves results of the connection open.
        cls._execute_in_all("SET threads = 1", "SELECT 1")

    @classmethod
    def restart_threads(cls) -> None:
        """Lets all databases use all processors again."""
        cls._execute_in_all("RESET threads")

    @classmethod
    def restart_in_child(cls) -> None:
        """The same after a fork; the thread that was opening a connection is not in the child."""
        cls._opening = threading.Lock()
        cls.restart_threads()

    @classmethod
    def _execute_in_all(cls, *statements: str) -> None:
        roots = [root for database in cls._all for root in database._roots.values()]
        for connection in {id(root): root for root in roots}.values():
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement).fetchall()


def available_bytes(limit: int) -> int:
    """What the rest of the process leaves of its limit.

    Raises:
        UsageError: That is less than any query needs.
    """
    others = resident_bytes() + SCAN_BYTES
    available = round(limit * SHARE) - others
    if available < LEAST_BYTES:
        least = -(-round((others + LEAST_BYTES) / SHARE) // 10**7) * 10**7
        raise UsageError(
            f"a memory limit of {limit:,} bytes is too small", hint=f"this query needs at least {least // 10**6} MB"
        )
    return available


class FileDatabase(Database):
    """An in-memory database with views over Parquet files, and no access to other files.

    Args:
        statements: What creates the views, in DuckDB's dialect, with the values of its `?` where it has any.
        files: The files that views read.
        columns: Names of the columns of each view, for hints.
    """

    def __init__(
        self, statements: "Sequence[Statement]", files: Sequence[str], columns: "Mapping[str, Sequence[str]]"
    ) -> None:
        super().__init__({})
        self._statements = tuple(statements)
        self._files = tuple(files)
        self._columns = columns

    def execute(self, query: str, parameters: "Parameters | None" = None) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        with query_errors(lambda message: self._hint(message, query)):
            return self.sql(query, parameters=parameters).fetchall()

    def _open(self, allow_files: bool) -> "DuckDBPyConnection":
        connection = super()._open(True)
        with query_errors():
            for statement in self._statements:
                connection.execute(*((statement,) if isinstance(statement, str) else statement))
            if not allow_files:
                connection.execute(f"SET allowed_paths = [{', '.join(map(sql_text, self._files))}]")
                connection.execute("SET allow_persistent_secrets = false")
                connection.execute("SET enable_external_access = false")
        return connection

    def _hint(self, message: str, query: str) -> str | None:
        if missing := _NO_TABLE.search(message):
            return ALLOW_FILES if "/" in missing[1] else nearest_hint(missing[1], self._columns)
        if missing := _NO_COLUMN.search(message):
            words = set(re.findall(r"\w+", query.lower()))
            named = [names for view, names in self._columns.items() if view in words]
            return nearest_hint(missing[1], dict.fromkeys(name for names in named for name in names))
        return None


def names_in(query: str) -> set[str]:
    """The names and keywords of a query in lower case, without the words of its texts and comments."""
    try:
        text = query.encode()
    except UnicodeEncodeError:
        raise QueryError("the query is not valid Unicode", hint="write it in UTF-8") from None
    tokens = duckdb.tokenize(query)
    ends = [*(offset for offset, _ in tokens), len(text)][1:]
    kept = (
        text[offset:end].decode()
        for (offset, kind), end in zip(tokens, ends, strict=True)
        if kind not in (duckdb.token_type.comment, duckdb.token_type.string_const)
    )
    return set(re.findall(r"\w+", " ".join(kept).lower()))


def tables_in(query: str) -> set[str]:
    """The tables that a query reads, in lower case; all its names where DuckDB lists none: of several statements."""
    names = names_in(query)
    with duckdb.connect() as connection:
        try:
            return {name.lower() for name in connection.get_table_names(query)}
        except duckdb.Error:
            return names


@dataclass
class _Session:
    """A connection of one thread, and the common tables that it knows."""

    connection: "DuckDBPyConnection"
    registered: set[str] = field(default_factory=set)


@dataclass
class _Running:
    """The connection of the latest query of a thread."""

    connection: "DuckDBPyConnection | None" = None

    def interrupt(self) -> None:
        """Stops that query, if it runs."""
        if self.connection is not None:
            self.connection.interrupt()


Parameters: TypeAlias = Mapping[str, object] | Sequence[object]
"""Values of a query's `$name` parameters, or of its `?` in order."""

Statement: TypeAlias = str | tuple[str, Sequence[object]]
"""A statement, with the values of its `?` where it has any."""

ALLOW_FILES = "--allow-files (allow_files=True) permits files, extensions and settings"
"""The hint where a query reaches for files."""
_ALLOWED_STATEMENTS = {"SELECT", "EXPLAIN", "CREATE", "INSERT", "UPDATE", "DELETE", "DROP", "MULTI", "RELATION"}
"""Statements that read tables, or change tables that a query created; MULTI is PIVOT."""
_WITH_ROWS = {"SELECT", "EXPLAIN", "MULTI", "RELATION"}
"""Statements that return rows."""
_SHOW_TABLES = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)


def _without_end(query: str) -> str:
    """A query without semicolons and comments at its end, which cannot be in the subquery that DuckDB makes of it."""
    text = query.encode()  # tokens have offsets in bytes
    end = len(text)
    for start, kind in reversed(duckdb.tokenize(query)):
        if kind != duckdb.token_type.comment and text[start:end].strip() != b";":
            break
        end = start
    return text[:end].decode()


def _check_statements(connection: "DuckDBPyConnection", query: str, allow_files: bool) -> None:
    """Raises `QueryError` for several statements that return rows, of which all but the last would be lost; without
    `allow_files` for statements that would change settings, or reach files and extensions."""
    kinds = [statement.type.name for statement in connection.extract_statements(query)]
    for kind in kinds:
        if kind not in _ALLOWED_STATEMENTS and not allow_files:
            raise QueryError(f"{kind} is not allowed: queries read the tables", hint=ALLOW_FILES)
    if not _WITH_ROWS.isdisjoint(kinds[:-1]):
        raise QueryError(
            f"one statement is expected, not {len(kinds)}: only the last one may return rows",
            hint="run a query for each, or join them with UNION ALL",
        )


def _registrable(frame: Any) -> Any:
    """A user's table in a form that can be scanned several times: what offers Arrow streams, as Arrow."""
    if not hasattr(frame, "__arrow_c_stream__"):
        return frame
    from arro3.core import Table as ArrowTable

    return ArrowTable.from_arrow(frame)


def writable_directory(relation: DuckDBRelation) -> Path:
    """The directory that a relation's database may write files to: that of its temporary files, private to it."""
    setting = relation.query("rows", "SELECT current_setting('temp_directory')")
    assert setting is not None
    [(directory,)] = setting.fetchall()
    path = Path(directory)
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _connect() -> "DuckDBPyConnection":
    """An in-memory database without threads for input and output, which DuckDB cannot end before a fork."""
    try:
        return duckdb.connect(":memory:", config={"async_threads": 0})
    except duckdb.Error:
        return duckdb.connect(":memory:")  # before version 2 it has no such threads


os.register_at_fork(
    before=Database.end_threads,
    after_in_parent=Database.restart_threads,
    after_in_child=Database.restart_in_child,
)


_NUMBERS = itertools.count()
"""Numbers of the databases of this process."""

SCAN_BYTES = 128 << 20
"""Memory of the batches of tables that are being scanned."""

LEAST_BYTES = 32 << 20
"""The smallest memory with which DuckDB can group or sort many rows in temporary files."""

SHARE = 0.83
"""The share of a limit that is given away: DuckDB does not count everything that it allocates."""
