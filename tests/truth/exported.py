"""Sums of exported files, read by parsers that share nothing with this project's writers.

Each reader returns sums by event and thread id: weights under the event's name, numbers of samples under the name with
`-samples`. Where a target has no threads the thread id is 0.
"""

from __future__ import annotations

import base64
import csv
import json
import re
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tools import output_of

from needs import need, need_module

Sums = dict[str, Counter[int]]
"""Sums by event, then by thread id."""

_EVENTS = {"cpu_clock": "cpu-clock", "wall_time": "wall-time", "allocated_bytes": "allocated-bytes"}
_UNITS = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9, "B": 1, "KiB": 2**10, "MiB": 2**20}


def collapsed(path: Path) -> Counter[int]:
    """The counts of `root=thread`: the outermost part of a stack is `name pid/tid`, or without processes `name`."""
    found = Counter[int]()
    for line in path.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        match = re.search(r"/(\d+)$", stack.split(";")[0])
        found[int(match[1]) if match else 0] += int(count)
    return found


def _event_of_type(name: str) -> str:
    """The event of a sample type, whose name has `_` in place of other characters."""
    if name.endswith("_samples"):
        return f"{_event_of_type(name.removesuffix('_samples'))}-samples"
    return _EVENTS.get(name, name)


def pprof(path: Path) -> Sums:
    """A `profile.proto`, field by field."""
    message = list(_fields(path.read_bytes()))
    strings = [value.decode() for number, value in message if number == 6]
    types = [dict(_fields(value)) for number, value in message if number == 1]
    names = [_event_of_type(strings[one.get(1, 0)]) for one in types]
    found: Sums = {name: Counter() for name in names}
    for number, value in message:
        if number != 2:
            continue
        values: list[int] = []
        tid = 0
        for inner, item in _fields(value):
            if inner == 2:
                values += _varints(item) if isinstance(item, bytes) else [item]
            elif inner == 3:
                label = dict(_fields(item))
                if strings[label[1]] == "tid":
                    tid = label[3] if 3 in label else int(strings[label[2]])
        for name, one in zip(names, values, strict=True):
            found[name][tid] += one
    return found


def perf_script(path: Path) -> Sums:
    """Paragraphs of `perf script`, by the expression that FlameGraph's stackcollapse-perf.pl finds them with."""
    found: Sums = defaultdict(Counter)
    frames = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"^(\S.+?)\s+(\d+)/*(\d+)*\s+", line):
            period, event = re.match(r".*?: +(\d+) +(.+?): $", line[match.end() :]).groups()  # type: ignore[union-attr]
            found[event][int(match[3])] += int(period)
            found[f"{event}-samples"][int(match[3])] += 1
        elif line:
            assert re.match(r"^\s*(\w+)\s*(.+) \((.*)\)", line), line
            frames += 1
    assert frames
    return found


def otlp(path: Path) -> Sums:
    """Samples of OpenTelemetry's own message classes."""
    messages = need_module("opentelemetry.proto.profiles.v1development.profiles_pb2")
    data = messages.ProfilesData()
    data.ParseFromString(path.read_bytes())
    tables = data.dictionary
    texts = tables.string_table
    assert texts[0] == ""
    assert not any(len(table[0].SerializeToString()) for table in (tables.stack_table, tables.location_table))
    found: Sums = defaultdict(Counter)
    for resource in data.resource_profiles:
        for profile in (one for scope in resource.scope_profiles for one in scope.profiles):
            event = _event_of_type(texts[profile.sample_type.type_strindex])
            for sample in profile.samples:
                attributes = [tables.attribute_table[index] for index in sample.attribute_indices]
                named = {texts[one.key_strindex]: one.value for one in attributes}
                tid = named["thread.id"].int_value
                found[event][tid] += sum(sample.values)
                assert len(sample.timestamps_unix_nano) in (0, len(sample.values))
                if sample.timestamps_unix_nano or event == "samples":
                    found[f"{event}-samples"][tid] += len(sample.values)
    return found


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Fields of a protobuf message: numbers, or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        value: Any
        if kind == 0:
            value, at = _varint(data, at)
        else:
            assert kind == 2, "pprof has varints and bytes"
            length, at = _varint(data, at)
            value = data[at : at + length]
            at += length
        yield key >> 3, value


