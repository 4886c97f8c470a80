"""Sampled events of a profile, filters of samples, and the threads of samples."""

from collections.abc import Mapping
from typing import Any, Literal

from perfuse import _core
from perfuse.analysis.profiles import SampleProfile, TableProfile
from perfuse.errors import UsageError
from perfuse.table import SUM_EVENTS, Columns, TablesOfStacks
from perfuse.value_class import replace, value_class

NAMED_SAMPLES = """
    SELECT samples.*, coalesce(n.name::VARCHAR, t.name::VARCHAR, p.name::VARCHAR, '?') AS command
    FROM samples JOIN threads t USING (thread_id) JOIN processes p USING (process_id)
    ASOF LEFT JOIN (
        SELECT thread_id AS named_id, name, if(
            row_number() OVER (PARTITION BY thread_id ORDER BY start_ns NULLS FIRST) = 1, -9223372036854775808, start_ns
        ) AS from_ns FROM thread_names
    ) n ON samples.thread_id = n.named_id AND samples.ts_ns >= n.from_ns
"""
"""Table `samples`, with the name of the thread at the time of the sample; before its first name, that one."""


@value_class
class Event:
    """An event that samples were taken of.

    Attributes:
        name: Its name, such as `cpu-clock`.
        unit: Unit of weights: `ns`, `ticks` of an unknown rate, `events`, `calls`, `bytes` or `allocations`.
        num_samples: Number of samples.
        weight: Sum of their weights.
        first_ns: Time of the first sample, on the profile's clock.
        last_ns: Time of the last one.
    """

    name: str
    unit: str
    num_samples: int
    weight: int
    first_ns: int
    last_ns: int

    @property
    def is_sum(self) -> bool:
        """Whether each row is the sum of what was recorded with one stack, instead of a sample."""
        return self.name in SUM_EVENTS and self.unit != "samples"


@value_class
class SampleFilter:
    """A filter of samples; None selects all.

    Attributes:
        event: Name of an event. Weights of different events cannot be added, so one is always selected: by default the
            one with the most samples.
        threads: Keys (`thread_id`) of threads.
        processes: Keys (`process_id`) of processes.
        time_ns: Start and end on the profile's clock; the end is not included.
    """

    event: str | None = None
    threads: tuple[int, ...] | None = None
    processes: tuple[int, ...] | None = None
    time_ns: tuple[int, int] | None = None

    def with_event(self, event: Event) -> "SampleFilter":
        """The same filter for an event."""
        return replace(self, event=event.name)


def events(profile: SampleProfile) -> list[Event]:
    """The events of a profile: sampled events, the one with the most samples first; then the sums of calls and
    allocations, in the order of `SUM_EVENTS`. Threads, times and filters of stacks do not change the order: what they
    select is of the event that is shown without them."""
    found = [Event(*row) for row in _core.sampled_events(profile.tables["samples"])]
    numbers = {one.name: one.num_samples for one in found}
    if len(found) > 1 and _is_part(profile):
        numbers |= {name: event.num_samples for name, event in recorded_events(profile).items()}

    def rank(event: Event) -> tuple[int, int, str]:
        place = SUM_EVENTS.index(event.name) if event.name in SUM_EVENTS else -1
        return place, -numbers[event.name], event.name

    return sorted(found, key=rank)


def _is_part(profile: Any) -> bool:
    """Whether threads, times or stacks were selected."""
    selection = getattr(profile, "selection", None)
    return selection is not None and (selection.condition is not None or bool(profile.stack_filter))


def recorded_events(profile: Any) -> dict[str, Event]:
    """The events of all that was recorded by name, whatever is selected of it: of a `perfuse.Profile`."""
    stated = profile.stated_events
    if stated is None:
        stated = _core.sampled_events(profile._whole().tables["samples"])
    return {row[0]: Event(*row) for row in stated}


def recorded_span_ns(profile: Any) -> tuple[int, int] | None:
    """First and last time of all that was recorded, whatever is selected of it: `between` counts from the first."""
    found: tuple[int, int] | None = profile._whole().span_ns
    return found


