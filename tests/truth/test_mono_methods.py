"""Methods of `Profile` on Mono logs, and logs written of them, compared with a walk over the events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from arro3.core import Table

from mlpd_events import Event, read_events
from perfuse.profile import Profile

from . import exported
from .command import command_line, json_of
from .kinds import Kind
from .mono_walk import STARTING, STOPPED, THREAD, UNLOAD, MonoWalk, walk

NS = 1_000_000_000
RUNTIME_CALLS = re.compile(
    r"\(wrapper alloc\) |\(wrapper managed-to-native\) (object:__icall_wrapper_|string:FastAllocateString )"
)


@pytest.fixture
def log(kind: Kind) -> MonoWalk:
    """The walk over the Mono log of the example."""
    return walk(kind.paths[-1])


def columns(stream: Any) -> dict[str, list[Any]]:
    """The columns of an Arrow stream."""
    table = Table.from_arrow(stream)
    return {name: table[name].to_pylist() for name in table.column_names}


def facts(event: Event) -> tuple[Any, ...]:
    """All of an event."""
    return event.byte, event.thread, event.time, repr(event.values), repr(event.pairs)


@pytest.mark.truth(
    recording=["mono_*", "perf_mono"],
    path=["api:Profile.runtime_log", "api:Profile.export", "convert:mono", "convert"],
    source="events with all their fields: walks over both logs",
)
def test_a_written_log_has_every_event(kind: Kind, log: MonoWalk, profile: Profile, path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.mlpd"
    if path == "api:Profile.runtime_log":
        with out.open("wb") as file:
            profile.runtime_log.write(file)
    elif path == "api:Profile.export":
        profile.export(out, to="mono")
    else:
        command_line("convert", *kind.paths, "-o", out, *(["--to", "mono"] if path == "convert:mono" else []))
    assert Counter(map(facts, read_events(out))) == Counter(map(facts, log.events))


@pytest.mark.truth(recording="mono_calls", path="convert:mono", source="calls by thread: walks over both logs")
def test_a_written_log_of_a_thread_by_its_handle(log: MonoWalk, profile: Profile, tmp_path: Path) -> None:
    by_thread = Counter(event.thread for event in log.of(0x13, 0x23, 0x33))
    handles = dict(profile.sql("SELECT native_id, 't' || thread_id FROM threads").fetchall())
    assert by_thread
    for thread, num in by_thread.items():
        out = tmp_path / f"{thread}.mlpd"
        profile.thread(handles[thread]).export(out)
        assert Counter(event.thread for event in walk(out).of(0x13, 0x23, 0x33)) == {thread: num}


@pytest.mark.truth(
    recording=[
        "mono_samples",
        "mono_calls",
        "mono_allocations",
        "mono_heap",
        "mono_locks",
        "mono_gc",
        "mono_before_15",
        "perf_mono",
    ],
    path="api:Profile.call_trace",
    source="calls, pauses, collections, finalizers, waits and values of counters: a walk over the log",
)
def test_streams_for_timelines(log: MonoWalk, profile: Profile) -> None:
    trace = profile.call_trace()
    assert trace is not None
    assert trace.num_events == len(log.of(0x13, 0x23, 0x33))
    assert trace.num_instants == len(log.instants()) + len(log.of(0x04, 0x84))
    ends = [event for event in log.of(0x11) if event.values[0] == 5]
    waits = [event for event in log.of(0x05, 0x85, 0x15, 0x95) if event.byte & 0x70 == 0x10 or event.values[0] == 1]
    rounds = log.of(0x91)
    assert trace.num_slices == len(log.pauses()) + len(ends) + len(log.finalizers()) + len(rounds) + len(waits)
    numbers = [value for values in log.counters().values() for _, value in values]
    assert trace.num_counts == sum(isinstance(value, int | float) for value in numbers)


@pytest.mark.truth(
    recording=["mono_*"],
    path=["api:Profile.selected_rows", "api:Profile.count_rows", "api:Profile.row_counts"],
    source="what is loaded and named, synchronization points, sizes of the heap: a walk over the log",
)
def test_rows_of_instants(log: MonoWalk, profile: Profile, path: str) -> None:
    expected = Counter(kind for kind, event in log.instants())
    if path == "api:Profile.count_rows":
        assert profile.count_rows("instants") == expected.total()
    elif path == "api:Profile.row_counts":
        found = Counter[str]()
        for name, _, num in profile.row_counts("instants", ("kind", "thread_id")):
            found[name] += num
        assert found == expected
    else:
        rows = columns(profile.selected_rows("instants", ["ts_ns", "kind"]))
        times = Counter((name, event.time) for name, event in log.instants())
        assert Counter(zip(rows["kind"], rows["ts_ns"], strict=True)) == times


@pytest.mark.truth(
    recording=["mono_*"],
    path="api:Profile.process",
    source="what is loaded and named, synchronization points, sizes of the heap: a walk over the log",
)
def test_instants_of_the_one_process(log: MonoWalk, profile: Profile) -> None:
    ((pid,),) = profile.sql("SELECT pid FROM processes").fetchall()
    assert profile.process(pid).count_rows("instants") == sum(1 for _ in log.instants())


@pytest.mark.truth(
    recording=["mono_heap", "mono_gc", "mono_before_15"],
    path=["api:Profile.between", "api:Profile.thread"],
    source="times and threads of what is loaded and named, and of pauses: a walk over the log",
)
def test_selections(log: MonoWalk, profile: Profile, path: str) -> None:
    if path == "api:Profile.thread":
        for one in log.lifetimes(THREAD):
            if one.names and sum(one.address == other.address for other in log.lifetimes(THREAD)) == 1:
                expected = sum(event.thread == one.address for _, event in log.instants())
                assert profile.thread(one.names[-1]).count_rows("instants") == expected
        return
    assert profile.span_ns is not None
    first, last = profile.span_ns
    middle = (first + last) // 2
    for start, end in ((first, middle), (middle, last + 1)):
        part = profile.between((start - first) / NS, (end - first) / NS)
        inside = [event for _, event in log.instants() if start <= event.time < end]
        assert part.count_rows("instants") == pytest.approx(len(inside), abs=1)  # seconds are rounded


@pytest.mark.truth(
    recording="mono_gc",
    path=["api:Profile.gc_pauses", "api:Profile.gc_activity", "report"],
    source="pauses: a walk over the log",
)
def test_pauses_that_begin_before_the_selected_time(kind: Kind, log: MonoWalk, profile: Profile, path: str) -> None:
    for seconds, expected in parts_of_longest([(event.time - ns, ns) for ns, event in pauses_with_ends(log)], profile):
        if path == "report":
            assert in_report(kind, "gc", seconds)["pauses"]["sum"] == sum(expected)
        elif path == "api:Profile.gc_pauses":
            assert sorted(one.duration_ns for one in profile.between(*seconds).gc_pauses()) == expected
        else:
            pauses = profile.between(*seconds).gc_activity().pauses
            assert (pauses.count, pauses.sum, pauses.max) == (len(expected), sum(expected), expected[-1])


@pytest.mark.truth(
    recording=["mono_gc", "mono_allocations"],
    path=["api:Profile.gc_pauses", "report"],
    source="pauses, starts and ends of threads: a walk over the log",
)
def test_a_pause_stops_every_thread(kind: Kind, log: MonoWalk, profile: Profile, path: str) -> None:
    """A thread has all pauses from its start to its end, whichever thread ran the collection."""
    handles: dict[int, list[str]] = {}
    for handle, address in profile.sql("SELECT 't' || thread_id, native_id FROM threads ORDER BY thread_id").fetchall():
        handles.setdefault(address, []).append(handle)
    lives = log.lifetimes(THREAD)
    running = {event.thread for event in log.of(0x11)}
    assert {life.address for life in lives} - running, "every thread runs collections"
    assert {life.address for life in lives} <= handles.keys()
    for life in lives:
        if len(handles[life.address]) > 1:
            continue
        (handle,) = handles[life.address]
        expected = sorted(
            ns
            for ns, event in pauses_with_ends(log)
            if (life.start_ns is None or life.start_ns < event.time)
            and (life.end_ns is None or life.end_ns > event.time - ns)
        )
        if path == "report":
            found = json_of("report", *kind.paths, "--section", "gc", "--thread", handle).get("gc")
            sums = (found["pauses"]["count"], found["pauses"]["sum"]) if found else (0, 0)
            assert sums == (len(expected), sum(expected))
        else:
            assert sorted(one.duration_ns for one in profile.thread(handle).gc_pauses()) == expected


@pytest.mark.truth(
    recording="mono_locks", path=["api:Profile.contention", "report"], source="waits for locks: a walk over the log"
)
def test_waits_that_begin_before_the_selected_time(kind: Kind, log: MonoWalk, profile: Profile, path: str) -> None:
    for seconds, expected in parts_of_longest(log.waits(), profile):
        if path == "report":
            assert in_report(kind, "locks", seconds)["waits"]["sum"] == sum(expected)
        else:
            waits = profile.between(*seconds).contention().waits
            assert (waits.count, waits.sum, waits.max) == (len(expected), sum(expected), expected[-1])


def in_report(kind: Kind, section: str, seconds: tuple[float, float]) -> Any:
    """A section of the report of a time."""
    between = f"{seconds[0]:.9f}..{seconds[1]:.9f}"
    return json_of("report", *kind.paths, "--section", section, "--between", between)[section]


def parts_of_longest(every: list[tuple[int, int]], profile: Profile) -> Iterator[tuple[tuple[float, float], list[int]]]:
    """Times, in seconds, in and around the three that last longest; durations of all that overlap each, in order."""
    assert profile.span_ns is not None
    origin = profile.span_ns[0]
    for start, length in sorted(every, key=lambda one: -one[1])[:3]:
        for first, last in ((1, 2), (-1, 2), (2, 5)):  # inside, from before its start, to after its end
            begin, end = start + first * length // 4, start + last * length // 4
            expected = sorted(ns for at, ns in every if at < end and at + ns > begin)
            assert length in expected
            yield ((begin - origin) / NS, (end - origin) / NS), expected


def pauses_with_ends(log: MonoWalk) -> Iterator[tuple[int, Event]]:
    """Length and last event of each pause."""
    since = None
    for event in log.of(0x11):
        if event.values[0] == STOPPED:
            since = event.time
        elif event.values[0] == STARTING and since is not None:
            yield event.time - since, event
            since = None


@pytest.mark.truth(
    recording=["mono_calls", "mono_allocations", "mono_heap", "mono_before_15"],
    path="api:Profile.object_origins",
    source="a replay of allocations and moves: a walk over the log",
)
def test_origins_of_objects(log: MonoWalk, profile: Profile) -> None:
    used = log.of(0x04, 0x84, 0x05, 0x85, 0x15, 0x25, 0x95, 0x26, 0x41, 0x61, 0xA1)
    position = {0x26: 0, 0x41: 2, 0x61: 2, 0xA1: 0, 0x04: 0, 0x84: 0}
    objects = [(event.values[position.get(event.byte, 1)], event.time) for event in used]
    rows = columns(profile.object_origins(objects))
    expected = [log.allocation_at(*one) for one in objects]
    found = list(zip(rows["ts_ns"], rows["object_address"], rows["size_bytes"], strict=True))
    assert objects
    assert found == [
        (None, None, None) if one is None else (one.time, one.values[1], one.values[2]) for one in expected
    ]


STACKS = {
    "exceptions": (0x04, 0x84),
    "allocations": (0x00, 0x10),
    "lock_events": (0x05, 0x85, 0x15, 0x25, 0x35, 0x95),
    "gc_handles": (0x41, 0x61),
}
"""Tables with stacks, and the events that their rows are made of."""


@pytest.mark.truth(
    recording=["mono_samples", "mono_calls", "mono_allocations", "mono_locks", "mono_before_15"],
    path="api:Profile.stacks_of",
    source="backtraces of events, calls that are open: a walk over the log",
)
def test_stacks_of_events(log: MonoWalk, profile: Profile) -> None:
    names = dict(profile.sql("SELECT function_id, name::VARCHAR FROM functions").fetchall())
    for table, kinds in STACKS.items():
        if not profile.has(table):
            continue
        column, time = ("created_stack_id", "created_ns") if table == "gc_handles" else ("stack_id", "ts_ns")
        stacks, frames = (columns(stream) for stream in profile.stacks_of(table))
        function_of = dict(zip(frames["frame_id"], frames["function_id"], strict=True))
        parents = {
            key: (parent, names[function_of[frame]])
            for key, parent, frame in zip(
                stacks["stack_id"], stacks["parent_stack_id"], stacks["frame_id"], strict=True
            )
        }
        selected = columns(profile.selected_rows(table, [column, time], time=time, thread=None))
        found = Counter(
            chain(stack, parents)
            for stack, ts_ns in zip(selected[column], selected[time], strict=True)
            if ts_ns in {event.time for event in log.of(*kinds)}
        )
        expected = Counter(without_runtime_calls(frames) for _, frames in log.stacks(*kinds))
        assert found == expected, table


def chain(stack: int | None, parents: dict[int, tuple[int | None, str]]) -> tuple[str, ...]:
    """The functions of a stack, the innermost first."""
    found = []
    while stack is not None:
        stack, name = parents[stack]
        found.append(name)
    return tuple(found)


def without_runtime_calls(innermost_first: tuple[str, ...]) -> tuple[str, ...]:
    """A stack up to the method that creates the object."""
    frames = list(innermost_first)
    while frames and RUNTIME_CALLS.match(frames[0]):
        del frames[0]
    return tuple(frames)


@pytest.mark.truth(
    recording=["mono_*"],
    path="api:Profile.diagnostics",
    source="a walk that reads every byte of the log, and finds which threads have no end",
)
def test_diagnostics(kind: Kind, log: MonoWalk, profile: Profile) -> None:
    started = [event.values[1] for event in log.of(0x22) if event.values[0] == 5]
    ended = [event.values[1] for event in log.of(UNLOAD) if event.values[0] == 5]
    found = [(one.code, one.count) for one in profile.diagnostics]
    assert found == ([("ML018", 1)] if Counter(started) - Counter(ended) else [])
    assert json_of("info", *kind.paths)["recordings"][0]["records"].items() >= log.counts().items()


@pytest.mark.truth(
    recording="mono_calls",
    path=["api:Profile.call_statistics", "api:Profile.flame", "flame"],
    source="entries and exits of methods, paired: a walk over the log",
)
def test_calls(kind: Kind, log: MonoWalk, profile: Profile, path: str, tmp_path: Path) -> None:
    calls = log.calls()
    num, durations, own = Counter[str](), Counter[str](), Counter[str]()
    for one in calls:
        num[one.name] += 1
        durations[one.name] += one.duration_ns
        own[one.name] += one.duration_ns
        if one.caller is not None:
            own[one.caller.name] -= one.duration_ns
    if path == "api:Profile.call_statistics":
        rows = columns(profile.call_statistics(by="function").functions())
        names = dict(profile.sql("SELECT function_id, name::VARCHAR FROM functions").fetchall())
        # Several methods have one name.
        sums: dict[str, Counter[str]] = {name: Counter() for name in ("num_calls", "sum_ns", "self_ns")}
        for name, counter in sums.items():
            for key, value in zip(rows["function_id"], rows[name], strict=True):
                counter[names[key]] += value
        assert sums["num_calls"] == num
        assert sums["sum_ns"] == durations
        assert sums["self_ns"] == own
        return
    page = tmp_path / "flame.html"
    if path == "flame":
        command_line("flame", *kind.paths, "-o", page)
    else:
        profile.flame().save(page)
    found = exported.html(page)["wall-time"]
    assert found.total() == sum(one.duration_ns for one in calls if one.caller is None)
