"""Collapsed stacks as input: what every path reports equals the sums of the text, which the tests add up themselves."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import perfuse as pf
from needs import need

LINES = """\
# events: cycles
node-12/15;main;run_[j];shade_[i] 30
node-12/15;main;run_[j] 10
node-12/16;main;operator new(unsigned long) 2
node-12/16;main;read_[k] 8
node-12/16;main 1
"""
THREADS = {"node 15": 40, "node 16": 11}
SELF = {"shade": 30, "run": 10, "operator new(unsigned long)": 2, "read": 8, "main": 1}
TOTAL = {"shade": 30, "run": 40, "operator new(unsigned long)": 2, "read": 8, "main": 51}

PROGRAM = """
import threading, time

def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def work():
    spin(1.0)

thread = threading.Thread(target=work, name="worker")
thread.start()
thread.join()
spin(0.5)
"""


@pytest.fixture
def folded(tmp_path: Path) -> Path:
    """Five stacks of two threads."""
    path = tmp_path / "node.folded"
    path.write_text(LINES, encoding="utf-8")
    return path


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The output of a command."""
    command = [sys.executable, "-m", "perfuse", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_report(folded: Path) -> None:
    report = json.loads(run("report", "--json", "--limit", "0", folded).stdout)
    assert report["kind"] == "samples"
    assert {one["name"]: one["self_weight"] for one in report["top_self"]} == SELF
    assert {one["name"]: one["total_weight"] for one in report["top_total"]} == TOTAL
    assert {one["name"]: one["samples"] for one in report["top_self"]} == SELF
    assert {one["name"]: one["self_weight"] for one in report["threads"]} == THREADS
    assert report["events"] == [{"name": "samples", "samples": 51, "weight": 51, "unit": "samples"}]


def test_kinds_and_inlined_frames(folded: Path) -> None:
    rows = (
        pf.fuse(folded).sql("SELECT name, kind, inline_depth FROM frames JOIN functions USING (function_id)").fetchall()
    )
    kinds = {name: (kind, depth) for name, kind, depth in rows}
    assert kinds["shade"] == ("jit", 1)
    assert kinds["run"] == ("jit", 0)
    assert kinds["read"] == ("kernel", 0)
    assert kinds["main"] == ("unknown", 0)


def test_written_again_it_is_the_same(folded: Path, tmp_path: Path) -> None:
    out = tmp_path / "again.collapsed"
    assert run("convert", folded, "-o", out, "-O", "annotate=true").returncode == 0
    expected = sorted(line for line in LINES.splitlines() if not line.startswith("#"))
    assert sorted(out.read_text(encoding="utf-8").splitlines()) == expected


def test_other_viewers_get_the_same_total(folded: Path, tmp_path: Path) -> None:
    speedscope, firefox = tmp_path / "out.speedscope.json", tmp_path / "out.firefox.json"
    assert run("convert", folded, "-o", speedscope).returncode == 0
    assert run("convert", folded, "-o", firefox).returncode == 0
    profiles = json.loads(speedscope.read_text(encoding="utf-8"))["profiles"]
    assert sum(sum(profile["weights"]) for profile in profiles) == 51
    threads = json.loads(firefox.read_text(encoding="utf-8"))["threads"]
    assert sum(sum(thread["samples"]["weight"]) for thread in threads) == 51


def test_diff_pairs_functions(folded: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.folded"
    other.write_text(LINES.replace(";shade_[i] 30", ";shade_[i] 33"), encoding="utf-8")
    result = run("diff", folded, other)
    assert "+3" in result.stdout
    assert "+3 (+5.9%)" in result.stdout, "51 and 54 samples"


def test_flame_graph(folded: Path, tmp_path: Path) -> None:
    out = tmp_path / "flame.svg"
    assert run("flame", folded, "-o", out).returncode == 0
    assert "operator new(unsigned long)" in out.read_text(encoding="utf-8")


def test_problems_are_findings(tmp_path: Path) -> None:
    path = tmp_path / "bad.folded"
    path.write_text("a;b 1\n" * 20_000 + "no count\na;b 2.5\n", encoding="utf-8")
    result = run("check", path)
    assert result.returncode == 1
    assert [(one.code, one.offset) for one in pf.check(path)] == [("CS001", 120_000), ("CS003", 120_009)]


def test_a_text_is_not_collapsed_stacks(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("page 10\nline 5\n", encoding="utf-8")
    assert run("report", path).returncode == 3


def test_py_spy(tmp_path: Path) -> None:
    """A real producer: its threads have names, and the totals are those of its text."""
    need("py-spy")
    program, raw = tmp_path / "program.py", tmp_path / "raw.txt"
    program.write_text(PROGRAM, encoding="utf-8")
    command = ["py-spy", "record", "--rate", "100", "--threads", "--subprocesses", "--format", "raw", "--output", raw]
    subprocess.run([*command, "--", sys.executable, program], check=True, capture_output=True)
    stacks: Counter[str] = Counter()
    threads: Counter[str] = Counter()
    for line in raw.read_text(encoding="utf-8").splitlines():
        frames, count = line.rsplit(" ", 1)
        leaf = frames.split(";")[-1]
        # A thread that py-spy finds before its first and after its last function has no frames.
        stacks["[no stack]" if leaf.startswith("thread (") else leaf] += int(count)
        threads[frames.split(";")[1].removeprefix("thread (").partition(")")[0]] += int(count)
    report = json.loads(run("report", "--json", "--limit", "0", raw).stdout)
    assert {one["name"]: one["self_weight"] for one in report["top_self"]} == dict(stacks)
    # A thread without a name may get one during the recording.
    names: set[str] = set()
    numbers: Counter[str] = Counter()
    for one in report["threads"]:
        name, _, number = one["name"].rpartition(" ")
        names.add(name)
        numbers[number] += one["self_weight"]
    assert numbers == threads
    assert {"worker", "MainThread"} <= names


def test_a_large_file_is_read_in_pieces(tmp_path: Path) -> None:
    """Beyond the size of a chunk, sums are those of the text as well."""
    path = tmp_path / "large.folded"
    expected: Counter[str] = Counter()
    with path.open("w", encoding="utf-8") as out:
        for number in range(200_000):
            leaf = f"function_{number % 977}"
            expected[leaf] += number % 7
            out.write(f"main;level_one_{number % 13};level_two_{number % 101};{leaf} {number % 7}\n")
    named = "samples JOIN stacks USING (stack_id) JOIN frames USING (frame_id) JOIN functions USING (function_id)"
    sums = pf.fuse(path).sql(f"SELECT name, sum(weight) FROM {named} GROUP BY 1").fetchall()
    assert dict(sums) == dict(expected)
