"""Chrome's trace events: the calls of the tables, reassembled as viewers do."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_profile import FakeProfile
from traced import NAMES, Call, Instant, calls, in_json, instants

import perfuse
from perfuse.errors import ExportError
from perfuse.exporters import export


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


def test_a_profile_without_calls_is_refused(small: FakeProfile, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no calls") as error:
        export(small, tmp_path / "p.trace.json")
    assert error.value.hint == "samples go into perfetto, firefox, speedscope and pprof"
    assert list(tmp_path.iterdir()) == []


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
