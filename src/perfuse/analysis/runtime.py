"""What analyses of a managed runtime ask of a profile."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from perfuse import _core
from perfuse.analysis.columns import Columns
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

    def stacks_of(self, table: str) -> "tuple[_core.ArrowStream, _core.ArrowStream]":
        """Tables `stacks` and `frames` with the stacks alone that rows of a table name."""
        ...

    def selected_rows(self, table: str, columns: Sequence[str], **which: Any) -> "_core.ArrowStream":
        """Some columns of the rows of a table that are of the selected threads and time."""
        ...

    def count_rows(self, table: str, **which: Any) -> int:
        """How many rows of a table are selected."""
        ...

    def row_counts(self, table: str, columns: tuple[str, str], **which: Any) -> list[tuple[str, int | None, int]]:
        """How many selected rows have the same word and key."""
        ...

    def handle_sums(self, *, stacks: bool) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Handles by kind, and by kind and stack."""
        ...

    def object_origins(self, objects: list[tuple[int, int]]) -> "_core.ArrowStream":
        """Where the objects were allocated that were at some addresses at some times."""
        ...


ALL = {"time": None, "thread": None}
"""Rows of all threads and times, whatever is selected."""


def selected(profile: Managed, table: str, *columns: str, **which: Any) -> Iterator[tuple[Any, ...]]:
    """Some columns of the selected rows of a table, a tuple a row; `which` is that of `Profile.selected_rows`."""
    return Columns(profile.selected_rows(table, columns, **which)).tuples(*columns)


def earliest_first(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows in the order of their first column; of one moment, in the order of the table."""
    return sorted(rows, key=lambda row: row[0])
