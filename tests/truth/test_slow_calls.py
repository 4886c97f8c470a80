"""The slowest calls of a function, compared with a walk over the log's records."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

import perfuse
from perfuse.analysis.selected_calls import CallCondition, selected_calls
from perfuse.analysis.slow_calls import slowest_calls
from perfuse.profile import Profile
from perfuse.table import Columns

from .command import command_line, json_of, run
from .kinds import Kind
from .mono_walk import MonoWalk
from .outside import Call, call_log


def outermost(calls: list[Call], function: int) -> list[int]:
    """The calls of a function that are not within another call of it."""
    inside: list[bool] = []
    found = []
    for place, one in enumerate(calls):
        above = one.caller is not None and (inside[one.caller] or calls[one.caller].function == function)
        inside.append(above)
        if one.function == function and not above:
            found.append(place)
    return found


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="report:slow_calls",
    source="durations and self times of calls: a walk over the log's records that pairs entries and exits",
)
def test_slowest_calls_of_each_function(kind: Kind, profile: Profile) -> None:
    log = call_log(kind.paths[-1])
    rows = profile.sql(
        "SELECT function_id, native_id, name::VARCHAR FROM functions WHERE native_id IS NOT NULL"
    ).fetchall()
    names = {number: name or f"function {number}" for _, number, name in rows}
    keys = {number: key for key, number, _ in rows}
    for function in sorted({one.function for calls in log.calls.values() for one in calls})[:4]:
        expected = []
        for calls in log.calls.values():
            children = defaultdict(list)
            for place, one in enumerate(calls):
                children[one.caller].append(place)
            for place in outermost(calls, function):
                own = Counter[str]()
                below = [place]
                while below:
                    at = below.pop()
                    ticks = calls[at].end - calls[at].start
                    inner = sum(calls[child].end - calls[child].start for child in children[at])
                    own[names[calls[at].function]] += ticks - inner
                    below += children[at]
                expected.append((calls[place].end - calls[place].start, own))
        expected.sort(key=lambda one: -one[0])
        found = slowest_calls(profile, f"f{keys[function]}", 5)
        assert (found.num_calls, found.num_incomplete) == (len(expected), 0)
        ns = 1e9 / log.hz
        assert [one.duration_ns for one in found.calls] == pytest.approx(
            [ticks * ns for ticks, _ in expected[:5]], rel=2e-3, abs=4
        )
        for one, (ticks, own) in zip(found.calls, expected, strict=False):
            here = {change.name: change.self_ns for change in one.changes if change.num_calls}
            assert here == pytest.approx({name: value * ns for name, value in own.items()}, rel=5e-3, abs=4 * 2_000)
            assert sum(here.values()) == one.duration_ns
            listed = [part for part in one.parts if part.kind == "call" and part.depth == 0]
            assert [(part.start_ns, part.duration_ns) for part in listed] == [(0, one.duration_ns)]
            assert ticks * ns == pytest.approx(one.duration_ns, rel=2e-3, abs=4)


@pytest.mark.truth(recording="mono_calls", path="report:slow_calls", source="entries and exits: a walk over the log")
def test_slowest_calls_of_a_runtime(kind: Kind) -> None:
    calls = MonoWalk(kind.paths[0]).calls()
    expected = sorted((one.end_ns - one.start_ns for one in calls if one.name.startswith("Tiny:Main")), reverse=True)
    report = json_of("report", *kind.paths, "--slowest", "Tiny:Main*", "-n", "1")
    [call] = report["calls"]
    assert call["duration_ns"] == expected[0]
    assert call["path"][-1].startswith("Tiny:Main")
    # The program sleeps, waits for a lock that another thread has, and joins it.
    listed = " ".join(part["name"] for part in call["parts"])
    for wait in ("SleepInternal", "monitor_enter", "JoinInternal"):
        assert wait in listed


def test_errors_name_functions(profile_of_calls: Profile) -> None:
    with pytest.raises(perfuse.UsageError, match="no called function matches") as error:
        slowest_calls(profile_of_calls, "jobb")
    assert "job" in (error.value.hint or "")


@pytest.fixture
def profile_of_calls() -> Profile:
    from .conftest import fused

    return fused("xray_fdr")


def test_the_text_has_a_timeline() -> None:
    from .kinds import KINDS

    kind = KINDS["perf_xray"]
    text = command_line("report", *kind.paths, *kind.map_options, "--slowest", "step", "-n", "1")
    assert "samples taken during it" in text
    assert "longer than in a median call" in text
    done = run("report", *kind.paths, *kind.map_options, "--slowest", "step", "--only", "busy")
    assert done.returncode == 2


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="api:Profile.between_calls",
    source="ticks of entries by function number: a walk over the log's records",
)
def test_the_time_between_two_functions(kind: Kind, profile: Profile) -> None:
    log = call_log(kind.paths[-1])
    first: dict[int, int] = {}
    for one in (one for calls in log.calls.values() for one in calls):
        first[one.function] = min(one.start, first.get(one.function, one.start))
    rows = profile.sql("SELECT native_id, function_id FROM functions WHERE native_id IS NOT NULL").fetchall()
    handles = {number: f"f{key}" for number, key in rows}
    early, *_, late = sorted(first, key=lambda function: first[function])
    cut = profile.between_calls(handles[early], handles[late])
    assert cut.selection.time_ns is not None
    start, end = cut.selection.time_ns
    assert end - start == pytest.approx((first[late] - first[early]) * 1e9 / log.hz, rel=2e-3, abs=4)
    ((num_calls,),) = Columns(cut.call_statistics(by="function").totals()).tuples("num_calls")
    assert num_calls < sum(log.num_calls.values())
    with pytest.raises(perfuse.UsageError, match="no called function"):
        profile.between_calls(handles[early], "no such function")


@pytest.mark.truth(recording="mono_calls", path="api:Profile.between_calls", source="entries: a walk over the log")
def test_the_time_between_two_methods(kind: Kind, profile: Profile) -> None:
    calls = MonoWalk(kind.paths[0]).calls()
    main = min(one.start_ns for one in calls if one.name.startswith("Tiny:Main"))
    later = sorted({one.start_ns: one.name for one in calls if one.start_ns > main}.items())[-1]
    first = min(one.start_ns for one in calls if one.name == later[1] and one.start_ns > main)
    cut = profile.between_calls("Tiny:Main*", f"name:{later[1]}")
    assert cut.selection.time_ns is not None
    assert cut.selection.time_ns[1] - cut.selection.time_ns[0] == first - main


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="report:selected_calls",
    source="durations, callers and depths of calls: a walk over the log's records that pairs entries and exits",
)
def test_calls_by_duration_caller_and_depth(kind: Kind, profile: Profile) -> None:
    log = call_log(kind.paths[-1])
    rows = profile.sql("SELECT native_id, function_id FROM functions WHERE native_id IS NOT NULL").fetchall()
    keys = dict(rows)
    ns = 1e9 / log.hz
    every = []
    for calls in log.calls.values():
        depths: list[int] = []
        for one in calls:
            depths.append(0 if one.caller is None else depths[one.caller] + 1)
            above = None if one.caller is None else keys[calls[one.caller].function]
            every.append((keys[one.function], (one.end - one.start) * ns, above, depths[-1]))
    lengths = sorted(length for _, length, _, _ in every)
    # In the middle of a gap between two durations, which rounding does not cross.
    gaps = [(b - a, (a + b) / 2) for a, b in pairwise(lengths)]
    limit = round(max(gaps)[1])
    caller = next(above for _, _, above, _ in every if above is not None)
    for condition, expected in (
        (CallCondition(limit), [one for one in every if one[1] >= limit]),
        (CallCondition(0, f"f{caller}"), [one for one in every if one[2] == caller]),
        (CallCondition(0, None, 2), [one for one in every if one[3] < 2]),
    ):
        found = {one.function_id: (one.num_calls, one.sum_ns, one.max_ns) for one in selected_calls(profile, condition)}
        sums: dict[int, list[float]] = defaultdict(list)
        for key, length, *_ in expected:
            sums[key].append(length)
        assert found.keys() == sums.keys()
        for key, durations in sums.items():
            num, total, longest = found[key]
            assert num == len(durations)
            assert total == pytest.approx(sum(durations), rel=2e-3, abs=2 * num)
            assert longest == pytest.approx(max(durations), rel=2e-3, abs=4)
    if not profile.has_samples:
        report = json_of("report", *kind.paths, "--depth", "2")
        assert (report["kind"], report["num_calls"]) == ("selected_calls", sum(one[3] < 2 for one in every))


@pytest.mark.truth(
    recording="mono_calls", path="report:selected_calls", source="entries and exits: a walk over the log"
)
def test_long_calls_of_a_runtime(kind: Kind) -> None:
    calls = MonoWalk(kind.paths[0]).calls()
    expected = [one for one in calls if one.end_ns - one.start_ns >= 1_000_000]
    report = json_of("report", *kind.paths, "--longer-than", "1ms")
    assert report["num_calls"] == len(expected)
    assert sum(one["sum_ns"] for one in report["functions"]) == sum(one.end_ns - one.start_ns for one in expected)
    done = run("report", *kind.paths, "--longer-than", "1h")
    assert done.returncode == 2
