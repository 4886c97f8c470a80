"""Threads, each with all its names, from its start to its end: the runtime gives an id to one after the other."""

from dataclasses import dataclass

from perfuse.analysis.runtime import Managed


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


def thread_lives(profile: Managed) -> list[ThreadLife]:
    """Every thread, by its start."""
    chosen = profile.selection.threads
    rows = profile.sql(f"""
        SELECT thread_id, tid, native_id, name::VARCHAR, start_ns, end_ns FROM threads
        {f"WHERE thread_id IN ({chosen})" if chosen else ""} ORDER BY start_ns NULLS FIRST, thread_id
    """).fetchall()
    named: dict[int, list[str]] = {}
    if profile.has("instants"):
        for key, name in profile.sql("""
            SELECT t.thread_id, i.name::VARCHAR FROM instants i JOIN threads t ON t.native_id = i.native_id
            AND i.ts_ns >= coalesce(t.start_ns, i.ts_ns) AND i.ts_ns <= coalesce(t.end_ns, i.ts_ns)
            WHERE i.kind = 'thread_name' AND i.name IS NOT NULL ORDER BY i.ts_ns
        """).fetchall():
            names = named.setdefault(key, [])
            if name not in names:
                names.append(name)
    return [
        ThreadLife(key, tid, native, named.get(key) or ([name] if name else []), start, end)
        for key, tid, native, name, start, end in rows
    ]
