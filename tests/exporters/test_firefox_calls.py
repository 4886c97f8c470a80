"""Calls and allocations in the Firefox Profiler: weights, markers and the timeline, read by its own front end."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import perfuse
from perfuse.errors import ExportWarning

_CALLS = {"main": 1, "top": 10, "mid": 10, "leaf_10ms": 20}
"""Calls of each function of the program of `found/xray/pair`, by its loops."""
_SELF_MS = {"main": 0, "top": 50, "mid": 0, "leaf_10ms": 200}
"""The time that each function of it sleeps itself."""


@pytest.fixture(scope="module")
def pair(xray_corpus: Path) -> Path:
    return xray_corpus.parent / "found" / "xray" / "pair"


def loaded(profiler: Any, path: Path, profile: Any, **options: Any) -> dict[str, Any]:
    """The front end's facts about an exported profile: JSON, or JSLB by the name of the file."""
    profile.export(path, **options)
    profiler.load(path)
    facts: dict[str, Any] = profiler.ask("profile", "info", "--all")
    return facts


def tracks(profiler: Any, facts: dict[str, Any]) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """The functions of each track, by its name and handle."""
    found = {}
    for thread in (thread for process in facts["processes"] for thread in process["threads"]):
        listed = profiler.functions(thread["threadHandle"])
        found[thread["name"], thread["threadHandle"]] = {function["name"]: function for function in listed}
    return found


@pytest.mark.truth(
    recording=["xray_fdr"],
    path=["convert:firefox", "convert:jslb"],
    source="profiler-cli; calls and sleeps of the program by its source",
)
@pytest.mark.parametrize("file", ["p.json", "p.jslb", "p.jslb.gz"])
def test_calls_have_their_times_in_the_front_end(file: str, pair: Path, profiler: Any, tmp_path: Path) -> None:
    """Self times and numbers of calls are those of the program; the timeline is as long as the log."""
    profile = perfuse.fuse(pair / "fdr.xray", maps={0: pair / "p"})
    facts = loaded(profiler, tmp_path / file, profile)
    found = tracks(profiler, facts)
    times, counts = found["1233 (wall-time)", "t-1"], found["1233 (calls)", "t-0"]
    assert {name: function["selfSamples"] for name, function in counts.items()} == _CALLS
    whole = sum(_SELF_MS.values())
    for name, milliseconds in _SELF_MS.items():
        assert times[name]["selfPercentage"] == pytest.approx(100 * milliseconds / whole, abs=3)
    assert times["main"]["totalPercentage"] == 100
    # The rate in the header of this log is 6 % too high.
    assert facts["context"]["rootRange"]["end"] == pytest.approx(whole, rel=0.08)


@pytest.mark.truth(
    recording="xray_fdr", path="convert:firefox", source="profiler-cli; calls of the program by its source"
)
def test_each_call_is_a_marker(pair: Path, profiler: Any, tmp_path: Path) -> None:
    profile = perfuse.fuse(pair / "fdr.xray", maps={0: pair / "p"})
    loaded(profiler, tmp_path / "p.json", profile)
    listed = profiler.ask("thread", "markers", "--thread", "t-0", "--list", "--limit", "0")["flatMarkers"]
    assert Counter(marker["name"] for marker in listed) == _CALLS
    sleeps = [marker["duration"] for marker in listed if marker["name"] == "leaf_10ms"]
    assert all(0.93 * 10 < duration < 20 for duration in sleeps)


def test_a_time_range_cuts_calls(pair: Path, profiler: Any, tmp_path: Path) -> None:
    """The part of each call inside of a selected time range is on the timeline."""
    profile = perfuse.fuse(pair / "fdr.xray", maps={0: pair / "p"}).between(0.05, 0.15)
    facts = loaded(profiler, tmp_path / "p.json", profile)
    assert facts["context"]["rootRange"]["end"] == pytest.approx(100, abs=0.01)
    times = tracks(profiler, facts)["1233 (wall-time)", "t-1"]
    assert times["main"]["totalSamples"] == pytest.approx(100, abs=0.01)


def test_too_many_calls_are_sums(pair: Path, profiler: Any, tmp_path: Path) -> None:
    """Their weights are the same; a message states it."""
    profile = perfuse.fuse(pair / "fdr.xray", maps={0: pair / "p"})
    with pytest.warns(ExportWarning, match="of 41 calls only the sums are written; -O max_calls=41"):
        facts = loaded(profiler, tmp_path / "p.json", profile, max_calls=40)
    found = tracks(profiler, facts)
    assert {name: function["selfSamples"] for name, function in found["1233 (calls)", "t-0"].items()} == _CALLS
    assert found["1233 (wall-time)", "t-1"]["leaf_10ms"]["selfPercentage"] == pytest.approx(80, abs=3)
    assert profiler.ask("thread", "markers", "--thread", "t-0", "--list", "--limit", "0").get("flatMarkers", []) == []


@pytest.mark.truth(recording="mono_allocations", path="convert:firefox", source="profiler-cli; mprof-report")
def test_allocations_are_weighted_by_bytes(mono_corpus: Path, mprof_report: str, profiler: Any, tmp_path: Path) -> None:
    """The bytes and objects of all tracks are those of mprof-report, instead of 1 for each stack."""
    log = mono_corpus / "v17" / "alloc-bt3.mlpd"
    printed = subprocess.run([mprof_report, "--reports=alloc", log], capture_output=True, text=True, check=True).stdout
    total = re.search(r"Total memory allocated: (\d+) bytes in (\d+) objects", printed)
    assert total is not None
    facts = loaded(profiler, tmp_path / "p.json", perfuse.fuse(log))
    found = tracks(profiler, facts)
    sums: Counter[str] = Counter()
    for (track, _), functions in found.items():
        _, _, event = track.partition(" (")
        sums[event] += sum(function["selfSamples"] for function in functions.values())
    assert (sums["allocated-bytes)"], sums["allocations)"]) == (int(total[1]), int(total[2]))


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic"], path="convert:firefox", source="profiler-cli; llvm-xray convert"
)
@pytest.mark.parametrize("log", ["fdr/small-v5", "basic/basic-small-v3"])
def test_functions_have_the_calls_of_llvm_xray(
    log: str, xray_corpus: Path, llvm_xray: str, profiler: Any, tmp_path: Path
) -> None:
    """Numbers of calls by function id, as llvm-xray prints their entries."""
    path = xray_corpus / f"{log}.xray"
    command = [llvm_xray, "convert", "--output-format=yaml", path]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs = Counter(re.findall(r"func-id: (\d+),.* kind: function-enter(?:-arg)?,", printed))
    assert theirs
    ours: Counter[str] = Counter()
    for (track, _), functions in tracks(profiler, loaded(profiler, tmp_path / "p.json", perfuse.fuse(path))).items():
        if track.endswith("(calls)"):
            ours.update({name.rpartition(" ")[2]: function["selfSamples"] for name, function in functions.items()})
    assert ours == theirs
