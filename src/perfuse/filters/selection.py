"""The selected threads and time of a profile."""

from collections.abc import Mapping, Sequence
from typing import Any

from perfuse.errors import UsageError, nearest_hint
from perfuse.filters.names import handle_key
from perfuse.table import Columns, sql_text
from perfuse.value_class import replace, value_class

_SHOWN = 3
"""Number of threads that a message lists."""


class ThreadKey(int):
    """A key of table `threads`, where a number would be the system's thread id."""


@value_class
class Selection:
    """The selected threads and time of a profile's samples, calls and events.

    Attributes:
        start_ns: First time; None without a limit.
        end_ns: First time after the selection; None without a limit.
        thread: Thread id or name; None for all threads.
        process: Pid, name or handle of the processes whose threads `thread_ids` are; None where these are others.
        thread_ids: Keys of threads; None for all threads. Where both are given, threads that both select.
        function_ids: Keys of functions: on timelines, only their calls, and calls within these; None for all.
    """

    start_ns: int | None = None
    end_ns: int | None = None
    thread: str | int | None = None
    process: str | int | None = None
    thread_ids: tuple[int, ...] | None = None
    function_ids: tuple[int, ...] | None = None

    @property
    def of_all_threads(self) -> "Selection":
        """The selected time alone: for what belongs to no thread."""
        return Selection(self.start_ns, self.end_ns)

    @property
    def selects_threads(self) -> bool:
        """Whether only some threads are selected."""
        return self.thread is not None or self.thread_ids is not None

    @property
    def condition(self) -> str | None:
        """The selection as an SQL condition over `samples`; None where everything is selected."""
        return self.where()

    def where(self, time: str = "ts_ns", thread: str = "thread_id") -> str | None:
        """The selection as an SQL condition over a table with these columns; None where everything is selected."""
        parts = []
        if self.start_ns is not None:
            parts.append(f"{time} >= {self.start_ns}")
        if self.end_ns is not None:
            parts.append(f"{time} < {self.end_ns}")
        if self.threads is not None:
            parts.append(f"{thread} IN ({self.threads})")
        return " AND ".join(parts) or None

    @property
    def threads(self) -> str | None:
        """An SQL query for the keys of the selected threads; None where all are selected.

        A number is the system's thread id; for threads that have none, the key, or the recorder's own id.
        """
        if not self.selects_threads:
            return None
        conditions = [] if self.thread is None else [self._thread_condition]
        if self.thread_ids is not None:
            conditions.append(f"thread_id IN ({', '.join(map(str, self.thread_ids)) or 'NULL'})")
        return f"SELECT thread_id FROM threads WHERE {' AND '.join(conditions)}"

    @property
    def _thread_condition(self) -> str:
        if isinstance(self.thread, ThreadKey):
            return f"thread_id = {int(self.thread)}"
        number = f"tid = {self.thread} OR (tid IS NULL AND {self.thread} IN (thread_id, native_id))"
        return f"({number})" if isinstance(self.thread, int) else f"name = {sql_text(str(self.thread))}"

    def has_thread(self, thread_id: int, tid: int | None, native_id: int | None, name: str | None) -> bool:
        """Whether a thread, a row of table `threads`, is selected."""
        if not self._has_key(thread_id):
            return False
        if self.thread is None:
            return True
        if isinstance(self.thread, str):
            return name == self.thread
        if isinstance(self.thread, ThreadKey):
            return thread_id == self.thread
        return self.thread in ((thread_id, native_id) if tid is None else (tid,))

    def keys(self, threads: Any) -> list[int]:
        """Keys of the selected threads, of table `threads`."""
        rows = Columns(threads).tuples("thread_id", "tid", "native_id", "name")
        return [row[0] for row in rows if self.has_thread(*row)]

    def of_thread(self, thread: str | int, tables: Mapping[str, Any]) -> "Selection":
        """The selection with one thread, by thread id, name, or handle such as `t3`.

        Raises:
            UsageError: There is no such thread, or it is not selected.
        """
        found, threads = replace(self, thread=thread), tables["threads"]
        if not found.keys(threads) and isinstance(thread, str) and (key := handle_key(thread, "t")) is not None:
            found = replace(self, thread=ThreadKey(key))
        if not found.keys(threads):
            of = "" if self.process is None else f" of process {self.process!r}"
            hint = _near_threads(threads, thread, self.thread_ids)
            if earlier := _once_named(tables, thread, self.thread_ids):
                hint = f"earlier the name of {earlier}: give that; `report --by command` adds up by earlier ones"
            raise UsageError(f"no thread {thread!r}{of}", hint=hint)
        return found

    def of_process(self, process: str | int, processes: Any, threads: Any) -> "Selection":
        """The selection with the threads of the processes of a pid, a name, or a handle such as `p3`.

        Args:
            process: Pid, name or handle.
            processes: Table `processes`.
            threads: Table `threads`.

        Raises:
            UsageError: There is no such process, or none of its threads is selected.
        """
        keys = _process_keys(processes, process)
        if not keys:
            raise UsageError(f"no process {process!r}", hint=_near_processes(processes, process))
        rows = Columns(threads).tuples("thread_id", "process_id")
        own = [key for key, of in rows if of in keys]
        found = replace(self, process=process, thread_ids=tuple(key for key in own if self._has_key(key)))
        if not found.keys(threads):
            hint = "leave out --thread" if own else "no thread of it was recorded"
            raise UsageError(f"process {process!r} has no selected thread", hint=hint)
        return found

    def _has_key(self, thread_id: int) -> bool:
        return self.thread_ids is None or thread_id in self.thread_ids

    def rows(
        self,
        threads: list[int] | None,
        *,
        kinds: Sequence[str] | None = None,
        time: str | None = "ts_ns",
        thread: str | None = "thread_id",
    ) -> dict[str, Any]:
        """The arguments of the core for the selected rows of a table; `threads` are keys."""
        return {
            "threads": threads if thread else None,
            "time_ns": self.time_ns if time else None,
            "time": time or "",
            "thread": thread or "",
            "kinds": kinds,
        }

    @property
    def time_ns(self) -> tuple[int, int] | None:
        """Start and end, in 64 bits where one of them has no limit; None where all time is selected."""
        if self.start_ns is None and self.end_ns is None:
            return None
        first, last = -(2**63), 2**63 - 1
        return first if self.start_ns is None else self.start_ns, last if self.end_ns is None else self.end_ns

    def has_time(self, ts_ns: int) -> bool:
        """Whether a time is selected."""
        first, last = self.time_ns or (ts_ns, ts_ns + 1)
        return first <= ts_ns < last

    def overlaps(self, start_ns: int, end_ns: int | None) -> bool:
        """Whether a part of what has a duration is in the selected time; what has no end lasts to the end."""
        if self.time_ns is None:
            return True
        first, last = self.time_ns
        return start_ns < last and (start_ns >= first or end_ns is None or end_ns > first)


