"""Allocations of a program: by type, by stack, by thread."""

from functools import cached_property
from typing import Literal, get_args

from perfuse.analysis.functions import Backtrace, stack_backtraces
from perfuse.analysis.objects import UNKNOWN_TYPE, type_names
from perfuse.analysis.profiles import RuntimeProfile
from perfuse.errors import UsageError
from perfuse.table import Columns
from perfuse.value_class import value_class

AllocationOrder = Literal["bytes", "count"]


@value_class
class TypeAllocations:
    """Allocations of a type.

    Attributes:
        name: The type.
        count: Number of objects.
        bytes: Sum of their sizes.
        largest_bytes: Size of the largest.
    """

    name: str
    count: int
    bytes: int
    largest_bytes: int


@value_class
class AllocationSite:
    """Allocations from one place.

    Attributes:
        backtrace: Functions, outermost first; the last creates the objects. Empty where no stack was taken.
        type_name: The type with the most bytes.
        num_types: Number of types.
        count: Number of objects.
        bytes: Sum of their sizes.
    """

    backtrace: Backtrace
    type_name: str
    num_types: int
    count: int
    bytes: int


@value_class
class ThreadAllocations:
    """Allocations of a thread, by its key."""

    thread_id: int
    count: int
    bytes: int


class Allocations:
    """Allocations of the selected threads and time.

    Attributes:
        count: Number of objects.
        bytes: Sum of their sizes.
    """

    def __init__(self, profile: RuntimeProfile) -> None:
        self._profile = profile
        # Sums by thread and type need one pass over the allocations.
        self._sums = Columns(profile.allocation_sums(stacks=False))
        self.count: int = sum(self._sums["num_objects"])
        self.bytes: int = sum(self._sums["size_bytes"])

    def __repr__(self) -> str:
        return f"<perfuse allocations: {self.count:,} objects, {self.bytes:,} bytes>"

    def __len__(self) -> int:
        """Number of types."""
        return len(self.by_type())

    def by_type(self, limit: int | None = None, *, order: AllocationOrder = "bytes") -> list[TypeAllocations]:
        """Types, the largest first.

        Args:
            limit: Largest number of rows; None for all.
            order: By `bytes` or `count`.
        """
        _require_order(order)
        return sorted(self._by_name.values(), key=lambda one: (-getattr(one, order), one.name))[:limit]

    def of_type(self, name: str) -> TypeAllocations | None:
        """Allocations of the type of a name; None where there are none."""
        return self._by_name.get(name)

    def by_site(self, limit: int | None = None, *, order: AllocationOrder = "bytes") -> list[AllocationSite]:
        """Places, the largest first; allocations without a stack are one row."""
        _require_order(order)
        return sorted(self._sites, key=lambda one: -getattr(one, order))[:limit]

    @property
    def num_sites(self) -> int:
        """Number of places."""
        return len(self._sites)

    @cached_property
    def sites_are_open_calls(self) -> bool:
        """Whether stacks are not recorded ones, but those of the calls that were open at each allocation."""
        if not self._profile.has("call_events"):
            return False
        frames = Columns(self._profile.tables["frames"])
        # The frames of a call trace are of another kind.
        return ("jit", "trace") in frames.tuples("kind", "unwound_by")

    def by_thread(self) -> list[ThreadAllocations]:
        """Threads, the one with the most bytes first."""
        found: dict[int, ThreadAllocations] = {}
        columns = ("thread_id", "num_objects", "size_bytes")
        for thread, count, size in self._sums.take(range(len(self._sums)), columns):
            sums = found.get(thread, ThreadAllocations(thread, 0, 0))
            found[thread] = ThreadAllocations(thread, sums.count + count, sums.bytes + size)
        return sorted(found.values(), key=lambda one: (-one.bytes, one.thread_id))

    @cached_property
    def _by_name(self) -> dict[str, TypeAllocations]:
        """Sums by name: types of several domains, or types that were loaded again, have the same name."""
        names = type_names(self._profile)
        found: dict[str, TypeAllocations] = {}
        columns = ("type_id", "num_objects", "size_bytes", "largest_bytes")
        for type_id, count, size, largest in self._sums.take(range(len(self._sums)), columns):
            name = names.get(type_id, UNKNOWN_TYPE)
            sums = found.get(name, TypeAllocations(name, 0, 0, 0))
            maximum = max(sums.largest_bytes, largest)
            found[name] = TypeAllocations(name, sums.count + count, sums.bytes + size, maximum)
        return found

    @cached_property
    def _sites(self) -> list[AllocationSite]:
        """Places in the order of their first allocation."""
        rows = list(Columns(self._profile.allocation_sums()).tuples("stack_id", "type_id", "num_objects", "size_bytes"))
        stacks, names = stack_backtraces(self._profile, [stack for stack, *_ in rows]), type_names(self._profile)
        places: dict[Backtrace, dict[str, tuple[int, int]]] = {}
        for stack, type_id, count, size in rows:
            types = places.setdefault(stacks[stack], {})
            name = names.get(type_id, UNKNOWN_TYPE)
            counted, bytes_ = types.get(name, (0, 0))
            types[name] = counted + count, bytes_ + size
        return [
            AllocationSite(
                backtrace=place,
                type_name=max(types, key=lambda name: types[name][1]),
                num_types=len(types),
                count=sum(count for count, _ in types.values()),
                bytes=sum(size for _, size in types.values()),
            )
            for place, types in places.items()
        ]


def _require_order(order: str) -> None:
    if order not in get_args(AllocationOrder):
        raise UsageError(f"order is bytes or count, not {order!r}", field="order")
