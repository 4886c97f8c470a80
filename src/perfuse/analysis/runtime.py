"""What analyses of a managed runtime ask of a profile."""

from collections.abc import Mapping
from typing import Any, Protocol

from perfuse import _core
from perfuse.selection import Selection


class Managed(Protocol):
    """A profile of a program on a managed runtime, as far as analyses know it; `perfuse.Profile` is one."""

    @property
    def title(self) -> str:
        """What was recorded."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...

    @property
    def selection(self) -> Selection:
        """What of it is looked at."""
        ...

    @property
    def span_ns(self) -> tuple[int, int] | None:
        """When it begins and ends."""
        ...

    def sql(self, query: str, /) -> Any:
        """Asks the common tables."""
        ...

    def has(self, table: str) -> bool:
        """Whether a table has rows, as far as that can be told without making it."""
        ...

    def allocation_sums(self, by: str | None = None, *, stacks: bool = True) -> "_core.ArrowStream":
        """What was allocated, added up by thread, type and stack, or by one of them."""
        ...

    def event_stacks(self, table: str) -> "_core.ArrowStream":
        """Table `stacks` or `frames` without what only allocations have."""
        ...

    def object_origins(self, objects: list[tuple[int, int]]) -> "_core.ArrowStream":
        """Where the objects were allocated that were at some addresses at some times."""
        ...


def selected(profile: Managed, time: str = "ts_ns", thread: str = "thread_id") -> str:
    """What is looked at, as an SQL condition over the columns of a table."""
    return profile.selection.where(time, thread) or "true"
