"""The Delta tables of a dataset: opening, appending, and the one commit that makes recordings part of it.

Rows of all other tables are appended first, with the identity of the attempt that wrote them. The row in `recordings`,
appended last, names the attempt that counts. Appends to `recordings` carry one application transaction: of two that
were made on the same version, Delta refuses the second, which then looks at what the first one added.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from perfuse.errors import PerfuseError, UsageError
from perfuse.fleet.extra import required
from perfuse.fleet.inputs import is_url
from perfuse.fleet.layout import DESCRIPTION, LAYOUT, TABLES, FleetTable, check_layout
from perfuse.fleet.panics import panics_as_notes

_TRANSACTION = "perfuse-fleet"


class DatasetError(PerfuseError):
    """A dataset that cannot be read or written."""


class Refused(Exception):  # noqa: N818 - not an error: another driver was first
    """Another driver has added recordings since this one read the table."""


class Store:
    """The Delta tables of a dataset.

    Attributes:
        uri: Its folder or prefix, without a slash at the end.
        options: Options of the object store; credentials come from the environment where they are not here.
    """

    def __init__(self, uri: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> None:
        self.uri = os.fspath(uri).rstrip("/") or "/"
        self.options = dict(options or {})
        self._tables: dict[str, Any] = {}

    @property
    def folder(self) -> Path:
        """Its folder, where it is not in an object store."""
        return Path(self.uri.removeprefix("file://"))

    @property
    def is_remote(self) -> bool:
        """Whether it is in an object store."""
        return is_url(self.uri) and not self.uri.startswith("file://")

    def exists(self) -> bool:
        """Whether there is a dataset."""
        if not self.is_remote and not (self.folder / "recordings" / "_delta_log").is_dir():
            return False
        delta = required("deltalake")
        return bool(delta.DeltaTable.is_deltatable(self._uri_of("recordings"), storage_options=self.options or None))

    def begin(self) -> None:
        """Creates `recordings`, which makes a folder a dataset, and adds columns that tables of an older version of
        perfuse have not. The other tables are created with their first rows, or by `create`."""
        self._create("recordings")
        for name in TABLES:
            if name != "recordings" and self.has(name):
                self._add_columns(self.table(name), TABLES[name])

    def create(self) -> None:
        """Creates the tables that are missing."""
        for name in TABLES:
            if not self.has(name):
                self._create(name)

    def has(self, name: str) -> bool:
        """Whether a table exists: that of a dataset to which nothing was added yet may not."""
        delta = required("deltalake")
        return name in self._tables or bool(
            delta.DeltaTable.is_deltatable(self._uri_of(name), storage_options=self.options or None)
        )

    def _create(self, name: str) -> None:
        delta = required("deltalake")
        from deltalake.exceptions import DeltaError

        if name in self._tables:
            return
        if not self.is_remote:
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            known = delta.DeltaTable.create(
                self._uri_of(name),
                schema=TABLES[name].schema(),
                mode="ignore",
                storage_options=self.options or None,
                **_properties_of(TABLES[name]),
            )
            check_layout(known.metadata().description, self._uri_of(name))
            self._tables[name] = known
        except (DeltaError, OSError):
            # Another driver created it at the same time.
            if not self.has(name):
                raise
            known = self.table(name)
        self._add_columns(known, TABLES[name])

    def _add_columns(self, known: Any, table: FleetTable) -> None:
        from deltalake.exceptions import DeltaError

        names = {field.name for field in known.schema().fields}
        missing = [
            one for one in required("deltalake").Schema.from_arrow(table.schema()).fields if one.name not in names
        ]
        if not missing:
            return
        try:
            known.alter.add_columns(missing)
        except DeltaError:
            # Another driver added them at the same time.
            known.update_incremental()
            names = {field.name for field in known.schema().fields}
            if any(one.name not in names for one in missing):
                raise
        self._tables.pop(table.name, None)

    @property
    def identity(self) -> str:
        """An identity that no other dataset has, also not a later one at the same place."""
        return str(self.table("recordings").metadata().id)

    def columns(self, name: str) -> set[str]:
        """The columns that a table has; one that an older version of perfuse created may have fewer than it has now."""
        return {field.name for field in self.table(name).schema().fields}

    def table(self, name: str, *, refresh: bool = False) -> Any:
        """A table as `deltalake.DeltaTable`; the handle is kept, since opening reads the whole log.

        Raises:
            UsageError: There is no dataset, or it is of a newer layout.
        """
        delta = required("deltalake")
        known = self._tables.get(name)
        if known is None:
            from deltalake.exceptions import DeltaError, TableNotFoundError

            try:
                known = delta.DeltaTable(self._uri_of(name), storage_options=self.options or None)
            except (DeltaError, OSError) as error:
                if not isinstance(error, TableNotFoundError):
                    raise DatasetError(f"cannot read {self._uri_of(name)}: {first_line(error)}") from error
                raise UsageError(
                    f"no dataset in {self.uri}", path=self.uri, hint=f"perfuse fleet add {self.uri} FILE... creates it"
                ) from error
            check_layout(known.metadata().description, self._uri_of(name))
            self._tables[name] = known
        elif refresh:
            known.update_incremental()
        return known

    def append(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        """Appends rows to a table other than `recordings`, which is created where it is missing."""
        if rows and (self.has(name) or not self._create_with(name, rows)):
            self._write(TABLES[name], rows)

    def _create_with(self, name: str, rows: Sequence[Sequence[Any]]) -> bool:
        """Creates a table with its first rows, in one commit; False where another process created it meanwhile."""
        delta = required("deltalake")
        from deltalake.exceptions import DeltaError

        mark = f"{_TRANSACTION}-first-rows-{os.urandom(8).hex()}"
        try:
            with panics_as_notes():
                delta.write_deltalake(
                    self._uri_of(name),
                    TABLES[name].arrow(rows),
                    mode="append",
                    storage_options=self.options or None,
                    writer_properties=writer_properties(),
                    commit_properties=delta.CommitProperties(app_transactions=[delta.Transaction(mark, 1)]),
                    **_properties_of(TABLES[name]),
                )
        except (DeltaError, OSError):
            if not self.has(name):
                raise
            # The commit may have been made and its answer lost: then it has the mark.
            return self.table(name).transaction_version(mark) is not None
        return True

    def append_recordings(self, rows: Sequence[Sequence[Any]], *, replacing: Iterable[str] = ()) -> None:
        """Appends rows to `recordings`, on the version that was read last.

        Args:
            rows: The rows.
            replacing: Identities of recordings whose rows are deleted in the same commit; those of `rows` may be among
                them.

        Raises:
            Refused: Another command has changed the table since.
        """
        delta = required("deltalake")
        from deltalake.exceptions import CommitFailedError

        table = self.table("recordings")
        version = (table.transaction_version(_TRANSACTION) or 0) + 1
        properties = delta.CommitProperties(app_transactions=[delta.Transaction(_TRANSACTION, version)])
        try:
            self._write(TABLES["recordings"], rows, properties, _rows_of(replacing, rows))
        except CommitFailedError as error:
            self._tables.pop("recordings", None)
            raise Refused from error

    def replace(self, name: str, rows: Sequence[Sequence[Any]]) -> bool:
        """Replaces all rows of a dictionary; False where others have appended to it since it was read."""
        delta = required("deltalake")
        from deltalake.exceptions import CommitFailedError

        try:
            with panics_as_notes():
                delta.write_deltalake(
                    self.table(name),
                    TABLES[name].arrow(rows),
                    mode="overwrite",
                    writer_properties=writer_properties(),
                    commit_properties=delta.CommitProperties(max_commit_retries=0),
                )
        except CommitFailedError:
            self._tables.pop(name, None)
            return False
        return True

    def names_below(self, folder: str) -> list[str]:
        """The files in a folder of the dataset and its folders, as paths below it."""
        if self.is_remote:
            from perfuse.fleet.remote import names_below

            return names_below(f"{self.uri}/{folder}", self.options)
        top = self.folder / folder
        return sorted(one.relative_to(top).as_posix() for one in top.rglob("*") if one.is_file())

    def forget(self) -> None:
        """Closes the handles: the next use reads the logs anew."""
        self._tables.clear()

    def _write(
        self,
        table: FleetTable,
        rows: Sequence[Sequence[Any]],
        properties: Any = None,
        replaced: str | None = None,
    ) -> None:
        """Appends rows, in place of those that an SQL condition names."""
        delta = required("deltalake")
        with panics_as_notes():
            delta.write_deltalake(
                self.table(table.name),
                table.arrow(rows),
                mode="append" if replaced is None else "overwrite",
                predicate=replaced,
                writer_properties=writer_properties(),
                commit_properties=properties,
            )

    def _uri_of(self, name: str) -> str:
        return f"{self.uri}/{name}"


def _rows_of(recordings: Iterable[str], rows: Sequence[Sequence[Any]]) -> str | None:
    """An SQL condition that names rows of recordings, and new rows, as Delta demands; None where there are none."""
    identities = set(recordings)
    if not identities:
        return None
    place = TABLES["recordings"].names.index("recording_id")
    listed = ", ".join(f"'{one}'" for one in sorted(identities | {row[place] for row in rows}))
    return f"recording_id IN ({listed})"


def _properties_of(table: FleetTable) -> dict[str, Any]:
    """How a Delta table is created."""
    return {
        "partition_by": ["day", "service"] if table.partitioned else None,
        "description": f"{DESCRIPTION}{LAYOUT}",
        # Data files of appends stay small: statistics of hashes and texts are not used.
        "configuration": None if table.name == "recordings" else {"delta.dataSkippingNumIndexedCols": "0"},
    }


def first_line(error: BaseException) -> str:
    """The first line of a message that may have many."""
    message = (error.strerror if isinstance(error, OSError) else None) or str(error)
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def writer_properties() -> Any:
    """How Parquet files are written."""
    return required("deltalake").WriterProperties(compression="ZSTD", compression_level=3)
