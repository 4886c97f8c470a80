"""Exported logs, tables and graphs of calls, read by llvm-xray, Graphviz, csv and walks over their structures."""

import csv
import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tools import output_of

from perfuse.profile import Profile

from . import exported
from .command import command_line, json_of
from .kinds import Kind
from .outside import CallLog, call_log, call_profile, outside


def durations(log: CallLog) -> dict[int, tuple[int, float]]:
    """Number and sum of durations by function number."""
    return {number: (len(found), sum(found)) for number, found in log.durations().items()}


def same(found: dict[int, tuple[int, float]], expected: dict[int, tuple[int, float]]) -> None:
    """Compares numbers of calls, and sums of durations."""
    assert {key: num for key, (num, _) in found.items()} == {key: num for key, (num, _) in expected.items()}
    for key, (num, sum_ns) in expected.items():
        assert found[key][1] == pytest.approx(sum_ns, rel=2e-3, abs=2 * num), key


@pytest.mark.truth(
    recording="xray_fdr",
    path="convert:xray",
    source="calls by thread: walks over both logs that pair entries and exits",
)
def test_a_written_log_of_a_thread_by_its_handle(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    num_calls = call_log(kind.paths[0]).num_calls
    handles = dict(profile.sql("SELECT tid, 't' || thread_id FROM threads").fetchall())
    for tid, num in num_calls.items():
        out = tmp_path / f"{tid}.xray"
        profile.thread(handles[tid]).export(out)
        assert call_log(out).num_calls == {tid: num}


@pytest.mark.truth(
    recording=["xray_[!p]*", "perf_x*"],
    path=["convert:csv", "report:calls", "report:profile_with_calls", "report"],
    source="calls and durations by function number: a walk over the log's records that pairs entries and exits",
)
@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path=["report:per-thread", "report:recursive-only"],
    source="calls by thread and calls inside a call of the same function: a walk that pairs entries and exits",
)
def test_statistics_of_functions(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    log = call_log(kind.paths[-1])
    if path == "convert:csv":
        profile.export(tmp_path / "out.csv")
        rows = [dict(row) for row in exported.table(tmp_path / "out.csv")]
    else:
        view = {"report:per-thread": ["--per-thread"], "report:recursive-only": ["--recursive-only"]}.get(path, [])
        report = json_of("report", *kind.paths, *kind.map_options, *view, "--limit", "0")
        report = report.get("calls", report)
        rows = report["functions"]
    if path == "report:recursive-only":
        expected = Counter[int]()
        for calls in log.calls.values():
            for one in calls:
                above = one.caller
                while above is not None and calls[above].function != one.function:
                    above = calls[above].caller
                expected[one.function] += above is not None
        assert +Counter({int(row["native_id"]): int(row["num_timed"]) for row in rows}) == +expected
        return
    if path == "report:per-thread":
        assert {one["thread"]["tid"]: one["num_calls"] for one in report["threads"]} == log.num_calls
    found: dict[int, tuple[int, float]] = {}
    for row in rows:
        num, sum_ns = found.get(int(row["native_id"]), (0, 0.0))
        found[int(row["native_id"])] = (num + int(row["num_calls"]), sum_ns + float(row["sum_ns"]))
    same(found, durations(log))
    inside = sum(log.busy_ns.values())
    assert sum(int(row["self_ns"]) for row in rows) == pytest.approx(inside, rel=2e-3, abs=len(rows))


def counted_paths(report: dict[str, Any]) -> Counter[tuple[str, ...]]:
    """Calls by path, of whole stacks or of a tree."""
    found = Counter[tuple[str, ...]]()
    for one in report.get("stacks", ()):
        found[tuple(one["functions"])] += one["count"]
    here: list[str] = []
    for node in report["tree"]["nodes"] if "tree" in report else ():
        here = [*here[: node["depth"]], node["function"]["name"]]
        found[tuple(here)] += node["self_count"]
    return +found


@pytest.mark.truth(
    recording="xray_profiling",
    path=["convert:csv", "report:calls", "report", "report:stacks", "report:graph", "report:tree", "report:per-thread"],
    source="calls by construction of the program: main 1, top 10, mid 10, leaf_10ms 20",
)
def test_calls_of_a_profile_of_sums(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    expected = {"main": 1, "top": 10, "mid": 10, "leaf_10ms": 20}
    assert len(call_profile(kind.paths[0])) == 4
    if path == "convert:csv":
        profile.export(tmp_path / "out.csv")
        rows = exported.table(tmp_path / "out.csv")
        assert {row["function"]: int(row["num_calls"]) for row in rows} == expected
        return
    view = path.removeprefix("report:")
    options = [f"--{view}"] if view in ("stacks", "graph", "tree", "per-thread") else []
    report = json_of("report", *kind.paths, *kind.map_options, *options, "--limit", "0")
    if view in ("stacks", "tree"):
        names = list(expected)
        assert counted_paths(report) == {tuple(names[: depth + 1]): num for depth, num in enumerate(expected.values())}
        return
    assert {row["name"]: row["num_calls"] for row in report["functions"]} == expected
    if view == "graph":
        edges = {
            (one["caller"]["name"], one["callee"]["name"]): one["num_calls"] for one in report["edges"] if one["caller"]
        }
        assert edges == {("main", "top"): 10, ("top", "mid"): 10, ("mid", "leaf_10ms"): 20}
    elif view == "per-thread":
        assert [one["num_calls"] for one in report["threads"]] == [41]


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path=["report:stacks", "report:graph", "report:tree"],
    source="paths and edges of calls by function number: a walk over the log's records that pairs entries and exits",
)
def test_paths_and_edges(kind: Kind, profile: Profile, path: str) -> None:
    log = call_log(kind.paths[-1])
    view = path.removeprefix("report:")
    options = [] if view == "graph" else ["--event", "wall-time"]
    report = json_of("report", *kind.paths, *kind.map_options, f"--{view}", *options, "--limit", "0")
    report = report.get("calls", report)
    rows = profile.sql("SELECT native_id, name::VARCHAR FROM functions WHERE native_id IS NOT NULL").fetchall()
    names = {int(number): name or f"function {number}" for number, name in rows}
    edges, paths = Counter[tuple[str, str]](), Counter[tuple[str, ...]]()
    for calls in log.calls.values():
        above: list[tuple[str, ...]] = []
        for one in calls:
            name = names[one.function]
            outer = () if one.caller is None else above[one.caller]
            above.append((*outer, name))
            paths[above[-1]] += 1
            if outer:
                edges[outer[-1], name] += 1
    if view == "graph":
        inner = [one for one in report["edges"] if one["caller"]]
        assert edges == {(one["caller"]["name"], one["callee"]["name"]): one["num_calls"] for one in inner}
    else:
        assert counted_paths(report) == +paths


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="report:llvm-compat",
    source="llvm-xray account of LLVM 22, to the digits that it prints",
)
def test_statistics_are_those_of_llvm_xray(kind: Kind, llvm_xray: str, tmp_path: Path) -> None:
    options = ["--llvm-compat", "--format", "csv", "--limit", "0"]
    ours = command_line("report", *kind.paths, *kind.map_options, *options)
    # LLVM accounts logs of one thread and several buffers right only from YAML of version 1.
    text = output_of(llvm_xray, "convert", "-f", "yaml", kind.paths[-1])
    yaml = tmp_path / "log.yaml"
    yaml.write_text(re.sub(r"version: +\d+", "version: 1", text, count=1))
    theirs = output_of(llvm_xray, "account", "-d", "-k", "-f", "csv", yaml)
    rows = [
        {row["funcid"]: (row["count"], row["sum"]) for row in csv.DictReader(io.StringIO(text))}
        for text in (ours, theirs)
    ]
    assert {key: int(num) for key, (num, _) in rows[0].items()} == {key: int(num) for key, (num, _) in rows[1].items()}
    for key, (_, seconds) in rows[1].items():
        assert float(rows[0][key][1]) == pytest.approx(float(seconds), rel=1e-5), key


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path=["convert:xray", "convert", "api:Profile.call_log", "api:Profile.export"],
    source="calls and durations by function number and thread: walks over the exported log and the input",
)
def test_an_exported_log_has_the_same_calls(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.xray"
    if path == "convert":
        command_line("convert", *kind.paths, *kind.map_options, "--to", "xray", "-o", out)
    elif path == "api:Profile.call_log":
        with out.open("wb") as file:
            profile.call_log.write(file.fileno())
    else:
        assert profile.export(out, to="xray") == (str(out),)
    log, again = call_log(kind.paths[-1]), call_log(out)
    assert again.num_calls == log.num_calls
    same(durations(again), durations(log))


@pytest.mark.truth(
    recording="mono_calls",
    path=["convert:xray", "api:Profile.call_log"],
    source="number of calls of an independent reader (truth.json), by a walk over the exported log",
)
def test_calls_of_a_runtime_as_a_log(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.xray"
    if path == "convert:xray":
        with pytest.warns(match="new numbers"):
            profile.export(out, to="xray")
    else:
        with out.open("wb") as file:
            profile.call_log.write(file.fileno())
    assert sum(call_log(out).num_calls.values()) == outside(kind.name).weights["calls"].total


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects"],
    path="convert:xray-yaml",
    source="llvm-xray account of LLVM 22 of the exported trace: calls by function as a walk over the log counts them",
)
def test_a_trace_in_yaml_is_read_by_llvm_xray(kind: Kind, profile: Profile, llvm_xray: str, tmp_path: Path) -> None:
    profile.export(tmp_path / "out.yaml")
    text = output_of(llvm_xray, "account", "-d", "-k", "-f", "csv", tmp_path / "out.yaml")
    found = {int(row["funcid"]): int(row["count"]) for row in csv.DictReader(io.StringIO(text))}
    assert found == {number: num for number, (num, _) in durations(call_log(kind.paths[0])).items()}


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="convert:dot",
    source="calls, self times by function: a walk over the log; the file is read by Graphviz",
)
@pytest.mark.truth(
    recording=["perf_[!x]*", "collapsed", "mono_samples"],
    path="convert:dot",
    source="samples: a walk over the perf.data, the lines by hand, another reader (truth.json); read by Graphviz",
)
@pytest.mark.truth(
    recording="xray_profiling",
    path="convert:dot",
    source="calls by construction of the program: main 1, top 10, mid 10, leaf_10ms 20; read by Graphviz",
)
def test_a_graph_read_by_graphviz(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    """Sums of the nodes' tooltips; a stack without a named frame has no node, and numbers have three digits."""
    out = tmp_path / "out.dot"
    profile.export(out, min_share=0.0)
    found = exported.dot(out)
    weights = outside(kind.name).weights
    if "calls" not in weights:
        (weight,) = weights.values()
        assert sum(one["self"] for one in found.values()) == pytest.approx(weight.total, rel=0.01)
    else:
        assert sum(one["count"] for one in found.values()) == weights["calls"].total
        if "wall-time" in weights:
            total = weights["wall-time"].total
            assert sum(one["self"] for one in found.values()) == pytest.approx(total, rel=0.006)
