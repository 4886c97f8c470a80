"""Calls of XRay recordings by the remaining paths: differences, facts, findings, rows, timelines and other tools.

Expected values come from walks over the recordings (`outside.py`), from copies with a known difference, and from the
tools of LLVM and Mono.
"""

import gzip
import json
import re
import shutil
import struct
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from arro3.core import Table
from tools import output_of

import perfuse
from needs import need
from perfuse.profile import Profile

from . import exported
from .command import command_line, json_of, run
from .kinds import CORPUS, Kind
from .outside import CallLog, call_log, call_profile

UNUSED = 0xFFFF
"""The number of no function of the examples."""


def busiest(log: CallLog) -> int:
    """The function with most calls."""
    return Counter(one.function for calls in log.calls.values() for one in calls).most_common(1)[0][0]


def renamed(log: Path, function: int) -> bytes:
    """A copy of a log in which a function has another number."""
    data = bytearray(log.read_bytes())
    _, mode = struct.unpack_from("<HH", data)
    at = 32
    while at < len(data):
        if mode == 0:
            if struct.unpack_from("<i", data, at + 4)[0] == function:
                struct.pack_into("<i", data, at + 4, UNUSED)
            at += 32
            continue
        (word,) = struct.unpack_from("<I", data, at)
        if word & 1:
            kind = (word & 0xFF) >> 1
            at += 16 + (struct.unpack_from("<i", data, at + 1)[0] if kind in (5, 8) else 0)
        else:
            if word >> 4 == function:
                struct.pack_into("<I", data, at, word & 0xF | UNUSED << 4)
            at += 8
    return bytes(data)


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="diff",
    source="a copy of the log in which one function has another number: its calls are gone, and new under that number",
)
def test_a_diff_finds_the_function_that_has_another_number(kind: Kind, tmp_path: Path) -> None:
    log = call_log(kind.paths[-1])
    function = busiest(log)
    sides = tmp_path / "a", tmp_path / "b"
    for side, data in zip(sides, (kind.paths[-1].read_bytes(), renamed(kind.paths[-1], function)), strict=True):
        side.mkdir()
        (side / "log.xray").write_bytes(data)
        for path in kind.paths[:-1]:
            (side / path.name.removesuffix(".gz")).write_bytes(gzip.decompress(path.read_bytes()))
    document = json_of("diff", *sides, "--limit", "0")
    found = {one["name"]: one for one in document["functions"]}
    durations = log.durations()
    members = {name: one["members"] for name, one in found.items() if one["verdict"] != "same"}
    assert members == {f"function {function}": [1, 0], f"function {UNUSED}": [0, 1]}
    assert document["num_functions"]["same"] == len(durations) - 1
    for number, (a, b) in {function: ("base", "new"), UNUSED: ("new", "base")}.items():
        figures = found[f"function {number}"]
        assert figures["count"][a] == len(durations[function])
        assert figures["sum"][a] == pytest.approx(sum(durations[function]), rel=2e-3, abs=2 * len(durations[function]))
        assert not figures["count"][b]


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="assert:calls",
    source="calls and durations by function number: a walk over the log's records that pairs entries and exits",
)
def test_facts_of_calls(kind: Kind) -> None:
    log = call_log(kind.paths[-1])

    def exit_code(*facts: str) -> int:
        words = [word for fact in facts for word in ("--assert", fact)]
        return run("report", *kind.paths, *words, "--limit", "1").returncode

    total = sum(log.num_calls.values())
    facts = [f"calls.count == {total}"]
    durations = log.durations()
    for number, found in list(durations.items())[:8]:
        name = f"calls['function {number}']"
        facts += [f"{name}.count == {len(found)}"]
        for what, ns in (("sum", sum(found)), ("min", min(found)), ("max", max(found))):
            slack = 2e-3 * ns + 2 * len(found) + 1
            facts += [f"{name}.{what} >= {ns - slack:.0f}", f"{name}.{what} <= {ns + slack:.0f}"]
    assert exit_code(*facts) == 0
    assert exit_code(f"calls.count == {total + 1}") == 1
    assert exit_code(f"calls['function {busiest(log)}'].count < {len(durations[busiest(log)])}") == 1
    assert exit_code("calls['function 65535'].count == 0") == 2


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path=["api:Profile.count_rows", "api:Profile.selected_rows"],
    source="entries, exits and arguments by thread: a walk over the log's records",
)
def test_rows_of_calls(kind: Kind, profile: Profile, path: str) -> None:
    log = call_log(kind.paths[-1])
    threads = {key: tid for tid, key in profile.sql("SELECT tid, thread_id FROM threads").fetchall()}
    kinds = {"enter": ("Entry", "Entry_Args"), "exit": ("Exit",), "tail_exit": ("Tail_Exit",)}
    expected = {name: sum(log.kinds[one] for one in records) for name, records in kinds.items()}
    if path == "api:Profile.count_rows":
        assert {name: profile.count_rows("call_events", kinds=[name]) for name in kinds} == expected
        for tid, num_calls in log.num_calls.items():
            assert profile.thread(tid).count_rows("call_events", kinds=["enter"]) == num_calls
        return
    rows = Table.from_arrow(profile.selected_rows("call_events", ["kind", "thread_id"]))
    found = Counter(zip(rows["kind"].to_pylist(), rows["thread_id"].to_pylist(), strict=True))
    assert {threads[key]: num for (name, key), num in found.items() if name == "enter"} == log.num_calls
    assert {name: sum(num for (one, _), num in found.items() if one == name) for name in kinds} == expected


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="api:Profile.call_trace",
    source="records by thread, outermost calls and the first record: a walk over the log's records",
)
def test_a_call_trace(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    log = call_log(kind.paths[-1])
    trace = profile.call_trace()
    assert trace is not None
    threads = {key: tid for tid, key in profile.sql("SELECT tid, thread_id FROM threads").fetchall()}
    assert {threads[key] for key in trace.thread_ids} == {*log.num_calls}
    assert trace.num_instants == log.kinds["CustomEventMarker"] + log.kinds["TypedEventMarker"]
    events = tmp_path / "events.json"
    with events.open("wb") as out:
        trace.write_chrome(out)
    (tmp_path / "trace.json").write_text(f'{{"traceEvents": [{events.read_text()}]}}')
    assert dict(exported.chrome(tmp_path / "trace.json")["calls"]) == log.num_calls


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_profiling", "xray_shared_objects", "perf_xray"],
    path="api:Profile.diagnostics",
    source="the last record of a copy is cut",
)
def test_findings_of_a_profile(kind: Kind, tmp_path: Path) -> None:
    """The last record of a copy is cut: the profile reports the loss, that of the whole file reports none."""
    cut = tmp_path / "cut.xray"
    cut.write_bytes(kind.paths[-1].read_bytes()[:-3])
    lost = [one for one in perfuse.fuse(*kind.paths[:-1], cut).diagnostics if one.severity == "data_loss"]
    assert lost
    assert all(one.path == str(cut) for one in lost)
    assert not [one for one in perfuse.fuse(*kind.paths).diagnostics if one.severity in ("data_loss", "error")]


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="convert:mono",
    source="mprof-report of the written log: calls by function, and milliseconds of each, by a walk over the XRay log",
)
def test_calls_read_by_mprof_report(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    need("mprof-report")
    log = call_log(kind.paths[-1])
    out = tmp_path / "out.mlpd"
    profile.export(out, to="mono")
    text = output_of("mprof-report", "--reports=call", out)
    expected = Counter[str]()
    names = dict(profile.sql("SELECT native_id, name FROM functions WHERE native_id IS NOT NULL").fetchall())
    sums: dict[str, float] = defaultdict(float)
    for number, found in log.durations().items():
        expected[names[number]] += len(found)
        sums[names[number]] += sum(found)
    assert re.search(rf"Total calls: {expected.total()}\b", text)
    rows = re.findall(r"^ +(\d+) +(\d+) +(\d+) (.+)$", text.partition("Method name\n")[2], re.MULTILINE)
    # It lists functions of a millisecond and more.
    assert rows or max(sums.values()) < 1e6
    for total_ms, _, calls, name in rows:
        assert expected[name] == int(calls), name
        assert int(total_ms) == pytest.approx(sums[name] / 1e6 - 0.5, abs=0.6), name


HZ = 2_445_426_000
"""The rate of the counter of the machine that wrote the example of Profiling mode."""


def self_times(kind: Kind) -> dict[str, float]:
    """Self time in nanoseconds by function: a path's time without that of the paths one call longer."""
    paths = {one.functions: one.ticks for one in call_profile(kind.paths[0])}
    names = {1: "leaf_10ms", 2: "mid", 3: "top", 4: "main"}
    found: dict[str, float] = {}
    for functions, ticks in paths.items():
        inner = sum(other for longer, other in paths.items() if longer[:-1] == functions)
        found[names[functions[-1]]] = (ticks - inner) * 1e9 / HZ
    return found


NUM_CALLS = {"main": 1, "top": 10, "mid": 10, "leaf_10ms": 20}


@pytest.mark.truth(
    recording="xray_profiling",
    path=[
        "convert",
        "convert:pprof",
        "convert:html",
        "convert:svg",
        "convert:firefox",
        "convert:jslb",
        "flame",
        "api:Profile.flame",
        "api:Profile.export",
    ],
    source="calls by construction of the program; self times of the paths, subtracted from each other here",
)
def test_sums_of_a_profile_in_other_targets(kind: Kind, path: str, tmp_path: Path) -> None:
    own = self_times(kind)
    rate = ["--tsc-hz", str(HZ)]
    profile = perfuse.fuse(*kind.paths, tsc_hz=HZ, **kind.fuse_options)
    whole, num_calls = sum(own.values()), sum(NUM_CALLS.values())
    if path == "flame":
        command_line("flame", *kind.paths, *kind.map_options, *rate, "-o", tmp_path / "out.html")
        found = exported.html(tmp_path / "out.html")
        assert found["wall-time"].total() == pytest.approx(whole, abs=5)
    elif path == "api:Profile.flame":
        for event, total in (("wall-time", whole), ("calls", num_calls)):
            profile.flame(event=event).save(tmp_path / "out.html")
            assert exported.html(tmp_path / "out.html")[event].total() == pytest.approx(total, abs=5)
    elif path == "convert:html":
        profile.export(tmp_path / "out.html")
        assert exported.html(tmp_path / "out.html")["wall-time"].total() == pytest.approx(whole, abs=5)
    elif path == "convert:svg":
        profile.export(tmp_path / "out.svg")
        assert exported.svg(tmp_path / "out.svg")[0] == pytest.approx(whole, rel=0.006)
    elif path == "convert:pprof":
        profile.export(tmp_path / "out.pb", to="pprof")
        sums = exported.pprof(tmp_path / "out.pb")
        assert sums["calls"].total() == num_calls
        assert sums["wall-time"].total() == pytest.approx(whole, abs=5)
    elif path in ("convert:firefox", "convert:jslb"):
        profile.export(tmp_path / "out.json", to=path.removeprefix("convert:"))
        assert firefox_self_times(tmp_path / "out.json") == pytest.approx(own, abs=5)
    else:
        if path == "convert":
            out = tmp_path / "out.folded"
            command_line("convert", *kind.paths, *kind.map_options, *rate, "--to", "collapsed", "-o", out)
        else:
            (out,) = map(Path, profile.export(tmp_path / "out.folded", to="collapsed"))
        lines = [line.rpartition(" ") for line in out.read_text().splitlines()]
        assert {stack.split(";")[-1]: int(ns) for stack, _, ns in lines} == pytest.approx(own, abs=5)


def firefox_self_times(path: Path) -> dict[str, float]:
    """Weights of the innermost function of each sample, in nanoseconds."""
    document = exported.processed_profile(path)
    found: dict[str, float] = defaultdict(float)
    for thread in document["threads"]:
        if not thread["name"].endswith("(wall-time)"):
            continue
        assert thread["samples"]["weightType"] == "tracing-ms"
        shared: Any = document.get("shared", thread)
        strings = shared.get("stringArray") or thread["stringArray"]
        samples = thread["samples"]
        tables = {name: shared.get(name) or thread[name] for name in ("stackTable", "frameTable", "funcTable")}
        for stack, weight in zip(samples["stack"], samples["weight"], strict=True):
            function = tables["frameTable"]["func"][tables["stackTable"]["frame"][stack]]
            found[strings[tables["funcTable"]["name"][function]]] += weight * 1e6
    return dict(found)


@pytest.mark.truth(
    recording="xray_profiling",
    path="api:Profile.call_statistics",
    source="calls by construction of the program; times of the paths in the file, subtracted from each other here",
)
def test_statistics_of_a_profile(kind: Kind) -> None:
    profile = perfuse.fuse(*kind.paths, tsc_hz=HZ, **kind.fuse_options)
    rows = Table.from_arrow(profile.call_statistics().functions())
    names = dict(profile.sql("SELECT function_id, name FROM functions").fetchall())
    columns = [rows[name].to_pylist() for name in ("function_id", "num_calls", "self_ns", "total_ns")]
    found = {names[key]: (num, own, total) for key, num, own, total in zip(*columns, strict=True)}
    assert {name: num for name, (num, _, _) in found.items()} == NUM_CALLS
    assert {name: own for name, (_, own, _) in found.items()} == pytest.approx(self_times(kind), abs=5)
    totals = {one.functions[-1]: one.ticks * 1e9 / HZ for one in call_profile(kind.paths[0])}
    assert found["main"][2] == pytest.approx(totals[4], abs=5)
    assert found["mid"][2] == pytest.approx(totals[2], abs=5)


@pytest.mark.truth(
    recording="xray_profiling",
    path=["api:Profile.count_rows", "api:Profile.selected_rows"],
    source="paths of the file: a walk over its blocks",
)
def test_rows_of_a_profile(kind: Kind, profile: Profile, path: str) -> None:
    walked = call_profile(kind.paths[0])
    if path == "api:Profile.count_rows":
        assert profile.count_rows("call_sums", time=None) == len(walked)
    else:
        rows = Table.from_arrow(profile.selected_rows("call_sums", ["num_calls"], time=None))
        assert Counter(rows["num_calls"].to_pylist()) == Counter(one.count for one in walked)


@pytest.mark.truth(
    recording="xray_profiling",
    path="report:recursive-only",
    source="a walk over the paths: ticks of those in which the innermost function occurs before",
)
@pytest.mark.parametrize("log", ["found/xray/pair/profiling.xray", "xray/profiling/prof-threads.0.xray"])
def test_recursive_calls_of_a_profile(log: str) -> None:
    path = CORPUS / log
    if not path.exists():
        pytest.skip(f"no {path}")
    calls, ticks = Counter[str](), Counter[str]()
    for one in call_profile(path):
        if one.functions[-1] in one.functions[:-1]:
            calls[f"function {one.functions[-1]}"] += one.count
            ticks[f"function {one.functions[-1]}"] += one.ticks
    report = json_of("report", path, "--recursive-only", "--limit", "0")
    found = {
        one["name"]: (one["recursive_calls"], one["sum_ns"]) for one in report["functions"] if one["recursive_calls"]
    }
    assert found == {name: (num, ticks[name]) for name, num in calls.items()}


@pytest.mark.truth(
    recording="xray_profiling",
    path="report:llvm-compat",
    source="llvm-xray account of LLVM 22, which cannot read the file either",
)
def test_statistics_of_llvm_xray_need_each_call(kind: Kind) -> None:
    program = shutil.which("llvm-xray-22") or need("llvm-xray")
    assert program
    assert run_tool_fails(program, "account", kind.paths[0])
    for options in (["--llvm-compat"], ["--llvm-compat", "--format", "csv"]):
        done = run("report", *kind.paths, *options)
        assert done.returncode == 2
        assert "each call" in done.stderr


def run_tool_fails(*words: object) -> bool:
    """Whether a program exits with an error."""
    import subprocess

    return subprocess.run([str(word) for word in words], capture_output=True, check=False).returncode != 0


@pytest.mark.truth(
    recording="xray_profiling", path="assert:duration", source="the specification: a profile contains no times"
)
def test_the_duration_of_a_profile_is_unknown(kind: Kind) -> None:
    for fact in ("duration >= 0", "duration > 1", "duration < 1"):
        done = run("report", *kind.paths, "--assert", fact)
        assert done.returncode == 1
        assert "not recorded" in done.stdout + done.stderr


@pytest.mark.truth(
    recording="xray_profiling",
    path="diff",
    source="the program runs the same calls in both recordings: walks over the profile's paths and the log's records",
)
def test_a_diff_of_sums_and_calls_compares_what_both_have(kind: Kind) -> None:
    """A profile has no durations of single calls, which are not new in the log."""
    log = kind.paths[0].with_name("fdr.xray")
    calls = [one for found in call_log(log).calls.values() for one in found]
    own = {one: calls[one].end - calls[one].start for one in range(len(calls))}
    for one in calls:
        if one.caller is not None:
            own[one.caller] -= one.end - one.start
    in_log = Counter[str]()
    names = {1: "leaf_10ms", 2: "mid", 3: "top", 4: "main"}
    for place, ticks in own.items():
        in_log[names[calls[place].function]] += round(ticks * 1e9 / HZ)
    words = ["diff", kind.paths[0], log, *kind.map_options, "--tsc-hz", str(HZ)]
    found = {one["name"]: one for one in json_of(*words, "--limit", "0")["functions"]}
    assert {name: one["self"]["base"] for name, one in found.items()} == pytest.approx(self_times(kind), abs=5)
    assert {name: one["self"]["new"] for name, one in found.items()} == pytest.approx(dict(in_log), abs=50)
    assert {(one["count"]["base"], one["count"]["new"]) for one in found.values()} == {
        (num, num) for num in (1, 10, 20)
    }
    for one in found.values():
        # The profile has sums of calls only.
        assert [one[name]["base"] for name in ("min", "p50", "p90", "p99", "max")] == [None] * 5
    assert {tuple(one["members"]) for one in found.values()} == {(1, 1)}


@pytest.mark.truth(
    recording=["xray_shared_objects", "perf_xray"],
    path="convert:firefox",
    source="calls and durations by function and thread: a walk over the log's records that pairs entries and exits",
)
def test_calls_are_markers_and_weights_in_firefox(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    log = call_log(kind.paths[-1])
    names = dict(profile.sql("SELECT native_id, name FROM functions WHERE native_id IS NOT NULL").fetchall())
    profile.export(tmp_path / "out.json", to="firefox")
    document = json.loads((tmp_path / "out.json").read_text())
    num, ns = Counter[str](), Counter[str]()
    for thread in document["threads"]:
        strings = (document.get("shared") or thread)["stringArray"]
        markers = thread["markers"]
        for name, start, end in zip(markers["name"], markers["startTime"], markers["endTime"], strict=True):
            num[strings[name]] += 1
            ns[strings[name]] += round((end - start) * 1e6)
    expected, sums = Counter[str](), Counter[str]()
    for number, found in log.durations().items():
        expected[names[number]] += len(found)
        sums[names[number]] += round(sum(found))
    assert +Counter({name: num[name] for name in expected}) == expected
    for name, total in sums.items():
        assert ns[name] == pytest.approx(total, rel=2e-3, abs=2 * expected[name]), name
    weights = exported.firefox(tmp_path / "out.json")
    assert dict(weights["calls-samples"]) == log.num_calls


@pytest.mark.truth(
    recording="xray_profiling",
    path=["convert:csv", "report:calls"],
    source="the file contains ticks and no rate: the ticks of the paths, by a walk over its blocks",
)
def test_ticks_are_not_called_nanoseconds(kind: Kind, tmp_path: Path) -> None:
    ticks = {f"function {one.functions[-1]}": one.ticks for one in call_profile(kind.paths[0])}
    perfuse.fuse(*kind.paths).export(tmp_path / "out.csv")
    rows = exported.table(tmp_path / "out.csv")
    assert {row["function"]: int(row["total_ticks"]) for row in rows} == ticks
    assert not [name for name in rows[0] if name.endswith("_ns")]
    report = json_of("report", *kind.paths, "--limit", "0")
    assert report["unit"] == "ticks"
    assert {one["name"]: one["total_ns"] for one in report["functions"]} == ticks
