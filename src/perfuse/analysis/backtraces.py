"""Stacks by key, as the names of their functions."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from perfuse import _core
from perfuse.analysis.runtime import Managed
from perfuse.analysis.traced import Names

Backtrace = tuple[str, ...]
"""Names of functions, outermost first."""


class WithStacks(Protocol):
    """A profile with stacks; `perfuse.Profile` is one."""

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...


def backtraces(profile: Managed, table: str, stack_ids: Iterable[int | None]) -> dict[int | None, Backtrace]:
    """The stacks that rows of a table name which was asked for by itself, by key; none for None."""
    return _named(profile, lambda: profile.stacks_of(table), stack_ids)


def allocation_backtraces(profile: WithStacks, stack_ids: Iterable[int | None]) -> dict[int | None, Backtrace]:
    """The stacks of any keys; none for None."""
    return _named(profile, lambda: (profile.tables["stacks"], profile.tables["frames"]), stack_ids)


def _named(
    profile: WithStacks, tables: Callable[[], tuple[Any, Any]], stack_ids: Iterable[int | None]
) -> dict[int | None, Backtrace]:
    wanted = sorted({key for key in stack_ids if key is not None})
    found: dict[int | None, Backtrace] = {None: ()}
    if wanted:
        names = Names(profile.tables)
        for key, functions in zip(wanted, _core.backtraces(*tables(), wanted), strict=True):
            found[key] = tuple("[unknown]" if one is None else names.name(one) for one in functions)
    return found


def innermost(backtrace: Backtrace) -> str:
    """What a reader looks for in a backtrace: its innermost method that the runtime did not make up itself."""
    for name in reversed(backtrace):
        if not name.startswith("("):
            return name
    return backtrace[-1] if backtrace else "(no backtrace)"
