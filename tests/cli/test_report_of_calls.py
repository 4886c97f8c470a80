"""`perfuse report` of call traces: JSON and CSV that scripts rely on, options, and modules that are not imported."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Perfuse, report_json

LOG = "xray-log.server.uocuES"


def test_json(perfuse: Perfuse) -> None:
    report = report_json(perfuse, LOG)
    assert (report["kind"], report["unit"], report["by"], report["sort"]) == ("calls", "ns", "function", "self")
    assert report["totals"]["num_calls"] == 102
    assert (report["num_called"], report["num_functions"], len(report["functions"])) == (17, 17, 17)
    first = report["functions"][0]
    assert (first["name"], first["native_id"], first["num_calls"]) == ("demo::thrower(int)", 8, 16)
    assert (first["num_unwound"], first["recursive_calls"], first["thread"], first["cpu"]) == (16, 12, None, None)
    (clock,) = report["clocks"]
    assert (clock["stated_hz"], clock["hz_source"]) == (2596127000, "unverified")
    assert report["instants"] == [{"kind": "custom_event", "event_type": None, "count": 4}]
    assert report["edges"] is None
    whole = sum(one["busy_ns"] for one in report["threads"])
    assert sum(one["self_ns"] for one in report_json(perfuse, LOG, "--limit", "0")["functions"]) == whole


def test_views(perfuse: Perfuse) -> None:
    report = report_json(perfuse, LOG, "--graph", "--limit", "0")
    assert sum(edge["num_calls"] for edge in report["edges"]) == 102
    assert [edge["callee"]["name"] for edge in report["edges"] if edge["caller"] is None] == ["run(int)"]
    tree = report_json(perfuse, LOG, "--tree", "--limit", "0")["tree"]
    assert (tree["nodes"][0]["function"]["name"], tree["nodes"][0]["depth"]) == ("run(int)", 0)
    assert sum(node["self_count"] for node in tree["nodes"]) == 102
    done = perfuse("report", LOG, "--tree", "--per-thread")
    assert (done.code, done.out) == (2, "")


def test_a_selection(perfuse: Perfuse) -> None:
    chained = report_json(perfuse, LOG, "--function", "demo::chain*", "--sort", "name")
    assert [one["name"] for one in chained["functions"]] == ["demo::chain_a(long)", "demo::chain_b(long)"]
    by_cpu = report_json(perfuse, LOG, "--by", "cpu")
    assert {one["cpu"] for one in by_cpu["functions"]} == {0}
    (thread,) = report_json(perfuse, LOG, "--per-thread")["threads"]
    (list_of_one,) = report_json(perfuse, LOG, "--per-thread")["stacks"]
    assert list_of_one["thread"] == thread["thread"]
    recursive = report_json(perfuse, LOG, "--recursive-only")["functions"]
    assert {one["name"]: one["num_timed"] for one in recursive if one["num_timed"]} == {"demo::thrower(int)": 12}


def test_a_given_rate_scales_times(perfuse: Perfuse) -> None:
    at_header, at_half = (
        next(
            one["sum_ns"]
            for one in report_json(perfuse, LOG, "--tsc-hz", rate)["functions"]
            if one["name"] == "run(int)"
        )
        for rate in ("header", "1298063500")
    )
    assert at_half == pytest.approx(2 * at_header, abs=2)


def test_csv_has_every_function(perfuse: Perfuse) -> None:
    rows = list(csv.DictReader(perfuse("report", LOG, "--format", "csv").out.splitlines()))
    report = report_json(perfuse, LOG, "--limit", "0")
    assert [row["function"] for row in rows] == [one["name"] for one in report["functions"]]
    assert [int(row["sum_ns"]) for row in rows] == [one["sum_ns"] for one in report["functions"]]


def test_csv_as_llvm_xray_prints_it(perfuse: Perfuse) -> None:
    lines = perfuse("report", LOG, "--format", "csv", "--llvm-compat").out.splitlines()
    assert lines[:3] == [
        "funcid,count,min,median,90%ile,99%ile,max,sum,debug,function",
        # Lines that llvm-xray 22 prints for this log.
        "1,20,3.004476e-08,4.005967e-08,5.007459e-08,6.008951e-08,6.008951e-08,8.512681e-07,"
        '"<invalid>:0:0","demo::Acc::add(long)"',
        "2,1,5.007459e-08,5.007459e-08,5.007459e-08,5.007459e-08,5.007459e-08,5.007459e-08,"
        '"<invalid>:0:0","demo::Acc::total() const"',
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("jit-2345.dump", "--stacks"), "--stacks is an option for runtime logs (Mono)"),
        ((LOG, "--sort", "slf"), "'slf' is not one of"),
        ((LOG, "--function", "/(/"), "not a valid regular expression"),
        ((), "nothing to report"),
    ],
)
def test_usage_errors(perfuse: Perfuse, words: tuple[str, ...], message: str) -> None:
    done = perfuse("report", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_no_large_library_is_imported(recordings: Path) -> None:
    code = (
        f"import sys; from perfuse.cli import run; run(['report', {LOG!r}]);"
        "print([m for m in ('duckdb', 'numpy', 'pyarrow', 'rich') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=recordings, env={**os.environ}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
