"""`.heapsnapshot`: heap snapshots of V8, for the memory panel of Chrome's DevTools."""

from pathlib import Path
from typing import IO, TYPE_CHECKING

from perfuse.exporters.contents import contents
from perfuse.exporters.heap_dumps import HeapSource, chosen_heap, write_each
from perfuse.exporters.source import Progress

if TYPE_CHECKING:
    from perfuse.analysis.heap import Heap

CONTENTS = contents(heap_snapshots="one, with all objects, references and roots; a directory gets each")


def write(
    profile: HeapSource, out: IO[bytes], *, snapshot: int | None = None, progress: Progress | None = None
) -> None:
    """Writes a heap snapshot: types, sizes, references called by their offsets, and roots by kind.

    References from objects that no root keeps alive to others are weak, so that retained sizes are those of the
    snapshot. Numbers of objects are in the order of their addresses.

    Args:
        profile: The profile.
        out: A binary file object.
        snapshot: Key of the snapshot; by default the last.
        progress: Called with the name of the current step and the completed share (0 to 1).

    Raises:
        ExportError: There is no such snapshot.
    """
    _write(profile, chosen_heap(profile, snapshot), out, progress)


def write_directory(profile: HeapSource, path: Path, *, progress: Progress | None = None) -> None:
    """Writes `snapshot-KEY.heapsnapshot` for each heap snapshot; options as in `write`."""
    write_each(profile, path, ".heapsnapshot", _write, progress)


def _write(_profile: HeapSource, heap: "Heap", out: IO[bytes], progress: Progress | None) -> None:
    heap.write_v8(out, progress)
