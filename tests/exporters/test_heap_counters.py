"""GC handles and moves of objects, which timelines show as counters: their sums are those of mprof-report."""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest
from tools import output_of

import perfuse
from needs import need_module
from truth.mono_walk import header, walk

Values = dict[str, list[int]]
"""Values of counters in time order, by name."""
NAMES = {"weak": "weak", "weaktrack": "weak track resurrection", "normal": "normal"}
"""Kinds of handles as mprof-report calls them, and as perfuse does."""


def chrome(path: Path) -> Values:
    found = defaultdict(list)
    for event in json.loads(path.read_bytes())["traceEvents"]:
        if event["ph"] == "C":
            found[event["name"]].append((event["ts"], *event["args"].values()))
    return {name: [value for _, value in sorted(values)] for name, values in found.items()}


def firefox(path: Path) -> Values:
    counters = json.loads(path.read_bytes())["counters"]
    return {one["name"]: list(accumulate(one["samples"]["count"]))[1:] for one in counters}


def perfetto(path: Path) -> Values:
    trace = need_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace()
    trace.ParseFromString(path.read_bytes())
    names = {one.track_descriptor.uuid: one.track_descriptor.name for one in trace.packet}
    found = defaultdict(list)
    for packet in trace.packet:
        if packet.track_event.type == packet.track_event.TYPE_COUNTER:
            found[names[packet.track_event.track_uuid]].append((packet.timestamp, packet.track_event.counter_value))
    return {name: [value for _, value in sorted(values)] for name, values in found.items()}


@pytest.mark.parametrize("read", [chrome, firefox, perfetto])
@pytest.mark.parametrize("log", ["gchandles", "everything"])
def test_handles_and_moves(
    read: Callable[[Path], Values], log: str, mono_corpus: Path, mprof_report: str, tmp_path: Path
) -> None:
    path = mono_corpus / "v17" / f"{log}.mlpd"
    stated = output_of(mprof_report, path)
    perfuse.fuse(path).export(tmp_path / "out", to=read.__name__)
    values = read(tmp_path / "out")
    handles = re.findall(r"GC handles (\w+): created: (\d+), destroyed: (\d+), max: (\d+)", stated)
    assert handles
    for kind, created, destroyed, _ in handles:
        alive = values[f"GC handles: {NAMES[kind]}"]
        assert alive[-1] == int(created) - int(destroyed)
        assert min(alive) >= 0
    # mprof-report leaves out pinned ones; the program frees each after a call.
    assert values["GC handles: pinned"][-1] == 0
    moves = re.search(r"Object moves: (\d+)", stated)
    assert moves is not None
    assert values.get("Objects moved so far", [0])[-1] == int(moves[1])


def test_a_selected_time_has_its_part(mono_corpus: Path, tmp_path: Path) -> None:
    """Sums include the time before."""
    profile = perfuse.fuse(mono_corpus / "v17" / "everything.mlpd")
    assert profile.span_ns is not None
    length_s = (profile.span_ns[1] - profile.span_ns[0]) / 1e9
    profile.export(tmp_path / "whole", to="firefox")
    profile.between(length_s / 2, length_s + 1).export(tmp_path / "half", to="firefox")
    whole, half = firefox(tmp_path / "whole"), firefox(tmp_path / "half")
    for name in ("Objects moved so far", "GC handles: normal"):
        assert len(half[name]) < len(whole[name])
        assert half[name][-1] == whole[name][-1]


@pytest.mark.parametrize("read", [chrome, firefox, perfetto])
def test_threads_of_a_process_have_its_counters_alone(
    read: Callable[[Path], Values], mono_corpus: Path, mprof_report: str, tmp_path: Path
) -> None:
    """Counters, handles, moves and snapshots are of no thread, but of the process of a log."""
    logs = [mono_corpus / "v17" / f"{name}.mlpd" for name in ("counters", "m612-heapshot")]
    with perfuse.fuse(*logs) as both:
        for log in logs:
            recorded = {name: len(rows) for (_, name), rows in walk(log).counters().items()}
            pid = header(log)["pid"]
            query = f"SELECT min(thread_id) FROM threads JOIN processes USING (process_id) WHERE pid = {pid}"
            ((thread,),) = both.sql(query).fetchall()
            moves = re.search(r"Object moves: (\d+)", output_of(mprof_report, log))
            shots = len(walk(log).snapshots())
            for selected in (both.thread(f"t{thread}"), both.process(pid)):
                (tmp_path / "out").unlink(missing_ok=True)
                selected.export(tmp_path / "out", to=read.__name__)
                values = read(tmp_path / "out")
                counts = {name: len(rows) for name, rows in values.items()}
                # Timelines have the section before the name.
                counts |= {name.partition(": ")[2]: num for name, num in counts.items() if ": " in name}
                assert {name: counts.get(name) for name in recorded} == recorded
                assert values.get("Objects moved so far", [0])[-1] == int(moves[1] if moves else 0)
                assert len(values.get("Heap snapshot: bytes", ())) == shots
