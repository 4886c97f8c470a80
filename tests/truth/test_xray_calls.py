"""Calls of programs that measure themselves: their number, self time and total time in each mode of XRay.

A Profiling mode log contains inclusive times and no rate: they are also added up here, from the bytes of the file.
"""

import csv
import io
import json
import re
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import perfuse
from perfuse.viewer.routes import Routes
from perfuse.viewer.session import Session

from .command import output
from .kinds import CORPUS
from .xray_programs import Traced, build, run

THROWN = ("thrower", "outer", "catcher")
"""Functions that exceptions pass."""

TOLERANCE_NS = 1_000_000
"""The entry of a call is recorded before the program reads its clock, and its exit after that: `run` limits the sum."""
PAIR = CORPUS / "found" / "xray" / "pair"
PAIR_HZ = 2_445_426_000
"""Rate of the counter of the machine that wrote the pair of logs."""

CallPath = tuple[int, ...]


def recorded_paths(log: Path) -> Iterator[dict[CallPath, tuple[int, int]]]:
    """For each thread of a profile: number of calls and ticks by function ids, the outermost first."""
    data = log.read_bytes()
    at = 32
    while at < len(data):
        end = at + struct.unpack_from("<I", data, at)[0]
        at += 16
        paths = {}
        while at < end:
            ids: list[int] = []
            while number := struct.unpack_from("<i", data, at + 4 * len(ids))[0]:
                ids.append(number)
            calls, ticks = struct.unpack_from("<Qq", data, at + 4 * len(ids) + 4)
            paths[tuple(reversed(ids))] = (calls, ticks)
            at += 4 * len(ids) + 20
        yield paths


def self_ticks(paths: dict[CallPath, tuple[int, int]]) -> dict[CallPath, int]:
    """Ticks of each path without those of the paths one call longer."""
    inner = Counter[CallPath]()
    for path, (_, ticks) in paths.items():
        inner[path[:-1]] += ticks
    return {path: ticks - inner[path] for path, (_, ticks) in paths.items()}


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Traced]:
    """A run of the program for each kind of recording and arguments."""
    directory = tmp_path_factory.mktemp("known_calls")
    program = build(directory, "known_calls.c")
    made: dict[tuple[str, ...], Traced] = {}

    def run_once(recording: str, *arguments: str) -> Traced:
        key = (recording, *arguments)
        if key not in made:
            made[key] = run(program, directory / "-".join(key), *key)
        return made[key]

    return run_once


def options(traced: Traced, recording: str) -> list[str]:
    """Arguments for names and times."""
    found = ["--map", str(traced.program)]
    if recording == "xray_profiling":
        # The time of main, which the program printed, shows the rate of the counter.
        ticks = max(calls_ticks[1] for paths in recorded_paths(traced.log) for calls_ticks in paths.values())
        found += ["--tsc-hz", str(round(ticks * 1e9 / traced.functions["main"].total_ns))]
    return found


Numbers = dict[str, tuple[int, int, int]]
"""Calls, self time and total time by function; -1 for numbers that a target does not hold."""


def _report(log: Path, *how: str) -> Numbers:
    functions = json.loads(output("report", log, *how, "--json", "--limit", 0))["functions"]
    return {one["name"]: (one["num_calls"], one["self_ns"], one["total_ns"]) for one in functions}


def _csv(log: Path, *how: str) -> Numbers:
    rows = csv.DictReader(io.StringIO(output("convert", log, *how, "--to", "csv", "-o", "-")))
    return {row["function"]: (int(row["num_calls"]), int(row["self_ns"]), int(row["total_ns"])) for row in rows}


def _query(log: Path, *how: str) -> Numbers:
    sql = """
        SELECT name, sum(weight) FILTER (event = 'calls')::BIGINT, sum(weight) FILTER (event = 'wall-time')::BIGINT
        FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id) JOIN functions USING (function_id)
        GROUP BY name
    """
    rows = csv.reader(io.StringIO(output("query", log, sql, *how, "--format", "csv")))
    return {name: (int(calls), int(ns), -1) for name, calls, ns in list(rows)[1:]}


def _of_paths(paths: dict[tuple[str, ...], int]) -> Numbers:
    own, total = Counter[str](), Counter[str]()
    for path, ns in paths.items():
        own[path[-1]] += ns
        for name in {*path}:
            total[name] += ns
    return {name: (-1, own[name], total[name]) for name in total}


def _collapsed(log: Path, *how: str) -> Numbers:
    lines = output("convert", log, *how, "--to", "collapsed", "-o", "-").splitlines()
    paths = Counter[tuple[str, ...]]()
    for line in lines:
        stack, _, ns = line.rpartition(" ")
        paths[tuple(stack.split(";")[1:])] += int(ns)
    return _of_paths(paths)


