"""Logs of processes with the same ids, as of two containers, each of which has a process 1 with a thread 1.

The logs are assembled here: what each thread did follows from its records.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import perfuse as pf
from fusing import mono_bytes

MAIN, LEAF = 1, 2
HZ = 1_000_000_000
FIRST = [(MAIN, 1000, 9000), (LEAF, 2000, 3000)]
SECOND = [(MAIN, 1500, 8500), (LEAF, 2500, 4000), (LEAF, 5000, 5100)]
LATER = [(MAIN, 20_000, 20_700)]
"""Function, start and end of each call, in nanoseconds."""


def log(calls: list[tuple[int, int, int]], *, pid: int = 1, tid: int = 1) -> bytes:
    """An XRay log of Basic mode, version 3."""
    events = [(start, 0, function) for function, start, _ in calls] + [(end, 1, function) for function, _, end in calls]
    records = (struct.pack("<HBBiQIIQ", 0, 0, kind, function, at, tid, pid, 0) for at, kind, function in sorted(events))
    return struct.pack("<HHIQ16x", 3, 0, 3, HZ) + b"".join(records)


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "xray-log.a.AAAAAA", tmp_path / "xray-log.a.BBBBBB"
    for path, calls in zip(paths, (FIRST, SECOND), strict=True):
        path.write_bytes(log(calls))
    return paths


def calls_of(profile: pf.Profile) -> list[tuple[int, int, int, int, int]]:
    """Log, function, start, duration and depth of each call."""
    return profile.sql(
        "SELECT source_id, f.native_id, s.start_ns, duration_ns, depth FROM slices s "
        "JOIN functions f USING (function_id) ORDER BY ALL"
    ).fetchall()


EXPECTED = sorted(
    (source, function, start, end - start, int(function == LEAF))
    for source, calls in enumerate((FIRST, SECOND))
    for function, start, end in calls
)


def test_each_process_is_its_own(logs: tuple[Path, Path]) -> None:
    profile = pf.fuse(*logs)
    assert calls_of(profile) == EXPECTED
    assert profile.sql("SELECT pid FROM processes").fetchall() == [(1,), (1,)]
    threads = "SELECT tid, process_id, count(*) FROM slices JOIN threads USING (thread_id) GROUP BY ALL ORDER BY ALL"
    assert profile.sql(threads).fetchall() == [(1, 0, len(FIRST)), (1, 1, len(SECOND))]
    command = [sys.executable, "-m", "perfuse", "report", "--json", *map(str, logs)]
    report = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
    assert sorted((row["num_calls"], row["busy_ns"]) for row in report["threads"]) == [(2, 8000), (3, 7000)]
    text = subprocess.run([*command[:4], *map(str, logs)], capture_output=True, text=True, check=False).stdout
    assert "2 processes, 2 threads" in text


def test_a_saved_profile_has_the_same_processes(logs: tuple[Path, Path], tmp_path: Path) -> None:
    profile = pf.fuse(*logs)
    profile.save(tmp_path / "both.perfuse")
    saved = pf.fuse(tmp_path / "both.perfuse")
    question = "SELECT * FROM threads JOIN processes USING (process_id) ORDER BY ALL"
    assert calls_of(saved) == EXPECTED
    assert saved.sql(question).fetchall() == profile.sql(question).fetchall()


def test_exports_have_a_track_for_each_thread(logs: tuple[Path, Path], tmp_path: Path) -> None:
    profile = pf.fuse(*logs)
    profile.export(tmp_path / "a.trace.json")
    events = json.loads((tmp_path / "a.trace.json").read_text())["traceEvents"]
    tracks = Counter((event["pid"], event["tid"]) for event in events if event["ph"] == "X")
    assert sorted(tracks.values()) == [len(FIRST), len(SECOND)]
    profile.export(tmp_path / "a.speedscope.json")
    written = json.loads((tmp_path / "a.speedscope.json").read_text())
    depths = []
    for one in written["profiles"]:
        depth = 0
        for event in one["events"]:
            depth += 1 if event["type"] == "O" else -1
            depths.append(depth)
    assert max(depths) == 2, "no call of one process is within a call of another"
    assert len(written["profiles"]) == 2


def test_one_log_cannot_have_both(logs: tuple[Path, Path], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "perfuse", "convert", *map(str, logs), "-o", str(tmp_path / "both.xray")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "thread 1 of process 1 is in both at one time" in done.stderr
    assert not (tmp_path / "both.xray").exists()


def test_logs_that_one_process_wrote_in_succession_are_of_one_process(tmp_path: Path) -> None:
    paths = tmp_path / "xray-log.a.AAAAAA", tmp_path / "xray-log.a.BBBBBB"
    for path, calls in zip(paths, (FIRST, LATER), strict=True):
        path.write_bytes(log(calls))
    profile = pf.fuse(*paths)
    assert profile.sql("SELECT pid, count(*) FROM processes GROUP BY 1").fetchall() == [(1, 1)]
    profile.export(tmp_path / "both.xray")
    again = pf.fuse(tmp_path / "both.xray")
    assert again.sql("SELECT count(*), sum(duration_ns) FROM slices").fetchall() == [(3, 8000 + 1000 + 700)]


def test_mono_logs_of_containers(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.mlpd").write_bytes(mono_bytes.log(1, [1000, 2000], start_ns=5000))
    profile = pf.fuse(tmp_path / "a.mlpd", tmp_path / "b.mlpd")
    assert profile.sql("SELECT pid FROM processes").fetchall() == [(1,), (1,)]
    sums = "SELECT source_id, count(*), sum(duration_ns) FROM slices WHERE kind = 'call' GROUP BY 1 ORDER BY 1"
    assert profile.sql(sums).fetchall() == [(0, 2, 3000), (1, 2, 3000)]
    per_process = "SELECT process_id, count(*) FROM slices JOIN threads USING (thread_id) GROUP BY 1 ORDER BY 1"
    assert profile.sql(per_process).fetchall() == [(0, 2), (1, 2)]


def mono_logs(directory: Path, starts_ms: tuple[int, int], starts_ns: tuple[int, int]) -> pf.Profile:
    """Two logs of process 1 with two calls each."""
    paths = directory / "a.mlpd", directory / "b.mlpd"
    for path, started_ms, start_ns in zip(paths, starts_ms, starts_ns, strict=True):
        path.write_bytes(mono_bytes.log(1, [1000, 2000], start_ns=start_ns, started_ms=started_ms))
    return pf.fuse(*paths)


def test_mono_logs_of_one_container_that_was_started_twice(tmp_path: Path) -> None:
    """They do not overlap, but their headers state that the processes began at different times."""
    profile = mono_logs(tmp_path, (1_700_000_000_000, 1_700_000_060_000), (5_000, 60_000_005_000))
    assert profile.sql("SELECT pid FROM processes").fetchall() == [(1,), (1,)]
    profile.save(tmp_path / "both.perfuse")
    saved = pf.fuse(tmp_path / "both.perfuse")
    for one in (profile, saved):
        per_process = "SELECT process_id, count(*) FROM slices JOIN threads USING (thread_id) GROUP BY 1 ORDER BY 1"
        assert one.sql(per_process).fetchall() == [(0, 2), (1, 2)]


def test_parts_of_one_mono_log_are_of_one_process(tmp_path: Path) -> None:
    profile = mono_logs(tmp_path, (1_700_000_000_000,) * 2, (5_000, 60_000_005_000))
    assert profile.sql("SELECT pid, count(*) FROM processes GROUP BY 1").fetchall() == [(1, 1)]


def test_counters_of_heaps_are_of_their_processes(mono_corpus: Path, tmp_path: Path) -> None:
    """A log, and a copy whose header states another start: each has its own counters, those of the log alone."""
    log = next(path for path in sorted(mono_corpus.rglob("*.mlpd")) if pf.fuse(path).has("heap_snapshots"))
    other = bytearray(log.read_bytes())
    # The start is a 64-bit field at offset 8, in milliseconds.
    struct.pack_into("<q", other, 8, struct.unpack_from("<q", other, 8)[0] + 60_000)
    (tmp_path / "other.mlpd").write_bytes(other)

    def counters(*paths: Path) -> dict[int, list[tuple[str, float]]]:
        target = tmp_path / f"{len(paths)}.trace.json"
        pf.fuse(*paths).export(target)
        found: dict[int, list[tuple[str, float]]] = {}
        for event in json.loads(target.read_text())["traceEvents"]:
            if event["ph"] == "C":
                found.setdefault(event["pid"], []).append((event["name"], *event["args"].values()))
        return found

    ((pid, alone),) = counters(log).items()
    both = counters(log, tmp_path / "other.mlpd")
    assert len(both) == 2
    assert pid in both
    assert [sorted(one) for one in both.values()] == [sorted(alone)] * 2
