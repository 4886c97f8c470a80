"""An open dataset: SQL over its live rows, and the questions that verbs ask."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from perfuse.errors import QueryError, UsageError, nearest_hint
from perfuse.fleet.inputs import FleetInput, inputs_of
from perfuse.fleet.layout import DICTIONARIES, OF_RECORDINGS, SQL_TYPES, TABLES
from perfuse.fleet.selecting import COLUMNS, Recordings, check_label_names, parse_recordings
from perfuse.fleet.store import Store
from perfuse.table import sql_text

if TYPE_CHECKING:
    from perfuse.fleet.adding import AddResult, Progress
    from perfuse.fleet.engines import Engine
    from perfuse.fusing.following import Maps
    from perfuse.query import DuckDBRelation, FileDatabase, Parameters, Statement

Partition = tuple[str, str | None]
"""Day and service of recordings, by which files are in folders."""

VIEWS = ("recordings", "quarantine", *OF_RECORDINGS, *DICTIONARIES)
"""What `Fleet.sql` can name."""


class Fleet:
    """A dataset of recordings; `perfuse.fleet.open` opens it.

    It shows the dataset as it was when it was opened; `refresh` reads what was added since.

    Args:
        uri: Its folder, or a URL such as `s3://bucket/prefix`.
        store_options: Options of the object store, as Delta names them; credentials come from the environment.
    """

    def __init__(self, uri: str | os.PathLike[str], store_options: Mapping[str, str] | None = None) -> None:
        self.store = Store(uri, store_options)
        self._parts: dict[Recordings, Fleet] = {}
        self._which: Recordings | None = None
        self._partitions: frozenset[Partition] | None = None

    @property
    def uri(self) -> str:
        """Its folder or prefix."""
        return self.store.uri

    def add(
        self,
        paths: Sequence[str | os.PathLike[str] | FleetInput],
        *,
        labels: Mapping[str, str] | None = None,
        labels_from: str | None = None,
        engine: Engine | None = None,
        symbol_dirs: Sequence[str] = (),
        maps: Maps = (),
        debug_info: bool = True,
        memory: int | None = None,
        retry_failed: bool = False,
        keep_packs: bool = False,
        progress: Progress | None = None,
    ) -> AddResult:
        """Adds recordings; creates the dataset where there is none.

        Recordings that are part of it, by the content of their files and the version of perfuse, are skipped. Those
        that cannot be read are in quarantine, and do not stop others. Whatever ends the call, each recording is
        part of the dataset whole or not at all; another call continues.

        Args:
            paths: Files, files joined with `+`, directories, globs, URLs; or what was found by them.
            labels: Labels of all of them, such as `service`, `build` and `host`.
            labels_from: A regular expression with named groups: labels from the paths.
            engine: Where they are read: `Inline()`, `Pool(n)` or `Dask(address)`.
            symbol_dirs: Directories with binaries and debug files.
            maps: Programs and libraries that name the functions of XRay logs, as in `perfuse.fuse`.
            debug_info: Whether lines and inlined calls of native code are read, which names more functions.
            memory: Limit of a worker's memory in bytes.
            retry_failed: Whether recordings in quarantine are read again.
            keep_packs: Whether a saved profile of each is kept in the dataset, to be opened when its files are gone.
            progress: Called with what is done and its share.

        Raises:
            UsageError: A path names nothing, or no selection could name a label.
            UnreadableInput: A file of `maps` has no instrumentation map.
            DatasetError: The dataset cannot be written.
        """
        from perfuse.fleet.adding import add
        from perfuse.fleet.work import WorkOptions
        from perfuse.fusing.following import require_symbol_dirs
        from perfuse.fusing.programs import require_maps

        require_maps(maps)
        require_symbol_dirs(symbol_dirs)
        options = WorkOptions(
            self.store.uri if self.store.is_remote else str(self.store.folder.absolute()),
            self.store.options,
            dict(labels or {}),
            tuple(symbol_dirs),
            maps,
            debug_info,
            memory,
            retry_failed,
            keep_packs,
        )
        inputs = inputs_of(paths, labels_from)
        check_label_names({*options.labels, *(name for one in inputs for name, _ in one.labels)})
        try:
            return add(self.store, inputs, options, engine, progress or (lambda _what, _share: None))
        finally:
            self.refresh()

    def refresh(self) -> None:
        """Reads the logs again."""
        self.store.forget()
        self._parts.clear()
        self.__dict__.pop("_database", None)

    def only(self, which: Recordings) -> Fleet:
        """The same dataset with only some recordings in its views: files of other days and services are not read."""
        if not which.conditions and which.last is None:
            return self
        if which not in self._parts:
            self.require_labels(*which.labels)
            query = f"SELECT DISTINCT day, service FROM ({which.query})"
            found = self.head.rows(query, list(which.parameters))
            self._parts[which] = self._part(which, frozenset((day, service) for day, service in found))
        return self._parts[which]

    @property
    def head(self) -> Fleet:
        """The same dataset with nothing but its recordings, functions and stacks: no sums of recordings are read."""
        every = Recordings()
        if every not in self._parts:
            self._parts[every] = self._part(None, frozenset())
        return self._parts[every]

    def _part(self, which: Recordings | None, partitions: frozenset[Partition]) -> Fleet:
        part = Fleet(self.uri, self.store.options)
        part.store, part._which, part._partitions = self.store, which, partitions
        return part

    def sql(self, query: str, parameters: Parameters | None = None, *, where: str = "") -> DuckDBRelation:
        """Runs SQL over the views of the dataset, which contain only what counts.

        Args:
            query: The SQL, in DuckDB's dialect; `docs/fleet.md` describes the views.
            parameters: Values of its `?` or `$name`.
            where: Only these recordings, as `fleet report --where` selects them; files of other days and services are
                not read.

        Raises:
            QueryError: The SQL is invalid, or reaches for other files.
            UsageError: `where` does not select recordings.
        """
        from perfuse.query import ALLOW_FILES

        try:
            return self.only(parse_recordings(where))._database.sql(query, parameters=parameters)
        except QueryError as error:
            if error.hint == ALLOW_FILES:
                error.hint = f"`perfuse fleet files {self.uri}` lists the files of the dataset, for other programs"
            raise

    def rows(self, query: str, parameters: Parameters | None = None) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self._database.execute(query, parameters)

    def selected(self, which: Recordings) -> int:
        """The number of recordings of a selection.

        Raises:
            UsageError: There is none, or no recording has a label that it names.
        """
        self.require_labels(*which.labels)
        number = self.count(which)
        if not number:
            ((total,),) = self.head.rows("SELECT count(*) FROM recordings")
            raise UsageError(
                f"no recording of {self.uri} is {which.text!r}" if total else f"{self.uri} has no recordings",
                hint=self._what_there_is() if total else f"perfuse fleet add {self.uri} FILE...",
            )
        return number

    def count(self, which: Recordings) -> int:
        """The number of recordings of a selection, which may be 0."""
        ((number,),) = self.head.rows(f"SELECT count(*) FROM ({which.query})", list(which.parameters))
        return int(number)

    def known_among(self, identities: Sequence[str]) -> list[str]:
        """Those of some identities that recordings of the dataset have."""
        query = "SELECT recording_id FROM recordings WHERE list_contains(?, recording_id) ORDER BY 1"
        return [key for (key,) in self.head.rows(query, [list(identities)])]

    def require_labels(self, *labels: str) -> None:
        """Checks that each is a label of some recording, or a column of `recordings`.

        Raises:
            UsageError: One is neither.
        """
        wanted = [one for one in labels if one not in COLUMNS]
        if not wanted:
            return
        known = [
            one for (one,) in self.head.rows("SELECT DISTINCT unnest(json_keys(labels)) FROM recordings ORDER BY 1")
        ]
        for label in wanted:
            if label not in known:
                hint = nearest_hint(label, dict.fromkeys((*known, *COLUMNS)))
                raise UsageError(f"no recording of {self.uri} has a label {label!r}", hint=hint)

    def files(self) -> dict[str, list[str]]:
        """The Parquet files of each table that are part of the dataset; of `only`, those that its views read."""
        return {name: self._files_of(name) for name in TABLES}

    def _what_there_is(self) -> str:
        texts = []
        for label in ("service", "build", "host"):
            query = f"SELECT DISTINCT {label} FROM recordings WHERE {label} IS NOT NULL ORDER BY 1 DESC LIMIT 6"
            values = [str(value) for (value,) in self.head.rows(query)]
            if values:
                texts.append(f"{label}: {', '.join(values[:5])}{', …' if len(values) > 5 else ''}")
        return "; ".join(texts) or "no recording has labels"

    def _files_of(self, name: str) -> list[str]:
        if name != "recordings" and not self.store.has(name):
            return []
        files = [str(one) for one in self.store.table(name).file_uris()]
        if self._partitions is None or not TABLES[name].partitioned:
            return files
        return [one for one in files if partition_of(one) in self._partitions]

    @cached_property
    def _database(self) -> FileDatabase:
        from perfuse.query import FileDatabase

        files = self.files()
        if self.store.is_remote:
            from perfuse.fleet.remote import cached

            files = cached(files, self.store.options)
        statements: list[Statement] = []
        for name, table in TABLES.items():
            # Partition columns are not in the files: those of `recordings` are joined.
            columns = [one for one in table.columns if not (table.partitioned and one.name in ("day", "service"))]
            present = self.store.columns(name) if files[name] else set()
            names = ", ".join(
                f'"{one.name}"' if one.name in present else f'NULL::{SQL_TYPES[one.kind]} AS "{one.name}"'
                for one in columns
            )
            listed = ", ".join(map(sql_text, files[name]))
            # Files of `recordings` may be older than one of its columns; all those of other tables have the same.
            by_name = "true" if name == "recordings" else "false"
            rows = f"FROM read_parquet([{listed}], hive_partitioning = false, union_by_name = {by_name})"
            statements.append(f"CREATE VIEW all_{name} AS SELECT {names} {rows if files[name] else 'WHERE false'}")
        statements += [
            "CREATE TABLE live_recordings AS SELECT * FROM all_recordings QUALIFY row_number() OVER "
            "(PARTITION BY recording_id ORDER BY state = 'failed', added_ns DESC, attempt_id) = 1",
            "CREATE VIEW recordings AS SELECT * FROM live_recordings WHERE state <> 'failed'",
            "CREATE VIEW quarantine AS SELECT * FROM live_recordings WHERE state = 'failed'",
        ]
        if self._which is not None:
            # The condition is about the view; its parameters are values, which only a table can be made of.
            statements += [
                (f"CREATE TABLE selected_recordings AS {self._which.query}", list(self._which.parameters)),
                "CREATE OR REPLACE VIEW recordings AS SELECT * FROM selected_recordings",
            ]
        counting = "selected_recordings" if self._which is not None else "live_recordings"
        for name in OF_RECORDINGS:
            own = ", ".join(f"r.{one}" if one in ("day", "service") else f"t.{one}" for one in TABLES[name].names)
            statements.append(
                f"CREATE VIEW {name} AS SELECT {own} FROM all_{name} AS t JOIN"
                f" (SELECT recording_id, attempt_id, day, service FROM {counting} WHERE state <> 'failed') AS r"
                " ON t.recording_id = r.recording_id AND t.attempt_id = r.attempt_id"
            )
        for name in DICTIONARIES:
            key, *others = TABLES[name].names
            values = ", ".join(f"min({other}) AS {other}" for other in others)
            statements.append(f"CREATE VIEW {name} AS SELECT {key}, {values} FROM all_{name} GROUP BY {key}")
        columns_of = {name: TABLES.get(name, TABLES["recordings"]).names for name in VIEWS}
        return FileDatabase(statements, [one for some in files.values() for one in some], columns_of)


def partition_of(file: str) -> Partition:
    """The partition of a data file, by its folders `day=…/service=…`."""
    folders = dict(part.split("=", 1) for part in file.split("/")[-3:-1] if "=" in part)
    day, service = (unquote(folders.get(name, "")) for name in ("day", "service"))
    return day, None if service == "__HIVE_DEFAULT_PARTITION__" else service


def open(uri: str | os.PathLike[str], *, store_options: Mapping[str, str] | None = None) -> Fleet:
    """Opens a dataset of recordings, or the place of one that `Fleet.add` will create.

    Args:
        uri: Its folder, or a URL such as `s3://bucket/prefix`.
        store_options: Options of the object store, as Delta names them; credentials come from the environment.
    """
    return Fleet(uri, store_options)
