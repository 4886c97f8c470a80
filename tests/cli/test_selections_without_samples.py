"""A selection of threads and time that leaves no samples is the reason that every verb states: exit code 2, no file."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Perfuse

import perf_crafting as crafting
from perf_crafting import Attribute, PerfFile
from perfuse.exporters.registry import TARGETS

FIELDS = crafting.IDENTIFIER | crafting.IP | crafting.TID | crafting.TIME | crafting.PERIOD | crafting.CALLCHAIN
ELSEWHERE = ("--thread", "12", "--between", "0..1")
"""The other thread at the first thread's time."""
MADE_OF_STACKS = [one.name for one in TARGETS if "samples" in one.contents.forms]


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """Thread 11 has samples of both events in the first second, thread 12 one of the clock in the fourth."""
    clock, faults = (Attribute.of((1, number), FIELDS, ids=[number + 1]) for number in (0, 2))
    rows = [(clock, 11, 0), (faults, 11, 5), (clock, 11, 9), (clock, 12, 40)]
    records = [
        crafting.sample(event, pid=11, tid=tid, time=10**9 + at * 10**8, ip=64, chain=[crafting.CONTEXT_USER, 64])
        for event, tid, at in rows
    ]
    names = [crafting.comm(clock, 11, tid, f"t{tid}") for tid in (11, 12)]
    return str(PerfFile([clock, faults], [*names, *records]).write(tmp_path / "perf.data"))


@pytest.mark.parametrize(
    "words",
    [
        ("--tree",),
        ("--by", "thread"),
        ("--stacks",),
        ("--event", "cpu-clock"),
        ("--event", "page-faults"),
        ("--group",),
    ],
)
def test_reports(perfuse: Perfuse, recording: str, words: tuple[str, ...]) -> None:
    done = perfuse("report", recording, *words, *ELSEWHERE)
    assert (done.code, done.out) == (2, "")
    assert "no sample is of the selected threads and time" in done.err
    assert "recorded were 3 of cpu-clock, 1 of page-faults" in done.err


@pytest.mark.parametrize("target", MADE_OF_STACKS)
def test_exports(perfuse: Perfuse, recording: str, tmp_path: Path, target: str) -> None:
    done = perfuse("convert", recording, "--to", target, "-o", str(tmp_path / "out"), *ELSEWHERE)
    assert (done.code, (tmp_path / "out").exists()) == (2, False), done.err
    if target not in ("perf-data", "mono", "csv", "xray", "xray-yaml"):
        assert "no sample is of the selected threads and time" in done.err


def test_flame_graphs_and_differences(perfuse: Perfuse, recording: str, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    for words in ((), ("--event", "page-faults")):
        done = perfuse("flame", recording, "-o", str(out), *words, *ELSEWHERE)
        assert (done.code, out.exists()) == (2, False)
        assert "no sample is of the selected threads and time" in done.err
        done = perfuse("diff", recording, recording, *words, *ELSEWHERE)
        assert done.code == 2
        assert "): no sample is of the selected threads and time" in done.err


@pytest.mark.parametrize("verb", ["report", "flame"])
def test_an_event_of_which_nothing_is_selected(perfuse: Perfuse, recording: str, tmp_path: Path, verb: str) -> None:
    """It exists: the other thread has a sample of it."""
    out = ["-o", str(tmp_path / "out.html")] if verb == "flame" else []
    done = perfuse(verb, recording, *out, "--thread", "12", "--event", "page-faults")
    assert done.code == 2
    assert "none of the selected samples is of event 'page-faults'" in done.err
    assert "selected are samples of cpu-clock" in done.err
    done = perfuse(verb, recording, *out, "--thread", "12", "--event", "page-fault")
    assert done.code == 2
    assert "none of the selected" not in done.err


def test_a_filter_that_leaves_nothing_of_the_compared_event(perfuse: Perfuse, tmp_path: Path) -> None:
    """Only samples of the other event have that module on their stacks."""
    clock, faults = (Attribute.of((1, number), FIELDS, ids=[number + 1]) for number in (0, 2))
    path = tmp_path / "perf.data"
    binaries = [crafting.mmap2(clock, 11, f"/x/{name}", start, 4096) for name, start in (("a", 4096), ("b", 8192))]
    rows = [(clock, 4100), (clock, 4104), (faults, 8200)]
    samples = [
        crafting.sample(event, pid=11, tid=11, time=10**9 + at, ip=ip, chain=[crafting.CONTEXT_USER, ip])
        for at, (event, ip) in enumerate(rows)
    ]
    PerfFile([clock, faults], [*binaries, *samples]).write(path)
    done = perfuse("diff", str(path), str(path), "--only", "module:b", "--event", "page-faults")
    assert done.code == 0, done.err
    done = perfuse("diff", str(path), str(path), "--only", "module:b", "--event", "cpu-clock")
    assert done.code == 2
    assert "A: --only module:b leaves nothing of cpu-clock" in done.err


def test_an_earlier_name_of_a_thread_leads_to_its_present_one(perfuse: Perfuse, tmp_path: Path) -> None:
    """`report --by command` lists it, so it is given to `--thread`."""
    clock = Attribute.of((1, 0), FIELDS, ids=[1])
    samples = [
        crafting.sample(clock, pid=11, tid=12, time=time, ip=64, chain=[crafting.CONTEXT_USER, 64]) for time in (10, 30)
    ]
    names = [crafting.comm(clock, 11, 12, "loading"), crafting.comm(clock, 11, 12, "serving", 20)]
    recording = str(PerfFile([clock], [names[0], samples[0], names[1], samples[1]]).write(tmp_path / "perf.data"))
    by_command = perfuse("report", recording, "--by", "command").out
    assert "loading" in by_command
    done = perfuse("report", recording, "--thread", "loading")
    assert (done.code, done.out) == (2, "")
    assert "no thread 'loading'" in done.err
    assert "earlier the name of serving 12: give that" in done.err