def _speedscope(log: Path, *how: str) -> Numbers:
    document = json.loads(output("convert", log, *how, "--to", "speedscope", "-o", "-"))
    names = [frame["name"] for frame in document["shared"]["frames"]]
    paths = Counter[tuple[str, ...]]()
    for profile in document["profiles"]:
        assert profile["unit"] in ("nanoseconds", "none")
        if profile["type"] == "evented":
            stack: list[str] = []
            events = sorted(profile["events"], key=lambda event: event["at"])
            for event, following in pairwise([*events, events[-1]]):
                if event["type"] == "O":
                    stack.append(names[event["frame"]])
                else:
                    assert stack.pop() == names[event["frame"]]
                if stack:
                    paths[tuple(stack)] += following["at"] - event["at"]
        elif profile["unit"] == "nanoseconds":
            for sample, ns in zip(profile["samples"], profile["weights"], strict=True):
                paths[tuple(names[frame] for frame in sample)] += ns
    return _of_paths(paths)


def _dot(log: Path, *how: str) -> Numbers:
    text = output("convert", log, *how, "--to", "dot", "-o", "-", "-O", "min_share=0")
    units = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}
    number = r"([\d.,]+) (ns|µs|ms|s)"
    pattern = rf'tooltip="(\w+)\\n\S+\\n(\d+) calls?\\nself {number}\\nsum [^\\]*\\ntotal {number}'
    return {
        name: (int(calls), round(float(own) * units[own_unit]), round(float(total) * units[total_unit]))
        for name, calls, own, own_unit, total, total_unit in re.findall(pattern, text)
    }


READERS: dict[str, Callable[..., Numbers]] = {
    "report": _report,
    "report:calls": _report,
    "query": _query,
    "convert:csv": _csv,
    "convert:collapsed": _collapsed,
    "convert:speedscope": _speedscope,
    "convert:dot": _dot,
}


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_profiling"],
    path=["report", "report:calls", "query", "convert:csv", "convert:collapsed", "convert:speedscope", "convert:dot"],
    source="the program counts its calls and measures them with clock_gettime",
)
def test_calls_and_times_are_those_the_program_measured(
    traced: Callable[..., Traced], recording: str, path: str
) -> None:
    one = traced(recording)
    found = READERS[path](one.log, *options(one, recording))
    assert {*found} == {*one.functions}
    for name, known in one.functions.items():
        calls, self_ns, total_ns = found[name]
        assert calls in (-1, known.calls), name
        assert self_ns == pytest.approx(known.self_ns, rel=0.01, abs=TOLERANCE_NS), name
        assert total_ns == -1 or total_ns == pytest.approx(known.total_ns, rel=0.01, abs=TOLERANCE_NS), name


@pytest.mark.truth(
    recording="xray_profiling",
    path=["report", "check"],
    source="the program measures the catcher; the file states 0 calls for an open function",
)
@pytest.mark.parametrize("arguments", ["throw", "throw,open"])
def test_times_of_calls_left_together_are_never_negative(traced: Callable[..., Traced], arguments: str) -> None:
    """`longjmp` leaves three calls at once, whose times the runtime subtracts too often: that is reported, and their
    time is within the time of the catcher and its caller."""
    one = traced("xray_profiling", arguments)
    known, how = one.functions, options(traced("xray_profiling"), "xray_profiling")
    found = _report(one.log, *how)
    assert found["main"][0] == (0 if "open" in arguments else 1)
    left = sum(found[name][1] for name in ("catcher", "outer", "thrower"))
    assert 2 * 5_000_000 <= left < 1.05 * known["catcher"].total_ns + TOLERANCE_NS
    assert found["catcher"][2] >= found["outer"][2] >= found["thrower"][2] > 0
    assert all(own >= 0 for _, own, _ in found.values())
    assert found["leaf"][1] == pytest.approx(known["leaf"].self_ns, rel=0.05, abs=TOLERANCE_NS)
    if "open" not in arguments:
        assert found["main"][2] == pytest.approx(known["main"].total_ns, rel=0.05, abs=TOLERANCE_NS)
    # Calls that are still open have no time, and are not counted.
    short = [
        sum(ticks < 0 < paths[path][0] for path, ticks in self_ticks(paths).items())
        for paths in recorded_paths(one.log)
    ]
    findings = [finding for finding in perfuse.open(one.log).check() if finding.code == "XR072"]
    # A pause of the program in one of the calls may hide what the runtime subtracts too often.
    assert [int(finding.message.split()[0]) for finding in findings] == [num for num in short if num]


