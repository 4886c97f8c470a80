"""What `perf record --switch-output` writes: the files of a run together, compared with perf's list of samples."""

import subprocess
import sys
from pathlib import Path

import pytest

import perfuse as pf
from needs import need
from truth.producers import run_tool

PROGRAM = "import time\nend = time.monotonic() + 3.3\nwhile time.monotonic() < end: pass\n"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of a run, in the order of their times."""
    need("perf")
    directory = tmp_path_factory.mktemp("parts")
    how = ["record", "-q", "-N", "-e", "cpu-clock", "-F", "499", "--switch-output=1s", "-o", "perf.data"]
    run_tool(["perf", *how, "--", sys.executable, "-c", PROGRAM], directory)
    return sorted(directory.iterdir())


def samples_of(part: Path) -> list[tuple[int, int]]:
    """Time and period of each sample, as perf prints them."""
    command = ["perf", "script", "-F", "time,period", "--ns", "-i", part]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in printed.splitlines()]
    return [(int(time.rstrip(":").replace(".", "")), int(period)) for time, period in rows]


def test_the_files_of_a_run_are_one_profile(parts: list[Path]) -> None:
    """Its samples are those of all parts, and its time is from the first to the last."""
    assert len(parts) >= 3
    expected = [sample for part in parts for sample in samples_of(part)]
    with pf.fuse(*parts) as profile:
        sums = profile.sql("SELECT count(*), sum(weight)::BIGINT, min(ts_ns), max(ts_ns) FROM samples").fetchall()
        processes = profile.sql("SELECT count(DISTINCT pid) FROM processes WHERE pid > 0").fetchall()
    times = [time for time, _ in expected]
    assert sums == [(len(expected), sum(period for _, period in expected), min(times), max(times))]
    assert processes == [(1,)]


def test_their_directory_states_how_to_open_them(parts: list[Path]) -> None:
    directory = parts[0].parent
    with pytest.raises(pf.UsageError, match="several recordings in") as refused:
        pf.fuse(directory)
    assert str(refused.value.hint).endswith(f" open them together: {directory}/perf.data.[0-9]*")
    assert sorted(directory.glob("perf.data.[0-9]*")) == parts
