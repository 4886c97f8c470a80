"""What exported files contain, read as their targets do, is what the exporters declare; they warn of the rest."""

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from needs import need_module
from perfuse.errors import ExportWarning
from perfuse.exporters import target_named
from perfuse.exporters.contents import DATA
from perfuse.profile import Profile

from . import exported
from .kinds import Kind
from .mono_walk import walk
from .outside import call_log

OF_HEAP = {
    "Heap snapshot: ": "heap_snapshots",
    "Allocated so far: ": "allocations",
    "GC handles: ": "handles",
    "Objects moved so far": "moves",
}
"""Counters that are not the recording's, by how their names begin."""


def chrome(path: Path) -> set[str]:
    found = set()
    for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"]:
        if event["ph"] in "XB":
            found.add("calls" if event.get("cat", "call") == "call" else "slices")
        elif event["ph"] == "i":
            found.add("exceptions" if event["args"]["kind"] == "throw" else "instants")
        elif event["ph"] == "C":
            found.add(counter(event["name"]))
        elif event["ph"] == "P":
            found.add("samples")
    return found


def counter(name: str) -> str:
    return next((data for start, data in OF_HEAP.items() if name.startswith(start)), "counters")


def perfetto(path: Path) -> set[str]:
    """Perfetto's own message classes."""
    messages = need_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = messages.Trace()
    trace.ParseFromString(path.read_bytes())
    categories: dict[tuple[int, int], str] = {}
    tracks: dict[int, str] = {}
    found = set()
    for packet in trace.packet:
        for entry in packet.interned_data.event_categories:
            categories[packet.trusted_packet_sequence_id, entry.iid] = entry.name
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
        if packet.HasField("stack_sample"):
            found.add("samples")
        if packet.HasField("profile_packet"):
            found.add("allocations")
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        if event.type == event.TYPE_COUNTER:
            found.add(counter(tracks[event.track_uuid]))
        elif event.type == event.TYPE_INSTANT:
            found.add("exceptions" if event.name == "throw" else "instants")
        elif event.type == event.TYPE_SLICE_BEGIN:
            category = categories[packet.trusted_packet_sequence_id, event.category_iids[0]]
            found.add("calls" if category == "call" else "slices")
    return found


def firefox(path: Path) -> set[str]:
    profile = exported.processed_profile(path)
    kinds = {"call": "calls", "slice": "slices", "instant": "instants", "exception": "exceptions"}
    found = {counter(one["description"]) for one in profile.get("counters", [])}
    for thread in profile["threads"]:
        found |= {kinds[data["type"]] for data in thread["markers"]["data"] if data and data["type"] in kinds}
        if thread["samples"]["length"]:
            event = re.search(r" \(([\w-]+)\)$", thread["name"])
            of_bytes = thread["samples"].get("weightType") == "bytes"
            found.add("allocations" if of_bytes else of_event(event[1] if event else "cpu-clock"))
    return found


OF_EVENTS = {
    "wall-time": "calls",
    "calls": "calls",
    "allocated-bytes": "allocations",
    "allocations": "allocations",
    "exceptions": "exceptions",
}


def of_event(name: str) -> str:
    return OF_EVENTS.get(name.removesuffix("-samples"), "samples")


def sums(target: str) -> Callable[[Path], set[str]]:
    return lambda path: {of_event(event) for event, by_thread in exported.READERS[target](path).items() if +by_thread}


READERS = {"chrome": chrome, "perfetto": perfetto, "firefox": firefox, "jslb": firefox} | {
    name: sums(name) for name in ("speedscope", "pprof", "otlp")
}


