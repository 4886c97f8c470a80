"""Sums of heap snapshots by type, from one pass over all snapshots of any size."""

from collections.abc import Iterable
from typing import Any, Protocol

from perfuse import _core
from perfuse.analysis.heap_rows import Snapshot
from perfuse.analysis.objects import type_names
from perfuse.analysis.profiles import TableProfile
from perfuse.value_class import as_dict, value_class


class FusedProfile(TableProfile, Protocol):
    """A profile of the core; `perfuse.Profile` is one."""

    @property
    def _heaps(self) -> _core.Profile:
        """What has the heap snapshots."""
        ...


@value_class
class SnapshotSize:
    """Number and size of the objects of a heap snapshot."""

    snapshot: Snapshot
    num_objects: int
    size_bytes: int

    def as_json(self) -> dict[str, Any]:
        """One of `heap.snapshots` in `report --json`."""
        return {**as_dict(self.snapshot), "num_objects": self.num_objects, "size_bytes": self.size_bytes}


@value_class
class ClassSize:
    """All objects of a type in two heap snapshots; pairs have the value of the earlier one, then of the later one.

    Attributes:
        type_id: Key in table `types`; None for all objects whose type is never described.
        type: Its name.
        num_objects: Number of objects.
        size_bytes: Sum of their own sizes.
    """

    type_id: int | None
    type: str | None
    num_objects: tuple[int, int]
    size_bytes: tuple[int, int]

    @property
    def growth_bytes(self) -> int:
        """Difference of `size_bytes`."""
        return self.size_bytes[1] - self.size_bytes[0]


def snapshot_sizes(rows: Iterable[tuple[int, int | None, int, int]]) -> dict[int, tuple[int, int]]:
    """Objects and bytes of each snapshot, from rows `(snapshot_id, type_id, num_objects, size_bytes)`."""
    sizes: dict[int, tuple[int, int]] = {}
    for snapshot_id, _, count, size in rows:
        objects, size_bytes = sizes.get(snapshot_id, (0, 0))
        sizes[snapshot_id] = (objects + count, size_bytes + size)
    return sizes


class SnapshotSums:
    """Objects, bytes and references of all heap snapshots of a profile, from one pass.

    Attributes:
        num_references: References of each snapshot, by its key.
    """

    def __init__(self, profile: FusedProfile) -> None:
        rows, references = _core.heap_sums(profile._heaps)
        self._types = type_names(profile)
        self._by_snapshot: dict[int, dict[int | None, tuple[int, int]]] = {}
        for snapshot_id, of, count, size in rows:
            self._by_snapshot.setdefault(snapshot_id, {})[of] = (count, size)
        self.num_references = dict(references)

    def size(self, snapshot: Snapshot) -> SnapshotSize:
        """Number and size of the objects of a snapshot."""
        sums = self._by_snapshot.get(snapshot.snapshot_id, {}).values()
        return SnapshotSize(snapshot, sum(count for count, _ in sums), sum(size for _, size in sums))

    def classes(self, earlier: Snapshot, later: Snapshot) -> list[ClassSize]:
        """The types of two snapshots, the largest in the later one first."""
        before, after = (self._by_snapshot.get(one.snapshot_id, {}) for one in (earlier, later))
        rows = []
        for of in before | after:
            (count, size), (later_count, later_size) = before.get(of, (0, 0)), after.get(of, (0, 0))
            name = None if of is None else self._types.get(of)
            rows.append(ClassSize(of, name, (count, later_count), (size, later_size)))
        rows.sort(key=lambda row: (-row.size_bytes[1], -row.num_objects[1], row.type or ""))
        return rows


def changed_classes(classes: Iterable[ClassSize]) -> list[ClassSize]:
    """Types whose number or size changed, the largest growth first."""
    rows = [row for row in classes if row.growth_bytes or row.num_objects[0] != row.num_objects[1]]
    rows.sort(key=lambda row: (-row.growth_bytes, row.num_objects[0] - row.num_objects[1], row.type or ""))
    return rows
