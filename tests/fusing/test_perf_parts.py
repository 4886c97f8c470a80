"""What `perf record --switch-output` writes: the files of a run together, compared with perf's list of samples."""

import subprocess
from pathlib import Path

import pytest

import perfuse as pf
from needs import need
from truth.command import json_of
from truth.producers import run_tool

SOURCE = """
#include <time.h>
static volatile long sum;
__attribute__((noinline)) void busy(long n) { while (n--) sum += n; }
int main(void) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do { busy(100000); clock_gettime(CLOCK_MONOTONIC, &now); } while (now.tv_sec < start.tv_sec + 4);
}
"""
TRIES = 10
"""perf does not switch when its first second is over before it has started, as on a busy machine."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of a run, in the order of their times."""
    need("perf", "cc")
    directory = tmp_path_factory.mktemp("program")
    (directory / "busy.c").write_text(SOURCE, encoding="ascii")
    run_tool(["cc", "-O1", "busy.c", "-o", "busy"], directory)
    how = ["record", "-q", "-N", "-e", "cpu-clock", "-F", "499", "--switch-output=1s", "-o", "perf.data"]
    for _ in range(TRIES):
        written = tmp_path_factory.mktemp("parts")
        run_tool(["perf", *how, "--", directory / "busy"], written)
        if len(found := sorted(written.iterdir())) > 1:
            return found
    pytest.fail(f"perf wrote one file in {TRIES} runs")


def samples_of(part: Path) -> list[tuple[int, int]]:
    """Time and period of each sample, as perf prints them."""
    command = ["perf", "script", "-F", "time,period", "--ns", "-i", part]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in printed.splitlines()]
    return [(int(time.rstrip(":").replace(".", "")), int(period)) for time, period in rows]


def test_the_files_of_a_run_are_one_profile(parts: list[Path]) -> None:
    """Its samples are those of all parts, and its time is from the first to the last."""
    expected = [sample for part in parts for sample in samples_of(part)]
    with pf.fuse(*parts) as profile:
        sums = profile.sql("SELECT count(*), sum(weight)::BIGINT, min(ts_ns), max(ts_ns) FROM samples").fetchall()
        processes = profile.sql("SELECT count(DISTINCT pid) FROM processes WHERE pid > 0").fetchall()
    times = [time for time, _ in expected]
    assert sums == [(len(expected), sum(period for _, period in expected), min(times), max(times))]
    assert processes == [(1,)]


def test_later_files_have_names_by_the_mappings_of_earlier_ones(parts: list[Path]) -> None:
    """They do not repeat the mappings of a process that began before: perf has no names there."""
    report = json_of("report", *parts, "--limit", "0")
    num_samples = sum(len(samples_of(part)) for part in parts)
    assert [one["samples"] for one in report["events"]] == [num_samples]
    assert sum(one["samples"] for one in report["top_self"] if one["name"] == "busy") > 0.9 * num_samples


def test_their_directory_states_how_to_open_them(parts: list[Path]) -> None:
    directory = parts[0].parent
    with pytest.raises(pf.UsageError, match="several recordings in") as refused:
        pf.fuse(directory)
    assert str(refused.value.hint).endswith(f" open them together: {directory}/perf.data.[0-9]*")
    assert sorted(directory.glob("perf.data.[0-9]*")) == parts
