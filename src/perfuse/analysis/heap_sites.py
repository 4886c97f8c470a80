"""Where what is still there was made: allocation sites of living objects, handles that were never freed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perfuse.analysis.backtraces import allocation_backtraces
from perfuse.analysis.columns import Columns

if TYPE_CHECKING:
    from perfuse.analysis.heap import Heap, HeapObject
    from perfuse.profile import Profile


@dataclass(frozen=True, slots=True)
class Site:
    """Living objects of one type, allocated by one stack.

    Attributes:
        type: Their type; None where it is never described.
        num_objects: How many there are.
        size_bytes: Their own sizes.
        stack: Functions that were running, the innermost first; empty where no stack was taken.
        stack_id: Key in table `stacks`; None where no stack was taken.
    """

    type: str | None
    num_objects: int
    size_bytes: int
    stack: tuple[str, ...]
    stack_id: int | None


@dataclass(frozen=True, slots=True)
class LeakedHandles:
    """Handles of one kind that one stack made and nothing freed.

    Attributes:
        kind: `normal` and `pinned` keep their objects alive, `weak` and `weak_track_resurrection` do not.
        num_handles: How many there are.
        first_ns: When the first was made, on the profile's clock.
        last_ns: When the last was made.
        stack: Functions that were running, the innermost first; empty where no stack was taken.
        stack_id: Key in table `stacks`; None where no stack was taken.
        types: Types of their objects in the heap shot that was asked, each once; empty without one.
        retained_bytes: What those objects retain there; None without a shot, and for weak handles, which keep nothing.
    """

    kind: str
    num_handles: int
    first_ns: int
    last_ns: int
    stack: tuple[str, ...]
    stack_id: int | None
    types: tuple[str, ...] = ()
    retained_bytes: int | None = None

    @property
    def keeps_objects(self) -> bool:
        """Whether they keep their objects alive."""
        return not self.kind.startswith("weak")


def leaked_handles(profile: "Profile", heap: "Heap | None" = None) -> list[LeakedHandles]:
    """Handles that were made and never freed, by kind and stack: those that keep objects alive first,
    then those whose objects retain most.

    Args:
        profile: With a recording of handles.
        heap: A heap shot to find their objects in, wherever they were moved.
    """
    if not profile.has("gc_handles"):
        return []
    table = Columns(profile.tables["gc_handles"])
    times = enumerate(table.tuples("created_ns", "destroyed_ns"))
    left = [row for row, (created, destroyed) in times if created is not None and destroyed is None]
    columns = ("kind", "created_stack_id", "created_ns", "object_address", "source_id")
    rows = sorted(table.take(left, columns), key=lambda row: row[2])
    held: dict[int, HeapObject | None] = {}
    if heap is not None:
        own = [number for number, row in enumerate(rows) if row[-1] == heap.snapshot.source_id]
        found = heap.whereabouts([(rows[number][2], rows[number][3] or 0) for number in own])
        held = dict(zip(own, found, strict=True))
    groups: dict[tuple[str, int | None], list[tuple[int, HeapObject | None]]] = {}
    for number, (kind, stack, created, *_) in enumerate(rows):
        groups.setdefault((kind, stack), []).append((created, held.get(number)))
    stacks = stack_names(profile, [stack for _, stack in groups])
    handles = []
    for (kind, stack), members in groups.items():
        objects = {one.address: one for _, one in members if one is not None}
        types = dict.fromkeys(one.type for one in objects.values() if one.type)
        retained = sum(one.retained_bytes for one in objects.values())
        known = LeakedHandles(
            kind, len(members), members[0][0], members[-1][0], stacks.get(stack, ()) if stack is not None else (), stack
        )
        handles.append(
            replace(known, types=tuple(types), retained_bytes=retained if heap and known.keeps_objects else None)
        )
    return sorted(
        handles,
        key=lambda one: (not one.keeps_objects, -(one.retained_bytes or 0), -one.num_handles, one.first_ns),
    )


def stack_names(profile: "Profile", stack_ids: Iterable[int | None]) -> dict[int, tuple[str, ...]]:
    """Functions of some stacks, the innermost first."""
    named = allocation_backtraces(profile, stack_ids)
    return {stack: names[::-1] for stack, names in named.items() if stack is not None}


def site_rows(profile: "Profile", sums: Sequence[tuple[str | None, int | None, int, int]]) -> list[Site]:
    """Sites with the names of their stacks, of `(type, stack_id, num_objects, size_bytes)`."""
    stacks = stack_names(profile, [stack for _, stack, _, _ in sums])
    return [
        Site(of, num, size, stacks.get(stack, ()) if stack is not None else (), stack) for of, stack, num, size in sums
    ]