def _process_keys(processes: Any, process: str | int) -> set[int]:
    """Keys of the processes, of table `processes`, with a pid, a name, or else a handle such as `p3`."""
    rows = list(Columns(processes).tuples("process_id", "pid", "name"))
    found = {key for key, pid, name in rows if process == (pid if isinstance(process, int) else name)}
    if not found and isinstance(process, str):
        found = {key for key, _, _ in rows if key == handle_key(process, "p")}
    return found


def _near_processes(processes: Any, process: str | int) -> str:
    """A hint for a process that does not exist: those of table `processes` with similar names or pids, or all."""
    rows = Columns(processes).tuples("pid", "name")
    return _nearest("process", process, [(str(pid), name) for pid, name in rows])


def _near_threads(threads: Any, thread: str | int, among: Sequence[int] | None = None) -> str:
    """A hint for a thread that does not exist: those of table `threads` with similar names or ids, or all.

    Args:
        threads: The table.
        thread: Its name or number.
        among: Keys of the threads that it could be; None for all.
    """
    rows = [row for row in Columns(threads).tuples("thread_id", "tid", "name") if among is None or row[0] in among]
    return _nearest("thread", thread, [(str(key if tid is None else tid), name) for key, tid, name in rows])


def _once_named(tables: Mapping[str, Any], name: str | int, among: Sequence[int] | None) -> str:
    """The threads that had a name and have another now: `worker 17`."""
    keys = {key for key, one in Columns(tables["thread_names"]).tuples("thread_id", "name") if one == name}
    rows = Columns(tables["threads"]).tuples("thread_id", "tid", "name")
    found = [f"{now} {tid or ''}".strip() for key, tid, now in rows if key in keys and (among is None or key in among)]
    return ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else "")


def _nearest(what: str, given: str | int, rows: Sequence[tuple[str, str | None]]) -> str:
    """A hint of similar names, or of similar numbers where a number was given or nothing has a name."""
    names = dict.fromkeys(name for _, name in rows if name)
    if isinstance(given, str) and names:
        return nearest_hint(given, names)
    numbers = dict.fromkeys(number for number, _ in rows)
    return nearest_hint(str(given), numbers) if numbers else f"no {what} was recorded"
