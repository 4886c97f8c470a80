"""Perfetto's packets, read with its own classes and the rules of its trace processor."""

import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile
from heap_graphs import heap_graphs, raw_packets
from perf_script import perf_script
from tools import output_of
from traced import NAMES, Call, Instant, calls, in_json, instants

import perfuse
from needs import need_module
from perfuse.errors import ExportError
from perfuse.exporters import export

_CLEARED, _NEEDED = 1, 2


def exported(profile: Any, **options: Any) -> Any:
    messages = need_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    out = io.BytesIO()
    export(profile, out, to="perfetto", **options)
    trace = messages.Trace()
    trace.ParseFromString(out.getvalue())
    return trace


class Reader:
    """Packets in time order; interned data is looked up in its sequence."""

    def __init__(self, trace: Any) -> None:
        self.names: dict[tuple[int, str, int], Any] = {}
        self.defaults: dict[int, Any] = {}
        self.tracks: dict[int, Any] = {}
        self.clocks: set[int] = set()
        self.events: list[Any] = []
        for packet in trace.packet:
            self._packet(packet)
        self.events.sort(key=lambda packet: packet.timestamp)

    def _packet(self, packet: Any) -> None:
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & _CLEARED:
            assert sequence not in self.defaults
            self.defaults[sequence] = packet.trace_packet_defaults
        if packet.sequence_flags & _NEEDED:
            assert sequence in self.defaults, "a packet before what it needs is dropped"
        for field, entries in packet.interned_data.ListFields():
            for entry in entries:
                key = (sequence, field.name, entry.iid)
                assert key not in self.names
                self.names[key] = entry
        if packet.HasField("clock_snapshot"):
            self.clocks.add(packet.clock_snapshot.primary_trace_clock)
        if packet.HasField("track_descriptor"):
            self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event") or packet.HasField("stack_sample"):
            self.events.append(packet)

    def name(self, packet: Any, kind: str, iid: int) -> Any:
        return self.names[packet.trusted_packet_sequence_id, kind, iid]

    def annotations(self, packet: Any) -> dict[str, Any]:
        found = {}
        for one in packet.track_event.debug_annotations:
            name = self.name(packet, "debug_annotation_names", one.name_iid).name
            value = one.WhichOneof("value")
            found[name] = [item.uint_value for item in one.array_values] if value is None else getattr(one, value)
        return found

    def calls(self) -> Iterator[Call]:
        open_calls: dict[int, list[tuple[str, int, str]]] = {}
        for packet in self.events:
            event = packet.track_event
            stack = open_calls.setdefault(event.track_uuid, [])
            args = self.annotations(packet)
            if event.type == event.TYPE_SLICE_BEGIN:
                (category,) = event.category_iids
                assert self.name(packet, "event_categories", category).name == "call"
                name = self.name(packet, "event_names", event.name_iid).name
                stack.append((name, packet.timestamp, args.get("start_reason", "entry")))
            elif event.type == event.TYPE_SLICE_END:
                name, start_ns, start_reason = stack.pop()
                thread = self.tracks[event.track_uuid].thread
                end_reason, arguments = args.get("end_reason", "exit"), in_json(args.get("arguments", []))
                yield Call(thread.tid, name, start_ns, packet.timestamp - start_ns, start_reason, end_reason, arguments)
        assert not any(open_calls.values())

    def instants(self) -> Iterator[Instant]:
        for packet in self.events:
            event = packet.track_event
            if event.type == event.TYPE_INSTANT:
                args = self.annotations(packet)
                payload = args.get("payload", args.get("payload_hex", ""))
                yield Instant(self.tracks[event.track_uuid].thread.tid, packet.timestamp, args["kind"], payload)

    def stacks(self) -> Iterator[tuple[int, int, str, str]]:
        """Thread, time, event and functions of each sample, outermost first."""
        for packet in self.events:
            if not packet.HasField("stack_sample"):
                continue
            sample, functions = packet.stack_sample, []
            if sample.callstack_iid:
                for iid in self.name(packet, "callstacks", sample.callstack_iid).frame_ids:
                    frame = self.name(packet, "frames", iid)
                    assert self.name(packet, "mappings", frame.mapping_id)
                    functions.append(self.name(packet, "function_names", frame.function_name_id).str.decode())
            counter = self.defaults[packet.trusted_packet_sequence_id].stack_sample_defaults.primary_descriptor
            yield sample.task_context.tid, packet.timestamp, counter.name, ";".join(functions)


@pytest.mark.parametrize("name", NAMES)
def test_calls_are_those_of_the_tables(name: str, traces: Path) -> None:
    profile = perfuse.fuse(traces / "fdr" / f"{name}.xray")
    read = Reader(exported(profile))
    assert Counter(read.calls()) == calls(profile)
    assert Counter(read.instants()) == instants(profile)
    assert read.clocks == {3}
    for track in read.tracks.values():
        if track.HasField("thread"):
            assert read.tracks[track.parent_uuid].process.pid == track.thread.pid