@pytest.mark.truth(
    recording="xray_profiling",
    path=["report", "query", "convert:collapsed", "api:Profile.sql"],
    source="times of the paths, subtracted from each other here; sleeps of the program",
)
def test_the_pair_of_a_profile_and_a_log_has_the_same_self_times() -> None:
    """10 calls of `top` that sleep 5 ms, 20 calls of `leaf_10ms`; `mid` and `main` have no time of their own."""
    if not PAIR.is_dir():
        pytest.skip(f"no {PAIR}")
    profile, log = PAIR / "profiling.xray", PAIR / "fdr.xray"
    how = ("--map", str(PAIR / "p"), "--tsc-hz", str(PAIR_HZ))
    names = {1: "leaf_10ms", 2: "mid", 3: "top", 4: "main"}
    (paths,) = recorded_paths(profile)
    expected = {names[path[-1]]: ticks * 1e9 / PAIR_HZ for path, ticks in self_ticks(paths).items()}
    sleeps = {"leaf_10ms": 200e6, "top": 50e6, "mid": 0, "main": 0}
    for read in (_report, _query, _collapsed):
        found = read(profile, *how)
        assert {name: own for name, (_, own, _) in found.items()} == pytest.approx(expected, abs=2)
        other = read(log, *how)
        for name, ns in sleeps.items():
            assert found[name][1] == pytest.approx(ns, rel=0.15, abs=1e5), name
            assert other[name][1] == pytest.approx(ns, rel=0.15, abs=1e5), name
    assert found["main"][2] == pytest.approx(267.4e6, rel=0.001)


