"""A profile from the text of `perf script`: real stacks, to compare exports with perf's own answer."""

import gzip
import re
from pathlib import Path
from typing import Any

from fake_profile import FakeProfile

_SAMPLE = re.compile(r"^(?P<comm>.+?)\s+(?P<pid>\d+)/(?P<tid>\d+)\s+(?P<time>\d+\.\d+):\s+(?P<event>\S+?):")
_FRAME = re.compile(r"^\s+(?P<ip>[0-9a-f]+) (?P<symbol>.*?)(?:\+0x(?P<offset>[0-9a-f]+))? \((?P<dso>[^()]*)\)$")
_V8 = re.compile(r"^JS:(?P<mark>[~^+*'o]*)(?P<name>\S*) (?P<path>.*?):(?P<line>\d+):(?P<column>\d+)$")
_TIERS = {"~": "ignition", "^": "sparkplug", "+": "maglev", "*": "turbofan"}
_PERIOD_NS = 250_000


class _Rows(dict[Any, int]):
    """Numbers keys in the order of their first use."""

    def id(self, key: Any) -> int:
        return self.setdefault(key, len(self))


def perf_script(path: Path) -> FakeProfile:
    """The profile that perf printed into a (compressed) text file."""
    profile = FakeProfile(path.name.split(".", maxsplit=1)[0])
    comms: dict[tuple[int, int], str] = {}
    processes, threads, modules, functions, codes, frames, stacks = (_Rows() for _ in range(7))
    samples: list[dict[str, Any]] = []
    for sample, lines in _samples(gzip.decompress(path.read_bytes()).decode()):
        pid, tid = int(sample["pid"]), int(sample["tid"])
        comms[pid, tid] = sample["comm"]
        process = processes.id(pid)
        stack = None
        for nth, line in reversed(list(enumerate(lines))):
            how = "callchain" if nth else "sampled"
            key = (*_frame(line, process, modules, functions, codes), how)
            stack = stacks.id((stack, frames.id(key)))
        samples.append(
            {
                "sample_id": len(samples),
                "ts_ns": int(sample["time"].replace(".", "")) * 1000,
                "thread_id": threads.id((pid, tid)),
                "stack_id": stack,
                "weight": _PERIOD_NS,
                "weight_unit": "ns",
                "event": sample["event"],
            }
        )
    profile.add("sources", format="perf_data", path=str(path), arch="x86_64", clock_id=0, producer="perf")
    profile.add(
        "sources",
        source_id=1,
        format="jitdump",
        path="jit.dump",
        arch="x86_64",
        clock_id=0,
        producer="V8",
    )
    profile.add(
        "clocks",
        clock_id=0,
        source_id=0,
        kind="monotonic",
        offset_ns=0,
        hz_source="defined",
        alignment="same_clock",
    )
    names = {pid: comms.get((pid, pid), comm) for (pid, _), comm in comms.items()}
    profile.add_all("processes", [{"process_id": i, "pid": pid, "name": names[pid]} for pid, i in processes.items()])
    profile.add_all(
        "threads",
        [
            {"thread_id": i, "process_id": processes[key[0]], "tid": key[1], "name": comms[key]}
            for key, i in threads.items()
        ],
    )
    profile.add_all("modules", [{"module_id": i, "name": dso, "kind": "native"} for dso, i in modules.items()])
    profile.add_all(
        "mappings",
        [
            {
                "mapping_id": i,
                "start_address": 0,
                "end_address": 0,
                "file_offset": 0,
                "path": dso,
                "executable": True,
            }
            for dso, i in modules.items()
        ],
    )
    profile.add_all("functions", [_function(*key, i) for key, i in functions.items()])
    profile.add_all("code_objects", [_code(*key, i) for key, i in codes.items()])
    profile.add_all(
        "frames",
        [dict(zip(_COLUMNS, key, strict=True), frame_id=i, inline_depth=0) for key, i in frames.items()],
    )
    profile.add_all(
        "stacks",
        [
            {"stack_id": i, "parent_stack_id": parent, "frame_id": frame, "depth": 0}
            for (parent, frame), i in stacks.items()
        ],
    )
    profile.add_all("samples", samples)
    return profile


_COLUMNS = (
    "kind",
    "address",
    "relative_address",
    "function_id",
    "code_object_id",
    "mapping_id",
    "unwound_by",
)


def _samples(text: str) -> Any:
    sample, lines = None, []
    for line in text.splitlines():
        if line[:1].isspace() or not line:
            if line:
                lines.append(line)
            continue
        if sample:
            yield sample, lines
        sample, lines = _SAMPLE.match(line), []
        assert sample, line
    if sample:
        yield sample, lines


def _frame(line: str, process: int, modules: _Rows, functions: _Rows, codes: _Rows) -> tuple[Any, ...]:
    match = _FRAME.match(line)
    assert match, line
    address, symbol, dso = int(match["ip"], 16), match["symbol"], match["dso"]
    jit = "/jitted-" in dso
    module = modules.id(dso) if dso.startswith("/") and not jit else None
    function = functions.id((symbol, module)) if symbol != "[unknown]" else None
    code = codes.id((function, process, dso, symbol)) if jit else None
    kind = "jit" if jit else "kernel" if dso == "[kernel.kallsyms]" else "native" if module is not None else "unknown"
    offset = int(match["offset"] or "0", 16)
    return kind, address, offset if jit else address & 0xFFFFFFFF, function, code, module


def _function(symbol: str, module: int | None, key: int) -> dict[str, Any]:
    row = {"function_id": key, "name": symbol, "linkage_name": symbol, "module_id": module}
    match = _V8.match(symbol)
    if match:
        row |= {"name": match["name"] or "(anonymous)", "path": match["path"]}
        row |= {"line": int(match["line"]), "column": int(match["column"])}
    return row


def _code(function: int, process: int, dso: str, symbol: str, key: int) -> dict[str, Any]:
    match = _V8.match(symbol)
    return {
        "code_object_id": key,
        "function_id": function,
        "process_id": process,
        "kind": "stub" if symbol.startswith("Builtin:") else "jit",
        "tier": _TIERS.get(match["mark"].strip("o'")) if match else None,
        "create_ns": 0,
        "start_address": 0x7F0000000000 + 0x10000 * key,
        "size_bytes": 0x10000,
        "source_id": 1,
        "code_index": int(dso.rsplit("-", 1)[-1].removesuffix(".so")),
    }
