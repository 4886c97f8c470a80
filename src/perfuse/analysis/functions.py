"""Functions and threads of a profile by key, and stacks as names of functions."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import Any

from perfuse import _core
from perfuse.analysis.profiles import RuntimeProfile, TableProfile
from perfuse.table import Columns
from perfuse.value_class import value_class


@value_class
class Function:
    """A function as reports of calls and samples name it.

    Attributes:
        function_id: Its key.
        native_id: The recording's own number for it.
        name: Its name.
        module: File it is in.
        path: Source file.
        line: Line in it, from 1.
        column: Column in it.
    """

    function_id: int
    native_id: int | None
    name: str
    module: str | None
    path: str | None
    line: int | None
    column: int | None


@value_class
class ThreadIds:
    """What a thread is called: by the profile, by the system, by the program.

    Attributes:
        thread_id: Its key.
        pid: Its process id.
        tid: Its thread id; None where that was not recorded.
        name: Its name, where recorded.
        process_id: The key of its process: several may have one pid.
    """

    thread_id: int
    pid: int
    tid: int | None
    name: str | None
    process_id: int = 0

    @property
    def label(self) -> str:
        """Its name and id for people: `worker 2612`, `thread 2612`; its key where no id was recorded."""
        return f"{self.name or 'thread'} {self.thread_id if self.tid is None else self.tid}"


class FunctionNames:
    """Functions and threads of a profile by key; the tables are read on first use."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables = tables
        self._cache: dict[int, Function] = {}

    def function(self, function_id: int) -> Function:
        """The function of a key."""
        cached = self._cache.get(function_id)
        if cached is None:
            cached = self._cache[function_id] = self._function(function_id)
        return cached

    def name(self, function_id: int) -> str:
        """The name of a function."""
        row = self._row_of.get(function_id)
        return f"function {function_id}" if row is None else str(self._functions.value("name", row))

    @cached_property
    def threads(self) -> dict[int, ThreadIds]:
        """Every thread by key."""
        processes, threads = Columns(self._tables["processes"]), Columns(self._tables["threads"])
        pids = dict(zip(processes["process_id"], processes["pid"], strict=True))
        rows = zip(*(threads[name] for name in ("thread_id", "process_id", "tid", "name")), strict=True)
        return {key: ThreadIds(key, pids.get(process, 0), tid, name, process) for key, process, tid, name in rows}

    def _function(self, function_id: int) -> Function:
        row = self._row_of.get(function_id)
        if row is None:
            return Function(function_id, None, self.name(function_id), None, None, None, None)
        names = ("native_id", "name", "module_id", "path", "line", "column")
        ((native_id, name, module_id, path, line, column),) = self._functions.take([row], names)
        return Function(function_id, native_id, name, self._modules.get(module_id), path, line, column)

    @cached_property
    def _functions(self) -> Columns:
        return Columns(self._tables["functions"])

    @cached_property
    def _row_of(self) -> dict[int, int]:
        return {key: row for row, key in enumerate(self._functions["function_id"])}

    @cached_property
    def _modules(self) -> dict[int, str]:
        modules = Columns(self._tables["modules"])
        return dict(zip(modules["module_id"], modules["name"], strict=True))


Backtrace = tuple[str, ...]
"""Names of functions, outermost first, without the runtime's wrappers."""


def backtraces(profile: RuntimeProfile, table: str, stack_ids: Iterable[int | None]) -> dict[int | None, Backtrace]:
    """Backtraces by the keys that `Profile.selected_rows` of a table has in its columns of stacks; none for None.

    Several stacks have the same backtrace: those of a method compiled several times, and those that differ in wrappers.
    """
    return _backtraces(profile, lambda: profile.stacks_of(table), stack_ids)


def stack_backtraces(profile: TableProfile, stack_ids: Iterable[int | None]) -> dict[int | None, Backtrace]:
    """Backtraces by key of table `stacks`; none for None."""
    return _backtraces(profile, lambda: (profile.tables["stacks"], profile.tables["frames"]), stack_ids)


def stack_functions(profile: TableProfile, stack_ids: Iterable[int | None]) -> dict[int | None, tuple[str, ...]]:
    """Functions of stacks by key of table `stacks`, the innermost first; none for None."""
    return {stack: names[::-1] for stack, names in stack_backtraces(profile, stack_ids).items()}


def _backtraces(
    profile: TableProfile, read_tables: Callable[[], tuple[Any, Any]], stack_ids: Iterable[int | None]
) -> dict[int | None, Backtrace]:
    keys = sorted({key for key in stack_ids if key is not None})
    found: dict[int | None, Backtrace] = {None: ()}
    if keys:
        name = cache(FunctionNames(profile.tables).name)
        for key, functions in zip(keys, _core.backtraces(*read_tables(), keys), strict=True):
            found[key] = _without_wrappers(tuple("[unknown]" if one is None else name(one) for one in functions))
    return found


def _without_wrappers(names: Backtrace) -> Backtrace:
    """The functions of the program; all of a backtrace that has wrappers only."""
    return tuple(name for name in names if not name.startswith("(wrapper ")) or names


def innermost(backtrace: Backtrace) -> str:
    """The innermost function of a backtrace that is not one the runtime generated, whose names start with `(`."""
    for name in reversed(backtrace):
        if not name.startswith("("):
            return name
    return backtrace[-1] if backtrace else "(no backtrace)"
