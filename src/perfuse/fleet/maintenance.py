"""Merging small files of a dataset, and deleting what is not part of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from typing import TYPE_CHECKING, Any

from perfuse.fleet.layout import DICTIONARIES, OF_RECORDINGS, TABLES
from perfuse.fleet.packs import delete_packs
from perfuse.fleet.panics import panics_as_notes
from perfuse.fleet.status import unnamed_attempts
from perfuse.fleet.store import DatasetError, first_line, writer_properties

if TYPE_CHECKING:
    from perfuse.fleet.dataset import Fleet

FILES_BEFORE_MERGE = 8
"""A table, or a partition of one, with more small files than this is merged after `add`."""
TARGET_BYTES = 128 << 20


@dataclass
class Cleaned:
    """What `gc` did.

    Attributes:
        attempts: Attempts whose rows were deleted: no recording names them.
        files_before: Files that were part of the dataset.
        files_after: Files that are part of it now.
        deleted_files: Files that were deleted from the store.
        deleted_packs: Saved profiles that were deleted: no recording names them.
    """

    attempts: int = 0
    files_before: int = 0
    files_after: int = 0
    deleted_files: int = 0
    deleted_packs: int = 0


def compact(fleet: Fleet, *, always: bool = False) -> None:
    """Merges small files where there are many; others may add recordings at the same time.

    Args:
        fleet: The dataset.
        always: Merge all tables, and raise Delta's error where another command merges them at the same time.
    """
    from deltalake.exceptions import DeltaError

    for name in filter(fleet.store.has, TABLES):
        table = fleet.store.table(name, refresh=True)
        if not (always or _has_small_files(table, TABLES[name].partitioned)):
            continue
        try:
            with panics_as_notes():
                table.optimize.compact(target_size=TARGET_BYTES, writer_properties=writer_properties())
        except DeltaError:
            # The other command merges the same files.
            if always:
                raise
    fleet.refresh()


def _has_small_files(table: Any, partitioned: bool) -> bool:
    from collections import Counter

    from arro3.core import Table as ArrowTable

    actions = ArrowTable.from_arrow(table.get_add_actions(flatten=True))
    columns = [actions[name].to_pylist() for name in actions.column_names if name.startswith("partition.")]
    keys = list(zip(*columns, strict=True)) if partitioned and columns else [()] * actions.num_rows
    small = Counter(
        key for key, size in zip(keys, actions["size_bytes"].to_pylist(), strict=True) if size < TARGET_BYTES // 4
    )
    return any(number > FILES_BEFORE_MERGE for number in small.values())


def clean(fleet: Fleet, *, older_than_hours: float = 24.0, keep_files: bool = False) -> Cleaned:
    """Deletes rows that no recording names, merges small files, and deletes files that are not part of the dataset.

    Args:
        fleet: The dataset.
        older_than_hours: What is newer is left alone: another command may be about to name it.
        keep_files: Whether to delete no files.

    Raises:
        DatasetError: Others change the dataset at the same time, or it cannot be written.
        UsageError: There is no dataset.
    """
    from deltalake.exceptions import DeltaError

    try:
        return _clean(fleet, older_than_hours, keep_files)
    except (DeltaError, OSError) as error:
        hint = "nothing is lost: run it again when no other command changes the dataset"
        raise DatasetError(f"cannot clean {fleet.uri}: {first_line(error)}", hint=hint) from error


def _clean(fleet: Fleet, older_than_hours: float, keep_files: bool) -> Cleaned:
    fleet.store.table("recordings")  # of a place that has none, no dataset is made
    fleet.store.create()
    found = Cleaned(files_before=_count(fleet))
    limit = datetime.fromtimestamp(time.time() - older_than_hours * 3600, UTC)
    unnamed = [one for one in unnamed_attempts(fleet) if _time_of(one) <= limit]
    if unnamed:
        found.attempts = len(unnamed)
        listed = ", ".join(f"'{one}'" for one in unnamed)
        for name in OF_RECORDINGS:
            fleet.store.table(name, refresh=True).delete(f"attempt_id IN ({listed})")
    _merge_dictionaries(fleet)
    compact(fleet, always=True)
    found.files_after = _count(fleet)
    if not keep_files:
        for name in TABLES:
            found.deleted_files += _vacuum(fleet, name, ceil(older_than_hours))
        fleet.refresh()
        named = {name for (name,) in fleet.head.rows("SELECT pack FROM recordings WHERE pack IS NOT NULL")}
        found.deleted_packs = delete_packs(fleet.store, named, limit)
    fleet.refresh()
    return found


def _vacuum(fleet: Fleet, name: str, hours: int) -> int:
    """Deletes files that are not part of a table for so many hours. Returns their number."""
    table = fleet.store.table(name, refresh=True)
    table.create_checkpoint()
    before = _num_data_files(fleet, name)
    # Its answer names files that were deleted before, too.
    table.vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=False, full=True)
    return before - _num_data_files(fleet, name)


def _num_data_files(fleet: Fleet, name: str) -> int:
    return sum(not one.startswith("_delta_log/") for one in fleet.store.names_below(name))


def _merge_dictionaries(fleet: Fleet) -> None:
    """Keeps one row of each hash."""
    delta_tables = [name for name in DICTIONARIES if len(fleet.store.table(name).file_uris()) > 1]
    for name in delta_tables:
        rows = fleet.rows(f"SELECT * FROM {name} ORDER BY 1")
        fleet.store.replace(name, rows)


def _time_of(attempt: str) -> datetime:
    return datetime.strptime(attempt.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def _count(fleet: Fleet) -> int:
    return sum(len(files) for files in fleet.files().values())
