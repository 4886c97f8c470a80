"""What recordings contain, by readers that share nothing with this project: they walk structures as specified.

A perf.data, a JITDUMP, a collapsed file, an XRay log and a profile of XRay are read here; facts of the corpus' Mono
logs are those that another program determined (`expected/*.truth.json`, `counts/*.txt`), of SFrame what readelf prints.
"""

from __future__ import annotations

import gzip
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from .kinds import CORPUS, KINDS, Kind

BY_THREAD = dict[int, int]
"""A sum for each thread, by its thread id."""


@dataclass(frozen=True)
class Weight:
    """The weights of an event.

    Attributes:
        unit: What they count.
        total: Their sum.
        by_thread: Their sum by thread id; empty where that is unknown.
        num_samples: Number of samples; None for sums.
        samples_by_thread: The same by thread id.
        tolerance: Share by which an answer may differ, for ticks that become time.
    """

    unit: str
    total: int
    by_thread: BY_THREAD = field(default_factory=dict)
    num_samples: int | None = None
    samples_by_thread: BY_THREAD = field(default_factory=dict)
    tolerance: float = 0.0


@dataclass(frozen=True)
class Outside:
    """What a kind's example contains.

    Attributes:
        weights: Weights by event.
        span_ns: Time of the first and last sample, where it is known.
    """

    weights: dict[str, Weight]
    span_ns: tuple[int, int] | None = None


def read(path: Path) -> bytes:
    """A file; one that gzip compressed is unpacked."""
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


@dataclass(frozen=True)
class Sample:
    """A sample of a perf.data; `chain` has no context markers."""

    pid: int
    tid: int
    time_ns: int
    period: int
    ip: int
    chain: tuple[int, ...]


PERF_RECORDS = {
    1: "MMAP", 2: "LOST", 3: "COMM", 4: "EXIT", 5: "THROTTLE", 6: "UNTHROTTLE", 7: "FORK", 9: "SAMPLE", 10: "MMAP2",
    13: "LOST_SAMPLES", 14: "SWITCH", 16: "NAMESPACES", 17: "KSYMBOL", 18: "BPF_EVENT", 19: "CGROUP",
    65: "EVENT_TYPE", 66: "TRACING_DATA", 67: "BUILD_ID", 68: "FINISHED_ROUND", 69: "ID_INDEX", 70: "AUXTRACE_INFO",
    73: "THREAD_MAP", 74: "CPU_MAP", 75: "STAT_CONFIG", 78: "EVENT_UPDATE", 79: "TIME_CONV", 80: "FEATURE",
    82: "FINISHED_INIT",
}  # fmt: skip
_CONTEXT = (1 << 64) - 4096
_IDENTIFIER = 1 << 16


@dataclass(frozen=True)
class PerfData:
    """The samples of a perf.data and its records by number."""

    samples: list[Sample]
    kinds: Counter[int]


@cache
def perf_data(path: Path) -> PerfData:
    """Walks a perf.data: its first event describes all (the examples have one)."""
    data = read(path)
    _, _, attr_size, attrs_at, _, data_at, data_size = struct.unpack_from("<8s6Q", data)
    (sample_type,) = struct.unpack_from("<Q", data, attrs_at + 24)
    samples, kinds = [], Counter[int]()
    at = data_at
    while at < data_at + data_size:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        kinds[kind] += 1
        if kind == 9:
            samples.append(_sample(data, at + 8, sample_type))
        at += size
    assert attr_size
    return PerfData(samples, kinds)


def _sample(data: bytes, at: int, sample_type: int) -> Sample:
    values: dict[int, int] = {}
    # IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD; each has eight bytes.
    for bit in (_IDENTIFIER, 1, 2, 4, 8, 64, 512, 128, 256):
        if sample_type & bit:
            (values[bit],) = struct.unpack_from("<Q", data, at)
            at += 8
    assert not sample_type & 16, "no example has counter values in samples"
    chain: tuple[int, ...] = ()
    if sample_type & 32:
        (length,) = struct.unpack_from("<Q", data, at)
        chain = struct.unpack_from(f"<{length}Q", data, at + 8)
    pid, tid = values[2] & 0xFFFFFFFF, values[2] >> 32
    plain = tuple(ip for ip in chain if ip < _CONTEXT)
    return Sample(pid, tid, values[4], values.get(256, 1), values[1], plain)


JIT_RECORDS = {0: "JIT_CODE_LOAD", 1: "JIT_CODE_MOVE", 2: "JIT_CODE_DEBUG_INFO", 3: "JIT_CODE_CLOSE"}
JIT_RECORDS |= {4: "JIT_CODE_UNWINDING_INFO"}


