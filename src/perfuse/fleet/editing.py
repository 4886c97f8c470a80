"""Removing recordings from a dataset, and giving them other labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfuse.errors import PerfuseError, UsageError
from perfuse.fleet.adding import write_failure
from perfuse.fleet.identities import attempt_id
from perfuse.fleet.layout import OF_RECORDINGS, TABLES
from perfuse.fleet.selecting import LABEL_COLUMNS, Recordings, check_label_names, parse_recordings
from perfuse.fleet.store import DatasetError, Refused

if TYPE_CHECKING:
    from perfuse.fleet.dataset import Fleet

CHUNK = 1000
"""Recordings of a commit."""
MOVED = 100
"""Recordings whose rows are copied at once."""
FAILURES = 2
"""An edit is given up when so many of its commits have failed."""
_ATTEMPTS = 20

Rows = Sequence[dict[str, Any]]
"""Rows of `recordings`, by column."""
Edit = Callable[[Rows], tuple[Rows, Rows]]
"""Of rows, returns those that go, and those that come instead."""


@dataclass(frozen=True, slots=True)
class Edited:
    """What `remove` or `relabel` did.

    Attributes:
        num_selected: Recordings of the selection.
        num_changed: Those of them that were removed, or whose labels changed.
    """

    num_selected: int
    num_changed: int


def remove(fleet: Fleet, where: str = "", *, failed: bool = False) -> Edited:
    """Removes recordings: no question counts them from then on, and each can be added again.

    Each is removed whole or not at all, whatever ends the call. Their rows and saved profiles are deleted by `clean`,
    as those of interrupted commands are.

    Args:
        fleet: The dataset.
        where: Which recordings, as `fleet report --where` selects them.
        failed: Remove inputs from the quarantine instead; an empty `where` is all of them.

    Raises:
        UsageError: `where` is empty, selects nothing, or cannot be read.
        DatasetError: The dataset cannot be written, or others change it all the time.
    """
    which = parse_recordings(where)
    if not failed:
        _require_selection(which)
    return _edit(fleet, _selected(fleet, which, failed=failed), lambda rows: (rows, ()))


def relabel(fleet: Fleet, where: str, labels: Mapping[str, str]) -> Edited:
    """Gives recordings other labels. Each has all new ones or none, whatever ends the call.

    Args:
        fleet: The dataset.
        where: Which recordings, as `fleet report --where` selects them.
        labels: Labels to set; an empty value removes the label. Others stay.

    Raises:
        UsageError: `where` is empty, selects nothing, or cannot be read; or no selection could name a label.
        DatasetError: The dataset cannot be written, or others change it all the time.
    """
    which = parse_recordings(where)
    _require_selection(which)
    check_label_names(labels)

    def labeled(rows: Rows) -> tuple[Rows, Rows]:
        pairs = [(old, new) for old in rows if (new := _with_labels(old, labels)) != old]
        moved = [new for old, new in pairs if new["service"] != old["service"]]
        for first in range(0, len(moved), MOVED):
            _move(fleet, moved[first : first + MOVED])
        return [old for old, _ in pairs], [new for _, new in pairs]

    return _edit(fleet, _selected(fleet, which), labeled)


def _require_selection(which: Recordings) -> None:
    if not which.conditions and which.last is None:
        raise UsageError(
            "which recordings are meant is not stated",
            field="where",
            hint="select them: build=41, host=web-*, until 2026-11-08; since 1970-01-01 is all of them",
        )


def _with_labels(row: dict[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """A row of `recordings` with other labels."""
    values = {name: value for name, value in {**json.loads(row["labels"]), **labels}.items() if value}
    columns = {name: values.get(name) for name in LABEL_COLUMNS if name in labels}
    return {**row, **columns, "labels": json.dumps(values, sort_keys=True)}


def _move(fleet: Fleet, rows: Rows) -> None:
    """Copies what belongs to recordings into the files of their new services, as another attempt, which their rows
    name from then on: it counts when these are part of the dataset."""
    services = {one["recording_id"]: one["service"] for one in rows}
    attempts = {one["recording_id"]: attempt_id() for one in rows}
    for name in OF_RECORDINGS:
        names = TABLES[name].names
        query = f"SELECT {', '.join(names)} FROM {name} WHERE list_contains(?, recording_id)"
        key, attempt, service = (names.index(one) for one in ("recording_id", "attempt_id", "service"))
        copied = []
        for row in map(list, fleet.rows(query, [list(services)])):
            row[attempt], row[service] = attempts[row[key]], services[row[key]]
            copied.append(row)
        fleet.store.append(name, copied)
    for one in rows:
        one["attempt_id"] = attempts[one["recording_id"]]


def _selected(fleet: Fleet, which: Recordings, *, failed: bool = False) -> list[str]:
    """The identities of the selected recordings, or of inputs in quarantine."""
    if not failed:
        fleet.selected(which)
    view = "quarantine" if failed else "recordings"
    query = f"SELECT recording_id FROM ({which.query_of(view)}) ORDER BY 1"
    found = [key for (key,) in fleet.head.rows(query, list(which.parameters))]
    if not found:
        named = f" is {which.text!r}" if which.text else ""
        raise UsageError(
            f"nothing in quarantine{named}", hint=f"perfuse fleet status {fleet.uri} lists what is in quarantine"
        )
    return found


def _edit(fleet: Fleet, keys: Sequence[str], edit: Edit) -> Edited:
    changed = sum(_edit_chunk(fleet, keys[first : first + CHUNK], edit) for first in range(0, len(keys), CHUNK))
    return Edited(len(keys), changed)


def _edit_chunk(fleet: Fleet, keys: Sequence[str], edit: Edit) -> int:
    """Edits the rows of recordings in one commit, on the rows as they are then. Returns the number of changed rows."""
    names = TABLES["recordings"].names
    query = f"SELECT {', '.join(names)} FROM live_recordings WHERE list_contains(?, recording_id)"
    num_changed = num_failures = 0
    for _ in range(_ATTEMPTS):
        fleet.refresh()
        try:
            old, new = edit([dict(zip(names, row, strict=True)) for row in fleet.head.rows(query, [list(keys)])])
            num_changed = max(num_changed, len(old))
            if old:
                rows = [tuple(one[name] for name in names) for one in new]
                fleet.store.append_recordings(rows, replacing=[one["recording_id"] for one in old])
        except Refused:
            continue
        except PerfuseError:
            raise
        except Exception as error:
            # The commit may have been made and its answer lost: then nothing is left to change.
            num_failures += 1
            if num_failures == FAILURES:
                raise write_failure(fleet.store, error) from error
            continue
        fleet.refresh()
        return num_changed
    raise DatasetError(f"other commands change {fleet.uri} all the time", hint="run the command again")
