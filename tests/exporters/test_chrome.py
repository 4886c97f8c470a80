"""Chrome's trace events: the calls of the tables, reassembled as viewers do."""

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fake_profile import FakeProfile
from perf_script import perf_script
from tools import output_of
from traced import NAMES, Call, Instant, calls, in_json, instants

import perfuse
from needs import need
from perfuse.errors import ExportError
from perfuse.exporters import export
from perfuse.exporters.queries import FRAMES
from truth.producers import run_tool
from truth.xray_programs import build


@pytest.mark.parametrize("name", NAMES)
def test_calls_are_those_of_the_tables(name: str, traces: Path, tmp_path: Path) -> None:
    profile = perfuse.fuse(traces / "fdr" / f"{name}.xray")
    profile.export(tmp_path / "p.trace.json")
    written = json.loads((tmp_path / "p.trace.json").read_bytes())
    zero = written["otherData"]["start_ns"]
    assert Counter(as_viewers_read(written["traceEvents"], zero)) == calls(profile)
    theirs = [event for event in written["traceEvents"] if event["ph"] == "i"]
    assert Counter(as_instant(event, zero) for event in theirs) == instants(profile)


@pytest.mark.parametrize("window", [(0.0, 0.0001), (0.001, 0.004), (0.0049, 1.0)])
def test_a_time_range_is_cut_as_tables_are(window: tuple[float, float], traces: Path, tmp_path: Path) -> None:
    profile = perfuse.fuse(traces / "fdr" / "threads4-v5.xray").between(*window)
    start, end = profile.selection.start_ns, profile.selection.end_ns
    profile.export(tmp_path / "p.trace.json")
    written = json.loads((tmp_path / "p.trace.json").read_bytes())
    theirs = Counter(as_viewers_read(written["traceEvents"], written["otherData"]["start_ns"]))
    expected: Counter[Call] = Counter()
    assert start is not None
    assert end is not None
    for call, num in calls(profile).items():
        call_end = call.start_ns + call.duration_ns
        if call.start_ns >= end or call_end < start:
            continue
        cut = call
        if call.start_ns < start:
            cut = cut._replace(start_ns=start, start_reason="lost")
        if call_end > end:
            cut = cut._replace(end_reason="truncated")
        expected[cut._replace(duration_ns=min(call_end, end) - cut.start_ns)] += num
    assert theirs == expected


def test_one_thread(traces: Path, tmp_path: Path) -> None:
    profile = perfuse.fuse(traces / "fdr" / "threads4-v5.xray")
    ((tid,),) = profile.sql("SELECT max(tid) FROM threads SEMI JOIN slices USING (thread_id)").fetchall()
    profile.thread(tid).export(tmp_path / "p.trace.json.gz")
    written = json.loads(gzip.decompress((tmp_path / "p.trace.json.gz").read_bytes()))
    theirs = Counter(as_viewers_read(written["traceEvents"], written["otherData"]["start_ns"]))
    assert theirs == Counter({call: num for call, num in calls(profile).items() if call.tid == tid})


def test_every_output_is_the_same(traces: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """A file by its descriptor, a packed one and standard output through Python."""
    profile = perfuse.fuse(traces / "fdr" / "sqmt-small-v5.xray")
    profile.export(tmp_path / "p.trace.json")
    profile.export(tmp_path / "p.trace.json.gz")
    written = (tmp_path / "p.trace.json").read_bytes()
    assert gzip.decompress((tmp_path / "p.trace.json.gz").read_bytes()) == written
    profile.export("-", to="chrome")
    assert capfdbinary.readouterr().out == written


def test_a_profile_without_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="neither calls nor samples"):
        export(FakeProfile(), tmp_path / "p.trace.json")
    (tmp_path / "sums.folded").write_text("main;run 3\n", encoding="utf-8")
    with pytest.raises(ExportError, match="only sums, without times"):
        perfuse.fuse(tmp_path / "sums.folded").export(tmp_path / "p.trace.json")
    assert not (tmp_path / "p.trace.json").exists()