@dataclass(frozen=True)
class Load:
    """A `JIT_CODE_LOAD` record."""

    time_ns: int
    pid: int
    tid: int
    address: int
    size: int
    index: int
    name: str
    code: bytes


@dataclass(frozen=True)
class Dump:
    """The loads of a JITDUMP, its records by name, and the number of its line entries."""

    loads: list[Load]
    kinds: Counter[str]
    num_lines: int


@cache
def jitdump(path: Path) -> Dump:
    """Walks a JITDUMP."""
    data = read(path)
    (at,) = struct.unpack_from("<I", data, 8)
    loads, kinds, num_lines = [], Counter[str](), 0
    while at + 16 <= len(data):
        kind, size, time_ns = struct.unpack_from("<IIQ", data, at)
        kinds[JIT_RECORDS[kind]] += 1
        if kind == 0:
            pid, tid, _, address, code_size, index = struct.unpack_from("<IIQQQQ", data, at + 16)
            name, _, rest = data[at + 56 : at + size].partition(b"\0")
            loads.append(Load(time_ns, pid, tid, address, code_size, index, name.decode(), rest[:code_size]))
        elif kind == 2:
            num_lines += struct.unpack_from("<Q", data, at + 24)[0]
        at += size
    return Dump(loads, kinds, num_lines)


@cache
def collapsed(path: Path) -> Counter[str]:
    """The counts of a collapsed file by stack."""
    found = Counter[str]()
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        found[stack] += int(count)
    return found


@dataclass
class Call:
    """A call: ticks, the function's number, the place of its caller in the list of the thread."""

    function: int
    start: int
    caller: int | None
    end: int = 0


@dataclass(frozen=True)
class CallLog:
    """The calls of an XRay log by thread id, and the rate of its counter."""

    calls: dict[int, list[Call]]
    hz: int
    kinds: Counter[str]

    @property
    def num_calls(self) -> BY_THREAD:
        """Number of calls by thread."""
        return {tid: len(calls) for tid, calls in self.calls.items()}

    @property
    def busy_ns(self) -> BY_THREAD:
        """Time inside any call, by thread: that of the outermost calls."""
        ticks = {
            tid: sum(one.end - one.start for one in calls if one.caller is None) for tid, calls in self.calls.items()
        }
        return {tid: round(value * 1e9 / self.hz) for tid, value in ticks.items()}

    def durations(self) -> dict[int, list[float]]:
        """Durations in nanoseconds by the function's number."""
        found = defaultdict(list)
        for calls in self.calls.values():
            for one in calls:
                found[one.function].append((one.end - one.start) * 1e9 / self.hz)
        return found


FDR_EVENT = tuple[int, str, int, int]
"""Thread id, `enter` or `exit`, the function's number, ticks."""


@cache
def call_log(path: Path) -> CallLog:
    """Walks an XRay log of FDR mode, version 5, or of Basic mode, version 3, and pairs its entries and exits."""
    data = read(path)
    version, mode = struct.unpack_from("<HH", data)
    (hz,) = struct.unpack_from("<Q", data, 8)
    kinds = Counter[str]()
    events = _fdr_events(data, kinds) if mode == 1 else _basic_events(data, kinds)
    assert version == (5 if mode == 1 else 3)
    calls: dict[int, list[Call]] = defaultdict(list)
    stacks: dict[int, list[int]] = defaultdict(list)
    for tid, what, function, ticks in events:
        stack, listed = stacks[tid], calls[tid]
        if what == "enter":
            listed.append(Call(function, ticks, stack[-1] if stack else None))
            stack.append(len(listed) - 1)
        elif any(listed[place].function == function for place in stack):
            # Calls that an exception left end with the function that caught it.
            while True:
                place = stack.pop()
                listed[place].end = ticks
                if listed[place].function == function:
                    break
    assert not any(stacks.values()), "a call of the examples has no end"
    return CallLog(dict(calls), hz or 1_000_000_000, kinds)


_FDR_KINDS = ("NewBuffer", "EndOfBuffer", "NewCPUId", "TSCWrap", "WallTimeMarker", "CustomEventMarker", "CallArgument",
              "BufferExtents", "TypedEventMarker", "Pid")  # fmt: skip
_ARGUMENT_KINDS = ("CallArgument", "ArgPayload")
_FUNCTION_KINDS = ("Entry", "Exit", "Tail_Exit", "Entry_Args")


