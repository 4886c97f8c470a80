"""A heap shot as a flame graph: on a root lies what it keeps alive, on each object what that alone keeps alive."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perfuse import _core
from perfuse.table import Tables, names

if TYPE_CHECKING:
    from perfuse._core import ArrowStream
    from perfuse.query import Database


class RetainedSizes:
    """What objects retain, in the shape of samples: whatever draws or exports those takes it for a profile.

    A stack is a way down the tree of dominators, by type; its weight is the own size of the objects there, in bytes. An
    object below another of its type is counted with that, so that a list is one box however long it is.

    Attributes:
        title: What was recorded.
    """

    def __init__(self, title: str, rows: "Mapping[str, ArrowStream]") -> None:
        self.title = title
        self._rows = rows

    @cached_property
    def tables(self) -> Tables:
        """The common tables; all but `functions`, `frames`, `stacks` and `samples` are empty."""
        nothing = _core.Profile([], [], False)

        def build(name: str) -> Any:
            return self._rows[name] if name in self._rows else nothing.table(name)

        return Tables(build, names())

    def sql(self, query: str) -> Any:
        """Asks the tables in SQL.

        Raises:
            QueryError: It is no SQL, or names what there is not.
        """
        return self._database.sql(query)

    @cached_property
    def _database(self) -> "Database":
        from perfuse.query import Database

        return Database(self.tables)
