"""Rows of heap analyses: snapshots, objects, classes, allocation sites, growth, and paths from roots."""

from collections.abc import Iterable

from perfuse.value_class import value_class

ROOT_KINDS = {
    "static": "static field of {owner}",
    "thread_static": "thread static of {owner}",
    "context_static": "context static",
    "stack": "stack of {owner}",
    "gc_handle": "GC handle",
    "unknown": "a root that was never described",
    "other": "a root of another kind",
    "misc": "a root of another kind",
}
"""Text for each kind of root; any other kind is shown as the recording spells it."""


@value_class
class Snapshot:
    """A heap snapshot of a recording.

    Attributes:
        snapshot_id: Key in table `heap_snapshots`.
        ts_ns: Its start, on the profile's clock.
        end_ns: Its end; None where the recording ended first: objects may be missing.
        source_id: File it is from. Snapshots of two files cannot be compared: addresses are unique only within one.
    """

    snapshot_id: int
    ts_ns: int
    end_ns: int | None
    source_id: int


@value_class
class HeapObject:
    """An object of a heap snapshot.

    Attributes:
        address: Its address.
        type: Its type; None where the recording never describes it.
        size_bytes: Its own size.
        dominator_address: Nearest object that is on every path from a root to it; None where there is none.
        retained_bytes: Its size and that of all objects that only it keeps alive.
        num_retained: Number of those objects, itself included.
        is_reachable: Whether a root keeps it alive; None where the recording has no roots.
    """

    address: int
    type: str | None
    size_bytes: int
    dominator_address: int | None
    retained_bytes: int
    num_retained: int
    is_reachable: bool | None


