"""A source of samples with a filter of stacks."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from perfuse.analysis.profiles import SampleProfile
from perfuse.errors import UsageError
from perfuse.filters.stacks import FILTERED_TABLES, FilteredStacks, StackFilter

if TYPE_CHECKING:
    from perfuse.query import Database


class FilteredSamples:
    """A source of samples with a filter of stacks: for those that are not a `Profile`, such as retained sizes.

    Attributes:
        title: What was recorded.
        tables: The common tables.
        unmatched_steps: For each step of a lenient filter that matches nothing, why.
        partly_named_steps: For each step with a text that is part of names, one of them.
    """

    def __init__(self, source: SampleProfile, stacks: FilteredStacks) -> None:
        self.title = source.title
        self.unmatched_steps = stacks.unmatched
        self.partly_named_steps = stacks.partly_named
        self.tables: Mapping[str, Any] = _FilteredTables(source.tables, stacks)
        self._source = source

    def sql(self, query: str, /) -> Any:
        """Runs SQL over the tables."""
        return self._database.sql(query)

    @cached_property
    def _database(self) -> "Database":
        from perfuse.query import Database

        return Database(self.tables)


class _FilteredTables(Mapping[str, Any]):
    def __init__(self, tables: Mapping[str, Any], stacks: FilteredStacks) -> None:
        self._tables = tables
        self._filtered = stacks.tables

    def __getitem__(self, name: str) -> Any:
        # An empty table is false.
        return self._filtered[name] if name in FILTERED_TABLES else self._tables[name]

    def __iter__(self) -> Any:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def filtered_samples(source: SampleProfile, stack_filter: StackFilter) -> SampleProfile:
    """A source of samples with a filter; the source itself where that is empty.

    Raises:
        UsageError: A step matches nothing, or depends on times.
    """
    if stack_filter.during:
        raise UsageError("--during needs samples that have a time, and a heap snapshot has none")
    if not stack_filter:
        return source
    return FilteredSamples(source, stack_filter.apply(source.tables))
