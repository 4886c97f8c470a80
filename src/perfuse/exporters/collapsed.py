"""Collapsed ("folded") stacks, as FlameGraph and inferno read them: a line is `root;caller;callee COUNT`."""

from collections.abc import Callable
from typing import IO, Literal

from perfuse.analysis.sampled import SampleFilter, Task, call_tree, select_event, tasks
from perfuse.errors import UsageError
from perfuse.exporters.contents import STACKS_OF_ONE_EVENT, note_other_events
from perfuse.exporters.source import Source, no_samples_error
from perfuse.output.descriptor import descriptor_of
from perfuse.reports.text import printable
from perfuse.table import SUM_EVENTS, Columns

_ROOTS: dict[str, Callable[[Task], str | None]] = {
    "process": lambda task: task.process_name or (str(task.pid) if task.pid else None),
    "thread": lambda task: _thread_root(task) if task.pid or task.number else None,
    "none": lambda _task: None,
}
_WEIGHTS = ("samples", "events")


CONTENTS = STACKS_OF_ONE_EVENT


def write(
    profile: Source,
    out: IO[bytes],
    *,
    root: Literal["process", "thread", "none"] | None = None,
    annotate: bool = False,
    weight: Literal["samples", "events"] = "samples",
    event: str | None = None,
) -> None:
    """Writes collapsed stacks, sorted.

    The format has no escape for `;` in names: it is written as `:`, white space as one space, and control characters
    as `\\x1b` and the like.

    Args:
        profile: The profile.
        out: A binary file object.
        root: Root of stacks: the process's name, the thread as `name-pid/tid`, or none. By default the process; for
            collapsed stacks the thread, where the input names threads.
        annotate: Whether to add `_[j]` to JIT code, `_[k]` to the kernel's and `_[i]` to inlined functions.
        weight: What is counted: samples, or the events they represent (nanoseconds where the event is a clock). For
            call traces, allocations and collapsed stacks it is always the sum.
        event: Name of an event; by default the one with the most samples.

    Raises:
        UsageError: An option has an invalid value, or there are no samples of that event.
        ExportError: There are no samples at all.
    """
    for option, value, known in (("root", root or "process", _ROOTS), ("weight", weight, _WEIGHTS)):
        if value not in known:
            raise UsageError(f"{option} is one of {', '.join(known)}, not {value!r}", field=option)
    selected = select_event(profile, event)
    if not selected.name:
        raise no_samples_error(profile)
    if event is None:
        note_other_events(profile, selected.name)
    tree = call_tree(profile, SampleFilter().with_event(selected), split_threads=True)
    symbols = Columns(tree.symbols())
    names = [_one_frame(name) for name in symbols["name"]]
    if annotate:
        marks = map(_mark, symbols["origin"], symbols["kind"])
        names = [name + mark for name, mark in zip(names, marks, strict=True)]
    root_of = _ROOTS[root or ("thread" if selected.unit == "samples" else "process")]
    roots = {task.thread_id: root_of(task) for task in tasks(profile)}
    starts = {thread: None if start is None else _one_frame(start) for thread, start in roots.items()}
    tree.write_collapsed(descriptor_of(out), names, starts, "events" if selected.name in SUM_EVENTS else weight)


def _thread_root(task: Task) -> str:
    return f"{task.name or task.process_name or ''}-{task.pid}/{task.number}"


def _mark(origin: str, kind: str) -> str:
    """The suffix by which flamegraph.pl --color=java and inferno select colours."""
    return "_[i]" if origin == "inlined" else {"kernel": "_[k]", "jit": "_[j]"}.get(kind, "")


def _one_frame(name: str) -> str:
    return printable(" ".join(name.replace(";", ":").split())) or "[unknown]"
