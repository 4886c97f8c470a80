"""HPROF: heap dumps of Java, for VisualVM and other readers."""

from pathlib import Path
from typing import IO, TYPE_CHECKING

from perfuse.exporters.contents import contents
from perfuse.exporters.heap_dumps import HeapSource, chosen_heap, write_each
from perfuse.exporters.source import Progress
from perfuse.exporters.span import realtime_ns

if TYPE_CHECKING:
    from perfuse.analysis.heap import Heap

CONTENTS = contents(heap_snapshots="one, with all objects, references and roots; a directory gets each")


def write(
    profile: HeapSource, out: IO[bytes], *, snapshot: int | None = None, progress: Progress | None = None
) -> None:
    """Writes a heap snapshot: objects with their addresses, types and sizes, references and roots.

    Objects of a type with one size are instances with fields, called by their offsets; strings, arrays and objects of
    different sizes are arrays of references. Static fields are those of their class. The values of other fields are
    not recorded. Weak roots have no form in HPROF.

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
    """Writes `snapshot-KEY.hprof` for each heap snapshot; options as in `write`."""
    write_each(profile, path, ".hprof", _write, progress)


def _write(profile: HeapSource, heap: "Heap", out: IO[bytes], progress: Progress | None) -> None:
    ((pointer_bytes,),) = profile.sql(
        f"SELECT pointer_bytes FROM sources WHERE source_id = {heap.snapshot.source_id}"
    ).fetchall()
    time_ns = realtime_ns(profile, heap.snapshot.ts_ns)
    heap.write_hprof(out, 4 if pointer_bytes == 4 else 8, max(time_ns or 0, 0) // 1_000_000, progress)