@value_class
class HeapClass:
    """All objects of a type; a row of table `heap_classes`.

    Attributes:
        type_id: Key in table `types`; None for all objects whose type is never described.
        type: Its name.
        num_objects: Number of objects.
        size_bytes: Sum of their own sizes.
        retained_bytes: Bytes that would be freed with all of them; an object that another of them retains counts once.
        num_retained: Number of objects that would be freed.
        num_unreachable: Objects of the type that no root keeps alive; None where the recording has no roots.
        unreachable_bytes: Sum of their own sizes.
        largest_address: The object that retains most.
        largest_retained_bytes: What that object retains.
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


@value_class
class DuplicateObjects:
    """Objects of one type and size, with the same references in the same fields.

    Other content is not recorded, so they may still differ in numbers or text.

    Attributes:
        address: The one with the lowest address.
        type: Their type; None where the recording never describes it.
        size_bytes: Size of each.
        num_references: References of each.
        num_objects: Number of objects.
        spare_bytes: Size of all but one.
    """

    address: int
    type: str | None
    size_bytes: int
    num_references: int
    num_objects: int
    spare_bytes: int


@value_class
class LiveObjectSite:
    """Live objects of one type, allocated in one place.

    Attributes:
        type: Their type; None where it is never described.
        num_objects: Number of objects.
        size_bytes: Sum of their own sizes.
        stack: Functions of the stack, the innermost first; empty where no stack was taken.
        stack_id: Key in table `stacks`, of the largest of them; None where no stack was taken.
    """

    type: str | None
    num_objects: int
    size_bytes: int
    stack: tuple[str, ...]
    stack_id: int | None


@value_class
class HeapRoot:
    """A root: it keeps an object alive without a reference from another object.

    Attributes:
        kind: `static`, `stack`, `gc_handle` and so on, as in table `heap_roots`.
        name: Name of the memory that contains it; None where the recording has none.
        slot_address: Its address; None where the recording has none.
        owner: Type whose static field it is, or thread whose stack or thread static; None where that is not known.
    """

    kind: str
    name: str | None
    slot_address: int | None
    owner: str | None

    def __str__(self) -> str:
        text = ROOT_KINDS.get(self.kind, self.kind.replace("_", " ")).format(owner=self.owner or "an unknown owner")
        # The names of statics and stacks repeat their kind.
        return text if self.name is None or self.owner else f"{text}: {self.name}"


@value_class
class PathStep:
    """An object on a path from a root.

    Attributes:
        address: Its address in the snapshot.
        type: Its type; None where the recording never describes it.
        size_bytes: Its own size.
        retained_bytes: Bytes that would be freed with it.
        field_offset: Offset of the reference in the preceding object, in bytes; None at the first, and where that was
            not recorded.
    """

    address: int
    type: str | None
    size_bytes: int
    retained_bytes: int
    field_offset: int | None

    def __str__(self) -> str:
        name = self.type or "unknown type"
        return name if self.field_offset is None else f"{name} (at +{self.field_offset})"


@value_class
class HeapReference:
    """An object at the other end of a reference.

    Attributes:
        address: Its address.
        type: Its type; None where unknown.
        size_bytes: Its own size.
        field_offset: Offset of the reference in the object that has it; None where unknown.
    """

    address: int
    type: str | None
    size_bytes: int
    field_offset: int | None


@value_class
class RootPath:
    """A shortest path from a root to an object.

    Attributes:
        root: Its start; None where the recording has no roots: the path then starts at an object without references
            to it.
        steps: The objects on the path; the last is its end.
        num_left_out: Number of objects in the middle that are not among them.
    """

    root: HeapRoot | None
    steps: tuple[PathStep, ...]
    num_left_out: int = 0

    @property
    def first_steps(self) -> tuple[PathStep, ...]:
        """The steps before those that are left out; all where none are."""
        return self.steps[: (len(self.steps) + 1) // 2] if self.num_left_out else self.steps

    @property
    def last_steps(self) -> tuple[PathStep, ...]:
        """The steps after those that are left out."""
        return self.steps[len(self.first_steps) :]

    def __str__(self) -> str:
        """`static field of Cache → Entry[] → Entry (at +16)`"""
        start = "nothing refers to it" if self.root is None else str(self.root)
        left_out = [f"… {self.num_left_out:,} objects …"] if self.num_left_out else []
        return " → ".join([start, *map(str, self.first_steps), *left_out, *map(str, self.last_steps)])


@value_class
class ClassGrowth:
    """A type in two heap snapshots; pairs have the value of the earlier snapshot, then of the later one.

    Attributes:
        type: Its name; None for all objects whose type is never described.
        num_objects: Number of objects.
        size_bytes: Sum of their own sizes.
        retained_bytes: Bytes that would be freed with all of them.
        num_new: Objects of the later snapshot that the earlier one does not have, even at another address.
        new_bytes: Sum of their sizes.
        num_gone: Objects of the earlier snapshot that the later one does not have.
        gone_bytes: Sum of their sizes.
    """

    type: str | None
    num_objects: tuple[int, int]
    size_bytes: tuple[int, int]
    retained_bytes: tuple[int, int]
    num_new: int
    new_bytes: int
    num_gone: int
    gone_bytes: int

    @property
    def retained_growth_bytes(self) -> int:
        """Difference of `retained_bytes`."""
        return self.retained_bytes[1] - self.retained_bytes[0]


ClassChanges = dict[int | None, tuple[int, int, int, int]]
"""By `type_id`: number of new objects, their bytes, number of objects that are gone, their bytes."""


def class_growth(before: Iterable[HeapClass], after: Iterable[HeapClass], changes: ClassChanges) -> list[ClassGrowth]:
    """Types that changed, by growth of their retained size, then of their own size, the largest first."""
    earlier, later = ({one.type_id: one for one in classes} for classes in (before, after))
    rows = []
    for type_id in earlier | later:
        first, last = earlier.get(type_id), later.get(type_id)
        either = last or first
        row = ClassGrowth(
            either.type if either else None,
            (first.num_objects if first else 0, last.num_objects if last else 0),
            (first.size_bytes if first else 0, last.size_bytes if last else 0),
            (first.retained_bytes if first else 0, last.retained_bytes if last else 0),
            *changes.get(type_id, (0, 0, 0, 0)),
        )
        if row.num_new or row.num_gone or row.retained_growth_bytes:
            rows.append(row)
    rows.sort(key=lambda row: (-row.retained_growth_bytes, row.size_bytes[0] - row.size_bytes[1], row.type or ""))
    return rows
