"""Exported weights, read by parsers of the targets' formats, add up to what the recording contains.

The sums come from walks over the bytes of the recordings (`outside.py`), by thread where the recording has threads.
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from perfuse.profile import Profile

from . import exported
from .command import command_line
from .kinds import Kind
from .outside import Outside, Weight, mono_facts, outside

EVENTS_OF = {
    "firefox": {"cpu-clock-samples", "sample-samples"},
    "jslb": {"cpu-clock-samples", "sample-samples"},
    "chrome": {"cpu-clock-samples", "sample-samples", "calls", "wall-time"},
    "perf-script": {"cpu-clock", "cpu-clock-samples", "sample", "sample-samples"},
    "perfetto": {"cpu-clock", "cpu-clock-samples", "sample", "sample-samples", "calls", "wall-time"},
}
"""What targets hold that do not hold all: timelines have each call and each sample, but no sums; one file of
the Firefox Profiler has numbers of samples or weights."""


@pytest.mark.truth(
    recording="perf_[!mx]*",
    path=[
        "convert:pprof",
        "convert:otlp",
        "convert:speedscope",
        "convert:firefox",
        "convert:jslb",
        "convert:perfetto",
        "convert:chrome",
        "convert:html",
    ],
    source="samples and periods by thread: a walk over the structures of the perf.data",
)
@pytest.mark.truth(
    recording="collapsed",
    path=["convert:pprof", "convert:otlp", "convert:speedscope", "convert:html"],
    source="the counts of the lines, added up by hand",
)
@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects"],
    path=["convert:pprof", "convert:otlp", "convert:speedscope", "convert:perfetto", "convert:chrome", "convert:html"],
    source="calls and times by thread: a walk over the log's records that pairs entries and exits",
)
@pytest.mark.truth(
    recording="perf_xray",
    path=["convert:pprof", "convert:otlp", "convert:speedscope", "convert:perfetto", "convert:chrome", "convert:html"],
    source="walks over both files: samples by thread, calls and times by thread",
)
@pytest.mark.truth(
    recording=["mono_samples", "mono_allocations"],
    path="convert:speedscope",
    source="sums of an independent two-pass reader of Mono logs (corpus, truth.json)",
)
@pytest.mark.truth(
    recording="mono_samples",
    path=["convert:firefox", "convert:jslb", "convert:chrome", "convert:perfetto"],
    source="sums of an independent two-pass reader of Mono logs (corpus, truth.json)",
)
@pytest.mark.truth(
    recording=["mono_samples", "mono_calls", "mono_allocations"],
    path=["convert:pprof", "convert:otlp", "convert:html"],
    source="sums of an independent two-pass reader of Mono logs (corpus, truth.json)",
)
@pytest.mark.truth(
    recording="perf_mono",
    path=[
        "convert:pprof",
        "convert:otlp",
        "convert:speedscope",
        "convert:firefox",
        "convert:jslb",
        "convert:perfetto",
        "convert:chrome",
        "convert:html",
    ],
    source="samples and periods by thread: a walk over the structures of the perf.data",
)
@pytest.mark.truth(
    recording="xray_profiling",
    path="convert:otlp",
    source="the program's calls by construction: 1 + 10 + 10 + 20",
)
@pytest.mark.truth(
    recording=["perf_*"],
    path="convert:perf-script",
    source="samples and periods by thread: a walk over the structures of the perf.data",
)
@pytest.mark.truth(
    recording="mono_samples",
    path="convert:perf-script",
    source="sums of an independent two-pass reader of Mono logs (corpus, truth.json)",
)
@pytest.mark.filterwarnings("ignore:not written to text of perf script. calls, wall-time:perfuse.errors.ExportWarning")
def test_sums_by_thread(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    target = path.removeprefix("convert:")
    truth = expected(outside(kind.name))
    if target == "html":  # a page is of one event
        found: exported.Sums = {}
        for event in outside(kind.name).weights:
            profile.export(tmp_path / "out", to=target, event=event)
            found |= exported.html(tmp_path / "out")
    else:
        profile.export(tmp_path / "out", to=target)
        found = exported.READERS[target](tmp_path / "out")
    if set(found) & {"samples", "", "-samples"} and "samples" not in truth:
        (event,) = {name.removesuffix("-samples") for name in truth}
        renamed = {"samples": f"{event}-samples", "": event, "-samples": f"{event}-samples"}
        found = {renamed.get(name, name): sums for name, sums in found.items()}
    shown = truth.keys() & EVENTS_OF.get(target, truth.keys())
    assert shown, "nothing is compared"
    for name in shown:
        assert name in found, f"{name} is missing: {sorted(found)}"
        compare(found[name], truth[name], name)


@pytest.mark.truth(
    recording=["mono_samples", "mono_calls", "mono_allocations", "mono_before_15"],
    path=["convert:pprof", "convert:otlp"],
    source="number of thrown exceptions of an independent reader (truth.json)",
)
def test_thrown_exceptions(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    target = path.removeprefix("convert:")
    profile.export(tmp_path / "out", to=target)
    found = exported.READERS[target](tmp_path / "out").get("exceptions", Counter[int]())
    assert found.total() == mono_facts(kind)["throws"]


@pytest.mark.truth(
    recording=["perf_[!mx]*", "perf_mono"],
    path=["convert:collapsed", "convert", "api:Profile.export"],
    source="samples and periods by thread: a walk over the structures of the perf.data",
)
@pytest.mark.truth(
    recording="collapsed",
    path=["convert:collapsed", "convert", "api:Profile.export"],
    source="the counts of the lines, added up by hand",
)
@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path=["convert:collapsed", "convert", "api:Profile.export"],
    source="calls and times by thread: a walk over the log's records that pairs entries and exits",
)
@pytest.mark.truth(
    recording="xray_profiling",
    path=["convert:collapsed", "convert", "api:Profile.export"],
    source="the program's calls by construction: 1 + 10 + 10 + 20",
)
@pytest.mark.truth(
    recording=["mono_samples", "mono_calls", "mono_allocations"],
    path=["convert:collapsed", "convert", "api:Profile.export"],
    source="sums of an independent two-pass reader of Mono logs (corpus, truth.json)",
)
def test_sums_of_collapsed_stacks(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.folded"

    def convert(event: str, weight: str) -> Counter[int]:
        options = {"event": event, "weight": weight, "root": "thread"}
        if path == "convert":
            words = [word for name, value in options.items() for word in ("-O", f"{name}={value}")]
            command_line("convert", *kind.paths, *kind.map_options, "-o", out, *words, codes=(0,))
        else:
            assert profile.export(out, to="collapsed", **options) == (str(out),)
        return exported.collapsed(out)

    for event, weight in outside(kind.name).weights.items():
        compare(convert(event, "events"), weight, event)
        if weight.num_samples is not None:
            num_samples = Weight("samples", weight.num_samples, weight.samples_by_thread)
            compare(convert(event, "samples"), num_samples, event)


@pytest.mark.truth(
    recording=["perf_[!mx]*", "perf_mono"],
    path="convert:cpuprofile",
    source="samples and periods by thread: a walk over the structures of the perf.data",
)
@pytest.mark.truth(recording="collapsed", path="convert:cpuprofile", source="the counts of the lines, added up by hand")
@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="convert:cpuprofile",
    source="calls and times by thread: a walk over the log's records that pairs entries and exits",
)
@pytest.mark.truth(
    recording="xray_profiling",
    path="convert:cpuprofile",
    source="the program's calls by construction: 1 + 10 + 10 + 20",
)
@pytest.mark.truth(
    recording=["mono_samples", "mono_calls", "mono_allocations"],
    path="convert:cpuprofile",
    source="sums of an independent two-pass reader of Mono logs (corpus, truth.json)",
)
def test_sums_of_cpu_profiles(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    """A file for each thread has all its samples; where there are only sums, they last as long as they are."""
    for number, (event, weight) in enumerate(outside(kind.name).weights.items()):
        out = tmp_path / str(number)
        out.mkdir()
        profile.export(out, to="cpuprofile", event=event)
        samples, lasted = exported.cpuprofiles(out)
        if weight.num_samples is not None and kind.name != "collapsed":
            compare(samples, Weight("samples", weight.num_samples, weight.samples_by_thread), event)
        else:
            unit = 1 if weight.unit == "ns" else 1000
            sums = Counter({tid: value // unit for tid, value in lasted.items()})
            microsecond = 1000 / weight.total if weight.unit == "ns" else 0.0
            compare(sums, replace(weight, tolerance=weight.tolerance + microsecond), event)


@pytest.mark.truth(
    recording=["perf_[!mx]*", "perf_mono"],
    path="convert:svg",
    source="number of samples and their periods: a walk over the structures of the perf.data",
)
@pytest.mark.truth(recording="collapsed", path="convert:svg", source="the counts of the lines, added up by hand")
@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects", "perf_xray"],
    path="convert:svg",
    source="time inside calls: a walk over the log's records that pairs entries and exits",
)
@pytest.mark.truth(
    recording=["mono_samples", "mono_calls", "mono_allocations"],
    path="convert:svg",
    source="sums of an independent two-pass reader of Mono logs (corpus, truth.json)",
)
def test_sums_of_pictures(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    """The box of everything, of each event; numbers in a picture have three digits."""
    picture = tmp_path / "out.svg"
    for event, weight in outside(kind.name).weights.items():
        profile.export(picture, event=event)
        whole, num_samples = exported.svg(picture)
        assert whole == pytest.approx(weight.total, rel=0.006)
        if weight.num_samples is not None and weight.unit == "ns":
            assert num_samples == weight.num_samples


@pytest.mark.truth(
    recording="perf_*",
    path=["flame", "api:Profile.flame"],
    source="samples and periods by thread: a walk over the structures of the perf.data",
)
@pytest.mark.truth(
    recording="collapsed", path=["flame", "api:Profile.flame"], source="the counts of the lines, added up by hand"
)
@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic", "xray_shared_objects"],
    path=["flame", "api:Profile.flame"],
    source="time inside calls by thread: a walk over the log's records that pairs entries and exits",
)
@pytest.mark.truth(
    recording=["mono_samples", "mono_allocations"],
    path=["flame", "api:Profile.flame"],
    source="sums of an independent two-pass reader of Mono logs (corpus, truth.json)",
)
def test_sums_of_flame_graphs(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    """The page of the event that is shown without asking for one; inverted, the sums are the same."""
    truth = expected(outside(kind.name))
    for inverted in (False, True):
        page = tmp_path / "out.html"
        if path == "flame":
            options = ["--inverted"] if inverted else []
            command_line("flame", *kind.paths, *kind.map_options, *options, "-o", page)
        else:
            profile.flame(inverted=inverted).save(page)
        found = exported.html(page)
        assert found.keys() & truth.keys()
        for name in found.keys() & truth.keys():
            compare(found[name], truth[name], name)


def expected(what: Outside) -> dict[str, Weight]:
    """Weights by event, and numbers of samples."""
    found: dict[str, Weight] = {}
    for event, weight in what.weights.items():
        found[event] = weight
        if weight.num_samples is not None:
            found[f"{event}-samples"] = Weight("samples", weight.num_samples, weight.samples_by_thread)
    return found


def compare(sums: Counter[int], truth: Weight, what: str) -> None:
    """Compares a sum, and those of the threads where they are known."""
    assert sums.total() == pytest.approx(truth.total, rel=truth.tolerance, abs=len(sums) * 2 * bool(truth.tolerance)), (
        what
    )
    if truth.by_thread and set(+sums) != {0}:
        for tid, value in truth.by_thread.items():
            assert sums[tid] == pytest.approx(value, rel=truth.tolerance, abs=200 * bool(truth.tolerance)), (what, tid)
        assert not set(+sums) - set(truth.by_thread), what
