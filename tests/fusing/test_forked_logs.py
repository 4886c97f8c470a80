"""XRay logs of a process and of one that it forked: what `fork` copied is counted once.

Some logs are assembled here; a program prints how often its parent and its child called a function.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import perfuse as pf
from needs import need
from truth.producers import PROGRAMS, run_tool
from xray_bytes import HZ, Calls, buffer, log

SERVE, BEFORE, CHILD, PARENT = 1, 2, 3, 4

OLD: Calls = [(0, BEFORE, 10), (1, BEFORE, 100), (0, BEFORE, 10), (1, BEFORE, 50)]
SHARED: Calls = [(0, SERVE, 10), (0, BEFORE, 20), (1, BEFORE, 30)]
OF_CHILD: Calls = [(0, CHILD, 400), (1, CHILD, 5), (1, SERVE, 5)]
OF_PARENT: Calls = [(0, PARENT, 300), (1, PARENT, 7), (0, PARENT, 3), (1, PARENT, 9), (1, SERVE, 1)]


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    old = buffer(HZ, OLD)
    parent = log(tmp_path / "xray-log.a.parent", old, buffer(2 * HZ, SHARED + OF_PARENT))
    child = log(tmp_path / "xray-log.a.child", old, buffer(2 * HZ, SHARED + OF_CHILD))
    return parent, child


def calls_of(profile: pf.Profile) -> list[tuple[int, int, int, int]]:
    """Log, function, start relative to the second buffer, duration of the calls whose start was recorded."""
    first = "(SELECT min(start_ns) FROM slices)"
    return profile.sql(
        f"SELECT source_id, f.native_id, s.start_ns - {first} + 10 - {HZ}, duration_ns FROM slices s "
        "JOIN functions f USING (function_id) WHERE start_reason::VARCHAR = 'entry' ORDER BY ALL"
    ).fetchall()


BEFORE_FORK = [(BEFORE, 10 - HZ, 100), (BEFORE, 120 - HZ, 50), (BEFORE, 30, 30)]
WHOLE_PARENT = sorted([*BEFORE_FORK, (SERVE, 10, 370), (PARENT, 360, 7), (PARENT, 370, 9)])
ONLY_CHILD = [(CHILD, 460, 5)]


@pytest.mark.truth(recording="xray_fdr", path="report", source="logs assembled here")
def test_calls_before_the_fork_are_counted_once(logs: tuple[Path, Path]) -> None:
    profile = pf.fuse(*logs)
    expected = [(0, *call) for call in WHOLE_PARENT] + [(1, *call) for call in ONLY_CHILD]
    assert calls_of(profile) == expected
    # The call that was open when the child was forked ends in the child, too.
    question = "SELECT count(*) FROM slices WHERE source_id = 1 AND start_reason::VARCHAR <> 'entry'"
    assert profile.sql(question).fetchall() == [(1,)]
    (finding,) = [one for one in profile.diagnostics if one.code == "FU024"]
    assert finding.path == str(logs[1])
    assert "7 events" in finding.message


def test_each_log_alone_has_all_that_it_contains(logs: tuple[Path, Path]) -> None:
    assert calls_of(pf.fuse(logs[0])) == [(0, *call) for call in WHOLE_PARENT]
    child = sorted([*BEFORE_FORK, (SERVE, 10, 460), *ONLY_CHILD])
    assert calls_of(pf.fuse(logs[1])) == [(0, *call) for call in child]


def test_buffers_of_a_parent_are_reported(logs: tuple[Path, Path], tmp_path: Path) -> None:
    """A forked process states its pid in buffers of its own; processes that take turns are of logs put together."""
    of_child = log(tmp_path / "child", buffer(HZ, OLD), buffer(2 * HZ, SHARED), buffer(3 * HZ, OF_CHILD, pid=8, tid=8))
    turns = log(tmp_path / "turns", buffer(HZ, OLD), buffer(2 * HZ, OLD, pid=8, tid=8), buffer(3 * HZ, OLD))
    for path in (*logs, turns):
        assert "XR028" not in {one.code for one in pf.check(path)}
    (message,) = [one.message for one in pf.check(of_child) if one.code == "XR028"]
    assert message == "buffers of process 7 precede those of process 8"
    assert "XR028" in {one.code for one in pf.fuse(of_child).diagnostics}


def test_a_log_that_others_contain_is_not_counted_again(logs: tuple[Path, Path], tmp_path: Path) -> None:
    copy = tmp_path / "xray-log.a.copy"
    copy.write_bytes(logs[0].read_bytes())
    assert calls_of(pf.fuse(logs[0], copy)) == [(0, *call) for call in WHOLE_PARENT]


def test_a_grandchild_has_events_of_both(logs: tuple[Path, Path], tmp_path: Path) -> None:
    tail: Calls = [*SHARED, *OF_CHILD[:2], (0, PARENT, 1000), (1, PARENT, 2)]
    grandchild = log(tmp_path / "xray-log.a.grandchild", buffer(HZ, OLD), buffer(2 * HZ, tail))
    found = [row for row in calls_of(pf.fuse(*logs, grandchild)) if row[0] == 2]
    assert found == [(2, PARENT, 1465, 2)]


def test_a_saved_profile_and_a_flame_graph_have_each_call_once(logs: tuple[Path, Path], tmp_path: Path) -> None:
    profile = pf.fuse(*logs)
    saved = tmp_path / "both.perfuse"
    profile.save(saved)
    assert calls_of(pf.fuse(saved)) == calls_of(profile)
    command = [sys.executable, "-m", "perfuse", "convert", "--to", "collapsed", "-O", "event=calls", "-o", "-"]
    done = subprocess.run([*command, *logs], capture_output=True, text=True, check=True)
    counts = sorted(int(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines())
    # `SERVE` ends in the child, too.
    assert sum(counts) == len(WHOLE_PARENT) + len(ONLY_CHILD) + 1
    again = subprocess.run([*command, saved], capture_output=True, text=True, check=True)
    assert again.stdout == done.stdout


@pytest.mark.truth(recording="xray_fdr", path="report", source="a program that counts its calls")
def test_a_program_that_forks(tmp_path: Path) -> None:
    need("clang++-22")
    flags = ["-O1", "-g1", "-fxray-instrument"]
    run_tool(["clang++-22", *flags, PROGRAMS / "forked_calls.cpp", "-o", "forked_calls"], tmp_path)
    done = subprocess.run([tmp_path / "forked_calls"], cwd=tmp_path, capture_output=True, text=True, check=True)
    stated = dict(line.split() for line in done.stdout.splitlines())
    logs = sorted(tmp_path.glob("xray-log.*"))
    assert len(logs) == 2
    command = [sys.executable, "-m", "perfuse", "report", "--json", "--limit", "0", *map(str, logs)]
    report = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    calls = {row["name"]: row["num_calls"] for row in report["functions"]}
    assert calls["leaf()"] == int(stated["parent"]) + int(stated["child"])
    assert [calls[name] for name in ("before()", "of_child()", "of_parent()")] == [1, 1, 1]
