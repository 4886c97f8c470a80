"""Reads perf's answer for a recording: `perf script -F comm,pid,tid,time,event,ip,sym,symoff,dso`."""

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_HEADER = re.compile(
    r"^(?P<comm>.+?)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+(?P<seconds>\d+)\.(?P<micros>\d{6}):\s+(?P<event>\S+?):\s*$"
)
_FRAME = re.compile(r"^\s+(?P<ip>[0-9a-f]+) (?P<symbol>.*) \((?P<dso>.*)\)$")
_OFFSET = re.compile(r"^(?P<name>.*)\+0x(?P<offset>[0-9a-f]+)$")
_JITTED = re.compile(r"/jitted-\d+-(?P<code_index>\d+)\.so$")


@dataclass(frozen=True, slots=True)
class PerfFrame:
    """One line of a call chain."""

    ip: int
    """Address as printed: relative to the file where perf 6.1 wrote the file for JIT code, else absolute."""
    symbol: str | None
    """Name, or None where perf prints `[unknown]`."""
    symbol_offset: int | None
    """Bytes from the start of the symbol."""
    dso: str

    @property
    def code_index(self) -> int | None:
        """The `code_index` of the JIT code, where the frame is in a file that `perf inject` wrote for it."""
        jitted = _JITTED.search(self.dso)
        return int(jitted["code_index"]) if jitted else None


@dataclass(frozen=True, slots=True)
class PerfSample:
    """One sample, its frames innermost first."""

    pid: int
    tid: int
    time_us: int
    event: str
    frames: list[PerfFrame] = field(default_factory=list)


def read(path: Path) -> Iterator[PerfSample]:
    """The samples of a printed script, which may be compressed (`.gz`).

    Frames that perf adds for inlined calls, marked `(inlined)`, have no address of their own: left out.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    sample: PerfSample | None = None
    with opener(path, "rt", encoding="utf-8", errors="replace", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            text = line.rstrip("\n")
            if not text:
                continue
            if text[0].isspace():
                if sample is None:
                    raise ValueError(f"{path}:{number}: a frame before any sample")
                if not text.endswith(" (inlined)"):
                    sample.frames.append(_frame(text, f"{path}:{number}"))
                continue
            if sample is not None:
                yield sample
            header = _HEADER.match(text)
            if header is None:
                raise ValueError(f"{path}:{number}: neither a sample nor a frame: {text!r}")
            time_us = int(header["seconds"]) * 1_000_000 + int(header["micros"])
            sample = PerfSample(int(header["pid"]), int(header["tid"]), time_us, header["event"])
    if sample is not None:
        yield sample


def _frame(text: str, where: str) -> PerfFrame:
    parts = _FRAME.match(text)
    if parts is None:
        raise ValueError(f"{where}: not a frame: {text!r}")
    ip, name, dso = int(parts["ip"], 16), parts["symbol"], parts["dso"]
    if name == "[unknown]":
        return PerfFrame(ip, None, None, dso)
    offset = _OFFSET.match(name)
    if offset is None:
        return PerfFrame(ip, name, None, dso)
    return PerfFrame(ip, offset["name"], int(offset["offset"], 16), dso)