def _fdr_events(data: bytes, kinds: Counter[str]) -> Iterator[FDR_EVENT]:
    at, tid, ticks = 32, 0, 0
    while at < len(data):
        (first,) = struct.unpack_from("<I", data, at)
        if first & 1:
            kind = (first & 0xFF) >> 1
            kinds[_FDR_KINDS[kind]] += 1
            if kind == 0:
                (tid,) = struct.unpack_from("<i", data, at + 1)
            elif kind == 2:
                (ticks,) = struct.unpack_from("<Q", data, at + 3)
            elif kind == 3:
                (ticks,) = struct.unpack_from("<Q", data, at + 1)
            elif kind in (5, 8):
                size, delta = struct.unpack_from("<ii", data, at + 1)
                ticks += delta
                at += size
            at += 16
        else:
            kind, function = (first >> 1) & 7, first >> 4
            (delta,) = struct.unpack_from("<I", data, at + 4)
            ticks += delta
            kinds[_FUNCTION_KINDS[kind]] += 1
            yield tid, "exit" if kind in (1, 2) else "enter", function, ticks
            at += 8


def _basic_events(data: bytes, kinds: Counter[str]) -> Iterator[FDR_EVENT]:
    rows = []
    for at in range(32, len(data), 32):
        record, _, kind, function, ticks, tid, _ = struct.unpack_from("<HBBiQII", data, at)
        kinds["ArgPayload" if record == 1 else _FUNCTION_KINDS[kind]] += 1
        if record == 0:
            rows.append((tid, "exit" if kind in (1, 2) else "enter", function, ticks))
    yield from rows


@dataclass(frozen=True)
class CallPath:
    """A path of a profile of XRay, outermost function first: number of calls, ticks."""

    tid: int
    functions: tuple[int, ...]
    count: int
    ticks: int


@cache
def call_profile(path: Path) -> list[CallPath]:
    """Walks a file of XRay's Profiling mode."""
    data = read(path)
    found, at = [], 32
    while at < len(data):
        size, _, tid = struct.unpack_from("<IIQ", data, at)
        end = at + size
        at += 16
        while at < end:
            functions = []
            while (number := struct.unpack_from("<i", data, at)[0]) != 0:
                functions.append(number)
                at += 4
            count, ticks = struct.unpack_from("<Qq", data, at + 4)
            at += 20
            found.append(CallPath(tid, tuple(reversed(functions)), count, ticks))
    return found


def sframe_sizes(file: Path) -> tuple[int, int]:
    """Number of functions and of rows in a section, as readelf printed it."""
    text = file.with_name(f"{file.name}.readelf.txt").read_text(encoding="utf-8")
    found = [re.search(rf"Num {what}: (\d+)", text) for what in ("FDEs", "FREs")]
    functions, rows = (int(match[1]) for match in found if match)
    return functions, rows


ARCHIVED = ("sframe/v2/x86_64/small_omitfp.o", "sframe/v2/x86_64/small_fp.o")
"""The members of the archive, in the corpus."""


@cache
def num_records(name: str, file: int = 0) -> dict[str, int]:
    """Records of one file of a kind's example, by the specification's name of their kind."""
    kind = KINDS[name]
    path = kind.paths[file]
    of = kind.formats[file]
    if of == "sframe":
        return _sframe_records(path)
    if name == "xray_profiling":
        return {"Block": len({one.tid for one in call_profile(path)}), "Path": len(call_profile(path))}
    read_kinds: dict[str, Callable[[], Mapping[str, int]]] = {
        "perf_data": lambda: {f"PERF_RECORD_{PERF_RECORDS[key]}": num for key, num in perf_data(path).kinds.items()},
        "jitdump": lambda: jitdump(path).kinds,
        "collapsed": lambda: {"stack": len(path.read_text().splitlines())},
        "xray": lambda: call_log(path).kinds,
        "mono": lambda: mono_counts(kind),
    }
    return dict(read_kinds[of]())


def _sframe_records(path: Path) -> dict[str, int]:
    sections = [CORPUS / one for one in ARCHIVED] if path.suffix == ".a" else [path]
    sizes = [sframe_sizes(one) for one in sections]
    functions, rows = (sum(column) for column in zip(*sizes, strict=True))
    return {"sframe_header": len(sizes), "sframe_func_desc_entry": functions, "sframe_frame_row_entry": rows}


