"""A heap snapshot: what keeps objects alive, and how much each object keeps alive."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, Protocol

from perfuse import _core
from perfuse.analysis.functions import stack_functions
from perfuse.analysis.heap_rows import (
    ClassGrowth,
    DuplicateObjects,
    HeapClass,
    HeapObject,
    HeapReference,
    HeapRoot,
    LiveObjectSite,
    PathStep,
    RootPath,
    Snapshot,
    class_growth,
)
from perfuse.errors import UsageError
from perfuse.output.descriptor import descriptor_of
from perfuse.table import Columns, Tables, names
from perfuse.value_class import field_names, replace

if TYPE_CHECKING:
    from perfuse.filters.selection import Selection
    from perfuse.pictures.flame_graph import FlameGraph
    from perfuse.query import Database


class HeapProfile(Protocol):
    """A profile with heap snapshots; `perfuse.Profile` is one."""

    @property
    def title(self) -> str:
        """What was recorded."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...

    @property
    def selection(self) -> "Selection":
        """The time whose snapshots are selected, and the threads that select their processes."""
        ...

    def process_pids(self) -> dict[int, int]:
        """The pid of the selected process of each recording with a heap, by `source_id`."""
        ...

    def heap(self, snapshot: int | None = None) -> "Heap":
        """The heap snapshot with a key."""
        ...


def snapshots(profile: HeapProfile, *, of_all_times: bool = False) -> list[Snapshot]:
    """The heap snapshots of a profile, in time order; of selected threads, those of their processes.

    Args:
        profile: The profile.
        of_all_times: Whether to include those that are not in the selected time.
    """
    rows = Columns(profile.tables["heap_snapshots"]).tuples("snapshot_id", "ts_ns", "end_ns", "source_id")
    every = sorted((Snapshot(*row) for row in rows), key=lambda one: (one.ts_ns, one.snapshot_id))
    if profile.selection.selects_threads:
        sources = profile.process_pids()
        every = [one for one in every if one.source_id in sources]
    time_ns = None if of_all_times else profile.selection.time_ns
    return every if time_ns is None else [one for one in every if time_ns[0] <= one.ts_ns < time_ns[1]]


def no_snapshot(profile: HeapProfile) -> tuple[str, str | None]:
    """Why a profile has no heap snapshot in the selected time, and what to do."""
    number = len(snapshots(profile, of_all_times=True))
    if not number:
        return "no heap snapshot was recorded", "Mono records them with --profile=log:heapshot"
    hint = f"the log has {number:,}; `perfuse report --section heap` without --between lists them"
    return "no heap snapshot is in the selected time", hint


def selected_retained_sizes(profile: HeapProfile) -> "RetainedSizes":
    """Retained sizes of the last heap snapshot in the selected time.

    Raises:
        UsageError: There is none, or threads are selected, and a heap is of all threads.
    """
    if profile.selection.selects_threads:
        hint = "leave out --thread and --process; --between selects snapshots by their time"
        raise UsageError("objects on a heap belong to no thread", field="thread", hint=hint)
    return profile.heap().retained_sizes


