"""Selections of a log of a program whose threads do known things one after the other (Selected.cs)."""

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import perfuse as pf
from mlpd_events import read_events
from mono_programs import compiled, recorded
from perfuse.analysis.handles import leaked_handles
from truth.command import output

HERE = Path(__file__).parent / "mono"
KIND, MADE, FREED = 1, (0x41, 0x61), (0x51, 0x71)
"""The handles of the program are of kind weak_track_resurrection; events of handles."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("selected")
    program = compiled(HERE / "Selected.cs", folder)
    return recorded(program, folder / "selected.mlpd", "nodefaults,alloc,exception,gchandle,heapshot")


def report(log: Path, *options: str) -> str:
    return output("report", log, *options)


def json_of_section(log: Path, name: str, *options: str) -> Any:
    return json.loads(report(log, "--section", name, "--json", *options))[name]


def handles(log: Path, *options: str) -> dict[str, int]:
    """The row of the program's handles."""
    rows = json_of_section(log, "handles", *options)["kinds"]
    (row,) = [one for one in rows if one["kind"] == "weak_track_resurrection"]
    return {name: value for name, value in row.items() if name != "kind"}


def left(log: Path, *options: str) -> int:
    """Handles of the program that section `heap` lists as never freed."""
    rows = json_of_section(log, "heap", *options)["leaked_handles"]
    return sum(one["num_handles"] for one in rows if one["kind"] == "weak_track_resurrection")


@pytest.mark.truth(
    recording="mono_allocations",
    path="report:handles",
    source="a program whose threads make and free known numbers of handles",
)
@pytest.mark.truth(
    recording="mono_heap",
    path="report:heap",
    source="a program whose threads make and free known numbers of handles",
)
def test_handles_of_a_thread(log: Path) -> None:
    assert handles(log, "--thread", "early") == {"num_created": 6, "num_destroyed": 2, "num_left": 4, "max_alive": 6}
    assert handles(log, "--thread", "late") == {"num_created": 3, "num_destroyed": 3, "num_left": 0, "max_alive": 1}
    assert (left(log, "--thread", "early"), left(log, "--thread", "late")) == (4, 0)


@pytest.mark.truth(
    recording="mono_allocations",
    path=["report:handles", "api:Profile.handle_sums"],
    source="a program whose threads make and free known numbers of handles, and another decoder of Mono logs",
)
def test_handles_that_were_made_before_the_selected_time_are_alive_in_it(log: Path) -> None:
    events = sorted(
        (event.time, event.byte in MADE)
        for event in read_events(log)
        if event.byte in (*MADE, *FREED) and event.values[0] == KIND
    )
    three_times = [True, False] * 3
    # The sleep of the program, which the handles of thread "late" follow; a busy machine may pause it elsewhere.
    start = next(
        at
        for at, (earlier, later) in enumerate(pairwise(events), start=1)
        if later[0] - earlier[0] > 150e6 and [is_made for _, is_made in events[at : at + 6]] == three_times
    )
    alive = sum(1 if is_made else -1 for _, is_made in events[:start])
    # The thread that ended before has left 4; the runtime itself may have some.
    assert alive >= 4
    profile = pf.fuse(log)
    first_ns, _ = profile.span_ns or (0, 0)
    start_s, last_s = ((events[at][0] - first_ns) / 1e9 for at in (start, start + 5))
    next_s = (events[start + 6][0] - first_ns) / 1e9 if len(events) > start + 6 else last_s + 0.02
    profile = profile.between(start_s - 0.01, (last_s + next_s) / 2)
    (row,) = [row for row in profile.handle_sums(stacks=False)[0] if row[0] == "weak_track_resurrection"]
    assert row == ("weak_track_resurrection", 3, 3, 0, alive + 1)
    assert not [one for one in leaked_handles(profile) if one.kind == "weak_track_resurrection"]


@pytest.mark.truth(
    recording="mono_allocations", path="report:exceptions", source="a program that throws a known number of exceptions"
)
def test_exceptions_that_different_stacks_throw_in_one_function_are_one_row(log: Path) -> None:
    rows = re.findall(r"^ +(\d+)  Oops +(\S+)$", report(log, "--section", "exceptions"), re.MULTILINE)
    assert rows == [("11", "Selected:Throw")]
    stacks = re.findall(r"^  (\d+) Oops$", report(log, "--section", "exceptions", "--stacks"), re.MULTILINE)
    assert stacks == ["7", "4"]


@pytest.mark.truth(
    recording="mono_allocations", path="report:objects", source="a program that allocates a known number of objects"
)
def test_objects_that_are_left_out_are_counted(log: Path) -> None:
    text = report(log, "--find", "T:Found", "--limit", "10")
    assert "Objects  25 objects" in text
    assert "… 15 more (--limit 0 shows all)" in text
    assert len(re.findall(r"^  Found, ", text, re.MULTILINE)) == 10
    assert len(re.findall(r"^  Found, ", report(log, "--find", "T:Found", "--limit", "0"), re.MULTILINE)) == 25


def test_a_heap_cannot_be_selected_by_thread(log: Path, tmp_path: Path) -> None:
    commands = (
        ["report", log, "--event", "retained", "--tree"],
        ["flame", log, "--weight", "retained", "-o", tmp_path / "heap.html"],
        ["diff", log, log, "--weight", "retained"],
    )
    for command in commands:
        words = [sys.executable, "-m", "perfuse", *map(str, command), "--thread", "late"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 2
        assert "objects on a heap belong to no thread" in done.stderr


@pytest.mark.truth(
    recording="mono_allocations",
    path="diff",
    source="a program that allocates a known number of objects, and another decoder of Mono logs",
)
@pytest.mark.parametrize("weight", ["bytes", "count"])
@pytest.mark.parametrize("by", ["stack", "function"])
def test_differences_count_allocations_not_sums_of_them(log: Path, weight: str, by: str) -> None:
    command = [sys.executable, "-m", "perfuse", "diff", log, log, "--weight", weight, "--by", by, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    rows = json.loads(done.stdout)["functions"]
    (found,) = [one for one in rows if one["name"] == "Found"]
    assert (found["count"]["base"], found["count"]["new"]) == (25, 25)
    allocated = sum(event.byte in (0x00, 0x10) for event in read_events(log))
    assert sum(one["test"]["samples"][0] for one in rows if one["self"]["base"]) == allocated