def test_a_time_range_begins_what_reaches_into_it(traces: Path) -> None:
    profile = perfuse.fuse(traces / "fdr" / "threads4-v5.xray").between(0.001, 0.004)
    start, end = profile.selection.start_ns, profile.selection.end_ns
    assert start is not None
    assert end is not None
    inside = sum(
        num for call, num in calls(profile).items() if call.start_ns < end and call.start_ns + call.duration_ns >= start
    )
    read = list(Reader(exported(profile)).calls())
    assert len(read) == inside
    assert all(start <= call.start_ns <= call.start_ns + call.duration_ns <= end for call in read)


def test_migrations_are_a_track(traces: Path) -> None:
    """A thread that stays on one processor has none; the others have a value for every processor they moved to."""
    profile = perfuse.fuse(traces / "fdr" / "sqmt-small-v5.xray")
    read = Reader(exported(profile))
    cpus_of_threads: dict[int, list[int]] = {}
    for packet in read.events:
        event = packet.track_event
        if event.type == event.TYPE_COUNTER:
            thread = read.tracks[read.tracks[event.track_uuid].parent_uuid].thread
            cpus_of_threads.setdefault(thread.tid, []).append(event.counter_value)
    rows = profile.sql("""
        SELECT tid, list(cpu ORDER BY ts_ns, record_offset) FROM call_events JOIN threads USING (thread_id)
        WHERE kind = 'enter' GROUP BY tid
    """).fetchall()
    runs = {tid: [cpu for cpu, before in zip(cpus, [None, *cpus], strict=False) if cpu != before] for tid, cpus in rows}
    assert cpus_of_threads == {tid: cpus for tid, cpus in runs.items() if len(cpus) > 1}
    assert cpus_of_threads


def test_samples_of_the_small_profile(small: FakeProfile, golden: Any) -> None:
    golden("small.perfetto.txt", str(exported(small)))


def test_samples_are_those_of_the_tables(expected_script: Path) -> None:
    profile = perf_script(expected_script)
    read = Counter(Reader(exported(profile)).stacks())
    out = io.BytesIO()
    export(profile, out, to="collapsed", root="none")
    lines = (line.rpartition(" ") for line in out.getvalue().decode().splitlines())
    stacks: Counter[str] = Counter()
    for (_, _, _, functions), num in read.items():
        stacks[functions.replace("\n", " ") or "[no stack]"] += num
    assert sum(stacks.values()) == profile.sql("SELECT count(*) FROM samples").fetchall()[0][0]
    assert {stack.count(";") for stack in stacks}
    assert stacks == {stack: int(count) for stack, _, count in lines}


def test_a_profile_without_events_is_refused() -> None:
    with pytest.raises(ExportError, match="neither calls nor samples"):
        export(FakeProfile(), io.BytesIO(), to="perfetto")


@pytest.mark.truth(recording="mono_allocations", path="convert:perfetto", source="Perfetto's classes; mprof-report")
def test_allocations_are_a_heap_profile(mono_corpus: Path, mprof_report: str) -> None:
    """Bytes and objects by stack, with the functions of each stack, in a packet of the process."""
    log = mono_corpus / "v17" / "alloc-bt3.mlpd"
    total = re.search(r"Total memory allocated: (\d+) bytes in (\d+) objects", output_of(mprof_report, log))
    assert total is not None
    trace = exported(perfuse.fuse(log))
    stacks: dict[int, int] = {}
    dumps = []
    for packet in trace.packet:
        stacks |= {stack.iid: len(stack.frame_ids) for stack in packet.interned_data.callstacks}
        dumps += packet.profile_packet.process_dumps
    (dump,) = dumps
    assert all(stacks[sample.callstack_id] for sample in dump.samples)
    assert max(stacks.values()) >= 3
    sums = sum(sample.self_allocated for sample in dump.samples), sum(sample.alloc_count for sample in dump.samples)
    assert sums == (int(total[1]), int(total[2]))


@pytest.mark.truth(recording="mono_heap", path="convert:perfetto", source="Perfetto's classes; mprof-report")
def test_heap_snapshots_are_counters(mono_corpus: Path, mprof_report: str) -> None:
    log = mono_corpus / "v17" / "heapshot.mlpd"
    shots = re.findall(r"Heap shot \d+ at .*: size: (\d+), object count: (\d+)", output_of(mprof_report, log))
    trace = exported(perfuse.fuse(log))
    tracks = {packet.track_descriptor.uuid: packet.track_descriptor.name for packet in trace.packet}
    counts: dict[str, list[str]] = {}
    for packet in trace.packet:
        event = packet.track_event
        if tracks.get(event.track_uuid, "").startswith("Heap snapshot"):
            counts.setdefault(tracks[event.track_uuid], []).append(f"{event.counter_value}")
    assert list(zip(counts["Heap snapshot: bytes"], counts["Heap snapshot: objects"], strict=True)) == shots