class Heap:
    """A heap snapshot; `perfuse.Profile.heap` makes it.

    Attributes:
        snapshot: Which snapshot it is.
        num_objects: Number of objects.
        size_bytes: Sum of their sizes.
        num_references: References from one object to another.
        num_roots: Roots that keep an object alive.
        has_roots: Whether roots were recorded at all. Where not (data versions 1 and 2 of Mono's logs, or a profiler
            that was not asked for them), objects that nothing refers to take their place.
        num_dangling: References of or to addresses that are not an object of the snapshot.
        num_missed_roots: Roots of addresses that are not an object of the snapshot.
        num_repeated: Objects that were recorded more than once; the first record counts.
    """

    def __init__(self, profile: HeapProfile, snapshot: Snapshot, core: _core.HeapSnapshot) -> None:
        self._profile = profile
        self._core = core
        self.snapshot = snapshot
        self.num_objects = core.num_objects
        self.size_bytes = core.size_bytes
        self.num_references = core.num_references
        self.num_roots = core.num_roots
        self.has_roots = core.has_roots
        self.num_dangling = core.num_dangling
        self.num_missed_roots = core.num_missed_roots
        self.num_repeated = core.num_repeated

    @property
    def is_complete(self) -> bool:
        """Whether its end was recorded; else objects may be missing, and objects they keep alive seem unreachable."""
        return self.snapshot.end_ns is not None

    def classes(self) -> list[HeapClass]:
        """Its types, those that retain most first."""
        columns = Columns(self._core.classes())
        fields = [name for name in field_names(HeapClass) if name != "type"]
        rows = columns.take(range(len(columns)), fields)
        return [HeapClass(type_id, self._type(type_id), *rest) for type_id, *rest in rows]

    def retained(self, address: int) -> HeapObject:
        """The object at an address, with what would be freed with it.

        Raises:
            UsageError: No object is at the address.
        """
        return self._objects(self._at(address, self._core.object))[0]

    def dominated(self, address: int | None = None, limit: int | None = 20) -> list[HeapObject]:
        """The next level of the dominator tree: what an object retains directly, the largest first.

        Args:
            address: The object; None for the objects that no other single object keeps alive.
            limit: Largest number of rows; None for all.

        Raises:
            UsageError: No object is at the address.
        """
        return self._objects(self._at(address, lambda at: self._core.below(at, limit)))

    def instances(self, type_id: int | None, limit: int | None = 20, *, offset: int = 0) -> list[HeapObject]:
        """The objects of a type, those that retain most first.

        Args:
            type_id: Key of the type; None for objects without a type.
            limit: Largest number of rows; None for all.
            offset: Rows that are left out at the beginning.
        """
        return self._objects(self._core.of_type(type_id, None if limit is None else offset + limit), offset)

    def references(self, address: int, limit: int = 20, *, to: bool = False) -> tuple[int, list[HeapReference]]:
        """Number of the references that an object has, and the first of them.

        Args:
            address: The object.
            limit: Largest number of rows.
            to: Instead, the references of other objects to it.

        Raises:
            UsageError: No object is at the address.
        """
        num, rows = self._at(address, lambda at: self._core.references(at, to, limit))
        return num, [HeapReference(at, self._type(key), size, field) for at, key, size, field in rows]

    def path_to_root(self, address: int, most: int | None = None) -> RootPath | None:
        """A shortest path to an object from a root. Of several, the one whose root is most informative: a static field
        before a handle before a stack.

        Args:
            address: The object.
            most: Of a longer path, so many objects are returned, half of them from each end; None for all.

        Returns:
            The path; None where no root keeps the object alive.

        Raises:
            UsageError: No object is at the address.
        """
        columns = Columns(self._at(address, self._core.path))
        fields = ("object_address", "type_id", "size_bytes", "retained_bytes", "field_offset")
        num = len(columns)
        if not num:
            return None
        left_out = 0 if most is None else max(0, num - max(2, most))
        first = (num - left_out + 1) // 2
        rows = columns.take([*range(first), *range(first + left_out, num)], fields)
        steps = tuple(PathStep(at, self._type(key), size, retained, field) for at, key, size, retained, field in rows)
        return RootPath(self._root(steps[0].address), steps, left_out)

    def held_by_types(
        self, type_ids: list[int | None]
    ) -> list[tuple[list[str | None], int | None, int, int, int, int]]:
        """The objects of some types by the types on their shortest paths: `(types, start_address, address, num_objects,
        size_bytes, retained_bytes)`; `perfuse.analysis.held_objects` describes them."""
        rows = self._core.held_objects(type_ids)
        return [([self._type(one) for one in types], *rest) for types, *rest in rows]  # type: ignore[misc]

    def root_of(self, address: int) -> HeapRoot | None:
        """The most informative root of an object; None where no root refers to it."""
        return self._root(address)

    def unreachable(self, limit: int | None = 20) -> list[HeapObject]:
        """Objects that no root keeps alive and no other such object retains, those that retain most first.

        One object represents a cycle that nothing else refers to. Empty where no roots were recorded, as then no
        object is known to be unreachable.

        Args:
            limit: Largest number of rows; None for all.
        """
        return self._objects(self._core.rest(limit)) if self.has_roots else []

    @property
    def num_unreachable(self) -> int | None:
        """Number of objects that no root keeps alive; None where no roots were recorded."""
        return self._core.unreachable[0] if self.has_roots else None

    @property
    def unreachable_bytes(self) -> int | None:
        """Sum of their sizes; None where no roots were recorded."""
        return self._core.unreachable[1] if self.has_roots else None

    def duplicates(self, min_references: int = 1) -> list[DuplicateObjects]:
        """Objects with the same recorded content, the largest waste first.

        Args:
            min_references: Only objects with so many references: of an object without any, only type and size are
                known.
        """
        columns = Columns(self._core.duplicates(min_references))
        fields = ("object_address", "type_id", "size_bytes", "num_references", "num_objects", "spare_bytes")
        rows = columns.take(range(len(columns)), fields)
        return [DuplicateObjects(at, self._type(type_id), *rest) for at, type_id, *rest in rows]

    def growth(self, since: "Heap | Snapshot", classes: list[HeapClass] | None = None) -> list[ClassGrowth]:
        """Changes since an earlier snapshot, by type, the largest growth of retained bytes first.

        Objects are followed over the moves that were recorded. An object whose move was not recorded counts as gone
        and new; an object that took the address of another of its type and size without a record counts as that one.

        Args:
            since: The earlier snapshot.
            classes: Its types, to avoid reading it again.
        """
        if classes is None:
            classes = (since if isinstance(since, Heap) else self._profile.heap(since.snapshot_id)).classes()
        earlier = since.snapshot if isinstance(since, Heap) else since
        rows = self._core.changes(earlier.snapshot_id)
        changes = {type_id: (new, new_bytes, gone, gone_bytes) for type_id, new, new_bytes, gone, gone_bytes in rows}
        return class_growth(classes, self.classes(), changes)

    def new_objects(self, since: "Heap | Snapshot", limit: int | None = 20) -> list[HeapObject]:
        """Objects that an earlier snapshot does not have, even at another address; those that retain most first.

        Args:
            since: The earlier snapshot.
            limit: Largest number of rows; None for all.
        """
        earlier = since.snapshot if isinstance(since, Heap) else since
        return self._objects(self._core.new_objects(earlier.snapshot_id, limit))

    def sites(self, limit: int | None = 20) -> list[LiveObjectSite]:
        """Where its objects were allocated, by type and place, the most bytes first; only objects whose allocation was
        recorded, of which `num_sited` is the number.

        Args:
            limit: Largest number of rows; None for all.
        """
        return self._sites[:limit]

    @property
    def num_sited(self) -> int:
        """Number of its objects whose allocation was recorded; those of `sites`."""
        return sum(one.num_objects for one in self._sites)

    @cached_property
    def _sites(self) -> list[LiveObjectSite]:
        rows = Columns(self._core.sites()).tuples("type_id", "stack_id", "num_objects", "size_bytes")
        all_rows = list(rows)
        stacks = stack_functions(self._profile, [stack_id for _, stack_id, _, _ in all_rows])
        sites: dict[tuple[str | None, tuple[str, ...]], LiveObjectSite] = {}
        for type_id, stack_id, count, size in all_rows:
            place = self._type(type_id), stacks[stack_id]
            before = sites.get(place, LiveObjectSite(place[0], 0, 0, place[1], stack_id))
            sites[place] = replace(before, num_objects=before.num_objects + count, size_bytes=before.size_bytes + size)
        return sorted(sites.values(), key=lambda one: (-one.size_bytes, -one.num_objects))

    def flame(self) -> "FlameGraph":
        """The flame graph of retained sizes, in bytes: each root and object is as wide as what it alone keeps alive."""
        from perfuse.pictures.flame_graph import FlameGraph

        return FlameGraph.of(self.retained_sizes)

    @property
    def retained_sizes(self) -> "RetainedSizes":
        """Retained sizes in the form of samples, for exporters."""
        title = f"{self._profile.title}, heap snapshot {self.snapshot.snapshot_id}"
        return RetainedSizes(title, self._core.folded(self._types))

    def write_v8(self, out: IO[bytes], progress: Callable[[str, float], None] | None = None) -> None:
        """Writes it as V8's `.heapsnapshot`."""
        roots = [str(self._root_row(row)) for row in self._core.distinct_roots()]
        self._core.write_v8(descriptor_of(out), types=self._types, roots=roots, progress=progress)

    def write_hprof(
        self, out: IO[bytes], pointer_bytes: int, time_ms: int, progress: Callable[[str, float], None] | None = None
    ) -> None:
        """Writes it as HPROF; `time_ms` is its time since 1970."""
        self._core.write_hprof(
            descriptor_of(out), types=self._types, pointer_bytes=pointer_bytes, time_ms=time_ms, progress=progress
        )

    def write_perfetto(
        self,
        out: IO[bytes],
        number: int,
        pid: int,
        clock: tuple[int, int | None] | None,
        progress: Callable[[str, float], None] | None = None,
    ) -> None:
        """Appends it to a Perfetto trace, of which it is snapshot `number`."""
        self._core.write_perfetto(
            descriptor_of(out),
            types=self._types,
            number=number,
            pid=pid,
            ts_ns=self.snapshot.ts_ns,
            clock=clock,
            progress=progress,
        )

    def find_moved(self, sightings: Sequence[tuple[int, int]]) -> "list[HeapObject | None]":
        """Finds objects of earlier addresses, over the moves that were recorded.

        Args:
            sightings: When each object was at an address, `(ts_ns, address)`, in time order.

        Returns:
            For each the object in this snapshot; None where it is no longer there.
        """
        addresses = self._core.whereabouts(sightings)
        found = {address: self.retained(address) for address in set(addresses) if address is not None}
        return [None if address is None else found[address] for address in addresses]

    def _at(self, address: Any, read: Callable[[Any], Any]) -> Any:
        try:
            return read(address)
        except KeyError as error:
            raise UsageError(str(error.args[0]), hint="addresses are those of table heap_objects") from None

    def _objects(self, stream: Any, offset: int = 0) -> list[HeapObject]:
        columns = Columns(stream)
        fields = (
            "object_address",
            "type_id",
            "size_bytes",
            "dominator_address",
            "retained_bytes",
            "num_retained",
            "is_reachable",
        )
        rows = columns.take(range(offset, len(columns)), fields)
        return [HeapObject(at, self._type(type_id), *rest) for at, type_id, *rest in rows]

    def _type(self, type_id: int | None) -> str | None:
        return None if type_id is None else self._types.get(type_id)

    @cached_property
    def _types(self) -> dict[int, str]:
        return dict(Columns(self._profile.tables["types"]).tuples("type_id", "name"))

    def _root(self, address: int) -> HeapRoot | None:
        found = self._core.root(address)
        return None if found is None else self._root_row(found)

    def _root_row(self, row: tuple[str, str | None, int | None, int | None, int | None]) -> HeapRoot:
        kind, name, slot, type_id, thread_id = row
        owner = self._type(type_id) if thread_id is None else self._thread(thread_id)
        return HeapRoot(kind, name, slot, owner)

    def _thread(self, thread_id: int) -> str | None:
        rows = Columns(self._profile.tables["threads"]).tuples("thread_id", "name", "tid")
        return next((f"thread {name or tid}" for key, name, tid in rows if key == thread_id), None)

    def __repr__(self) -> str:
        return (
            f"<perfuse heap snapshot {self.snapshot.snapshot_id}:"
            f" {self.num_objects:,} objects, {self.size_bytes:,} bytes>"
        )


class RetainedSizes:
    """Retained sizes in the form of samples: exporters and flame graphs accept it in place of a profile.

    A stack is a path down the dominator tree, by type; its weight is the own size of the objects there, in bytes. An
    object that another object of its type dominates is counted with that one, so a linked list is one box.

    Attributes:
        title: What was recorded.
    """

    def __init__(self, title: str, rows: Mapping[str, _core.ArrowStream]) -> None:
        self.title = title
        self._rows = rows

    @cached_property
    def tables(self) -> Tables:
        """The common tables; all but `functions`, `frames`, `stacks` and `samples` are empty."""
        empty = _core.Profile([], [], False)

        def build(name: str) -> Any:
            return self._rows[name] if name in self._rows else empty.table(name)

        return Tables(build, names())

    def sql(self, query: str) -> Any:
        """Runs SQL over the tables.

        Raises:
            QueryError: The SQL is invalid, or names a table or column that does not exist.
        """
        return self._database.sql(query)

    @cached_property
    def _database(self) -> "Database":
        from perfuse.query import Database

        return Database(self.tables)
