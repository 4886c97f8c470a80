"""A heap shot: what keeps objects alive, and how much each keeps alive."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perfuse.analysis.columns import Columns
from perfuse.analysis.heap_flame import RetainedSizes
from perfuse.analysis.heap_growth import ClassGrowth, class_growth
from perfuse.analysis.heap_paths import Path, Root, Step
from perfuse.analysis.heap_sites import Site, site_rows
from perfuse.errors import UsageError

if TYPE_CHECKING:
    from perfuse import _core
    from perfuse.analysis.flame import FlameGraph
    from perfuse.profile import Profile


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A heap shot of a recording.

    Attributes:
        snapshot_id: Key in table `heap_snapshots`.
        ts_ns: When it was begun, on the profile's clock.
        end_ns: When it was done; None where the recording ended first: objects may be missing.
        source_id: File it is from. Addresses are only told apart within one: shots of two files have nothing in common.
    """

    snapshot_id: int
    ts_ns: int
    end_ns: int | None
    source_id: int


@dataclass(frozen=True, slots=True)
class HeapObject:
    """An object of a heap shot.

    Attributes:
        address: Where it lies.
        type: Its type; None where the recording never describes it.
        size_bytes: Its own size.
        dominator_address: Nearest object that every way to it from a root leads over; None where there is none.
        retained_bytes: Its size and that of all objects that only it keeps alive.
        num_retained: How many objects those are, with itself.
        is_reachable: Whether a root keeps it alive; None where the recording has no roots.
    """

    address: int
    type: str | None
    size_bytes: int
    dominator_address: int | None
    retained_bytes: int
    num_retained: int
    is_reachable: bool | None


