"""Threads, each with all its names, from its start to its end: the runtime gives an id to one after the other."""

from dataclasses import dataclass

from perfuse.analysis.profiles import UNSELECTED, RuntimeProfile, read_selected, sort_by_time
from perfuse.table import Columns


@dataclass(frozen=True, slots=True)
class ThreadLife:
    """A thread.

    Attributes:
        thread_id: Its key.
        tid: The system's number of it; None where that was not recorded.
        native_address: The recorder's own id of it, which another thread may have had before.
        names: Its names in the order it was given them.
        start_ns: Its start; None where that was not recorded.
        end_ns: Its end; None where that was not recorded.
    """

    thread_id: int
    tid: int | None
    native_address: int | None
    names: list[str]
    start_ns: int | None
    end_ns: int | None

    @property
    def label(self) -> str:
        """What to call it: its last name and number."""
        return f"{self.names[-1] if self.names else 'thread'} {self.thread_id if self.tid is None else self.tid}"


def thread_lives(profile: RuntimeProfile) -> list[ThreadLife]:
    """Every thread, by its start."""
    columns = Columns(profile.tables["threads"])
    rows = [
        row
        for row in columns.tuples("thread_id", "tid", "native_id", "name", "start_ns", "end_ns")
        if profile.selection.has_thread(*row[:4])
    ]
    given = _given_names(profile)

    def names(native: int | None, name: str | None, start: int | None, end: int | None) -> list[str]:
        its = [
            name
            for time, name in given.get(native, ())
            if (start is None or start <= time) and (end is None or time <= end)
        ]
        return list(dict.fromkeys(its)) or ([name] if name else [])

    lives = [
        ThreadLife(key, tid, native, names(native, name, start, end), start, end)
        for key, tid, native, name, start, end in rows
    ]
    return sorted(lives, key=lambda one: (one.start_ns is not None, one.start_ns or 0, one.thread_id))


def _given_names(profile: RuntimeProfile) -> dict[int | None, list[tuple[int, str]]]:
    """Names with the time they were given, by the recorder's id of the thread."""
    found: dict[int | None, list[tuple[int, str]]] = {}
    if profile.has("instants"):
        rows = read_selected(profile, "instants", "ts_ns", "native_id", "name", kinds=["thread_name"], **UNSELECTED)
        for time, native, name in sort_by_time(rows):
            if native is not None and name is not None:
                found.setdefault(native, []).append((time, name))
    return found
