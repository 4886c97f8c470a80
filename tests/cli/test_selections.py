"""Selections of threads and times that select nothing are errors that name what there is."""

import subprocess
from pathlib import Path

import pytest
from command_line import Perfuse

import perfuse as pf
from perfuse.errors import UsageError

COUNT = "SELECT count(*) FROM samples"
MONO_LOG = "output.mlpd"


@pytest.mark.parametrize(
    ("thread", "hint"), [("nosuch", "known: llvmjit"), ("lvmjit", "did you mean llvmjit?"), ("14514", "14513")]
)
@pytest.mark.parametrize("verb", ["query", "report", "flame", "convert"])
def test_a_thread_that_does_not_exist_is_an_error(perfuse: Perfuse, verb: str, thread: str, hint: str) -> None:
    words = {"query": [COUNT], "report": [], "flame": ["-o", "out.html"], "convert": ["-o", "out.folded"]}[verb]
    done = perfuse(verb, "perf.data", *words, "--thread", thread)
    assert (done.code, done.out) == (2, "")
    assert "no thread" in done.err
    assert hint in done.err


@pytest.mark.parametrize("verb", ["query", "report", "flame", "convert"])
def test_a_time_outside_the_recording_is_an_error(perfuse: Perfuse, verb: str) -> None:
    words = {"query": [COUNT], "report": [], "flame": ["-o", "out.html"], "convert": ["-o", "out.folded"]}[verb]
    done = perfuse(verb, "perf.data", *words, "--between", "5..6")
    assert (done.code, done.out) == (2, "")
    # perf script --ns: the first sample is at 1255.434646219, the last at 1255.573601875.
    assert "the recording is from 0 to 0.138955656 s" in done.err


def test_a_recording_without_times_has_no_selection_of_them(perfuse: Perfuse) -> None:
    done = perfuse("query", "jit-2345.dump", COUNT, "--between", "0..1")
    assert done.code == 2
    assert "time" in done.err


@pytest.mark.parametrize(
    ("start_s", "end_s"), [(1.0, 0.5), (0.05, 0.05), (float("nan"), 1.0), (0.5, 1.0), (-2.0, -1.0), (-1.0, 0.0)]
)
def test_ranges_without_time_are_errors_in_python(recordings: Path, start_s: float, end_s: float) -> None:
    profile = pf.fuse(recordings / "perf.data")
    with pytest.raises(UsageError) as error:
        profile.between(start_s, end_s)
    assert error.value.hint == "the recording is from 0 to 0.138955656 s"


def test_threads_that_do_not_exist_are_errors_in_python(recordings: Path) -> None:
    profile = pf.fuse(recordings / MONO_LOG)
    for thread in ("Mane", "Finaliser"):
        with pytest.raises(UsageError) as error:
            profile.thread(thread)
        assert error.value.hint
        assert error.value.hint.startswith("did you mean ")
    for thread in (4242, "4242"):
        with pytest.raises(UsageError):
            profile.thread(thread)


@pytest.mark.truth(recording="perf_data", path=["query", "api:Profile.between"], source="perf script -F time")
def test_samples_of_a_range_are_those_of_perf(recordings: Path, perfuse: Perfuse) -> None:
    """`perf script` prints the time of each sample; a range contains those from its start up to its end."""
    listed = subprocess.run(
        ["perf", "script", "--ns", "-F", "time", "-i", recordings / "perf.data"],
        capture_output=True,
        text=True,
        check=False,
    )
    times = [round(float(line.strip(" :")) * 1e9) for line in listed.stdout.splitlines() if line.strip()]
    assert len(times) == 553
    middle_ns = times[0] + 50_000_000
    first = perfuse("query", "perf.data", COUNT, "--between", "..0.05", "--format", "csv").out.split()[1]
    rest = perfuse("query", "perf.data", COUNT, "--between", "0.05..", "--format", "csv").out.split()[1]
    assert int(first) == sum(time < middle_ns for time in times)
    assert int(rest) == sum(time >= middle_ns for time in times)


@pytest.mark.parametrize("words", [("--between", "0..1"), ("--thread", "1")])
def test_pack_lists_no_options_that_it_refuses(perfuse: Perfuse, recordings: Path, words: tuple[str, str]) -> None:
    option = words[0]
    assert option not in perfuse("pack", "--help").out
    done = perfuse("pack", "perf.data", "-o", "x.perfuse", *words)
    assert done.code == 2
    assert "only a whole profile can be saved" in done.err
    assert not (recordings / "x.perfuse").exists()


@pytest.mark.parametrize(
    "sql",
    [
        "FROM mappings -- samples",
        "SELECT count(*) AS samples FROM mappings",
        "SELECT samples.path FROM mappings AS samples",
        "SELECT 'samples', count(*) FROM mappings",
        "WITH samples AS (FROM mappings) FROM samples",
    ],
)
def test_a_query_of_other_tables_has_no_selection(perfuse: Perfuse, sql: str) -> None:
    for option in (["--thread", "1"], ["--process", "1"], ["--between", "0..1"]):
        done = perfuse("query", "perf.data", sql, *option)
        assert (done.code, done.out) == (2, "")
        assert "selects rows of samples" in done.err
        assert "hint:" in done.err


@pytest.mark.parametrize(
    "sql",
    [
        COUNT,
        'SELECT count(*) FROM "Samples"',
        "WITH part AS (FROM samples) SELECT count(*) FROM part",
        "CREATE TABLE part AS FROM samples; SELECT count(*) FROM part",
    ],
)
def test_a_query_of_samples_has_a_selection(perfuse: Perfuse, sql: str) -> None:
    selection = ("--between", "..0.05", "--format", "csv")
    counts = [perfuse("query", "perf.data", one, *selection).out.split() for one in (sql, COUNT)]
    assert counts[0] == counts[1]
    assert 0 < int(counts[0][1]) < 553
