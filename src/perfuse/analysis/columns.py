"""A table of the core, column by column: values become Python objects only where they are looked at."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nsmallest
from typing import Any

_IN_BULK = 50
"""A value on its own costs as much as so many in bulk."""


class Columns:
    """The columns of an Arrow stream; a column is unpacked when it is first asked for, and kept.

    Args:
        stream: Anything that offers the Arrow C stream interface.
    """

    def __init__(self, stream: Any) -> None:
        from arro3.core import Table

        self._table = Table.from_arrow(stream)
        self._lists: dict[str, list[Any]] = {}
        self._asked: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._table.num_rows

    def __contains__(self, name: object) -> bool:
        return name in self._table.column_names

    def __getitem__(self, name: str) -> list[Any]:
        """A whole column."""
        if name not in self._lists:
            column: Any = self._table[name]
            self._lists[name] = column.to_pylist()
        return self._lists[name]

    def value(self, name: str, row: int) -> Any:
        """One value; a column that many are asked of is unpacked."""
        self._asked[name] += 1
        if name in self._lists or self._asked[name] * _IN_BULK > len(self):
            return self[name][row]
        return self._table[name][row].as_py()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Every row, as a dictionary."""
        names = self._table.column_names
        return (dict(zip(names, row, strict=True)) for row in self.tuples(*names))

    def tuples(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Some columns of every row, a tuple a row."""
        return zip(*map(self.__getitem__, names), strict=True)

    def take(self, rows: Sequence[int], names: Iterable[str]) -> list[tuple[Any, ...]]:
        """Some columns of some rows, a tuple a row."""
        columns = [self._some(name, rows) for name in names]
        return list(zip(*columns, strict=True))

    def _some(self, name: str, rows: Sequence[int]) -> list[Any]:
        if name in self._lists or len(rows) * _IN_BULK > len(self):
            column = self[name]
            return [column[row] for row in rows]
        lazy = self._table[name]
        return [lazy[row].as_py() for row in rows]


def first(rows: Iterable[int], limit: int | None, key: Callable[[int], Any]) -> list[int]:
    """The rows whose keys are least, in their order; all of them where `limit` is None."""
    return sorted(rows, key=key) if limit is None else nsmallest(limit, rows, key=key)
