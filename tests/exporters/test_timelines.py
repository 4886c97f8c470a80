"""Timelines of a Mono log: slices other than calls, counters and exceptions, read by the viewers' own readers."""

import io
import json
import re
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from tools import output_of

import perfuse
from needs import need_module
from perfuse.exporters import export

LOG = Path(__file__).parents[2] / "examples" / "mono_shop" / "output.mlpd.zst"

Slice = tuple[str, str, str, int, int, str]
"""Track, name, kind, start, length and arguments."""
OF_HEAP = ("Allocated so far", "Heap snapshot", "GC handles", "Objects moved")
"""Counters that are sums over other tables than those of counters, by how their names begin."""


@pytest.fixture(scope="module")
def profile() -> Any:
    return perfuse.fuse(LOG)


def slices(profile: Any, condition: str = "true") -> Counter[Slice]:
    """Every slice other than a call, on the expected track."""
    rows = profile.sql(f"""
        SELECT CASE WHEN s.kind = 'gc' AND s.name NOT LIKE 'finalizer%' THEN 'GC' ELSE t.name::VARCHAR END,
            s.name::VARCHAR, s.kind::VARCHAR, s.start_ns, duration_ns, coalesce(args::VARCHAR, '[]')
        FROM slices s JOIN threads t USING (thread_id) WHERE s.kind <> 'call' AND {condition}
    """).fetchall()
    return Counter(rows)


def counts(profile: Any) -> Counter[tuple[str, int, float]]:
    """Every value of a counter, and every size of the heap."""
    rows = profile.sql("""
        SELECT c.section::VARCHAR || ': ' || c.name::VARCHAR, s.ts_ns, s.value
        FROM counter_samples s JOIN counters c USING (counter_id)
        UNION ALL SELECT 'GC heap size', ts_ns, name::VARCHAR::DOUBLE FROM instants WHERE kind = 'gc_resize'
    """).fetchall()
    return Counter(rows)


class Chrome:
    """A plain reader of trace events."""

    def __init__(self, profile: Any) -> None:
        out = io.BytesIO()
        export(profile, out, to="chrome")
        written = json.loads(out.getvalue())
        zero, events = written["otherData"]["start_ns"], written["traceEvents"]
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.slices: Counter[Slice] = Counter()
        self.counts: Counter[tuple[str, int, float]] = Counter()
        open_slices: dict[int, list[Any]] = {}
        for event in events:
            ns = round(event.get("ts", 0) * 1000) + zero
            if event["ph"] == "B":
                open_slices.setdefault(event["tid"], []).append((event["name"], ns))
            elif event["ph"] in "EX":
                name, start = (event["name"], ns) if event["ph"] == "X" else open_slices[event["tid"]].pop()
                assert name == event["name"]
                args = json.dumps(event.get("args", {}).get("arguments", []))
                self.slices[names[event["tid"]], name, event["cat"], start, ns - start, args] += 1
            elif event["ph"] == "C" and not event["name"].startswith(OF_HEAP):
                ((_, value),) = event["args"].items()
                self.counts[event["name"], ns, value] += 1
        assert not any(open_slices.values())


class Perfetto:
    """Reads packets with Perfetto's own classes."""

    def __init__(self, profile: Any) -> None:
        messages = need_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
        out = io.BytesIO()
        export(profile, out, to="perfetto")
        trace = messages.Trace()
        trace.ParseFromString(out.getvalue())
        self.tracks: dict[int, Any] = {}
        self.slices: Counter[Slice] = Counter()
        self.counts: Counter[tuple[str, int, float]] = Counter()
        categories: dict[int, str] = {}
        open_slices: dict[int, list[Any]] = {}
        for packet in trace.packet:
            if packet.trusted_packet_sequence_id != 1:
                continue
            categories |= {entry.iid: entry.name for entry in packet.interned_data.event_categories}
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            event, ns = packet.track_event, packet.timestamp
            if event.type == event.TYPE_SLICE_BEGIN:
                (category,) = event.category_iids
                open_slices.setdefault(event.track_uuid, []).append((event.name, categories[category], ns))
            elif event.type == event.TYPE_SLICE_END:
                name, kind, start = open_slices[event.track_uuid].pop()
                track = self.tracks[event.track_uuid]
                title = track.name or track.thread.thread_name
                args = [one.legacy_json_value for one in event.debug_annotations if one.legacy_json_value]
                self.slices[title, name, kind, start, ns - start, args[0] if args else "[]"] += 1
            elif event.type == event.TYPE_COUNTER:
                self.counts[self.tracks[event.track_uuid].name, ns, event.double_counter_value] += 1
        assert not any(open_slices.values())


@pytest.mark.parametrize("viewer", [Chrome, Perfetto])
def test_slices_and_counts_are_those_of_the_tables(viewer: Any, profile: Any) -> None:
    read = viewer(profile)
    assert read.slices == slices(profile)
    assert read.counts == counts(profile)
    assert {name for name, *_ in read.slices} >= {"GC", "Finalizer", "counter 1"}


def test_tracks_of_the_shop(profile: Any, golden: Any) -> None:
    read = Perfetto(profile)
    counted = Counter((track, name) for track, name, *_ in read.slices.elements())
    lines = [f"{track}: {name} {num}" for (track, name), num in sorted(counted.items())]
    values = Counter(name for name, *_ in read.counts.elements())
    lines += [f"{name} {num}" for name, num in sorted(values.items())]
    golden("shop.tracks.txt", "\n".join(lines) + "\n")