@dataclass(frozen=True, slots=True)
class HeapClass:
    """All objects of a type; a row of table `heap_classes`.

    Attributes:
        type_id: Key in table `types`; None for all objects whose type is never described.
        type: Its name.
        num_objects: Objects of it.
        size_bytes: Their own sizes.
        retained_bytes: What would go if all of them went; what one of them retains by another counts once.
        num_retained: How many objects that is.
        num_unreachable: Objects of it that no root keeps alive; None where the recording has no roots.
        unreachable_bytes: Their own sizes.
        largest_address: The one that retains most.
        largest_retained_bytes: What that one retains.
    """

    type_id: int | None
    type: str | None
    num_objects: int
    size_bytes: int
    retained_bytes: int
    num_retained: int
    num_unreachable: int | None
    unreachable_bytes: int | None
    largest_address: int
    largest_retained_bytes: int


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Objects that look the same: of one type and size, with the same references at the same places.

    What else they hold was not recorded, so they may still differ in numbers or text.

    Attributes:
        address: The one with the lowest address.
        type: Their type; None where the recording never describes it.
        size_bytes: Size of each.
        num_references: References of each.
        num_objects: How many there are.
        spare_bytes: Size of all but one.
    """

    address: int
    type: str | None
    size_bytes: int
    num_references: int
    num_objects: int
    spare_bytes: int


def snapshots(profile: "Profile") -> list[Snapshot]:
    """The heap shots of a profile, in the order of time."""
    rows = Columns(profile.tables["heap_snapshots"]).tuples("snapshot_id", "ts_ns", "end_ns", "source_id")
    return sorted((Snapshot(*row) for row in rows), key=lambda shot: (shot.ts_ns, shot.snapshot_id))


class Heap:
    """A heap shot; `perfuse.Profile.heap` makes it.

    Attributes:
        snapshot: Which one it is.
        num_objects: Objects.
        size_bytes: Their sizes.
        num_references: References from one to another.
        num_roots: Roots that keep one alive.
        has_roots: Whether roots were recorded at all. Where not (data versions 1 and 2 of Mono's logs, or a profiler
            that was not asked for them), objects that nothing refers to stand for them.
        num_dangling: References of or to what is no object of the shot.
        num_missed_roots: Roots of what is no object of the shot.
        num_repeated: Objects that were recorded more than once; what came first counts.
    """

    def __init__(self, profile: "Profile", snapshot: Snapshot, shot: "_core.HeapShot") -> None:
        self._profile = profile
        self._shot = shot
        self.snapshot = snapshot
        self.num_objects = shot.num_objects
        self.size_bytes = shot.size_bytes
        self.num_references = shot.num_references
        self.num_roots = shot.num_roots
        self.has_roots = shot.has_roots
        self.num_dangling = shot.num_dangling
        self.num_missed_roots = shot.num_missed_roots
        self.num_repeated = shot.num_repeated

    @property
    def is_complete(self) -> bool:
        """Whether the recording has its end; else objects may be missing, and what they keep alive seems garbage."""
        return self.snapshot.end_ns is not None

    def classes(self) -> list[HeapClass]:
        """Its types, what retains most first."""
        columns = Columns(self._shot.classes())
        names = [name for name in HeapClass.__dataclass_fields__ if name != "type"]
        rows = columns.take(range(len(columns)), names)
        return [HeapClass(of, self._type(of), *rest) for of, *rest in rows]

    def retained(self, address: int) -> HeapObject:
        """The object at an address, with what would go if it went.

        Raises:
            UsageError: There is none.
        """
        return self._objects(self._at(address, self._shot.object))[0]

    def dominated(self, address: int | None = None, limit: int | None = 20) -> list[HeapObject]:
        """The next level of the tree of dominators: what an object retains directly, the most first.

        Args:
            address: The object; without one the objects that no single other one keeps alive.
            limit: How many; all with None.

        Raises:
            UsageError: There is no object there.
        """
        return self._objects(self._at(address, lambda at: self._shot.below(at, limit)))

    def path_to_root(self, address: int) -> Path | None:
        """A shortest way to an object from a root, of as short ones from the one that tells most: a static field before
        a handle before a stack.

        Returns:
            The way; None where no root keeps the object alive.

        Raises:
            UsageError: There is no object there.
        """
        columns = Columns(self._at(address, self._shot.path))
        names = ("object_address", "type_id", "size_bytes", "retained_bytes", "field_offset")
        rows = columns.take(range(len(columns)), names)
        if not rows:
            return None
        steps = tuple(Step(at, self._type(of), size, retained, field) for at, of, size, retained, field in rows)
        return Path(self._root(steps[0].address), steps)

    def unreachable(self, limit: int | None = 20) -> list[HeapObject]:
        """Objects that no root keeps alive, without those another of them retains, what retains most first.

        Of a cycle that nothing else refers to, one object stands for all. Where no roots were recorded nothing is known
        to be unreachable, and the list is empty.

        Args:
            limit: How many; all with None.
        """
        return self._objects(self._shot.rest(limit)) if self.has_roots else []

    @property
    def num_unreachable(self) -> int | None:
        """How many objects no root keeps alive; None where no roots were recorded."""
        return self._shot.unreachable[0] if self.has_roots else None

    @property
    def unreachable_bytes(self) -> int | None:
        """Their sizes."""
        return self._shot.unreachable[1] if self.has_roots else None

    def duplicates(self, least_references: int = 1) -> list[Duplicates]:
        """Objects that look the same, the largest waste first.

        Args:
            least_references: References an object must have to be looked at: of one without any only type and size
                are known.
        """
        columns = Columns(self._shot.duplicates(least_references))
        names = ("object_address", "type_id", "size_bytes", "num_references", "num_objects", "spare_bytes")
        rows = columns.take(range(len(columns)), names)
        return [Duplicates(at, self._type(of), *rest) for at, of, *rest in rows]

    def growth(self, since: "Heap | Snapshot", classes: list[HeapClass] | None = None) -> list[ClassGrowth]:
        """What changed since an earlier shot, by type: the most growth of what they retain first.

        Objects are followed over the moves that were recorded. One that is moved unrecorded counts as gone and new; one
        that took the place of another of its type and size unrecorded counts as that one.

        Args:
            since: The earlier shot.
            classes: Its types, where it is no longer at hand itself.
        """
        if classes is None:
            classes = (since if isinstance(since, Heap) else self._profile.heap(since.snapshot_id)).classes()
        earlier = since.snapshot if isinstance(since, Heap) else since
        changes = {of: (new, more, gone, less) for of, new, more, gone, less in self._changes(earlier)}
        return class_growth(classes, self.classes(), changes)

    def new_objects(self, since: "Heap | Snapshot", limit: int | None = 20) -> list[HeapObject]:
        """Objects that an earlier shot did not have, wherever they were then; what retains most first.

        Args:
            since: The earlier shot.
            limit: How many; all with None.
        """
        earlier = since.snapshot if isinstance(since, Heap) else since
        return self._objects(self._shot.new_objects(earlier.snapshot_id, limit))

    def sites(self, limit: int | None = 20) -> list[Site]:
        """Where its objects were allocated, by type and stack, what takes most first; only those whose allocation was
        recorded.

        Args:
            limit: How many; all with None.
        """
        columns = Columns(self._shot.sites())
        rows = columns.take(range(len(columns))[:limit], ("type_id", "stack_id", "num_objects", "size_bytes"))
        return site_rows(self._profile, [(self._type(of), *rest) for of, *rest in rows])

    def flame(self) -> "FlameGraph":
        """The flame graph of retained sizes, in bytes: on each root and object lies what it alone keeps alive."""
        from perfuse.analysis.flame import FlameGraph

        return FlameGraph.of(self.retained_sizes)

    @property
    def retained_sizes(self) -> RetainedSizes:
        """What objects retain as if it had been sampled, for exporters: `Profile.export` takes profiles alone."""
        title = f"{self._profile.title}, heap shot {self.snapshot.snapshot_id}"
        return RetainedSizes(title, self._shot.folded(self._types))

    def whereabouts(self, known: Sequence[tuple[int, int]]) -> "list[HeapObject | None]":
        """Objects found again, wherever they were moved.

        Args:
            known: When each was at an address, `(ts_ns, address)`, in the order of time.

        Returns:
            For each the object in this shot; None where it is no longer there.
        """
        places = self._shot.whereabouts(known)
        found = {place: self.retained(place) for place in set(places) if place is not None}
        return [None if place is None else found[place] for place in places]

    def _changes(self, earlier: Snapshot) -> list[tuple[int | None, int, int, int, int]]:
        return self._shot.changes(earlier.snapshot_id)

    def _at(self, address: Any, ask: Any) -> Any:
        try:
            return ask(address)
        except KeyError as error:
            raise UsageError(str(error.args[0]), hint="addresses are those of table heap_objects") from None

    def _objects(self, stream: Any) -> list[HeapObject]:
        columns = Columns(stream)
        names = (
            "object_address",
            "type_id",
            "size_bytes",
            "dominator_address",
            "retained_bytes",
            "num_retained",
            "is_reachable",
        )
        rows = columns.take(range(len(columns)), names)
        return [HeapObject(at, self._type(of), *rest) for at, of, *rest in rows]

    def _type(self, type_id: int | None) -> str | None:
        return None if type_id is None else self._types.get(type_id)

    @cached_property
    def _types(self) -> dict[int, str]:
        return dict(Columns(self._profile.tables["types"]).tuples("type_id", "name"))

    def _root(self, address: int) -> Root | None:
        found = self._shot.root(address)
        if found is None:
            return None
        kind, name, slot, type_id, thread_id = found
        owner = self._type(type_id) if thread_id is None else self._thread(thread_id)
        return Root(kind, name, slot, owner)

    def _thread(self, thread_id: int) -> str | None:
        rows = Columns(self._profile.tables["threads"]).tuples("thread_id", "name", "tid")
        return next((f"thread {name or tid}" for key, name, tid in rows if key == thread_id), None)

    def __repr__(self) -> str:
        return (
            f"<perfuse heap shot {self.snapshot.snapshot_id}: {self.num_objects:,} objects, {self.size_bytes:,} bytes>"
        )