def _varints(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def speedscope(path: Path) -> Sums:
    """Sampled and evented profiles; the name of one ends with `pid/tid`, then its event."""
    found: Sums = defaultdict(Counter)
    for one in json.loads(path.read_text(encoding="utf-8"))["profiles"]:
        match = re.search(r"(?:(?:^|\s)\S*/(\d+))?(?: (\S+))?$", one["name"])
        assert match, one["name"]
        tid, event = int(match[1] or 0), match[2] or ""
        if one["type"] == "evented":
            depth = start = 0
            for at in one["events"]:
                if at["type"] == "O":
                    start = at["at"] if depth == 0 else start
                    found["calls"][tid] += 1
                    depth += 1
                else:
                    depth -= 1
                    found["wall-time"][tid] += at["at"] - start if depth == 0 else 0
        else:
            found[event][tid] += sum(one["weights"])
            found[f"{event}-samples"][tid] += len(one["samples"])
            assert one["endValue"] - one["startValue"] == sum(one["weights"])
    return found


def processed_profile(path: Path) -> Any:
    """A profile of the Firefox Profiler: JSON, or JSLB, whose arrays are in slabs."""
    data = path.read_bytes()
    if not data.startswith(b"\xdc\xdfJSLB\x01\x00"):
        return json.loads(data)
    version, num_slabs, root = struct.unpack_from("<III", data, 8)
    assert version == 1
    slabs = []
    for number in range(num_slabs):
        kind, start, size = struct.unpack_from("<III", data, 20 + 12 * number)
        assert start % 8 == 0
        content = data[start : start + size]
        assert len(content) == size
        form = {4: "i", 7: "d"}.get(kind)
        assert form or kind == 10
        count = size // struct.calcsize(form) if form else 0
        slabs.append(list(struct.unpack(f"<{count}{form}", content)) if form else json.loads(content))

    def resolved(value: Any) -> Any:
        if isinstance(value, dict):
            return slabs[value["$s"]] if value.keys() == {"$s"} else {k: resolved(v) for k, v in value.items()}
        return [resolved(item) for item in value] if isinstance(value, list) else value

    return resolved(slabs[root])


def firefox(path: Path) -> Sums:
    """Samples of the processed profile format, by thread; a thread with several events has a track for each."""
    found: Sums = defaultdict(Counter)
    for thread in processed_profile(path)["threads"]:
        samples = thread["samples"]
        if not samples["length"]:
            continue
        match = re.search(r" \(([\w-]+)\)$", thread["name"])
        tid = int(str(thread["tid"]).partition(".")[0])
        weights = samples.get("weight") or [1] * samples["length"]
        kind = samples.get("weightType") or "samples"
        event = match[1] if match else ""
        if kind == "tracing-ms":
            found[event][tid] += sum(round(weight * 10**6) for weight in weights)
        else:
            found[f"{event}-samples" if kind == "samples" else event][tid] += sum(weights)
    return found


def perfetto(path: Path) -> Sums:
    """Samples and calls of Perfetto's own message classes."""
    messages = need_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = messages.Trace()
    trace.ParseFromString(path.read_bytes())
    names: dict[tuple[int, int], str] = {}
    tracks: dict[int, int] = {}
    events: dict[int, str] = {}
    rows: list[Any] = []
    found: Sums = defaultdict(Counter)
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        for entry in packet.interned_data.event_categories:
            names[sequence, entry.iid] = entry.name
        if packet.HasField("trace_packet_defaults"):
            events[sequence] = packet.trace_packet_defaults.stack_sample_defaults.primary_descriptor.name
        if packet.HasField("track_descriptor") and packet.track_descriptor.HasField("thread"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor.thread.tid
        if packet.HasField("stack_sample"):
            found[f"{events[sequence]}-samples"][packet.stack_sample.task_context.tid] += 1
            found[events[sequence]][packet.stack_sample.task_context.tid] += packet.stack_sample.primary_weight
        if packet.HasField("track_event"):
            rows.append(packet)
    rows.sort(key=lambda packet: packet.timestamp)
    stacks: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for packet in rows:
        event = packet.track_event
        stack = stacks[event.track_uuid]
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append((names[packet.trusted_packet_sequence_id, event.category_iids[0]], packet.timestamp))
        elif event.type == event.TYPE_SLICE_END:
            category, start = stack.pop()
            tid = tracks.get(event.track_uuid, 0)
            found[{"call": "calls"}.get(category, category)][tid] += 1
            if category == "call" and not any(one == "call" for one, _ in stack):
                found["wall-time"][tid] += packet.timestamp - start
    assert not any(stacks.values())
    return found


def chrome(path: Path) -> Sums:
    """Calls of the trace event format: complete events, and pairs of begin and end; which are outermost.

    Samples are V8's CPU profiles: a `Profile` names the thread, its chunk has the samples; `(idle)` is not one of them.
    """
    found: Sums = defaultdict(Counter)
    calls: dict[int, list[tuple[int, int]]] = defaultdict(list)
    begun: dict[int, list[int]] = defaultdict(list)
    sampled: dict[str, tuple[int, str]] = {}
    for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"]:
        if event["name"] == "Profile":
            sampled[event["id"]] = event["tid"], event["args"]["data"]["event"]
        elif event["name"] == "ProfileChunk":
            tid, name = sampled[event["id"]]
            chunk = event["args"]["data"]["cpuProfile"]
            names = {node["id"]: node["callFrame"]["functionName"] for node in chunk["nodes"]}
            found[f"{name}-samples"][tid] += sum(names[node] != "(idle)" for node in chunk["samples"])
        if event.get("cat", "call") != "call" or event["ph"] not in "XBE":
            continue
        at = round(event["ts"] * 1000)
        if event["ph"] == "B":
            begun[event["tid"]].append(at)
        else:
            start = at if event["ph"] == "X" else begun[event["tid"]].pop()
            duration = round(event["dur"] * 1000) if event["ph"] == "X" else at - start
            calls[event["tid"]].append((start, duration))
    for tid, rows in calls.items():
        end = -1
        for start, duration in sorted(rows, key=lambda row: (row[0], -row[1])):
            found["calls"][tid] += 1
            if start >= end:
                found["wall-time"][tid] += duration
                end = start + duration
    return found


def cpuprofiles(directory: Path) -> tuple[Counter[int], Counter[int]]:
    """Number of samples, and nanoseconds that they last, by the thread id in the files' names; without idle time."""
    samples, lasted = Counter[int](), Counter[int]()
    for path in directory.iterdir():
        tid = int(path.stem.split("-")[-1])
        written = json.loads(path.read_text(encoding="utf-8"))
        idle = {node["id"] for node in written["nodes"] if node["callFrame"]["functionName"] == "(idle)"}
        lengths = [*written["timeDeltas"][1:], written["endTime"] - written["startTime"] - sum(written["timeDeltas"])]
        for node, length in zip(written["samples"], lengths, strict=True):
            samples[tid] += node not in idle
            lasted[tid] += 0 if node in idle else length * 1000
    return samples, lasted


def html(path: Path) -> Sums:
    """The data of the page: a text in JSON, then the tree in columns: parent, symbol, thread, samples, weights."""
    packed = re.search(r'id="profile">([^<]*)</script>', path.read_text(encoding="utf-8"))
    assert packed
    raw = zlib.decompress(base64.b64decode(packed[1]))
    (length,) = struct.unpack_from("<I", raw)
    description, nodes = json.loads(raw[4 : 4 + length]), raw[(4 + length + 7) // 8 * 8 :]
    num = len(nodes) // 24
    threads = struct.unpack_from(f"<{num}I", nodes, 8 * num)
    samples = struct.unpack_from(f"<{num}I", nodes, 12 * num)
    weights = struct.unpack_from(f"<{num}d", nodes, (16 * num + 7) // 8 * 8)
    labels = {key: re.search(r"/(\d+)$", label) for key, label in description["threads"]}
    event = description["event"]
    found: Sums = {event: Counter(), f"{event}-samples": Counter()}
    for thread, count, weight in zip(threads, samples, weights, strict=True):
        label = labels.get(thread)
        tid = int(label[1]) if label else 0
        found[event][tid] += int(weight)
        found[f"{event}-samples"][tid] += count
    return found


def svg(path: Path) -> tuple[float, int | None]:
    """Weight and number of samples of the box of everything."""
    for group in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}g"):
        title = group.findtext("{http://www.w3.org/2000/svg}title") or ""
        if title.startswith("all\n"):
            facts = title.partition("\n")[2].split(" · ")
            assert facts.pop(0) == "100.00%"
            return quantity(facts[0]), next((int(quantity(one)) for one in facts if one.endswith("samples")), None)
    raise AssertionError("the picture has no box of everything")


def quantity(text: str) -> float:
    """`17.7 ms`, `3,309 samples`."""
    number, _, unit = text.partition(" ")
    return float(number.replace(",", "")) * _UNITS.get(unit, 1)


def dot(path: Path) -> dict[str, dict[str, float]]:
    """Values in the tooltips of the nodes, as Graphviz reads them, by the function's name."""
    need("gvpr")
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for tooltip in output_of("gvpr", 'N{printf("%s\\n", $.tooltip)}', path).splitlines():
        name, *facts = tooltip.split("\\n")
        for fact in facts:
            words = fact.split(" ")
            if words[0] in ("self", "sum", "total"):
                found[name][words[0]] += quantity(" ".join(words[1:]))
            elif len(words) == 2 and words[1].rstrip("s") in ("call", "sample"):
                found[name]["count"] += quantity(fact)
    return found


def table(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


READERS: dict[str, Callable[[Path], Sums]] = {
    "pprof": pprof,
    "otlp": otlp,
    "perf-script": perf_script,
    "speedscope": speedscope,
    "firefox": firefox,
    "jslb": firefox,
    "perfetto": perfetto,
    "chrome": chrome,
    "html": html,
}