def test_counters_have_units(profile: Any) -> None:
    """Values are absolute instead of increments, and belong to the process."""
    described = Perfetto(profile).tracks.values()
    tracks = {track.name: track for track in described}
    for name in ("System: Working Set", "GC heap size"):
        counter = tracks[name].counter
        assert counter.unit == counter.UNIT_SIZE_BYTES
        assert not counter.is_incremental
    assert tracks["System: Page Faults"].counter.unit == tracks["System: Page Faults"].counter.UNIT_COUNT
    assert tracks["System: CPU Load Average - 1min"].counter.unit_name == "%"
    process = next(track for track in described if track.HasField("process"))
    assert tracks["System: Working Set"].parent_uuid == tracks["GC"].parent_uuid == process.uuid


def test_one_thread(profile: Any) -> None:
    selected = Chrome(profile.thread("counter 2"))
    assert selected.slices == slices(profile, "t.name = 'counter 2'")
    assert selected.counts.keys() >= {key for key in counts(profile) if key[0] != "GC heap size"}


def test_a_log_without_calls_is_a_timeline() -> None:
    """A log without samples too, only with heap sizes and thread names."""
    log = perfuse.fuse(Path(__file__).parents[2] / "crates/formats/mono/src/testdata/v17-heapshot.mlpd")
    assert not log.has("call_events")
    trace = log.call_trace()
    assert trace is not None
    assert trace.num_events == 0
    assert Chrome(log).slices == slices(log)
    assert trace.num_slices == sum(slices(log).values())


def test_firefox_has_markers_and_counters(profile: Any, profiler: Any, tmp_path: Path) -> None:
    """Its own loader names, times and counts them as SQL does."""
    _holds_in_firefox(profile, profiler, tmp_path)


def test_firefox_needs_no_samples(heap_shots: Path, profiler: Any, tmp_path: Path) -> None:
    log = perfuse.fuse(heap_shots)
    assert log.sql("SELECT count(*) FROM samples").fetchall() == [(0,)]
    _holds_in_firefox(log, profiler, tmp_path)


def _holds_in_firefox(profile: Any, profiler: Any, tmp_path: Path) -> None:
    export(profile, tmp_path / "p.json")
    profiler.load(tmp_path / "p.json")
    ((first,),) = profile.sql("""
        SELECT min(ts) FROM (
            SELECT ts_ns AS ts FROM samples UNION ALL SELECT start_ns FROM slices
            UNION ALL SELECT ts_ns FROM exceptions UNION ALL SELECT ts_ns FROM instants
            UNION ALL SELECT ts_ns FROM counter_samples)
    """).fetchall()
    listed = profiler.ask("profile", "info", "--all")["processes"]
    theirs: Counter[tuple[str, str, int, int]] = Counter()
    for thread in (thread for process in listed for thread in process["threads"]):
        for marker in profiler.markers(thread["threadHandle"]):
            of = thread["name"].partition(" (")[0]
            length = round(marker.get("duration", 0) * 1e6)
            theirs[of, marker["name"], round(marker["start"] * 1e6), length] += 1
    ours = profile.sql(f"""
        SELECT t.name::VARCHAR, s.name::VARCHAR, s.start_ns - {first}, duration_ns
        FROM slices s JOIN threads t USING (thread_id) WHERE s.kind <> 'call'
        UNION ALL SELECT t.name::VARCHAR, 'throw', ts_ns - {first}, 0
        FROM exceptions JOIN threads t USING (thread_id) WHERE kind = 'throw'
        UNION ALL SELECT t.name::VARCHAR, coalesce(i.name::VARCHAR, kind::VARCHAR), ts_ns - {first}, 0
        FROM instants i JOIN threads t USING (thread_id) WHERE kind <> 'gc_resize'
    """).fetchall()
    assert theirs == Counter(ours)
    counters = {one["label"]: one for one in profiler.ask("counter", "list")["counters"]}
    assert {name for name in counters if not name.startswith(OF_HEAP)} == {name for name, *_ in counts(profile)}
    assert profile.has("heap_snapshots") == any(name.startswith("Heap snapshot") for name in counters)


@pytest.mark.truth(recording="mono_heap", path="convert:firefox", source="mprof-report: size and objects of snapshots")
def test_heap_snapshots_are_graphs_in_firefox(heap_shots: Path, mprof_report: str, tmp_path: Path) -> None:
    """Its front end adds the steps up."""
    perfuse.fuse(heap_shots).export(tmp_path / "p.json")
    listed = re.findall(
        r"Heap shot \d+ at [^:]*: size: (\d+), object count: (\d+)", output_of(mprof_report, heap_shots)
    )
    expected = [(int(size), int(count)) for size, count in listed if int(count)]
    assert expected
    counters = {one["name"]: one for one in json.loads((tmp_path / "p.json").read_bytes())["counters"]}
    graphs = [counters[f"Heap snapshot: {name}"]["samples"]["count"] for name in ("bytes", "objects")]
    first, *values = zip(*(accumulate(steps) for steps in graphs), strict=True)
    assert (first, values) == ((0, 0), expected)
