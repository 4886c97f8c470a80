"""Numbers of calls in views, filters and files of some functions, compared with a walk over the log's records."""

from __future__ import annotations

import io
import json
import re
import struct
from collections import Counter
from pathlib import Path

import pytest

import perfuse
from perfuse.analysis.stack_groups import StackGroups, StackTree
from perfuse.exporters.filtered import of_function
from perfuse.exporters.registry import target_named
from perfuse.profile import Profile

from .command import command_line, json_of
from .kinds import Kind
from .outside import Call, call_log


def names_of(profile: Profile) -> dict[int, str]:
    rows = profile.sql("SELECT native_id, name::VARCHAR FROM functions WHERE native_id IS NOT NULL").fetchall()
    return {number: name or f"function {number}" for number, name in rows}


def threads(kind: Kind) -> list[list[Call]]:
    return list(call_log(kind.paths[-1]).calls.values())


def is_inside(calls: list[Call], place: int | None, function: int) -> bool:
    """Whether a call, or one around it, is of a function."""
    while place is not None:
        if calls[place].function == function:
            return True
        place = calls[place].caller
    return False


def some_functions(kind: Kind) -> list[int]:
    """Functions that are called by others and call others, if there are such."""
    found = Counter[int]()
    for calls in threads(kind):
        for one in calls:
            if one.caller is not None:
                found[calls[one.caller].function] += 1
                found[one.function] += calls[one.caller].caller is not None
    return [function for function, _ in found.most_common(3)] or [threads(kind)[0][0].function]


def calls_by_caller(tree: StackTree) -> tuple[int, Counter[str]]:
    (root,) = [node for node in tree.nodes if node.parent is None]
    below = Counter[str]()
    for node in tree.nodes:
        if node.depth == 1:
            below[node.function.name] += node.weight.total_count
    return root.weight.total_count, below


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects"],
    path="report:stacks",
    source="entries of the log by function and caller",
)
def test_callers_have_the_calls_that_they_make(kind: Kind, profile: Profile) -> None:
    """Not those that the function makes in its turn: these are not calls of it."""
    names = names_of(profile)
    for function in some_functions(kind):
        number, expected = 0, Counter[str]()
        for calls in threads(kind):
            for one in calls:
                if one.function != function or is_inside(calls, one.caller, function):
                    continue
                number += 1
                if one.caller is not None:
                    expected[names[calls[one.caller].function]] += 1
        handle = profile.sql(f"SELECT function_id FROM functions WHERE native_id = {function}").fetchall()[0][0]
        (view,) = StackGroups(profile, "wall-time").view(f"f{handle}")
        assert calls_by_caller(view.callers) == (number, expected)


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path=["api:Profile.hide", "api:Profile.leaf"],
    source="entries of the log by function, without those of the function, or within it",
)
def test_calls_of_what_is_taken_out_are_not_its_callers(kind: Kind, profile: Profile, path: str) -> None:
    names = names_of(profile)
    method = path.removeprefix("api:Profile.")
    for function in some_functions(kind):
        expected = Counter[str]()
        for calls in threads(kind):
            for one in calls:
                is_out = one.function == function if method == "hide" else is_inside(calls, one.caller, function)
                expected[names[one.function]] += not is_out
        if not sum(expected.values()):
            continue
        handle = profile.sql(f"SELECT function_id FROM functions WHERE native_id = {function}").fetchall()[0][0]
        left = StackGroups(getattr(profile, method)(f"f{handle}"), "wall-time")
        assert Counter({one.name: one.weight.self_count for one in left.functions()}) == +expected
        assert left.whole.total_count == sum(expected.values())


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="convert:chrome",
    source="entries of the log within calls of a function",
)
def test_timelines_of_a_function(kind: Kind, profile: Profile) -> None:
    names = names_of(profile)
    for function in some_functions(kind):
        expected = Counter[str]()
        for calls in threads(kind):
            for place, one in enumerate(calls):
                expected[names[one.function]] += is_inside(calls, place, function)
        handle = profile.sql(f"SELECT function_id FROM functions WHERE native_id = {function}").fetchall()[0][0]
        limited, options = of_function(profile, target_named("chrome"), f"f{handle}")
        out = io.BytesIO()
        limited.export(out, to="chrome", **options)
        events = json.loads(out.getvalue())["traceEvents"]
        found = Counter[str](one["name"] for one in events if one["ph"] in ("X", "B"))
        assert found == +expected


