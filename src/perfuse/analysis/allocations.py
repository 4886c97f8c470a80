"""What a program allocated: by type, by place, by thread."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from perfuse.analysis.functions import Backtrace, stack_backtraces
from perfuse.analysis.objects import type_names
from perfuse.analysis.profiles import RuntimeProfile
from perfuse.errors import UsageError
from perfuse.table import Columns, smallest_rows

Order = Literal["bytes", "count"]
UNKNOWN = "(unknown type)"
_COLUMNS = {"bytes": "size_bytes", "count": "num_objects"}


@dataclass(frozen=True, slots=True)
class TypeAllocations:
    """Allocations of a type.

    Attributes:
        name: The type.
        count: Objects.
        bytes: Their sizes.
        largest_bytes: The largest one.
    """

    name: str
    count: int
    bytes: int
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class AllocationSite:
    """Allocations from one stack.

    Attributes:
        backtrace: Functions, outermost first; empty where none was taken.
        type_name: The type most bytes of it are of.
        num_types: Types that are allocated there.
        count: Objects.
        bytes: Their sizes.
    """

    backtrace: Backtrace
    type_name: str
    num_types: int
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ThreadAllocations:
    """Allocations of a thread, by its key."""

    thread_id: int
    count: int
    bytes: int


class Allocations:
    """What a profile says was allocated, in the selected threads and time.

    Attributes:
        count: Objects.
        bytes: Their sizes.
    """

    def __init__(self, profile: RuntimeProfile) -> None:
        self._profile = profile
        # By thread and type at once: one pass over the allocations.
        self._sums = Columns(profile.allocation_sums(stacks=False))
        self.count: int = sum(self._sums["num_objects"])
        self.bytes: int = sum(self._sums["size_bytes"])

    def __len__(self) -> int:
        """How many types were allocated."""
        return len(self.by_type())

    def by_type(self, limit: int | None = None, *, order: Order = "bytes") -> list[TypeAllocations]:
        """Types, the one with the most first.

        Args:
            limit: How many; None for all.
            order: By `bytes` or `count`.
        """
        return sorted(self._by_name.values(), key=lambda one: (-getattr(one, order), one.name))[:limit]

    def of_type(self, name: str) -> TypeAllocations | None:
        """Allocations of the type of that name."""
        return self._by_name.get(name)

    def by_site(self, limit: int | None = None, *, order: Order = "bytes") -> list[AllocationSite]:
        """Stacks, the one with the most first; those without a stack are one."""
        if order not in get_args(Order):
            raise UsageError(f"order is bytes or count, not {order!r}", field="order")
        whole = self._sites
        values = whole[_COLUMNS[order]]
        rows = smallest_rows(range(len(whole)), limit, lambda row: (-values[row], row))
        picked = whole.take(rows, ("stack_id", "type_id", "num_types", "num_objects", "size_bytes"))
        stacks, names = stack_backtraces(self._profile, [stack for stack, *_ in picked]), type_names(self._profile)
        return [AllocationSite(stacks[stack], names.get(type_id, UNKNOWN), *rest) for stack, type_id, *rest in picked]

    @property
    def num_sites(self) -> int:
        """How many stacks there are."""
        return len(self._sites)

    def by_thread(self) -> list[ThreadAllocations]:
        """Threads, the one with the most bytes first."""
        found: dict[int, ThreadAllocations] = {}
        columns = ("thread_id", "num_objects", "size_bytes")
        for thread, count, size in self._sums.take(range(len(self._sums)), columns):
            known = found.get(thread, ThreadAllocations(thread, 0, 0))
            found[thread] = ThreadAllocations(thread, known.count + count, known.bytes + size)
        return sorted(found.values(), key=lambda one: (-one.bytes, one.thread_id))

    @cached_property
    def _by_name(self) -> dict[str, TypeAllocations]:
        """By name: types of several domains, or loaded again, are one to a reader."""
        names = type_names(self._profile)
        found: dict[str, TypeAllocations] = {}
        columns = ("type_id", "num_objects", "size_bytes", "largest_bytes")
        for type_id, count, size, largest in self._sums.take(range(len(self._sums)), columns):
            name = names.get(type_id, UNKNOWN)
            known = found.get(name, TypeAllocations(name, 0, 0, 0))
            most = max(known.largest_bytes, largest)
            found[name] = TypeAllocations(name, known.count + count, known.bytes + size, most)
        return found

    @cached_property
    def _sites(self) -> Columns:
        return Columns(self._profile.allocation_sums("stack"))