@pytest.mark.truth(
    recording="xray_profiling",
    path=["diff", "api:Profile.sql"],
    source="times of the paths, subtracted from each other here",
)
def test_a_diff_of_profiles_compares_self_times() -> None:
    """A profile compared with a log of another clock needs the rate of its counter."""
    small = CORPUS / "xray" / "profiling" / "prof-threads.0.xray"
    if not small.exists():
        pytest.skip(f"no {small}")
    expected = Counter[int]()
    for paths in recorded_paths(small):
        for path, ticks in self_ticks(paths).items():
            expected[path[-1]] += ticks
    document = json.loads(output("diff", PAIR / "profiling.xray", small, "--json", "--limit", 0))
    found = {one["name"]: one["self"]["new"] for one in document["functions"] if one["members"][1]}
    assert {f"function {number}": ticks for number, ticks in expected.items()} == found
    words = [sys.executable, "-m", "perfuse", "diff", PAIR / "profiling.xray", PAIR / "fdr.xray"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--tsc-hz" in done.stderr


@pytest.mark.truth(
    recording="xray_profiling", path="assert:calls", source="the file has sums and no rate: no duration is known"
)
def test_facts_that_a_profile_does_not_have_are_errors() -> None:
    if not PAIR.is_dir():
        pytest.skip(f"no {PAIR}")

    def checked(*how: str) -> tuple[int, str]:
        words = [sys.executable, "-m", "perfuse", "report", str(PAIR / "profiling.xray"), *how]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    rate = ("--tsc-hz", str(PAIR_HZ))
    assert checked("--assert", "calls.count == 41")[0] == 0
    assert checked("--assert", "calls['function 4'].self < 1s")[0] == 2
    assert checked("--assert", "calls['function 4'].self < 1ms", *rate)[0] == 0
    assert checked("--assert", "calls['function 4'].total > 260ms", *rate)[0] == 0
    assert checked("--assert", "calls['function 4'].p99 < 1s", *rate)[0] == 2


@pytest.mark.truth(
    recording="xray_fdr",
    path=["report", "report:calls", "convert:csv"],
    source="the program counts its calls and measures them with clock_gettime",
)
@pytest.mark.parametrize("kind", ["logs", "saved", "range of saved"])
def test_a_function_of_several_logs_is_one(traced: Callable[..., Traced], tmp_path: Path, kind: str) -> None:
    """Its calls are those of both runs together, and so are their durations."""
    runs = [traced("xray_fdr"), traced("xray_fdr", "again")]
    logs, how = [one.log for one in runs], ["--map", str(runs[0].program)]
    if kind != "logs":
        output("pack", *logs, *how, "-o", tmp_path / "both.perfuse")
        logs, how = [tmp_path / "both.perfuse"], ["--between", "0..1000"] if kind.startswith("range") else []
    command = [str(word) for word in ("report", *logs, *how, "--json", "--limit", 0)]
    document = json.loads(output(*command))
    found = {one["name"]: one for one in document["functions"]}
    assert len(document["functions"]) == len(found) == len(runs[0].functions)
    for name, one in found.items():
        known = [run.functions[name] for run in runs]
        assert one["num_calls"] == sum(run.calls for run in known)
        assert one["self_ns"] == pytest.approx(sum(run.self_ns for run in known), rel=0.01, abs=2 * TOLERANCE_NS)
        assert one["sum_ns"] >= 0.99 * sum(run.total_ns for run in known)
        alone = [statistics_of(run, name) for run in runs]
        assert one["min_ns"] == min(run["min_ns"] for run in alone)
        assert one["max_ns"] == max(run["max_ns"] for run in alone)
        assert min(run["median_ns"] for run in alone) <= one["median_ns"] <= max(run["median_ns"] for run in alone)
    selected = json.loads(output(*command, "--longer-than", "1ns"))["functions"]
    assert {one["name"]: one["num_calls"] for one in selected} == {
        name: one["num_calls"] for name, one in found.items()
    }
    paths = [tuple(stack["functions"]) for part in document["stacks"] for stack in part["stacks"]]
    assert len(paths) == len({*paths})
    edges = json.loads(output(*command, "--graph"))["edges"]
    pairs = [((one["caller"] or {}).get("name"), one["callee"]["name"]) for one in edges]
    assert len(pairs) == len({*pairs})


def test_the_page_has_the_calls_of_all_logs(traced: Callable[..., Traced]) -> None:
    """Of functions that both runs call, and of those that only the second does."""
    runs = [traced("xray_fdr"), traced("xray_fdr", "throw")]
    logs = [str(one.log) for one in runs]
    with perfuse.fuse(*logs, maps=[runs[0].program]) as profile:
        session = Session(lambda _progress: profile, logs)
        session.open_now()
        rows = json.loads(Routes(session).answer("GET", "/api/functions", "limit=100", b"").body)["rows"]
    known = Counter({name: one.calls for name, one in runs[0].functions.items()})
    known.update({name: one.calls for name, one in runs[1].functions.items()})
    assert {row["name"]: row["num_calls"] for row in rows} == known


def statistics_of(run: Traced, name: str) -> dict[str, int]:
    """The row of a function in the report of one run."""
    (row,) = [one for one in functions_of(run.log, run.program) if one["name"] == name]
    return row


@cache
def functions_of(log: Path, program: Path) -> list[dict[str, Any]]:
    """The rows of functions in the report of one run."""
    found: list[dict[str, Any]] = json.loads(output("report", log, "--map", program, "--json", "--limit", 0))[
        "functions"
    ]
    return found


@pytest.mark.truth(
    recording="xray_fdr",
    path=["report:calls", "convert:collapsed", "convert:speedscope", "query", "pack"],
    source="the program counts its calls and measures them with clock_gettime",
)
@pytest.mark.parametrize("kind", ["logs", "saved"])
def test_numbers_of_two_programs_are_not_names(traced: Callable[..., Traced], tmp_path: Path, kind: str) -> None:
    """Without their programs, functions with one number in two logs are two: their names state the log."""
    runs = {"one.xray": traced("xray_fdr"), "two.xray": traced("xray_fdr", "throw")}
    logs = [tmp_path / name for name in runs]
    known = {}
    for log, traced_run in zip(logs, runs.values(), strict=True):
        log.write_bytes(traced_run.log.read_bytes())
        for name, one in traced_run.functions.items():
            known[f"function {statistics_of(traced_run, name)['native_id']} of {log.name}"] = one
    counts = {name: one.calls for name, one in known.items()}
    if kind == "saved":
        output("pack", *logs, "-o", tmp_path / "both.perfuse")
        logs = [tmp_path / "both.perfuse"]
    functions = json.loads(output("report", *logs, "--json", "--limit", 0))["functions"]
    assert {one["name"]: one["num_calls"] for one in functions} == counts
    own = Counter[str]()
    for line in output("convert", *logs, "--to", "collapsed", "-o", "-").splitlines():
        stack, ns = line.rsplit(" ", 1)
        own[stack.rsplit(";", 1)[-1]] += int(ns)
    assert own.keys() == known.keys()
    # The program has no times of calls that an exception ended, and so none around them.
    measured = [name for name in known if known[name] not in [runs["two.xray"].functions[name] for name in THROWN]]
    assert len(measured) == len(known) - len(THROWN)
    assert {name: own[name] for name in measured} == {
        name: pytest.approx(known[name].self_ns, rel=0.01, abs=TOLERANCE_NS) for name in measured
    }
    document = json.loads(output("convert", *logs, "--to", "speedscope", "-o", "-"))
    assert {frame["name"] for frame in document["shared"]["frames"]} == {*known}
    with perfuse.fuse(*map(str, logs)) as profile:
        session = Session(lambda _progress: profile, [str(log) for log in logs])
        session.open_now()
        rows = json.loads(Routes(session).answer("GET", "/api/functions", "limit=100", b"").body)["rows"]
        sums = profile.sql(
            """
            SELECT name, sum(weight)::BIGINT FROM samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id)
                JOIN functions USING (function_id) WHERE event = 'calls' GROUP BY name
            """
        ).fetchall()
    assert {row["name"]: row["num_calls"] for row in rows} == counts
    assert dict(sums) == counts