def test_no_field_of_a_packet_is_repeated(small: FakeProfile) -> None:
    """Of two messages in a field that is not a list, the trace processor reads the last, and these classes both."""
    out = io.BytesIO()
    export(small, out, to="perfetto")
    packets = raw_packets(out.getvalue())
    assert len(packets) == len(exported(small).packet)
    for fields in packets:
        assert max(Counter(fields).values()) == 1


def test_older_releases_get_perf_samples(small: FakeProfile) -> None:
    """The same samples as `PerfSample`, whose values are the running counts of their processor."""
    new = [packet.stack_sample for packet in exported(small).packet if packet.HasField("stack_sample")]
    old = [packet.perf_sample for packet in exported(small, samples="perf").packet if packet.HasField("perf_sample")]
    assert [(one.task_context.pid, one.task_context.tid, one.callstack_iid) for one in new] == [
        (one.pid, one.tid, one.callstack_iid) for one in old
    ]
    counts: dict[int, int] = {}
    for one, before in zip(new, old, strict=True):
        counts[before.cpu] = counts.get(before.cpu, 0) + one.primary_weight
        assert before.timebase_count == counts[before.cpu]


def test_the_clock_snapshot_has_the_time_of_day(small: FakeProfile) -> None:
    small.sql("UPDATE clocks SET kind = 'monotonic', realtime_offset_ns = 1_700_000_000_000_000_000")
    snapshots = [one.clock_snapshot for one in exported(small).packet if one.HasField("clock_snapshot")]
    assert snapshots
    for snapshot in snapshots:
        times = {clock.clock_id: clock.timestamp for clock in snapshot.clocks}
        assert times[1] - times[3] == 1_700_000_000_000_000_000
        assert snapshot.primary_trace_clock == 3


@pytest.mark.truth(
    recording=["mono_heap", "mono_before_15"],
    path="convert:perfetto",
    source="HeapGraph packets by Protocol Buffers; sizes and numbers of objects by mprof-report",
)
@pytest.mark.parametrize("name", ["v17/graph", "tiny/v13-heapshot"])
def test_heap_graphs(name: str, mono_corpus: Path, mprof_report: str) -> None:
    """Types, sizes and references of each object, and the roots."""
    log = mono_corpus / f"{name}.mlpd"
    profile = perfuse.fuse(log)
    shots = re.findall(r"Heap shot \d+ at .*: size: (\d+), object count: (\d+)", output_of(mprof_report, log))
    out = io.BytesIO()
    profile.export(out, to="perfetto")
    graphs = heap_graphs(out.getvalue())
    assert [(f"{graph.size_bytes}", f"{len(graph.objects)}") for graph in graphs] == shots
    for snapshot, graph in enumerate(graphs):
        objects = profile.sql(f"""
            SELECT object_address, coalesce(t.name, 'unknown type'), size_bytes FROM heap_objects
            LEFT JOIN types t USING (type_id) WHERE snapshot_id = {snapshot} ORDER BY 1
        """).fetchall()
        assert [(address, *of) for address, of in sorted(graph.objects.items())] == objects
        references = profile.sql(f"""
            SELECT owner_address, coalesce('+' || field_offset, 'reference'), target_address FROM heap_references
            WHERE snapshot_id = {snapshot}
        """).fetchall()
        assert Counter(graph.references) == Counter(references)
        roots = profile.sql(f"""
            SELECT object_address FROM heap_roots WHERE snapshot_id = {snapshot} AND NOT coalesce(weak, false)
        """).fetchall()
        assert Counter(graph.roots) == Counter(address for (address,) in roots if address in graph.objects)


def test_the_last_heap_graphs_are_written_where_there_are_many(mono_corpus: Path) -> None:
    profile = perfuse.fuse(mono_corpus / "v17" / "graph.mlpd")
    sizes = [profile.heap(key).num_objects for key in range(3)]
    out = io.BytesIO()
    with pytest.warns(perfuse.errors.ExportWarning, match="of 3 heap snapshots .* 2 are written with all objects"):
        profile.export(out, to="perfetto", max_objects=sizes[1] + sizes[2])
    assert [len(graph.objects) for graph in heap_graphs(out.getvalue())] == sizes[1:]


def test_sums_without_times_are_refused(xray_corpus: Path) -> None:
    profile = perfuse.fuse(xray_corpus / "profiling" / "prof-small.0.xray")
    with pytest.raises(ExportError, match="only sums, without times") as error:
        exported(profile)
    assert error.value.hint == "sums go into firefox, speedscope, pprof and collapsed"
