"""What holds the objects of some types: their paths from roots, with counts; and how types differ between snapshots."""

from collections.abc import Iterable
from dataclasses import dataclass

from perfuse.analysis.heap import Heap, HeapProfile, snapshots
from perfuse.analysis.heap_rows import HeapClass, HeapRoot, Snapshot
from perfuse.errors import UsageError, nearest_hint
from perfuse.filters.names import FramePattern

UNDESCRIBED = "(type never described)"


@dataclass(frozen=True, slots=True)
class HoldingPath:
    """Objects that are held in the same way: by roots that are the same to a reader, over objects of the same types.

    Attributes:
        root: The root; None where no root keeps them alive, and where no roots were recorded.
        is_reachable: Whether a path from a root, or from an object that nothing refers to, leads to them.
        types: Types on the path, that of the objects last; consecutive objects of one type are one step.
        num_objects: Number of the objects.
        size_bytes: Sum of their sizes.
        retained_bytes: What would be freed with them; what one retains that dominates others is counted once, over all
            paths.
        address: One of them.
    """

    root: HeapRoot | None
    is_reachable: bool
    types: tuple[str, ...]
    num_objects: int
    size_bytes: int
    retained_bytes: int
    address: int


@dataclass(frozen=True, slots=True)
class HeldType:
    """The objects of a type in a snapshot, and in an earlier one.

    Attributes:
        type: Its name.
        num_objects: Number of objects.
        size_bytes: Sum of their sizes.
        retained_bytes: What would be freed with all of them.
        earlier_objects: Number of objects in the earlier snapshot; None where there is none to compare with.
        earlier_bytes: Sum of their sizes.
        earlier_retained_bytes: What would have been freed with all of them.
    """

    type: str
    num_objects: int
    size_bytes: int
    retained_bytes: int
    earlier_objects: int | None
    earlier_bytes: int | None
    earlier_retained_bytes: int | None

    @property
    def growth_bytes(self) -> int:
        """Growth of the retained bytes."""
        return self.retained_bytes - (self.earlier_retained_bytes or 0)


@dataclass(frozen=True, slots=True)
class HeldObjects:
    """The objects of the types that match a pattern.

    Attributes:
        snapshot: The snapshot.
        earlier: The snapshot it is compared with: another of its file, or the last of another file; None without any.
        has_roots: Whether roots were recorded.
        types: The types, those that retain most first; also those that only the earlier snapshot has.
        paths: What holds their objects, most retained bytes first.
    """

    snapshot: Snapshot
    earlier: Snapshot | None
    has_roots: bool
    types: list[HeldType]
    paths: list[HoldingPath]


def held_objects(
    profile: HeapProfile, pattern: str, snapshot: int | None = None, since: int | None = None
) -> HeldObjects:
    """What holds the objects of the types that match a pattern.

    Args:
        profile: A profile with heap snapshots.
        pattern: Types: a name, a part of it, a glob or `/regex/`.
        snapshot: Key of the snapshot; by default the last.
        since: Key of the snapshot to compare with; by default the first of its file, or, of two files, the last of the
            other.

    Raises:
        UsageError: There is no such snapshot, or no type matches.
    """
    heap = profile.heap(snapshot)
    earlier = _earlier(profile, heap.snapshot, since)
    before = profile.heap(earlier.snapshot_id).classes() if earlier else []
    classes = heap.classes()
    names = {_name(one) for one in (*classes, *before)}
    test = FramePattern.parse(pattern).test(names)
    chosen = [one for one in classes if test(_name(one))]
    gone = [one for one in before if test(_name(one))]
    if not chosen and not gone:
        raise UsageError(
            f"no object of a type that matches {pattern!r}", hint=nearest_hint(pattern.strip("/*"), sorted(names))
        )
    return HeldObjects(
        snapshot=heap.snapshot,
        earlier=earlier,
        has_roots=heap.has_roots,
        types=_compared(chosen, gone if earlier else None),
        paths=holding_paths(heap, [one.type_id for one in chosen]),
    )


def holding_paths(heap: Heap, type_ids: Iterable[int | None]) -> list[HoldingPath]:
    """The objects of some types, given by their keys, by what holds them; most retained bytes first."""
    paths = []
    for types, start, address, num, size, retained in heap.held_by_types(list(type_ids)):
        root = None if start is None else heap.root_of(start)
        names = tuple(one or UNDESCRIBED for one in types)
        paths.append(HoldingPath(root, start is not None, names, num, size, retained, address))
    return paths


def _earlier(profile: HeapProfile, last: Snapshot, since: int | None) -> Snapshot | None:
    every = snapshots(profile)
    if since is not None:
        return profile.heap(since).snapshot
    same = [one for one in every if one.source_id == last.source_id and one.snapshot_id != last.snapshot_id]
    others = [one for one in every if one.source_id != last.source_id]
    return others[-1] if others else same[0] if same and same[0].ts_ns < last.ts_ns else None


def _compared(classes: list[HeapClass], before: list[HeapClass] | None) -> list[HeldType]:
    def sums(of: list[HeapClass]) -> dict[str, tuple[int, int, int]]:
        found: dict[str, tuple[int, int, int]] = {}
        for one in of:
            count, size, retained = found.get(_name(one), (0, 0, 0))
            found[_name(one)] = count + one.num_objects, size + one.size_bytes, retained + one.retained_bytes
        return found

    now, then = sums(classes), sums(before or [])
    nothing = (0, 0, 0)
    types = [
        HeldType(name, *now.get(name, nothing), *((None,) * 3 if before is None else then.get(name, nothing)))
        for name in {**now, **then}
    ]
    return sorted(types, key=lambda one: (-one.retained_bytes, -one.num_objects, one.type))


def _name(one: HeapClass) -> str:
    return one.type or UNDESCRIBED