@cache
def num_rows(name: str) -> dict[str, int]:
    """Rows of tables that a kind's example fills, as far as records make them one by one."""
    kind = KINDS[name]
    found: dict[str, int] = {"sources": len(kind.files)}
    for file, (path, of) in enumerate(zip(kind.paths, kind.formats, strict=True)):
        if of == "perf_data":
            found["callchains"] = len(perf_data(path).samples)
        elif of == "jitdump":
            found["code_objects"] = len(jitdump(path).loads)
        elif of == "collapsed":
            found["samples"] = len(collapsed(path))
        elif name == "xray_profiling":
            found["call_sums"] = len(call_profile(path))
        elif of == "xray":
            log = call_log(path)
            found["call_events"] = sum(log.kinds[what] for what in (*_FUNCTION_KINDS, *_ARGUMENT_KINDS))
            found["slices"] = sum(log.num_calls.values())
        elif of == "sframe":
            records = num_records(name, file)
            found["unwind_functions"] = records["sframe_func_desc_entry"]
            found["unwind_rows"] = records["sframe_frame_row_entry"]
        elif path.is_relative_to(CORPUS):
            counts = mono_counts(kind)
            for table, words in MONO_ROWS.items():
                if num := sum(count for what, count in counts.items() if re.fullmatch(words, what)):
                    found[table] = num
    return found


MONO_ROWS = {
    "allocations": r"ALLOC(_BT)?",
    "lock_events": r"MONITOR(_\w+)?",
    "call_events": r"METHOD_(ENTER|LEAVE|EXC_LEAVE)",
    "heap_snapshots": r"HEAP_START",
    "gc_handles": r"GC_HANDLE_CREATED(_BT)?",
}
"""Tables with a row for each event of a kind."""


def mono_facts(kind: Kind) -> dict[str, Any]:
    """Facts of a Mono log of the corpus, which another program determined."""
    import json

    log = kind.paths[-1]
    found: dict[str, Any] = json.loads(
        (CORPUS / "mono" / "expected" / log.parent.name / f"{log.stem}.truth.json").read_text(encoding="utf-8")
    )
    return found


def mono_counts(kind: Kind) -> dict[str, int]:
    """Events of a Mono log of the corpus by kind, as another program counted them."""
    log = kind.paths[-1]
    text = (CORPUS / "mono" / "counts" / log.parent.name / f"{log.stem}.txt").read_text(encoding="utf-8")
    found = {}
    for line in text.splitlines():
        words = line.split()
        if line.startswith("  ") and not line.startswith("   ") and len(words[0]) == 2:
            found["_".join(words[1:-3])] = int(words[-3])
    return found


@cache
def outside(name: str) -> Outside:
    """What the example of a kind contains."""
    kind = KINDS[name]
    first, last = kind.formats[0], kind.formats[-1]
    found = Outside({})
    if first == "perf_data":
        found = _of_perf(kind.paths[0])
    elif first == "collapsed":
        found = Outside({"samples": Weight("samples", collapsed(kind.paths[0]).total())})
    elif name == "xray_profiling":
        counts = Counter[int]()
        for one in call_profile(kind.paths[0]):
            counts[one.tid] += one.count
        return Outside({"calls": Weight("calls", counts.total(), dict(counts))})
    elif first == "mono" and name != "mono_coverage":
        found = Outside(_of_mono(mono_facts(kind)))
    if last == "xray":
        calls = _of_calls(call_log(kind.paths[-1]))
        found = Outside(found.weights | calls)
    return found


def _of_perf(path: Path) -> Outside:
    walked = perf_data(path)
    by_thread = Counter[int]()
    for sample in walked.samples:
        by_thread[sample.tid] += sample.period
    num_by_thread = dict(Counter(sample.tid for sample in walked.samples))
    weight = Weight("ns", by_thread.total(), dict(by_thread), len(walked.samples), num_by_thread)
    times = [sample.time_ns for sample in walked.samples]
    return Outside({"cpu-clock": weight}, (min(times), max(times)))


def _of_calls(log: CallLog) -> dict[str, Weight]:
    # perfuse measures the rate of the counter by wall times, where a log has several.
    time = Weight("ns", sum(log.busy_ns.values()), log.busy_ns, tolerance=2e-3)
    return {"wall-time": time, "calls": Weight("calls", sum(log.num_calls.values()), log.num_calls)}


def _of_mono(facts: dict[str, Any]) -> dict[str, Weight]:
    found = {}
    if total := facts["samples"]["total"]:
        found["sample"] = Weight("events", total, num_samples=total)
    if facts["calls"]["enter"]:
        found["calls"] = Weight("calls", facts["calls"]["enter"])
    if facts["allocations"]["total_count"]:
        found["allocations"] = Weight("allocations", facts["allocations"]["total_count"])
        found["allocated-bytes"] = Weight("bytes", facts["allocations"]["total_bytes"])
    return found
