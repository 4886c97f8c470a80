"""What a Mono log contains, from a walk over its events: threads, code, pauses, counters, objects.

The events are those of another decoder (`mlpd_events.py`).
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mlpd_events import Event, read_events

from .outside import read

KIND_NAMES = {
    0x00: "ALLOC", 0x10: "ALLOC_BT", 0x11: "GC_EVENT", 0x21: "GC_RESIZE", 0x31: "GC_MOVE", 0x41: "GC_HANDLE_CREATED",
    0x51: "GC_HANDLE_DESTROYED", 0x61: "GC_HANDLE_CREATED_BT", 0x71: "GC_HANDLE_DESTROYED_BT",
    0x81: "GC_FINALIZE_START", 0x91: "GC_FINALIZE_END", 0xA1: "GC_FINALIZE_OBJECT_START",
    0xB1: "GC_FINALIZE_OBJECT_END", 0x02: "METADATA_name", 0x22: "METADATA_END_LOAD", 0x42: "METADATA_END_UNLOAD",
    0x13: "METHOD_LEAVE", 0x23: "METHOD_ENTER", 0x33: "METHOD_EXC_LEAVE", 0x43: "METHOD_JIT", 0x04: "THROW",
    0x84: "THROW_BT", 0x14: "CLAUSE", 0x05: "MONITOR", 0x85: "MONITOR_BT", 0x15: "MONITOR_ev1", 0x25: "MONITOR_ev2",
    0x35: "MONITOR_ev3", 0x95: "MONITOR_ev1_BT", 0x06: "HEAP_START", 0x16: "HEAP_END", 0x26: "HEAP_OBJECT",
    0x36: "HEAP_ROOT", 0x46: "HEAP_ROOT_REGISTER", 0x56: "HEAP_ROOT_UNREGISTER", 0x07: "SAMPLE_HIT",
    0x17: "SAMPLE_USYM", 0x27: "SAMPLE_UBIN", 0x37: "COUNTERS_DESC", 0x47: "COUNTERS", 0x18: "JITHELPER",
    0x09: "COVERAGE_ASSEMBLY", 0x19: "COVERAGE_METHOD", 0x29: "COVERAGE_STATEMENT", 0x39: "COVERAGE_CLASS",
    0x0A: "SYNC_POINT", 0x1A: "AOT_ID",
}  # fmt: skip
"""Names of the kinds of events in the specification."""

LOAD, UNLOAD, NAME = 0x22, 0x42, 0x02
CLASS, IMAGE, ASSEMBLY, DOMAIN, THREAD, CONTEXT = 1, 2, 3, 4, 5, 6
WITH_BACKTRACE = (0x10, 0x61, 0x71, 0x84, 0x85, 0x95)
MONITORS = (0x05, 0x85, 0x15, 0x25, 0x35, 0x95)
CONTENTION = 1
STOPPED, STARTING = 7, 8
"""GC_EVENT: the world is stopped; it will be started."""
PERF_COUNTERS = 0x8000
"""The section of counters whose values are absolute."""
BITS = {0: 32, 1: 32, 2: 64, 3: 64, 4: 64, 7: 64}
"""Bits of the types of counters that are integers."""


@dataclass
class Lifetime:
    """A thread, a domain, a context, an image or an assembly: its address, names, first and last time."""

    address: int
    names: list[str] = field(default_factory=list)
    start_ns: int | None = None
    end_ns: int | None = None


@dataclass
class Call:
    """A call: its method, times and caller."""

    name: str
    start_ns: int
    caller: Call | None
    end_ns: int = 0

    @property
    def duration_ns(self) -> int:
        """From entry to exit."""
        return self.end_ns - self.start_ns


def header(path: Path) -> dict[str, Any]:
    """The fields of a log's header, by the specification's names."""
    data = read(path)
    magic, major, minor, version, pointer_bytes, startup_ms = struct.unpack_from("<IBBBBQ", data)
    found = {
        "id": magic,
        "major": major,
        "minor": minor,
        "format": version,
        "ptrsize": pointer_bytes,
        "startup_time": startup_ms,
    }
    at = 16
    if major >= 3:
        (found["startup_ns"],) = struct.unpack_from("<Q", data, at)
        at += 8
    names = ("timer_overhead", "flags", "pid", "port")
    found |= dict(zip(names, struct.unpack_from("<IIIH", data, at), strict=True))
    at += 14
    for name in ("args", "arch", "os"):
        (length,) = struct.unpack_from("<I", data, at)
        found[name] = data[at + 4 : at + 4 + length].rstrip(b"\0").decode()
        at += 4 + length
    return found


class MonoWalk:
    """The events of a log; `events` in the order of the file, `ordered` in that of time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.events = list(read_events(path))
        self.ordered = sorted(self.events, key=lambda event: event.time)

    def of(self, *kinds: int) -> list[Event]:
        """The events of some kinds, in the order of time."""
        return [event for event in self.ordered if event.byte in kinds]

    def counts(self) -> dict[str, int]:
        """Events by kind."""
        return {KIND_NAMES[byte]: num for byte, num in Counter(event.byte for event in self.events).items()}

    def lifetimes(self, mtype: int) -> list[Lifetime]:
        """Threads, or what else is loaded and unloaded; addresses are used again."""
        alive: dict[int, Lifetime] = {}
        found = []
        for event in self.of(LOAD, UNLOAD, NAME):
            if event.values[0] != mtype:
                continue
            address = event.values[1]
            one = alive.get(address)
            if one is None or (event.byte == LOAD and one.start_ns is not None):  # 4.6 names threads that start later
                one = alive[address] = Lifetime(address)
                found.append(one)
            if event.byte == LOAD:
                one.start_ns = event.time
            elif event.byte == UNLOAD:
                one.end_ns = event.time
                del alive[address]
            name = event.values[3] if mtype == ASSEMBLY else event.values[2]
            if isinstance(name, str) and name not in one.names:
                one.names.append(name)
        return found

    def num_types(self) -> int:
        """Number of described classes."""
        return len({event.values[1] for event in self.of(LOAD) if event.values[0] == CLASS})

    def methods(self) -> dict[int, str]:
        """Names of methods; no example uses an address again."""
        return {event.values[0]: event.values[3] for event in self.of(0x43)}

    def type_names(self) -> dict[int, str]:
        """Names of classes by the address of the class, and since data version 15 of the vtable."""
        names, tables = {}, {}
        for event in self.of(LOAD):
            if event.values[0] == CLASS:
                names[event.values[1]] = event.values[3]
            elif event.values[0] == 7:
                tables[event.values[1]] = event.values[3]
        return names | {table: names[of] for table, of in tables.items() if of in names}

    def code(self) -> list[tuple[str, int]]:
        """Name and size of compiled methods that have code."""
        return [(e.values[3], e.values[2]) for e in self.of(0x43) if e.values[1] and 0 < e.values[2] < 1 << 31]

    def symbols(self) -> set[int]:
        """Addresses of native functions that samples are in."""
        return {event.values[0] for event in self.of(0x17)}

    def helpers(self) -> list[int]:
        """Sizes of the runtime's own code."""
        return [event.values[2] for event in self.of(0x18)]

    def pauses(self) -> list[tuple[int, int]]:
        """Length and generation of the times in which the world is stopped."""
        found, since = [], None
        for event in self.of(0x11):
            what, generation = event.values
            if what == STOPPED:
                since = event.time
            elif what == STARTING and since is not None:
                found.append((event.time - since, generation))
                since = None
        return found

    def waits(self) -> list[tuple[int, int]]:
        """Start and length of the waits for locks that ended; a thread waits for one lock at a time."""
        found, since = [], {}
        for event in self.of(*MONITORS):
            what = event.values[0] or event.byte >> 4 & 7
            if what == CONTENTION:
                since.setdefault(event.thread, event.time)
            elif event.thread in since:
                start = since.pop(event.thread)
                found.append((start, event.time - start))
        return found

    def collections(self, generation: int) -> int:
        """Number of collections of a generation that ended."""
        return sum(event.values == (5, generation) for event in self.of(0x11))

    def finalizers(self) -> list[int]:
        """Durations of the finalizers of objects."""
        found, since = [], {}
        for event in self.of(0xA1, 0xB1):
            if event.byte == 0xA1:
                since[event.thread, event.values[0]] = event.time
            elif (event.thread, event.values[0]) in since:
                found.append(event.time - since.pop((event.thread, event.values[0])))
        return found

    def snapshots(self) -> list[dict[int, tuple[int, int]]]:
        """Type and size of the objects of each heap snapshot, by address."""
        found: list[dict[int, tuple[int, int]]] = []
        for event in self.events:
            if event.byte == 0x06:
                found.append({})
            elif event.byte == 0x26 and event.values[2]:
                found[-1][event.values[0]] = event.values[1], event.values[2]
        return found

    def counters(self) -> dict[tuple[int, str], list[tuple[int, Any]]]:
        """Times and values of counters, by section and name. Integers are differences, except of perf counters."""
        described: dict[int, tuple[int, str]] = {}
        last: dict[int, int] = defaultdict(int)
        found: dict[tuple[int, str], list[tuple[int, Any]]] = {}
        for event in self.events:
            if event.byte == 0x37:
                described |= {row[6]: (row[0], row[2]) for row in event.values[0]}
            elif event.byte == 0x47:
                for index, kind, read in event.values[0]:
                    value = read
                    if kind in BITS and described[index][0] != PERF_COUNTERS:
                        value = last[index] = _wrapped(last[index] + read, BITS[kind], kind in (1, 4))
                    found.setdefault(described[index], []).append((event.time, value))
        return found

    def instants(self) -> list[tuple[str, Event]]:
        """What is named, loaded and unloaded, synchronization points and sizes of the heap: a kind and the event."""
        what = {IMAGE: "image", ASSEMBLY: "assembly", DOMAIN: "domain", THREAD: "thread", CONTEXT: "context"}
        verbs = {LOAD: "load", UNLOAD: "unload", NAME: "name"}
        found = []
        for event in self.ordered:
            if event.byte in verbs and event.values[0] in what:
                # Loads and unloads of threads are their start and end.
                if event.values[0] != THREAD or event.byte == NAME:
                    found.append((f"{what[event.values[0]]}_{verbs[event.byte]}", event))
            elif event.byte in (0x0A, 0x21):
                found.append(("sync_point" if event.byte == 0x0A else "gc_resize", event))
        return found

    def calls(self) -> list[Call]:
        """The calls of all threads, in the order of their entries; a thread's exits are those of its entries."""
        names, found = self.methods(), []
        stacks: dict[int, list[Call]] = defaultdict(list)
        for event in self.of(0x13, 0x23, 0x33):
            stack = stacks[event.thread]
            if event.byte == 0x23:
                stack.append(Call(names[event.values[0]], event.time, stack[-1] if stack else None))
                found.append(stack[-1])
            else:
                one = stack.pop()
                assert one.name == names[event.values[0]]
                one.end_ns = event.time
        assert not any(stacks.values()), "every call of the example has an end"
        return found

    def allocation_at(self, address: int, time: int) -> Event | None:
        """The allocation of the object that is at an address at a time; moves are undone."""
        origin: dict[int, Event | None] = {}
        for event in self.ordered:
            if event.time > time:
                break
            if event.byte in (0x00, 0x10):
                origin[event.values[1]] = event
            elif event.byte == 0x31:
                moved = [(new, origin.pop(old, None)) for old, new in event.pairs]
                origin.update(moved)
        return origin.get(address)

    def stacks(self, *kinds: int) -> Iterator[tuple[Event, tuple[str, ...]]]:
        """Events of these kinds in the order of the file, each with its stack, innermost method first.

        That is its backtrace; in a log of calls, which has none, the methods that its thread has entered and not left.
        """
        names = self.methods()
        entered: dict[int, list[str]] = defaultdict(list)
        for event in self.events:
            stack = entered[event.thread]
            if event.byte == 0x23:
                stack.append(names[event.values[0]])
            elif event.byte in (0x13, 0x33):
                assert stack.pop() == names[event.values[0]]
            elif event.byte in kinds:
                recorded = [names[frame] for (frame,) in event.pairs] if event.byte in WITH_BACKTRACE else stack
                yield event, tuple(reversed(recorded))

    def thrown(self) -> Iterator[tuple[str | None, tuple[str, ...]]]:
        """Type and stack, innermost method first, of each exception."""
        types = self.type_names()
        at: dict[int, int] = {}
        stacks = self.stacks(0x00, 0x10, 0x04, 0x84)
        for event, frames in sorted(stacks, key=lambda one: one[0].time):
            if event.byte in (0x00, 0x10):
                at[event.values[1]] = event.values[0]
            else:
                yield types.get(at.get(event.values[0], 0)), frames


def _wrapped(value: int, bits: int, unsigned: bool) -> int:
    value %= 1 << bits
    return value if unsigned or value < 1 << (bits - 1) else value - (1 << bits)


@cache
def walk(path: Path) -> MonoWalk:
    """The walk over a log, once."""
    return MonoWalk(path)
