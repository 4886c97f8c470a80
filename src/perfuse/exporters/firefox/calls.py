"""Calls of a trace on the timeline: samples of the time between two events of a thread, and a sample for each call."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from perfuse.exporters.firefox.shared import STACK_ROWS
from perfuse.exporters.source import EventSource
from perfuse.exporters.span import selected_calls, selected_times

WALL_TIME, CALLS = "wall-time", "calls"
"""Events of table `samples` that are sums of the calls."""

_NO_STACK = -1


@dataclass(slots=True)
class CallSamples:
    """Samples of a thread's calls; times in nanoseconds on the profile's clock.

    Attributes:
        stacks: Index of each sample's stack; None where no call is open.
        times_ns: Start of each sample.
        weights_ns: Its duration; empty for samples that count calls.
    """

    stacks: list[int | None] = field(default_factory=list)
    times_ns: list[int] = field(default_factory=list)
    weights_ns: list[int] = field(default_factory=list)


def call_samples(profile: EventSource) -> dict[tuple[int, str], CallSamples]:
    """The selected calls as samples, by thread and event.

    A sample of `wall-time` lasts from one event of its thread to the next one, and has the stack of the innermost open
    call. A sample of `calls` is at the start of each call.
    """
    callees = _callees(profile)
    samples: dict[tuple[int, str], CallSamples] = {}
    thread = None
    open_calls: list[tuple[int, int]] = []
    stack_of: dict[int, int] = {}
    # Calls are in the order of their starts, callers first.
    for thread_id, call, caller, function, start_ns, end_ns in _calls(profile):
        if thread_id != thread:
            _close(open_calls, None, samples.get((thread or 0, WALL_TIME)))
            thread, stack_of = thread_id, {}
        stack = callees.get((stack_of.get(caller, _NO_STACK), function))
        # An end without a start is a call of no duration, which no stack has.
        if stack is None:
            continue
        stack_of[call] = stack
        timed = samples.setdefault((thread_id, WALL_TIME), CallSamples())
        counted = samples.setdefault((thread_id, CALLS), CallSamples())
        _close(open_calls, start_ns, timed)
        counted.stacks.append(stack)
        counted.times_ns.append(start_ns)
        timed.stacks.append(stack)
        timed.times_ns.append(start_ns)
        open_calls.append((end_ns, stack))
    _close(open_calls, None, samples.get((thread or 0, WALL_TIME)))
    for (_, event), of in samples.items():
        if event == WALL_TIME:
            ends = [*of.times_ns[1:], of.times_ns[-1]]
            of.weights_ns = [
                end - start if stack is not None else 0
                for stack, start, end in zip(of.stacks, of.times_ns, ends, strict=True)
            ]
    return samples


def _close(open_calls: list[tuple[int, int]], until_ns: int | None, timed: CallSamples | None) -> None:
    """Ends the calls that end at or before a time: the caller of each continues, or no call is open."""
    while open_calls and timed is not None and (until_ns is None or open_calls[-1][0] <= until_ns):
        end_ns, _ = open_calls.pop()
        timed.stacks.append(open_calls[-1][1] if open_calls else None)
        timed.times_ns.append(max(end_ns, timed.times_ns[-1]))


def _callees(profile: EventSource) -> dict[tuple[int, int], int]:
    """Index of a stack by the index of its caller's stack and its function, of stacks of call traces."""
    rows = profile.sql(f"""
        WITH numbered AS ({STACK_ROWS})
        SELECT coalesce(p.i, {_NO_STACK}), f.function_id, s.i
        FROM numbered s JOIN frames f USING (frame_id) LEFT JOIN numbered p ON p.stack_id = s.parent_stack_id
        WHERE f.unwound_by::VARCHAR = 'trace' AND f.function_id IS NOT NULL
    """).fetchall()
    return {(caller, function): stack for caller, function, stack in rows}


def _calls(profile: EventSource) -> Iterator[tuple[Any, ...]]:
    """Thread, key, key of the caller, function, start and end of each selected call, cut as `selected_times`."""
    start, end = selected_times(profile)
    yield from profile.sql(f"""
        SELECT thread_id, slice_id, parent_slice_id, function_id, {start}, {end}
        FROM slices_of_time WHERE kind::VARCHAR = 'call' AND {selected_calls(profile)} ORDER BY thread_id, slice_id
    """).fetchall()
