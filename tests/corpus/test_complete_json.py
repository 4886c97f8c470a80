"""`--json` is complete unless `--limit` is given: its rows add up to what other programs count."""

import json
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfuse.cli import run

Json = Callable[..., Any]
LIMITED = ["--limit", "2"]


@pytest.fixture
def json_of(capfd: pytest.CaptureFixture[str]) -> Json:
    """The JSON document of a command."""

    def call(*words: str | Path) -> Any:
        capfd.readouterr()
        assert run(list(map(str, words))) in (0, 1)
        return json.loads(capfd.readouterr().out)

    return call


def code_sizes(path: Path) -> list[int]:
    """Size of the code of each JIT_CODE_LOAD, the largest first, by a walk over the records."""
    data = path.read_bytes()
    at, sizes = struct.unpack_from("<I", data, 8)[0], []
    while at + 16 <= len(data):
        record, size = struct.unpack_from("<II", data, at)
        if record == 0:
            sizes.append(struct.unpack_from("<Q", data, at + 16 + 24)[0])
        at += size
    return sorted(sizes, reverse=True)


def count_samples(path: Path) -> int:
    """Number of PERF_RECORD_SAMPLE (type 9) in the data section of a perf.data."""
    data = path.read_bytes()
    at, size = struct.unpack_from("<QQ", data, 40)
    end, found = at + size, 0
    while at < end:
        record, _, size = struct.unpack_from("<IHH", data, at)
        found += record == 9
        at += size
    return found


@pytest.mark.truth(recording="jitdump", path=["report", "report:code"], source="a struct walk over the records")
def test_code(jitdump_corpus: Path, json_of: Json) -> None:
    path = jitdump_corpus / "produced" / "openjdk17-jvmti.dump"
    sizes = code_sizes(path)
    report = json_of("report", path, "--json")
    assert [one["bytes"] for one in report["biggest"]] == sizes
    assert (report["code_objects"], report["bytes"]) == (len(sizes), sum(sizes))
    assert len(report["recompiled"]) == report["num_recompiled"] > 10
    assert len(report["most_lines"]) == report["num_with_lines"] == 171  # the manifest's count of DEBUG records
    limited = json_of("report", path, "--json", *LIMITED)
    assert [len(limited[name]) for name in ("biggest", "recompiled", "most_lines")] == [2, 2, 2]
    for name in ("code_objects", "num_recompiled", "num_with_lines"):
        assert limited[name] == report[name]


@pytest.mark.truth(recording="jitdump", path="tables", source="a struct walk over the records")
def test_rows_of_a_table(jitdump_corpus: Path, json_of: Json) -> None:
    path = jitdump_corpus / "produced" / "openjdk17-jvmti.dump"
    rows = json_of("tables", path, "code_objects", "--json")
    assert sorted((row["size_bytes"] for row in rows), reverse=True) == code_sizes(path)


@pytest.mark.truth(
    recording=["perf_node", "perf_openjdk", "perf_stacks"],
    path=["report", "report:profile"],
    source="a walk over the records of the perf.data",
)
@pytest.mark.parametrize("name", ["node20", "openjdk17-jvmti", "cpython315-dwarf"])
def test_samples(jitdump_corpus: Path, json_of: Json, name: str) -> None:
    perf_data, dump = (jitdump_corpus / "produced" / f"{name}.{ending}" for ending in ("perf.data", "dump"))
    num_samples = count_samples(perf_data)
    report = json_of("report", perf_data, dump, "--json")
    assert sum(one["samples"] for one in report["top_self"]) == report["events"][0]["samples"] == num_samples
    assert sum(one["self_weight"] for one in report["top_self"]) == report["events"][0]["weight"]
    assert len(report["top_total"]) == report["num_functions"] > 20
    limited = json_of("report", perf_data, dump, "--json", *LIMITED)
    assert limited["num_functions"] == report["num_functions"]
    assert (limited["top_self"], limited["top_total"]) == (report["top_self"][:2], report["top_total"][:2])


