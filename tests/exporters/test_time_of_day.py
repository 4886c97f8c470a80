"""Exports that can state the time of day have that of `perf script -F tod`."""

import gzip
import json
import re
import struct
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tools import output_of

import perfuse
from mlpd_events import SAMPLE, read_events
from needs import need, need_module

EXAMPLE = Path(__file__).parents[2] / "examples" / "postcards"


def since_1970(text: str) -> int:
    """Nanoseconds since 1970 of a date with a time of nine digits."""
    seconds, fraction = text.replace("T", " ").removesuffix("Z").split(".")
    return int(datetime.fromisoformat(seconds).replace(tzinfo=UTC).timestamp()) * 10**9 + int(fraction)


def chrome(path: Path) -> int:
    return since_1970(json.loads(path.read_bytes())["otherData"]["start_utc"])


def firefox(path: Path) -> int:
    profile = json.loads(path.read_bytes())
    first_ms = min(thread["samples"]["time"][0] for thread in profile["threads"] if thread["samples"]["length"])
    return round((profile["meta"]["startTime"] + first_ms) * 1e6)


def otlp(path: Path) -> int:
    (resource,) = json.loads(path.read_bytes())["resourceProfiles"]
    (profile,) = resource["scopeProfiles"][0]["profiles"]
    first = min(int(time) for sample in profile["samples"] for time in sample["timestampsUnixNano"])
    assert first == int(profile["timeUnixNano"])
    return first


def pprof(path: Path) -> int:
    raw = output_of("go", "tool", "pprof", "-symbolize=none", "-raw", path)
    found = re.search(r"^Time: (\S+ \S+) \+0000 UTC$", raw, re.MULTILINE)
    assert found is not None
    return since_1970(found[1])


def perfetto(path: Path) -> int:
    trace = need_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2").Trace()
    trace.ParseFromString(path.read_bytes())
    (snapshot,) = [one.clock_snapshot for one in trace.packet if one.HasField("clock_snapshot")]
    at = {clock.clock_id: clock.timestamp for clock in snapshot.clocks}
    first = min(one.timestamp for one in trace.packet if one.HasField("stack_sample"))
    monotonic, realtime = 3, 1
    return first - at[monotonic] + at[realtime]


def mono(path: Path) -> int:
    """The header has the start in milliseconds since 1970, and the same in nanoseconds of the clock of its events."""
    startup_ms, startup_ns = struct.unpack_from("<QQ", path.read_bytes(), 8)
    first = min(event.time for event in read_events(path) if event.byte == SAMPLE)
    return first - startup_ns + startup_ms * 10**6


FIREFOX_NS = 1000
"""Its times are milliseconds since 1970 in 64-bit floating point."""


@pytest.mark.parametrize(
    ("read", "options", "exact_ns"),
    [
        (chrome, {}, 0),
        (firefox, {}, FIREFOX_NS),
        (otlp, {"encoding": "json"}, 0),
        (pprof, {}, 0),
        (perfetto, {}, 0),
        (mono, {}, 0),
    ],
)
def test_first_sample(
    read: Callable[[Path], int],
    options: dict[str, str],
    exact_ns: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    need("perf", "go")
    monkeypatch.setenv("TZ", "UTC")
    recording = tmp_path / "perf.data"
    recording.write_bytes(gzip.decompress((EXAMPLE / "perf.data.gz").read_bytes()))
    # perf may state that it has not the kernel of the recording.
    command = ["perf", "script", "--ns", "-F", "tod", "-i", recording]
    first, *_ = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    perfuse.fuse(recording).export(tmp_path / "out", to=read.__name__, **options)
    assert abs(read(tmp_path / "out") - since_1970(first.strip().removesuffix(":"))) <= exact_ns
