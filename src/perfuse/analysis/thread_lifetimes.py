"""Lifetimes and names of threads. The runtime reuses ids: threads with one id are distinguished by time."""

from perfuse.analysis.profiles import UNSELECTED, RuntimeProfile, read_selected, sort_by_time
from perfuse.table import Columns
from perfuse.value_class import value_class


@value_class
class ThreadLifetime:
    """When a thread of a runtime log started and ended, and its names meanwhile.

    Attributes:
        thread_id: Its key.
        tid: Its thread id of the system; None where that was not recorded.
        native_address: Its id of the recorder, which an earlier thread may have had.
        names: Its names in time order.
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
        """Its last name and number, for people."""
        return f"{self.names[-1] if self.names else 'thread'} {self.thread_id if self.tid is None else self.tid}"


def thread_lifetimes(profile: RuntimeProfile) -> list[ThreadLifetime]:
    """Every thread, by its start."""
    columns = Columns(profile.tables["threads"])
    rows = [
        row
        for row in columns.tuples("thread_id", "tid", "native_id", "name", "start_ns", "end_ns")
        if profile.selection.has_thread(*row[:4])
    ]
    given = _given_names(profile)

    def names_of(native: int | None, name: str | None, start: int | None, end: int | None) -> list[str]:
        names = [
            name
            for time, name in given.get(native, ())
            if (start is None or start <= time) and (end is None or time <= end)
        ]
        return list(dict.fromkeys(names)) or ([name] if name else [])

    lifetimes = [
        ThreadLifetime(key, tid, native, names_of(native, name, start, end), start, end)
        for key, tid, native, name, start, end in rows
    ]
    return sorted(lifetimes, key=lambda one: (one.start_ns is not None, one.start_ns or 0, one.thread_id))


def _given_names(profile: RuntimeProfile) -> dict[int | None, list[tuple[int, str]]]:
    """Names with their times, by the recorder's id of the thread."""
    found: dict[int | None, list[tuple[int, str]]] = {}
    if profile.has("instants"):
        rows = read_selected(profile, "instants", "ts_ns", "native_id", "name", kinds=["thread_name"], **UNSELECTED)
        for time, native, name in sort_by_time(rows):
            if native is not None and name is not None:
                found.setdefault(native, []).append((time, name))
    return found