@pytest.mark.truth(
    recording=["perf_node", "xray_fdr", "perf_xray", "mono_samples", "mono_allocations", "mono_calls", "perf_mono"],
    path=[
        "convert:firefox",
        "convert:jslb",
        "convert:perfetto",
        "convert:chrome",
        "convert:speedscope",
        "convert:pprof",
        "convert:otlp",
    ],
    source="the kinds of records in the recording, and readers of the targets' formats",
)
@pytest.mark.truth(
    recording=["mono_heap", "mono_before_15", "mono_locks", "mono_gc"],
    path=["convert:firefox", "convert:jslb", "convert:perfetto", "convert:chrome"],
    source="the kinds of records in the recording, and readers of the targets' formats",
)
def test_no_kind_of_data_is_dropped_silently(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    """Each kind of data that the recording has and that the target could hold is in the file, or there is a warning."""
    target = target_named(path.removeprefix("convert:"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ExportWarning)
        profile.export(tmp_path / "out", to=target.name)
    said = "\n".join(str(one.message) for one in caught if one.category is ExportWarning)
    recorded = {name for name, (_, table) in DATA.items() if table in kind.contents}
    if not profile.count_rows("exceptions", kinds=("throw",)):
        recorded.discard("exceptions")  # only handlers are recorded
    if set(kind.formats) <= {"xray", "perf_data"}:
        recorded.discard("slices")  # those of XRay are its calls
    found: set[Any] = READERS[target.name](tmp_path / "out")
    for name in recorded:
        title = DATA[name][0]
        if name in target.contents.not_yet:
            assert title in said, f"{title} is dropped silently"
        elif name in target.contents.forms:
            assert name in found or title in said, f"{title} is not in the file"
    if not recorded & set(target.contents.not_yet):
        assert "not written to" not in said


def written_weight(target: str, path: Path) -> float:
    """Sum of what a file of one event contains."""
    if target == "cpuprofile":
        return len(json.loads(path.read_text(encoding="utf-8"))["samples"])
    if target == "dot":
        return sum(one["self"] or one["count"] for one in exported.dot(path).values())
    if target == "svg":
        return exported.svg(path)[0]
    if target == "html":
        return sum(by_thread.total() for by_thread in exported.html(path).values())
    return exported.collapsed(path).total()


EVENTS = {"samples": None, "calls": "wall-time", "allocations": "allocated-bytes"}


@pytest.mark.truth(
    recording=["perf_node", "xray_fdr", "mono_samples", "mono_allocations", "mono_calls"],
    path=["convert:collapsed", "convert:html", "convert:svg", "convert:dot", "convert:cpuprofile"],
    source="the kinds of records in the recording, and readers of the targets' formats",
)
def test_targets_of_one_event_write_what_they_declare(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    """Each kind of data that a target declares, and that the recording has, is in its file of that event."""
    target = target_named(path.removeprefix("convert:"))
    recorded = {name for name in EVENTS if DATA[name][1] in kind.contents}
    assert recorded
    for name in recorded:
        assert name in target.contents.forms
        of_event = {} if EVENTS[name] is None or target.name == "dot" else {"event": EVENTS[name]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExportWarning)
            profile.export(tmp_path / name, to=target.name, **of_event)
        assert written_weight(target.name, tmp_path / name) > 0, name


LOGGED = {
    "samples": (0x07,),
    "calls": (0x23,),
    "allocations": (0x00, 0x10),
    "slices": (0x11,),
    "exceptions": (0x04, 0x84),
    "counters": (0x47,),
    "heap_snapshots": (0x06,),
    "handles": (0x41, 0x61),
    "moves": (0x31,),
    "code": (0x43,),
    "coverage": (0x19,),
}
"""Events of Mono's logs by the kind of data that they are."""


@pytest.mark.truth(
    recording=["mono_samples", "mono_allocations", "mono_calls", "mono_heap", "mono_locks", "mono_gc"],
    path="convert:mono",
    source="numbers of events of both logs by another decoder of Mono logs",
)
def test_mono_logs_have_what_is_declared(kind: Kind, profile: Profile, tmp_path: Path) -> None:
    profile.export(tmp_path / "out.mlpd", to="mono")
    before, after = walk(kind.paths[-1]), walk(tmp_path / "out.mlpd")
    for name, kinds in LOGGED.items():
        assert name in target_named("mono").contents.forms
        assert len(after.of(*kinds)) == len(before.of(*kinds)), name


@pytest.mark.truth(
    recording=["xray_fdr", "xray_basic"],
    path=["convert:xray", "convert:csv"],
    source="number of calls: a walk over the log's records",
)
def test_call_logs_have_what_is_declared(kind: Kind, profile: Profile, path: str, tmp_path: Path) -> None:
    target = target_named(path.removeprefix("convert:"))
    assert "calls" in target.contents.forms
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)
        profile.export(tmp_path / "out", to=target.name)
    num_calls = sum(call_log(kind.paths[0]).num_calls.values())
    if target.name == "csv":
        assert sum(int(row["num_calls"]) for row in exported.table(tmp_path / "out")) == num_calls
    else:
        assert sum(call_log(tmp_path / "out").num_calls.values()) == num_calls
