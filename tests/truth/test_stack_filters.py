"""Filters of stacks, compared with the same selections on lists of frames, a sample at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import groupby

import pytest

import perfuse
from perfuse.profile import Profile
from perfuse.table import Columns

from .stack_walk import Frame, Stack, by_stack, samples_of, totals


def main_event(profile: Profile) -> str:
    """The event with the most rows, sums of calls before their numbers."""
    return Counter(Columns(profile.tables["samples"])["event"]).most_common(1)[0][0]


def stacks_of(profile: Profile, event: str) -> Counter[Stack]:
    return by_stack(samples_of(profile.tables, event))


def some_function(stacks: Counter[Stack]) -> str:
    """A function on some stacks, where there is one not on all, with others below and above it if possible."""
    ranks: Counter[str] = Counter()
    for stack in stacks:
        for depth, frame in enumerate(stack):
            if frame.name:
                ranks[frame.name] += 1 + 3 * (0 < depth < len(stack) - 1)
    _, whole = totals(stacks)
    partial = [name for name in ranks if whole[name] < sum(stacks.values())]
    return max(partial or ranks, key=lambda name: (ranks[name], name))


def transformed(stacks: Counter[Stack], change: Callable[[Stack], Stack | None]) -> Counter[Stack]:
    found: Counter[Stack] = Counter()
    for stack, weight in stacks.items():
        new = change(stack)
        if new:
            found[new] += weight
    return found


def first(stack: Stack, name: str) -> int | None:
    return next((depth for depth, frame in enumerate(stack) if frame.name == name), None)


def rooted(stack: Stack, name: str) -> Stack | None:
    at = first(stack, name)
    return None if at is None else stack[at:]


def ended(stack: Stack, name: str) -> Stack:
    at = first(stack, name)
    return stack if at is None else stack[: at + 1]


def same_name(stack: Stack) -> tuple[str, ...]:
    return tuple(frame.name for frame in stack)


def function(frame: Frame) -> tuple[object, ...]:
    """The function of a frame, whatever its tier."""
    return frame.name, frame.module, frame.declared


@pytest.mark.truth(
    recording="*",
    path=["api:Profile.only", "api:Profile.drop", "api:Profile.hide", "api:Profile.root", "api:Profile.leaf"],
    source="the same selection of lists of frames, by the Firefox Profiler's definitions",
)
def test_filters_by_function(profile: Profile, path: str) -> None:
    event = main_event(profile)
    stacks = stacks_of(profile, event)
    name = some_function(stacks)
    method = path.removeprefix("api:Profile.")
    changes: dict[str, Callable[[Stack], Stack | None]] = {
        "only": lambda stack: stack if first(stack, name) is not None else None,
        "drop": lambda stack: None if first(stack, name) is not None else stack,
        "hide": lambda stack: tuple(frame for frame in stack if frame.name != name),
        "root": lambda stack: rooted(stack, name),
        "leaf": lambda stack: ended(stack, name),
    }
    expected = transformed(stacks, changes[method])
    found = stacks_of(getattr(profile, method)(name), event)
    found.pop((), None)
    assert found == expected


@pytest.mark.truth(
    recording="*",
    path="api:Profile.filtered",
    source="the same selection of lists of frames, by the Firefox Profiler's definitions",
)
def test_steps_in_their_order(profile: Profile) -> None:
    """A step sees what those before it have left: a root, then without it, is not the same as the other way around."""
    event = main_event(profile)
    stacks = stacks_of(profile, event)
    name = some_function(stacks)
    steps = profile.root(name).hide(name).stack_filter
    expected = transformed(stacks, lambda stack: tuple(f for f in rooted(stack, name) or () if f.name != name))
    if expected:
        assert stacks_of(profile.filtered(steps), event) == expected
    with pytest.raises(perfuse.UsageError, match="matches nothing"):
        profile.hide(name).root(name)


@pytest.mark.truth(
    recording="*",
    path="api:Profile.collapse_recursion",
    source="the same selection of lists of frames, by the Firefox Profiler's definitions",
)
def test_each_function_once(profile: Profile) -> None:
    event = main_event(profile)

    def collapsed(stack: Stack) -> Stack:
        new: list[Frame] = []
        for frame in stack:
            again = next((at for at, one in enumerate(new) if frame.name and function(one) == function(frame)), None)
            if again is not None:
                del new[again:]
            new.append(frame)
        return tuple(new)

    found = stacks_of(profile.collapse_recursion(), event)
    expected = stacks_of(profile, event)
    assert found == transformed(expected, collapsed) + Counter({(): expected[()]})


@pytest.mark.truth(recording="*", path="api:Profile.only", source="the same selection of lists of frames")
def test_frames_in_no_module_by_the_name_in_reports(profile: Profile) -> None:
    event = main_event(profile)
    stacks = stacks_of(profile, event)
    expected = Counter({stack: n for stack, n in stacks.items() if not all(frame.module for frame in stack)})
    if not expected:
        with pytest.raises(perfuse.UsageError):
            profile.only("module:[no module]")
        return
    assert stacks_of(profile.only("module:[no module]"), event) == expected


@pytest.mark.truth(
    recording="*",
    path="api:Profile.collapse_module",
    source="the same selection of lists of frames, by the Firefox Profiler's definitions",
)
def test_one_frame_of_a_module(profile: Profile) -> None:
    event = main_event(profile)
    stacks = stacks_of(profile, event)
    modules = Counter(frame.module for stack in stacks for frame in stack if frame.module)
    if not modules:
        with pytest.raises(perfuse.UsageError, match="matches no module"):
            profile.collapse_module("libc*")
        return
    module = modules.most_common(1)[0][0]
    assert module is not None
    label = "[kernel]" if module.startswith("[kernel.") else module.rsplit("/", 1)[-1]

    def collapsed(stack: Stack) -> tuple[str, ...]:
        names: list[str] = []
        for inside, run in groupby(stack, lambda frame: frame.module == module):
            names += [label] if inside else [frame.name for frame in run]
        return tuple(names)

    expected: Counter[tuple[str, ...]] = Counter()
    for stack, weight in stacks.items():
        expected[collapsed(stack)] += weight
    found: Counter[tuple[str, ...]] = Counter()
    for stack, weight in stacks_of(profile.collapse_module(module), event).items():
        found[same_name(stack)] += weight
    assert found == expected


@pytest.mark.truth(
    recording="*",
    path="api:Profile.tier",
    source="the same selection of lists of frames, by the Firefox Profiler's definitions",
)
def test_samples_of_a_tier(profile: Profile) -> None:
    event = main_event(profile)
    stacks = stacks_of(profile, event)
    tiers = Counter[str]()
    for stack, weight in stacks.items():
        if stack:
            tiers[stack[-1].tier or stack[-1].kind] += weight
    for tier, weight in tiers.items():
        found = stacks_of(profile.tier(tier), event)
        assert sum(found.values()) == weight
        assert found == transformed(stacks, lambda s: s if (s[-1].tier or s[-1].kind) == tier else None)  # noqa: B023
    with pytest.raises(perfuse.UsageError, match="no sample was taken in code of tier"):
        profile.tier("no such tier")


@pytest.mark.truth(
    recording="*",
    path="api:Profile.jit_only",
    source="the same selection of lists of frames, by the Firefox Profiler's definitions",
)
def test_frames_of_the_jit(profile: Profile) -> None:
    event = main_event(profile)
    stacks = stacks_of(profile, event)
    expected = transformed(stacks, lambda stack: tuple(frame for frame in stack if frame.kind == "jit"))
    if expected:
        assert stacks_of(profile.jit_only(), event) == expected
    else:
        with pytest.raises(perfuse.UsageError, match="JIT"):
            profile.jit_only()


@pytest.mark.truth(recording="*", path="api:Profile.during", source="times of slices and samples, compared in the test")
def test_samples_during_slices(profile: Profile) -> None:
    functions = dict(Columns(profile.tables["functions"]).tuples("function_id", "name"))
    columns = ("thread_id", "start_ns", "duration_ns", "function_id", "name", "kind")
    slices = [
        (thread, start, start + duration, name or functions.get(function), kind)
        for thread, start, duration, function, name, kind in Columns(profile.tables["slices"]).tuples(*columns)
    ]
    samples = list(Columns(profile.tables["samples"]).tuples("sample_id", "ts_ns", "thread_id", "event"))
    sums = ("wall-time", "calls", "allocated-bytes", "allocations")
    processes = dict(Columns(profile.tables["threads"]).tuples("thread_id", "process_id"))
    for name in {name for *_, name, _ in slices}:
        expected = {
            key
            for key, ts_ns, thread, event in samples
            if event not in sums
            and any(
                start <= ts_ns < end and (thread == own or (kind == "gc" and processes[thread] == processes[own]))
                for own, start, end, label, kind in slices
                if label == name
            )
        }
        if expected:
            found = Columns(profile.during("slice", name).tables["samples"])["sample_id"]
            assert set(found) == expected
        else:
            with pytest.raises(perfuse.UsageError, match="no sample was taken"):
                profile.during("slice", name)