def select_event(profile: SampleProfile, name: str | None) -> Event:
    """The event of a name, or the first of `events`.

    Raises:
        UsageError: The profile has no such event.
    """
    found = events(profile)
    for event in found:
        if name is None or event.name == name:
            return event
    if name is None:
        return Event("", "events", 0, 0, 0, 0)
    if (left := nothing_selected(profile, name)) is not None:
        raise left
    names = ", ".join(event.name for event in found)
    raise UsageError(
        f"there are no samples of event {name!r}", field="event", hint=f"there are {names or 'no samples at all'}"
    )


def nothing_selected(profile: Any, name: str | None = None) -> UsageError | None:
    """The error for a selection that leaves none of the samples that were recorded, or none of an event; None where the
    selection is not the reason."""
    if not _is_part(profile):
        return None
    found = [event.name for event in events(profile)]
    if found if name is None else name in found:
        return None
    recorded = recorded_events(profile)
    if not recorded or (name is not None and name not in recorded):
        return None
    if found:
        text = f"none of the selected samples is of event {name!r}"
        return UsageError(text, field="event", hint=f"selected are samples of {', '.join(found)}")
    numbers = ", ".join(f"{event.num_samples:,} of {event.name}" for event in recorded.values())
    text = "no sample is of the selected threads and time"
    if profile.stack_filter:
        text = f"{profile.stack_filter} leaves no sample of the selected threads and time"
    return UsageError(text, field=None if name is None else "event", hint=f"recorded were {numbers}")


def call_tree(profile: SampleProfile, selection: SampleFilter, **options: Any) -> _core.CallTree:
    """The selected samples folded by function; `options` are those of `_core.call_tree`."""
    return _core.call_tree(
        TablesOfStacks(profile.tables),
        event=selection.event,
        threads=None if selection.threads is None else list(selection.threads),
        processes=None if selection.processes is None else list(selection.processes),
        time_ns=selection.time_ns,
        **options,
    )


@value_class
class Task:
    """A thread and its process.

    Attributes:
        thread_id: The thread's key.
        number: Its thread id; where that was not recorded, its key.
        name: Its name; None where unknown.
        pid: Process id.
        process_name: The process's name; None where unknown.
        process_id: The process's key: several may have one pid.
    """

    thread_id: int
    number: int
    name: str | None
    pid: int
    process_name: str | None
    process_id: int

    @property
    def command(self) -> str:
        """The name of the thread, else that of the process; `?` where both are unknown."""
        return self.name or self.process_name or "?"


def tasks(profile: TableProfile) -> list[Task]:
    """The threads of a profile, by pid and number."""
    processes = Columns(profile.tables["processes"])
    of = {process: (pid, name, process) for process, pid, name in processes.tuples("process_id", "pid", "name")}
    threads = Columns(profile.tables["threads"])
    rows = zip(threads["thread_id"], threads["tid"], threads["name"], threads["process_id"], strict=True)
    found = (Task(key, key if tid is None else tid, name, *of[process]) for key, tid, name, process in rows)
    return sorted(found, key=lambda task: (task.pid, task.number))


def task_names(profile: SampleProfile, table: Literal["processes", "threads"]) -> dict[int, str]:
    """A name for the process or the thread of each `thread_id`, with its number: `MainThread 2612`."""
    names: dict[tuple[int, int], str] = {}
    for task in tasks(profile):
        if table == "threads":
            names[task.thread_id, task.thread_id] = f"{task.name or '?'} {task.number}"
        else:
            names[task.thread_id, task.process_id] = f"{task.process_name or '?'} {task.pid}"
    return _distinguished(names)


def thread_labels(profile: TableProfile) -> list[tuple[int, str]]:
    """Each `thread_id` with a unique text: the thread's name, pid and tid."""
    names = {
        (task.thread_id, task.thread_id): f"{task.name or task.process_name or 'thread'} {task.pid}/{task.number}"
        for task in tasks(profile)
    }
    return list(_distinguished(names).items())


def _distinguished(names: Mapping[tuple[int, int], str]) -> dict[int, str]:
    """The name of each thread; a number follows that of a further thread or process with the same name and ids.

    Keys of `names` are `thread_id` and what is named.
    """
    known: dict[str, dict[int, int]] = {}
    found = {}
    for (thread, named), name in names.items():
        numbers = known.setdefault(name, {})
        number = numbers.setdefault(named, len(numbers) + 1)
        found[thread] = name if number == 1 else f"{name} ({number})"
    return found
