"""Made-up perf.data: random, but as a kernel may write them. Each seed is another recording.

Events differ in the fields of their samples; threads and processes begin, get names, load and replace files, execute
programs and end; every processor has a buffer, and these are written in turns. No two mappings have one path, so the
path that a reader finds for an address states which mapping it found.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

import perf_crafting as crafting
from perf_crafting import Attribute, PerfFile, Record

FINISHED_ROUND = Record(68, 0, b"")
KERNEL, MODULE = 0xFFFFFFFF81000000, 0xFFFFFFFFC0000000
PAGE = 0x1000
_NAMES = ("cpu-clock", (1, 0)), ("page-faults", (1, 2)), ("context-switches", (1, 3))
_ALWAYS = crafting.IDENTIFIER | crafting.IP | crafting.TID | crafting.TIME
_SOMETIMES = (
    crafting.ADDR,
    crafting.CPU,
    crafting.PERIOD,
    crafting.CALLCHAIN,
    crafting.CALLCHAIN,
    crafting.BRANCH_STACK,
    crafting.WEIGHT,
    crafting.DATA_SRC,
    crafting.PHYS_ADDR,
)


@dataclass(slots=True)
class _Process:
    """A process: its threads, and first address and size of what is mapped."""

    pid: int
    tids: list[int]
    mappings: list[tuple[int, int]] = field(default_factory=list)


class MadeUp:
    """A recording under construction."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.time = 1000 * 10**9
        self.next_id = 100
        self.num_files = 0
        self.processes: list[_Process] = []
        self.buffers: list[list[tuple[int, Record]]] = [[] for _ in range(self.random.choice((1, 2, 4)))]
        self.attributes = []
        for number, (_, event) in enumerate(_NAMES[: self.random.choice((1, 2, 3))]):
            fields = sum(bit for bit in set(_SOMETIMES) if self.random.random() < 0.4)
            one = Attribute.of(event, _ALWAYS | fields, ids=[number + 1], branch_sample_type=1)
            self.attributes.append(one.with_size(128))
        self.first = self.attributes[0]

    def file(self) -> PerfFile:
        """The recording."""
        known = [self._mapped(-1, KERNEL, 1 << 24, KERNEL, "[kernel.kallsyms]_text", 1)]
        known.append(self._mapped(-1, MODULE, 1 << 16, 0, "/lib/modules/6.1.0/kernel/fs/xfs/xfs.ko", 1))
        for _ in range(self.random.choice((1, 2, 3))):
            process = self._process()
            known.append(crafting.comm(self.first, process.pid, process.pid, f"app{process.pid}"))
            known += [self._load(process) for _ in range(3)]
        for _ in range(200):
            self._step()
        names = [(one, name) for one, (name, _) in zip(self.attributes, _NAMES, strict=False)]
        features = {crafting.EVENT_DESC: crafting.event_desc(names)}
        return PerfFile(self.attributes, known + self._rounds(), features)

    def _rounds(self) -> list[Record]:
        """The records of all processors, as perf finds them in their buffers from time to time."""
        times = sorted(time for buffer in self.buffers for time, _ in buffer)
        out: list[Record] = []
        for end in (*sorted(self.random.sample(times, 3)), times[-1] + 1):
            for buffer in self.buffers:
                # The buffers are read one after the other.
                until = end + self.random.randrange(10**6)
                while buffer and buffer[0][0] <= until:
                    out.append(buffer.pop(0)[1])
            out.append(FINISHED_ROUND)
        return out + [record for buffer in self.buffers for _, record in buffer]

    def _step(self) -> None:
        process = self.random.choice(self.processes)
        tid = self.random.choice(process.tids)
        kind = self.random.random()
        if kind < 0.7:
            self._write(self._sample(process, tid))
        elif kind < 0.78:
            self._write(self._load(process))
        elif kind < 0.82:
            name = crafting.comm(self.first, process.pid, tid, self.random.choice(("a b", "w/1", "(x)")), self._later())
            self._write(name)
        elif kind < 0.86:
            process.tids.append(self._new_id())
            self._fork(process.pid, process.pid, process.tids[-1], tid)
        elif kind < 0.91:
            child = self._process(list(process.mappings))
            self._fork(child.pid, process.pid, child.pid, tid)
        elif kind < 0.95:
            name = crafting.comm(self.first, process.pid, process.pid, f"run{process.pid}", self._later())
            self._write(Record(name.type, 1 << 13, name.body))
            process.mappings, process.tids = [], [process.pid]
            self._write(self._load(process))
        elif tid != process.pid:
            process.tids.remove(tid)
            self._write(crafting.task(self.first, crafting.EXIT, process.pid, process.pid, tid, self._later()))

    def _later(self) -> int:
        self.time += self.random.choice((1, 1000, 10**6, 10**7))
        return self.time

    def _write(self, record: Record) -> None:
        self.random.choice(self.buffers).append((self.time, record))

    def _new_id(self) -> int:
        self.next_id += self.random.choice((1, 3))
        return self.next_id

    def _process(self, mappings: list[tuple[int, int]] | None = None) -> _Process:
        pid = self._new_id()
        self.processes.append(_Process(pid, [pid], mappings or []))
        return self.processes[-1]

    def _fork(self, pid: int, ppid: int, tid: int, ptid: int) -> None:
        body = struct.pack("<IIIIQ", pid, ppid, tid, ptid, self._later())
        self._write(Record(crafting.FORK, 0, body + self.first.sample_id(ppid, ptid, self.time)))

    def _mapped(self, pid: int, start: int, size: int, offset: int, path: str, mode: int) -> Record:
        body = struct.pack("<iiQQQ", pid, max(pid, 0), start, size, offset) + crafting.text(path)
        time = 0 if mode == 1 else self.time
        return Record(crafting.MMAP, mode, body + self.first.sample_id(max(pid, 0), max(pid, 0), time))

    def _load(self, process: _Process) -> Record:
        """A mapping, often over others. Those of the start of the recording are from before it."""
        start = 0x7F0000000000 + self.random.randrange(32) * PAGE
        size = self.random.choice((1, 2, 8)) * PAGE
        process.mappings.append((start, size))
        self.num_files += 1
        if any(self.buffers):
            self._later()
        return self._mapped(process.pid, start, size, 0, f"/opt/lib{self.num_files}.so", 2)

    def _address(self, process: _Process) -> int:
        if not process.mappings or self.random.random() < 0.05:
            return 0x5000_1234
        start, size = self.random.choice(process.mappings)
        # Not the first address: a call never returns to it.
        return start + 16 + self.random.randrange(size - 16)

    def _sample(self, process: _Process, tid: int) -> Record:
        in_kernel = self.random.random() < 0.3
        user = [self._address(process) for _ in range(self.random.randrange(1, 5))]
        kernel = [self.random.choice((KERNEL, MODULE)) + 32 + self.random.randrange(1 << 15) for _ in range(2)]
        chain = [crafting.CONTEXT_KERNEL, *kernel] if in_kernel else []
        chain += [crafting.CONTEXT_USER, *user]
        branches = [crafting.Branch(self._address(process), self._address(process), 2)] * self.random.randrange(3)
        return crafting.sample(
            self.random.choice(self.attributes),
            ip=kernel[0] if in_kernel else user[0],
            pid=process.pid,
            tid=tid,
            time=self._later(),
            period=self.random.choice((1, 7, 10**6, 2**40)),
            chain=chain,
            branches=branches,
            misc=1 if in_kernel else 2,
        )