def test_samples_are_cpu_profiles_of_their_threads(expected_script: Path, tmp_path: Path) -> None:
    """Every sample of perf's own output, with its time and its functions, root first."""
    profile = perf_script(expected_script)
    export(profile, tmp_path / "p.trace.json")
    theirs: Counter[tuple[int, int, tuple[str, ...]]] = Counter()
    for one in cpu_profiles(json.loads((tmp_path / "p.trace.json").read_bytes())):
        theirs.update((one.tid, at_us, path) for at_us, path in one.samples if path != ("(idle)",))
    frames = dict(profile.sql(f"SELECT frame_id, label FROM ({FRAMES})").fetchall())
    stacks: dict[int | None, tuple[str, ...]] = {None: ()}
    for stack, parent, frame in profile.sql(
        "SELECT stack_id, parent_stack_id, frame_id FROM stacks ORDER BY 1"
    ).fetchall():
        stacks[stack] = (*stacks[parent], frames[frame])
    rows = profile.sql("SELECT tid, ts_ns, stack_id FROM samples JOIN threads USING (thread_id)").fetchall()
    first_ns = min(ts_ns for _, ts_ns, _ in rows)
    assert theirs == Counter(
        (tid, (ts_ns - first_ns + 500) // 1000, stacks[stack] or ("[no stack]",)) for tid, ts_ns, stack in rows
    )


def test_a_thread_that_waits_is_idle_in_cpu_profiles(tmp_path: Path) -> None:
    """A viewer lets a sample last until the next one: two bursts of three samples of 1 ms are 6 ms, not 103."""
    profile = FakeProfile()
    profile.add("processes", process_id=0, pid=7, name="app")
    profile.add("threads", thread_id=0, process_id=0, tid=7, name="app")
    profile.add("functions", function_id=0, name="busy", path="/src/app.c", line=12, column=3)
    profile.add("frames", frame_id=0, function_id=0, kind="native")
    profile.add("stacks", stack_id=0, frame_id=0)
    for number, at_ms in enumerate((0, 1, 2, 100, 101, 102)):
        profile.add("samples", sample_id=number, ts_ns=5_000_000_000 + at_ms * 1_000_000, thread_id=0, stack_id=0,
                    weight=1_000_000, weight_unit="ns", event="cpu-clock")  # fmt: skip
    export(profile, tmp_path / "p.trace.json")
    written = json.loads((tmp_path / "p.trace.json").read_bytes())
    (one,) = cpu_profiles(written)
    lasted: Counter[str] = Counter()
    for (at_us, path), (next_us, _) in pairwise([*one.samples, (one.end_us, ())]):
        lasted[path[-1]] += next_us - at_us
    assert lasted == {"busy": 6000, "(idle)": 97_000}
    (node,) = [node for node in one.nodes if node["callFrame"]["functionName"] == "busy"]
    assert [node["callFrame"][key] for key in ("url", "lineNumber", "columnNumber")] == ["/src/app.c", 11, 2]
    names = {event["name"]: event["args"]["name"] for event in written["traceEvents"] if event["ph"] == "M"}
    assert names == {"process_name": "app", "thread_name": "app"}


@pytest.mark.truth(
    recording="perf_xray", path="convert:chrome", source="the clock that both recorders share, read from both tables"
)
def test_samples_and_calls_have_one_zero(tmp_path: Path) -> None:
    """A sample of `busy` lies inside a call of it in the same trace."""
    # Recorded here: names of samples need the program, which the stored recording does not have.
    need("perf")
    program = build(tmp_path, "busy_calls.c")
    modes = ["env", "XRAY_MODE=xray-fdr", "XRAY_MODE_OPTIONS=func_duration_threshold_us=0"]
    sampled = ["perf", "record", "-qN", "-e", "cpu-clock", "-F", "1999", "-k", "mono", "-g", "-o", "perf.data", program]
    run_tool([*modes, *sampled], tmp_path)
    (log,) = tmp_path.glob("xray-log.*")
    profile = perfuse.fuse(tmp_path / "perf.data", log, maps={0: program})
    profile.export(tmp_path / "p.trace.json")
    written = json.loads((tmp_path / "p.trace.json").read_bytes())
    (one,) = cpu_profiles(written)
    spans = [
        (event["name"], event["ts"], event["ts"] + event["dur"])
        for event in written["traceEvents"]
        if event["ph"] == "X"
    ]
    names = {name for name, _, _ in spans}
    inside = outside = 0
    for at_us, path in one.samples:
        for name in names.intersection(path):
            within = any(start - 1 <= at_us <= end + 1 for called, start, end in spans if called == name)
            inside, outside = inside + within, outside + (not within)
    assert inside > 20
    # The recorder reads the clock when the function has begun: a sample may be before that.
    assert outside <= 1


def test_heap_snapshots_and_allocations_are_counters(mono_corpus: Path, mprof_report: str, tmp_path: Path) -> None:
    """The last value of the sums is what mprof-report adds up."""
    log = mono_corpus / "v17" / "alloc-bt3.mlpd"
    found = re.search(r"Total memory allocated: (\d+) bytes in (\d+) objects", output_of(mprof_report, log))
    assert found is not None
    perfuse.fuse(log).export(tmp_path / "p.trace.json")
    values = counters(tmp_path / "p.trace.json")
    for name, total in zip(("bytes", "objects"), found.groups(), strict=True):
        so_far = [value for _, value in sorted(values[f"Allocated so far: {name}"])]
        assert so_far == sorted(so_far)
        assert so_far[-1] == int(total)
    log = mono_corpus / "v17" / "heapshot.mlpd"
    lines = re.findall(r"Heap shot \d+ at [^:]*: size: (\d+), object count: (\d+)", output_of(mprof_report, log))
    perfuse.fuse(log).export(tmp_path / "p.trace.json")
    values = counters(tmp_path / "p.trace.json")
    sizes = [value for _, value in sorted(values["Heap snapshot: bytes"])]
    objects = [value for _, value in sorted(values["Heap snapshot: objects"])]
    assert [*zip(sizes, objects, strict=True)] == [(int(size), int(count)) for size, count in lines if int(count)]


def test_an_exception_while_writing_stops_it(traces: Path) -> None:
    """For example an interrupt."""

    class SlowSink:
        def write(self, _data: bytes) -> int:
            raise KeyboardInterrupt

    profile = perfuse.fuse(traces / "fdr" / "sqmt-small-v5.xray")
    trace = profile.call_trace()
    assert trace is not None
    with pytest.raises(KeyboardInterrupt):
        trace.write_chrome(SlowSink())  # type: ignore[arg-type]


class CpuProfile(NamedTuple):
    """A CPU profile as DevTools reads it: a sample's time is the start and the sum of the deltas up to it."""

    tid: int
    samples: list[tuple[int, tuple[str, ...]]]
    end_us: int
    nodes: list[dict[str, Any]]


def cpu_profiles(trace: dict[str, Any]) -> Iterator[CpuProfile]:
    heads = {event["id"]: event for event in trace["traceEvents"] if event["name"] == "Profile"}
    for event in trace["traceEvents"]:
        if event["name"] != "ProfileChunk":
            continue
        head, data = heads[event["id"]], event["args"]["data"]
        assert head["pid"] == event["pid"]
        assert head["ts"] == head["args"]["data"]["startTime"]
        paths: dict[int, tuple[str, ...]] = {}
        for node in data["cpuProfile"]["nodes"]:
            name = node["callFrame"]["functionName"]
            paths[node["id"]] = (*paths[node["parent"]], name) if "parent" in node else ()
        at_us, samples = head["ts"], []
        for node, delta in zip(data["cpuProfile"]["samples"], data["timeDeltas"], strict=True):
            at_us += delta
            samples.append((at_us, paths[node]))
        yield CpuProfile(head["tid"], samples, data["endTime"], data["cpuProfile"]["nodes"])


def counters(path: Path) -> dict[str, list[tuple[float, float]]]:
    """Times and values of counters, by name."""
    found: dict[str, list[tuple[float, float]]] = {}
    for event in json.loads(path.read_bytes())["traceEvents"]:
        if event["ph"] == "C":
            ((_, value),) = event["args"].items()
            found.setdefault(event["name"], []).append((event["ts"], value))
    return found


def as_viewers_read(events: list[dict[str, Any]], zero_ns: int) -> Iterator[Call]:
    """Calls as Perfetto nests them: by time; ends first, then the longest, then in file order."""
    timed = [(round(event["ts"] * 1000) + zero_ns, event) for event in events if event["ph"] in "XBE"]

    def order(row: tuple[int, dict[str, Any]]) -> tuple[int, int, int, float]:
        ts_ns, event = row
        rank = {"E": (0, 0.0), "X": (1, -event.get("dur", 0))}.get(event["ph"], (1, 0.0))
        return event["tid"], ts_ns, *rank

    open_calls: list[tuple[int, str, int]] = []
    for ts_ns, event in sorted(timed, key=order):
        if event["ph"] == "B":
            open_calls.append((event["tid"], event["name"], ts_ns))
            continue
        start_ns, duration_ns = ts_ns, round(event.get("dur", 0) * 1000)
        if event["ph"] == "E":
            tid, name, start_ns = open_calls.pop()
            assert (tid, name) == (event["tid"], event["name"])
            duration_ns = ts_ns - start_ns
        args = event.get("args", {})
        yield Call(
            event["tid"],
            event["name"],
            start_ns,
            duration_ns,
            args.get("start_reason", "entry"),
            args.get("end_reason", "exit"),
            in_json(args.get("arguments", [])),
        )
    assert not open_calls


def as_instant(event: dict[str, Any], zero_ns: int) -> Instant:
    args = event["args"]
    payload = args.get("payload", args.get("payload_hex", ""))
    return Instant(event["tid"], round(event["ts"] * 1000) + zero_ns, args["kind"], payload)
