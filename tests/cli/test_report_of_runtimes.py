"""`perfuse report` of a Mono log: sections, JSON, object histories, assertions."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Perfuse, report_json

LOG = "output.mlpd"


def test_json_has_every_section_with_data(perfuse: Perfuse) -> None:
    report = report_json(perfuse, LOG)
    assert report["kind"] == "runtime"
    assert {"allocations", "gc", "handles", "locks", "exceptions", "jit", "threads"} <= report.keys()
    assert not {"samples", "calls", "counters", "coverage", "objects"} & report.keys()
    allocations = report["allocations"]
    assert (allocations["count"], allocations["bytes"], allocations["num_types"]) == (382, 18824, 40)
    assert len(allocations["by_type"]) == 40
    assert report["gc"]["pauses"]["count"] == 2
    assert report["locks"]["by_type"][0]["type_name"] == "System.Object"
    assert report["exceptions"]["by_type"] == [{"type_name": "System.InvalidOperationException", "count": 1}]
    assert report["threads"][0]["native_address"].startswith("0x")


def test_a_section_has_all_rows(perfuse: Perfuse) -> None:
    report = report_json(perfuse, LOG, "--section", "allocations", "--limit", "0", "--sort", "count")
    assert {"gc", "locks"}.isdisjoint(report)
    types = report["allocations"]["by_type"]
    assert len(types) == report["allocations"]["num_types"]
    assert [one["count"] for one in types] == sorted((one["count"] for one in types), reverse=True)
    assert sum(one["bytes"] for one in types) == report["allocations"]["bytes"]
    assert sum(one["bytes"] for one in report["allocations"]["by_site"]) == report["allocations"]["bytes"]
    assert sum(one["bytes"] for one in report["allocations"]["by_thread"]) == report["allocations"]["bytes"]


def test_a_thread_and_a_time(perfuse: Perfuse) -> None:
    whole = report_json(perfuse, LOG, "--section", "allocations")["allocations"]
    by_thread = {one["thread"]: one["count"] for one in whole["by_thread"]}
    name, number = next(label.rsplit(" ", 1) for label in by_thread if label.startswith("Main"))
    for thread in (name, number):
        part = report_json(perfuse, LOG, "--section", "allocations", "--thread", thread)["allocations"]
        assert part["count"] == by_thread[f"{name} {number}"]
    early, late = (
        report_json(perfuse, LOG, "--section", "allocations", "--between", span)["allocations"]["count"]
        for span in ("..0.02", "0.02..")
    )
    assert early + late == whole["count"]
    assert early > 0 < late


def test_object_histories(perfuse: Perfuse) -> None:
    (life,) = report_json(perfuse, LOG, "--find", "T:System.InvalidOperationException")["objects"]
    assert [event["what"] for event in life["events"]][:2] == ["allocated", "exception"]
    assert life["events"][1]["backtrace"][-1] == "Tiny:Main ()"
    address = life["events"][0]["object_address"]
    again = report_json(perfuse, LOG, "--track", address)["objects"]
    assert life["events"][0] in [event for one in again for event in one["events"]]
    large = report_json(perfuse, LOG, "--find", "S:300")["objects"]
    assert large
    assert all(one["size_bytes"] >= 300 for one in large)


def test_whole_backtraces(perfuse: Perfuse) -> None:
    done = perfuse("report", LOG, "--section", "exceptions", "--stacks", "--frames", "1")
    assert "  1 System.InvalidOperationException" in done.out
    assert "Tiny:Main ()" in done.out
    done = perfuse("report", LOG, "--section", "allocations", "--stacks", "--frames", "1")
    assert "… 1 more" in done.out
    assert "(wrapper" not in done.out


@pytest.mark.parametrize("section", ["header", "program", "records", "jit", "threads", "handles", "gc", "locks"])
def test_every_section_has_text(perfuse: Perfuse, section: str) -> None:
    done = perfuse("report", LOG, "--section", section)
    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) > 6


def test_assertions_that_hold_and_fail(perfuse: Perfuse) -> None:
    holds = perfuse("report", LOG, "--assert", "allocations.bytes < 50MB", "--assert", "gc.pauses.max <= 1s")
    assert (holds.code, holds.err) == (0, "")
    assert "  holds  allocations.bytes < 50MB  it is 18.4 KiB (18,824)" in holds.out
    fails = perfuse("report", LOG, "--assert", "exceptions.count == 0", "--assert", "allocations.count == 382")
    assert fails.code == 1
    assert "  fails  exceptions.count == 0  it is 1" in fails.out
    assert "  holds  allocations.count == 382" in fails.out
    done = perfuse("report", "--json", LOG, "--assert", "calls.count == 0")
    assert (done.code, json.loads(done.out)["assertions"]) == (
        1,
        [
            {
                "assertion": "calls.count == 0",
                "value": None,
                "holds": False,
                "reason": "not recorded (mono --profile=log:calls)",
            }
        ],
    )


def test_assertions_for_every_format(perfuse: Perfuse) -> None:
    assert perfuse("report", "xray-log.server.uocuES", "--assert", "calls.count == 102").code == 0
    assert perfuse("report", "perf.data", "--assert", "samples.count > 10").code == 0
    assert perfuse("report", "jit-2345.dump", "--assert", "code.bytes > 1MiB").code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((LOG, "--section", "allocs"), "no section 'allocs'"),
        ((LOG, "--assert", "allocations.bytes"), "is not an assertion"),
        ((LOG, "--assert", "allocations.bytes < 5 stones"), "is not a unit"),
        ((LOG, "--assert", "calls.counts > 0"), "did you mean calls.count"),
        ((LOG, "--assert", "allocations['No.Such'].count > 0"), "there is no type 'No.Such'"),
        (("xray-log.server.uocuES", "--assert", "calls['demo::throwr(int)'].p99 < 1s"), "demo::thrower(int)"),
        ((LOG, "--track", "here"), "'here' is not an address"),
        ((LOG, "--find", "4096"), "neither S:SIZE"),
        (
            ("perf.data", "--section", "gc"),
            "--section is an option for runtime logs (Mono), and this is a report of samples",
        ),
    ],
)
def test_usage_errors(perfuse: Perfuse, words: tuple[str, ...], message: str) -> None:
    done = perfuse("report", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize("words", [(), ("--json",), ("--between", "0..0.02", "--thread", "Main")])
def test_no_database_is_loaded(recordings: Path, words: tuple[str, ...]) -> None:
    code = (
        f"import sys; from perfuse.cli import run; run(['report', {LOG!r}, *{words!r}]);"
        "print([m for m in ('perfuse.query', 'duckdb', 'numpy', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=recordings, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_stacks_of_calls_that_never_return_are_limited(perfuse: Perfuse, mono_corpus: Path) -> None:
    """20,002 stacks of up to 20,002 functions have 200 million names: the first are listed, and the number of all."""
    done = perfuse("report", "--json", str(mono_corpus / "malformed" / "enter-flood-no-leave.mlpd"))
    [listed] = json.loads(done.out)["calls"]["stacks"]
    lengths = [len(stack["functions"]) for stack in listed["stacks"]]
    assert listed["num_stacks"] == 20_002
    assert 1_000 < len(lengths) < 20_002
    assert sum(lengths) <= 2_000_000
