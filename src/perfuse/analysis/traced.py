"""What analyses ask of a profile with call traces, and what its functions and threads are called."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from perfuse import _core
from perfuse.analysis.columns import Columns


class Traced(Protocol):
    """A profile with call traces, as far as analyses know it; `perfuse.Profile` is one."""

    @property
    def title(self) -> str:
        """What was recorded."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...

    @property
    def has_traces(self) -> bool:
        """Whether there are any."""
        ...

    def call_statistics(self, **options: Any) -> "_core.CallStatistics":
        """The calls of its traces, summed up; `options` are those of `_core.call_statistics`."""
        ...


@dataclass(frozen=True, slots=True)
class Function:
    """A function.

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


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread.

    Attributes:
        thread_id: Its key.
        pid: Its process's number.
        tid: Its number.
        name: Its name, where recorded.
    """

    thread_id: int
    pid: int
    tid: int
    name: str | None

    @property
    def label(self) -> str:
        """What to call it: `worker 2612`, `thread 2612`."""
        return f"{self.name or 'thread'} {self.tid}"


class Names:
    """Functions and threads of a profile by key; the tables are read when the first is asked for."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._tables = tables
        self._met: dict[int, Function] = {}

    def function(self, function_id: int) -> Function:
        """The function of that key."""
        met = self._met.get(function_id)
        if met is None:
            met = self._met[function_id] = self._function(function_id)
        return met

    def name(self, function_id: int) -> str:
        """Its name alone."""
        row = self._row_of.get(function_id)
        return f"function {function_id}" if row is None else str(self._functions.value("name", row))

    @cached_property
    def threads(self) -> dict[int, Thread]:
        """Every thread by key."""
        processes, threads = Columns(self._tables["processes"]), Columns(self._tables["threads"])
        pids = dict(zip(processes["process_id"], processes["pid"], strict=True))
        rows = zip(*(threads[name] for name in ("thread_id", "process_id", "tid", "name")), strict=True)
        return {key: Thread(key, pids.get(process, 0), tid, name) for key, process, tid, name in rows}

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
