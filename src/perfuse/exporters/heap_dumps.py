"""Heap snapshots for exporters: which are written, and the names in them."""

import warnings
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from perfuse.errors import ExportError, ExportWarning
from perfuse.exporters.source import EventSource, Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from perfuse.analysis.heap import Heap
    from perfuse.analysis.heap_rows import Snapshot


class HeapSource(EventSource, Protocol):
    """A profile with heap snapshots."""

    def heap(self, snapshot: int | None = None) -> "Heap":
        """The heap snapshot with a key."""
        ...


def selected_snapshots(profile: HeapSource) -> "list[Snapshot]":
    """The snapshots in the selected time, in time order; those without objects are left out."""
    from perfuse.analysis.heap import snapshots

    if not profile.has("heap_snapshots"):
        return []
    with_objects = profile.heap_sizes()
    return [one for one in snapshots(profile) if one.snapshot_id in with_objects]


def chosen_heap(profile: HeapSource, snapshot: int | None) -> "Heap":
    """The snapshot to write: the one with a key, or the last; a warning names the number of the others.

    Raises:
        ExportError: There is none, or none with the key.
    """
    keys = [one.snapshot_id for one in required_snapshots(profile)]
    if snapshot is None and len(keys) > 1:
        others = f"{len(keys) - 1:,} earlier one{'s' if len(keys) > 2 else ''}"
        warnings.warn(
            f"only heap snapshot {keys[-1]} is written, not {others}: a directory gets a file each, snapshot= another",
            ExportWarning,
            stacklevel=5,
        )
    elif snapshot is not None and snapshot not in keys:
        known = ", ".join(map(str, keys))
        raise ExportError(f"there is no heap snapshot {snapshot}", field="snapshot", hint=f"there are {known}")
    return profile.heap(keys[-1] if snapshot is None else snapshot)


def required_snapshots(profile: HeapSource) -> "list[Snapshot]":
    """The selected snapshots; raises `ExportError` where there are none."""
    found = selected_snapshots(profile)
    if not found:
        if profile.has("heap_snapshots") and profile.heap_sizes():
            from perfuse.analysis.heap import no_snapshot

            message, hint = no_snapshot(profile)
            raise ExportError(message, hint=hint)
        hint = "Mono records them with --profile=log:heapshot; flame graphs and pprof show allocations"
        raise ExportError("there is no heap snapshot to write", hint=hint)
    return found


def write_each(
    profile: HeapSource,
    directory: Path,
    ending: str,
    write: "Callable[[HeapSource, Heap, IO[bytes], Progress | None], None]",
    progress: Progress | None,
) -> None:
    """Writes each snapshot to a file `snapshot-KEY` in a directory."""
    for one in required_snapshots(profile):
        with (directory / f"snapshot-{one.snapshot_id}{ending}").open("wb") as out:
            write(profile, profile.heap(one.snapshot_id), out, progress)