BASIC = """
    7 enter 1 100    7 enter 2 110    7 enter 3 120    7 exit 1 150    7 enter 1 160    7 enter 2 170    7 exit 2 180
    7 exit 1 190     8 enter 3 105    8 exit 3 109     8 exit 2 130    9 enter 1 100    9 exit 2 120     9 exit 1 140
"""
"""Thread, kind, function and time. An exception leaves functions 3 and 2, which function 1 catches; in thread 8 the
begin of function 2 is lost; thread 9 has an end of a call that no begin was recorded of."""
OF_FUNCTION_2 = [
    ("7", 2, 110, 40),
    ("7", 3, 120, 30),
    ("7", 2, 170, 10),
    ("8", 2, 105, 25),
    ("8", 3, 105, 4),
    ("9", 2, 120, 0),
]


def test_times_in_timelines_of_a_function() -> None:
    events = re.findall(r"(\d+) (enter|exit) (\d+) (\d+)", BASIC)
    log = struct.pack("<HHIQQQ", 3, 0, 3, 1_000_000_000, 0, 0) + b"".join(
        struct.pack("<HBBiQIIQ", 0, 0, kind == "exit", int(function), int(time), int(thread), 5, 0)
        for thread, kind, function, time in events
    )
    profile = perfuse.fuse(log)
    [(key,)] = profile.sql("SELECT function_id FROM functions WHERE native_id = 2").fetchall()
    names = {name: number for number, name in names_of(profile).items()}
    limited, options = of_function(profile, target_named("chrome"), f"f{key}")
    out = io.BytesIO()
    limited.export(out, to="chrome", **options)
    found: list[tuple[str, int, int, int]] = []
    open_calls: dict[int, list[tuple[str, int]]] = {}
    for one in json.loads(out.getvalue())["traceEvents"]:
        # Times are relative to the first one.
        time = 105 + round(one.get("ts", 0) * 1000)
        if one["ph"] == "X":
            found.append((str(one["tid"]), names[one["name"]], time, round(one["dur"] * 1000)))
        elif one["ph"] == "B":
            open_calls.setdefault(one["tid"], []).append((one["name"], time))
        elif one["ph"] == "E":
            name, since = open_calls[one["tid"]].pop()
            found.append((str(one["tid"]), names[name], since, time - since))
    assert sorted(found) == sorted(OF_FUNCTION_2)


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects"],
    path="report:calls",
    source="the views of the same functions by callers",
)
def test_a_function_of_a_trace_has_callers_and_callees(kind: Kind, profile: Profile) -> None:
    name = names_of(profile)[some_functions(kind)[0]]
    found = json_of("report", *kind.paths, *kind.map_options, "--function", f"name:{name}", "--limit", "0")
    views = {one["function"]["name"]: one for one in (found.get("calls") or found)["views"]}
    for which in ("callers", "callees"):
        words = (f"--{which}", f"name:{name}", "--event", "wall-time", "--depth", "2", "--limit", "0")
        alone = json_of("report", *kind.paths, *kind.map_options, *words)
        assert views[name][which] == alone["views"][0][which]


def test_a_report_of_a_part_of_the_time() -> None:
    """Calls that are open at both ends of it have no event within it; instants are those within it."""
    example = Path(__file__).parents[2] / "examples" / "xray_server"
    (log,) = example.glob("xray-log.*")
    text = command_line("report", log, "--map", example / "server.o", "--between", "parse..render")
    threads = text.partition("Threads  ")[2].partition("\n\n")[0]
    shares = [float(share) for share in re.findall(r"(\d+\.\d)%", threads)]
    assert len(shares) == 4
    assert max(shares) == 100.0
    # The program writes an event for each of its 180 requests, and few are begun before the first page is rendered.
    assert re.search(r"^ +2  custom event$", text, re.MULTILINE)
