"""`close()` and `with` release descriptors, mappings and memory; what was taken before stays valid."""

import gc
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import perfuse as pf

on_linux = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """An XRay log of 200,000 calls."""
    call = struct.pack("<IIII", 1 << 4, 5, 1 << 4 | 2, 5)
    body = call * 200_000
    preamble = struct.pack("<Bi11x", 1, 100) + struct.pack("<Bqi3x", 9, 1, 0)
    preamble += struct.pack("<Bi11x", 19, 77) + struct.pack("<BHQ5x", 5, 1, 10**9)
    path = tmp_path / "xray-log.closing.1"
    header = struct.pack("<HHIQ16x", 5, 1, 3, 10**9)
    path.write_bytes(header + struct.pack("<BQ7x", 15, len(preamble) + len(body)) + preamble + body)
    return path


def mapped(path: Path) -> int:
    """Number of mappings and open descriptors of a file in this process."""
    mappings = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").count(str(path))
    descriptors = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            descriptors += descriptor.readlink() == path
        except OSError:
            continue
    return mappings + descriptors


@on_linux
def test_a_closed_recording_has_no_file(log: Path) -> None:
    with pf.open(log) as recording:
        calls = recording.tables["call_events"].to_arrow()
        summary = recording.summary
        assert mapped(log) > 0
    assert mapped(log) == 0
    assert calls.num_rows == 400_000
    assert summary.records
    assert recording.tables["call_events"].num_rows == 400_000
    with pytest.raises(pf.UsageError, match="closed"):
        recording.check()
    with pytest.raises(pf.UsageError, match="closed"):
        recording.tables["functions"].to_arrow()
    assert "closed" in repr(recording)
    recording.close()


@on_linux
def test_a_closed_profile_has_no_files_and_its_results_stay(log: Path) -> None:
    with pf.fuse(log) as profile:
        rows = profile.sql("SELECT count(*), sum(duration_ns)::BIGINT FROM slices").fetchall()
        relation = profile.sql("SELECT count(*) FROM slices")
        table = profile.tables["functions"]
        assert table.num_rows == 1
    assert rows == [(200_000, 1_000_000)]
    assert relation.fetchall() == [(200_000,)]
    assert table.num_rows == 1
    for question in (lambda: profile.sql("SELECT 1"), lambda: profile.tables["functions"], profile.flame):
        with pytest.raises(pf.UsageError, match="closed"):
            question()
    del relation
    gc.collect()
    assert mapped(log) == 0
    profile.close()


@on_linux
def test_recordings_of_the_caller_stay_open(log: Path) -> None:
    recording = pf.open(log)
    profile = recording.profile()
    part = profile.between(0, 1e-3)
    profile.close()
    assert recording.check() == []
    assert part.sql("SELECT count(*) > 0 FROM slices").fetchall() == [(True,)]
    part.close()
    recording.close()
    gc.collect()
    assert mapped(log) == 0


@on_linux
def test_a_closed_input_may_be_overwritten(log: Path) -> None:
    from perfuse.output.file import check_target

    recording = pf.open(log)
    with pytest.raises(pf.UsageError, match="is an input"):
        check_target(log)
    recording.close()
    check_target(log)


LOOP = """
import gc, os, re, statistics, sys
import perfuse as pf

def used():
    status = open("/proc/self/status").read()
    return int(re.search(r"RssAnon:\\s*(\\d+)", status)[1]) * 1024

def facts():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), open("/proc/self/maps").read().count(sys.argv[1])

memory = []
for turn in range(100):
    with pf.fuse(sys.argv[1]) as profile:
        assert profile.sql("SELECT count(*) FROM slices").fetchall() == [(200_000,)]
        assert profile.tables["functions"].num_rows == 1
    if turn == 40:
        first = facts()
    memory.append(used())
halves = memory[20:60], memory[60:]
print(*first, *facts(), *(int(statistics.median(half)) for half in halves))
"""


@on_linux
def test_a_hundred_profiles_leave_nothing(log: Path) -> None:
    """Neither descriptors nor mappings nor memory grow; 1 MB of each turn would be 40 MB.

    Allocators return memory when they like: that of one turn is up to twice that of another.
    """
    done = subprocess.run([sys.executable, "-c", LOOP, str(log)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, mappings, after, mappings_after, memory, memory_after = map(int, done.stdout.split())
    assert after <= before
    assert (mappings, mappings_after) == (0, 0)
    assert memory_after - memory < 25e6, f"{memory / 1e6:.0f} MB, then {memory_after / 1e6:.0f} MB"


def test_free_threaded_python_is_refused_with_a_reason() -> None:
    code = "import sys; sys.abiflags = 't'; import perfuse"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: perfuse does not support free-threaded CPython" in done.stderr
