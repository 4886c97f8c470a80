"""GC handles: which were made, by whom, and which were never freed."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

from perfuse.analysis.functions import Backtrace, backtraces, stack_functions
from perfuse.analysis.heap import Heap
from perfuse.analysis.heap_rows import HeapObject
from perfuse.analysis.profiles import RuntimeProfile
from perfuse.filters.selection import Selection
from perfuse.table import Columns
from perfuse.value_class import replace, value_class


@value_class
class HandleKind:
    """Handles of a kind.

    Attributes:
        kind: `weak`, `weak_track_resurrection`, `normal` or `pinned`.
        num_created: Handles made.
        num_destroyed: Handles freed.
        num_left: Handles made and never freed.
        max_alive: Most at a time.
    """

    kind: str
    num_created: int
    num_destroyed: int
    num_left: int
    max_alive: int


@value_class
class HandleSite:
    """Handles of a kind that were made in one place.

    Attributes:
        kind: Their kind.
        backtrace: Functions, outermost first; empty where none was taken.
        num_created: Handles made.
        num_left: Of them, those never freed.
    """

    kind: str
    backtrace: Backtrace
    num_created: int
    num_left: int


class Handles:
    """Handles made or freed in the selected threads and time.

    Attributes:
        kinds: By kind, the most frequent first.
    """

    def __init__(self, profile: RuntimeProfile) -> None:
        self._profile = profile
        kinds, _ = profile.handle_sums(stacks=False)
        self.kinds = sorted((HandleKind(*row) for row in kinds), key=lambda one: (-one.num_created, one.kind))

    @cached_property
    def sites(self) -> list[HandleSite]:
        """By kind and by the functions that made them, most left over first: reads all handles again."""
        _, sums = self._profile.handle_sums(stacks=True)
        stacks = backtraces(self._profile, "gc_handles", [stack for _, stack, *_ in sums])
        places: dict[tuple[str, Backtrace], tuple[int, int]] = {}
        for kind, stack, count, left in sums:
            created, never_freed = places.get((kind, stacks[stack]), (0, 0))
            places[kind, stacks[stack]] = created + count, never_freed + left
        sites = [HandleSite(*place, *counts) for place, counts in places.items()]
        return sorted(sites, key=lambda one: (-one.num_left, -one.num_created, one.kind, one.backtrace))


@value_class
class LeakedHandles:
    """Handles of one kind that were made in one place and nothing freed.

    Attributes:
        kind: `normal` and `pinned` keep their objects alive, `weak` and `weak_track_resurrection` do not.
        num_handles: Number of handles.
        first_ns: When the first was made, on the profile's clock.
        last_ns: When the last was made.
        stack: Functions of the stack, the innermost first; empty where no stack was taken.
        stack_id: Key in table `stacks`, of the first of them; None where no stack was taken.
        types: Types of their objects in the given heap snapshot, each once; empty without one.
        retained_bytes: What those objects retain there; None without a snapshot, and for weak handles, which retain
            nothing.
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


class HandleProfile(Protocol):
    """A profile with handles; `perfuse.Profile` is one."""

    @property
    def selection(self) -> Selection:
        """The selected threads and time."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...

    def has(self, table: str) -> bool:
        """Whether a table has rows."""
        ...


def leaked_handles(profile: HandleProfile, heap: Heap | None = None) -> list[LeakedHandles]:
    """Handles that were made in the selected threads and time and never freed, by kind and place: those that keep
    objects alive first, then those whose objects retain most.

    Args:
        profile: A profile with a recording of handles.
        heap: A heap snapshot in which to find their objects, at whatever address they are by then.
    """
    if not profile.has("gc_handles"):
        return []
    table = Columns(profile.tables["gc_handles"])
    left = _rows_left(profile, table)
    columns = ("kind", "created_stack_id", "created_ns", "object_address", "source_id")
    rows = sorted(table.take(left, columns), key=lambda row: row[2])
    objects_by_row: dict[int, HeapObject | None] = {}
    if heap is not None:
        same_source = [number for number, row in enumerate(rows) if row[-1] == heap.snapshot.source_id]
        found = heap.find_moved([(rows[number][2], rows[number][3] or 0) for number in same_source])
        objects_by_row = dict(zip(same_source, found, strict=True))
    stacks = stack_functions(profile, [stack for _, stack, *_ in rows])
    stack_ids: dict[tuple[str, tuple[str, ...]], int | None] = {}
    groups: dict[tuple[str, tuple[str, ...]], list[tuple[int, HeapObject | None]]] = {}
    for number, (kind, stack, created, *_) in enumerate(rows):
        place = kind, stacks[stack]
        stack_ids.setdefault(place, stack)
        groups.setdefault(place, []).append((created, objects_by_row.get(number)))
    handles = []
    for (kind, functions), members in groups.items():
        objects = {one.address: one for _, one in members if one is not None}
        types = dict.fromkeys(one.type for one in objects.values() if one.type)
        retained = sum(one.retained_bytes for one in objects.values())
        group = LeakedHandles(kind, len(members), members[0][0], members[-1][0], functions, stack_ids[kind, functions])
        handles.append(
            replace(group, types=tuple(types), retained_bytes=retained if heap and group.keeps_objects else None)
        )
    return sorted(
        handles,
        key=lambda one: (not one.keeps_objects, -(one.retained_bytes or 0), -one.num_handles, one.first_ns),
    )


def _rows_left(profile: HandleProfile, table: Columns) -> list[int]:
    """Rows of selected handles that nothing freed."""
    selection = profile.selection
    threads = set(selection.keys(profile.tables["threads"])) if selection.selects_threads else None
    rows = enumerate(table.tuples("created_ns", "destroyed_ns", "created_thread_id"))
    return [
        row
        for row, (created, destroyed, maker) in rows
        if created is not None
        and destroyed is None
        and selection.has_time(created)
        and (threads is None or maker in threads)
    ]