@pytest.mark.truth(recording="xray_fdr", path=["report", "report:calls"], source="llvm-xray account")
def test_calls(xray_corpus: Path, llvm_xray: str, json_of: Json) -> None:
    log = xray_corpus / "fdr" / "sqlite-small-v5.xray"
    done = subprocess.run([llvm_xray, "account", "-k", "--format=csv", log], capture_output=True, check=True, text=True)
    counts = {int(row.split(",")[0]): int(row.split(",")[1]) for row in done.stdout.splitlines() if row[0].isdigit()}
    overview = json_of("report", log, "--json")
    report = json_of("report", log, "--json", "--graph")
    report["functions"] = overview["functions"]
    assert len(report["functions"]) == report["num_functions"] >= len(counts) > 30
    found = {one["native_id"]: one["num_timed"] for one in report["functions"]}
    assert {key: found[key] for key in counts} == counts
    num_calls = report["totals"]["num_calls"]
    assert sum(one["num_calls"] for one in report["edges"]) == num_calls
    assert len(report["edges"]) == report["num_edges"]
    views = [json_of("report", log, "--json", view) for view in ("--tree", "--stacks")]
    tree = views[0]["tree"]
    assert len(tree["nodes"]) == tree["num_nodes"]
    assert sum(one["self_count"] for one in tree["nodes"]) == num_calls
    assert sum(one["count"] for one in views[1]["stacks"]) == num_calls
    whole = sum(one["self_ns"] for one in overview["functions"])
    assert whole == sum(one["self_ns"] for one in overview["stacks"][0]["stacks"])
    assert whole == sum(one["self_weight"] for one in tree["nodes"]) == sum(one["weight"] for one in views[1]["stacks"])
    limited = json_of("report", log, "--json", "--graph", *LIMITED)
    assert (len(limited["edges"]), limited["num_edges"]) == (2, report["num_edges"])


@pytest.mark.truth(recording="mono_allocations", path=["report", "report:allocations"], source="mprof-report")
def test_allocations(mono_corpus: Path, mprof_report: str, json_of: Json) -> None:
    log = mono_corpus / "tiny" / "v17-bt.mlpd"
    text = subprocess.run(
        [mprof_report, "--reports=alloc", "--verbose", log], capture_output=True, text=True, check=True
    ).stdout
    total = re.search(r"Total memory allocated: (\d+) bytes in (\d+) objects", text)
    assert total
    found = json_of("report", log, "--json")["allocations"]
    assert (sum(one["bytes"] for one in found["by_type"]), sum(one["count"] for one in found["by_type"])) == tuple(
        map(int, total.groups())
    )
    assert len(found["by_type"]) == found["num_types"] > 10
    assert len(found["by_site"]) == found["num_sites"] > 10
    limited = json_of("report", log, "--json", *LIMITED)["allocations"]
    assert (len(limited["by_type"]), limited["num_types"]) == (2, found["num_types"])


def test_heap_snapshots(mono_corpus: Path, json_of: Json) -> None:
    """All types of a snapshot have all its objects; every object that nothing else retains has its path."""
    log = mono_corpus / "v17" / "graph.mlpd"
    heap = json_of("report", log, "--json")["heap"]
    last = heap["last"]
    assert (
        sum(one["num_objects"] for one in last["classes"])
        == last["num_objects"]
        == heap["snapshots"][-1]["num_objects"]
    )
    assert len(last["classes"]) == last["num_classes"] > 10
    reachable = sum(one["retained_bytes"] for one in last["retainers"] if one["is_reachable"])
    assert reachable == last["size_bytes"] - (last["unreachable_bytes"] or 0)
    limited = json_of("report", log, "--json", *LIMITED)["heap"]["last"]
    assert (len(limited["classes"]), limited["num_classes"]) == (2, last["num_classes"])


def test_an_instrumentation_map(xray_corpus: Path, llvm_xray: str, json_of: Json) -> None:
    """`llvm-xray extract` prints a line per sled."""
    program = xray_corpus / "bin" / "threads22"
    done = subprocess.run([llvm_xray, "extract", program], capture_output=True, text=True, check=True)
    report = json_of("report", "--map", program, "--json")
    assert sum(len(one["sleds"]) for one in report["functions"]) == report["num_sleds"] == done.stdout.count("{ id:")
    assert len(report["functions"]) == report["num_functions"]


def test_differences(xray_corpus: Path, json_of: Json) -> None:
    logs = [xray_corpus / "fdr" / f"{name}-v5.xray" for name in ("lua-small", "sqlite-small")]
    report = json_of("diff", *logs, "--json")
    assert len(report["functions"]) == sum(report["num_functions"].values()) > 10
    assert json_of("diff", *logs, "--json", *LIMITED)["num_functions"] == report["num_functions"]
