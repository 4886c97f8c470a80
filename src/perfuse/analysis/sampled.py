"""What analyses ask of a profile, and which of its events they look at."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from perfuse import _core
from perfuse.errors import UsageError


class Queried(Protocol):
    """A profile that can be asked; `perfuse.Profile` is one."""

    def sql(self, query: str, /) -> Any:
        """Asks the common tables."""
        ...


class Sampled(Queried, Protocol):
    """A profile with samples, as far as analyses know it; `perfuse.Profile` is one."""

    @property
    def title(self) -> str:
        """What was recorded."""
        ...

    @property
    def tables(self) -> Mapping[str, Any]:
        """The common tables by name, each an Arrow stream."""
        ...


@dataclass(frozen=True, slots=True)
class Event:
    """An event that samples were taken of.

    Attributes:
        name: Its name, such as `cpu-clock`.
        unit: What weights count: `ns`, `events`, `calls`, `bytes` or `allocations`.
        num_samples: How many samples it has.
        weight: Sum of their weights.
    """

    name: str
    unit: str
    num_samples: int
    weight: int


@dataclass(frozen=True, slots=True)
class Selection:
    """Which samples are looked at; None means all.

    Attributes:
        event: Event name. Weights of several events do not add up, so one is always chosen: by default that with the
            most samples.
        threads: Keys (`thread_id`) of threads.
        processes: Keys (`process_id`) of processes.
        time_ns: Start and end on the profile's clock; the end is not included.
    """

    event: str | None = None
    threads: tuple[int, ...] | None = None
    processes: tuple[int, ...] | None = None
    time_ns: tuple[int, int] | None = None

    def of(self, event: Event) -> "Selection":
        """The same of that event."""
        return replace(self, event=event.name)


SUMMED = ("wall-time", "calls", "allocated-bytes", "allocations")
"""Events that stand for recorded calls and allocations: a sample of these is a sum over many, and of no moment."""


def events(profile: Queried) -> list[Event]:
    """The events of a profile: those that were sampled, the one with the most samples first; then what calls and
    allocations add up to, in the order of `SUMMED`."""
    rank = " ".join(f"WHEN '{name}' THEN {at}" for at, name in enumerate(SUMMED, start=1))
    query = f"""
        SELECT event::VARCHAR, min(weight_unit::VARCHAR), count(*) AS n, sum(weight)::HUGEINT
        FROM samples GROUP BY 1 ORDER BY CASE event::VARCHAR {rank} ELSE 0 END, n DESC, 1
    """
    return [Event(*row) for row in profile.sql(query).fetchall()]


def chosen_event(profile: Queried, name: str | None) -> Event:
    """The event of that name, or the first of `events`.

    Raises:
        UsageError: The profile has no such event.
    """
    found = events(profile)
    for event in found:
        if name is None or event.name == name:
            return event
    if name is None:
        return Event("", "events", 0, 0)
    known = ", ".join(event.name for event in found)
    raise UsageError(
        f"there are no samples of event {name!r}", field="event", hint=f"there are {known or 'no samples at all'}"
    )


def call_tree(profile: Sampled, selection: Selection, **options: Any) -> _core.CallTree:
    """The selected samples folded by function; `options` are those of `_core.call_tree`."""
    return _core.call_tree(
        profile.tables,
        event=selection.event,
        threads=None if selection.threads is None else list(selection.threads),
        processes=None if selection.processes is None else list(selection.processes),
        time_ns=selection.time_ns,
        **options,
    )


THREAD_NUMBER = "coalesce(tid, thread_id)"
"""A thread's number for people, in SQL: the system's, else, where the recorder did not know that, its key."""


def task_names(profile: Sampled, table: Literal["processes", "threads"]) -> dict[int, str]:
    """What to call the process or the thread of each `thread_id`: its name and number, `MainThread 2612`."""
    number = THREAD_NUMBER if table == "threads" else "pid"
    query = f"""
        SELECT thread_id, coalesce({table}.name::VARCHAR, '?') || ' ' || {number}
        FROM threads JOIN processes USING (process_id)
    """
    return dict(profile.sql(query).fetchall())


def thread_labels(profile: Sampled) -> list[tuple[int, str]]:
    """Each `thread_id` with the thread's name, pid and tid in one text: unlike any other."""
    query = f"""
        SELECT thread_id, coalesce(t.name::VARCHAR, p.name::VARCHAR, 'thread') || ' ' || p.pid || '/' || {THREAD_NUMBER}
        FROM threads t JOIN processes p USING (process_id) ORDER BY p.pid, {THREAD_NUMBER}
    """
    return [(key, label) for key, label in profile.sql(query).fetchall()]
