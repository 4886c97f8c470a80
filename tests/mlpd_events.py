"""Events of a Mono log, read by a decoder that has nothing in common with perfuse: the source of expected values.

It reads the data versions 1 to 17 of released profilers, 64-bit.
"""

import gzip
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ALLOC, GC, METADATA, METHOD, EXCEPTION, MONITOR, HEAP, SAMPLE, RUNTIME, COVERAGE, META = range(11)


@dataclass
class Event:
    """An event.

    Attributes:
        byte: Type in the low 4 bits, subtype in the others.
        thread: Thread of its buffer.
        time: Its time; that of the event before where it has none.
        values: Its fields, in the order of the format.
        pairs: Its repeated fields: references `(offset, object)`, roots, moves `(old, new)`.
    """

    byte: int
    thread: int
    time: int
    values: tuple[Any, ...] = ()
    pairs: list[tuple[Any, ...]] = field(default_factory=list)


_Fields = tuple[tuple[Any, ...], list[tuple[Any, ...]]]


class _Buffer:
    def __init__(self, data: bytes, version: int, major: int, bases: tuple[int, ...]) -> None:
        self.data, self.at, self.version, self.major = data, 0, version, major
        self.time, self.ptr_base, self.obj_base, self.thread, self.method = bases

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def uleb(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def sleb(self) -> int:
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def tick(self) -> int:
        self.time = (self.time + self.uleb()) % 2**64
        return self.time

    def ptr(self) -> int:
        return (self.ptr_base + self.sleb()) % 2**64

    def obj(self) -> int:
        return ((self.obj_base + self.sleb()) << 3) % 2**64

    def next_method(self) -> int:
        self.method += self.sleb()
        return self.method

    def text(self) -> str:
        end = self.data.index(0, self.at)
        text, self.at = self.data[self.at : end], end + 1
        return text.decode()

    def code(self) -> int:
        """A small number, which is a byte since version 13."""
        return self.byte() if self.version >= 13 else self.uleb()

    def backtrace(self) -> list[tuple[Any, ...]]:
        if self.version < 13:
            self.uleb()
        return [(self.next_method() if self.version >= 13 else self.ptr(),) for _ in range(self.uleb())]

    def event(self) -> Event:
        byte = self.byte()
        if self.version >= 13 or self._has_time(byte):
            self.tick()
        values, pairs = self._fields(byte & 15, byte >> 4, byte)
        return Event(byte, self.thread, self.time, values, pairs)

    def _has_time(self, byte: int) -> bool:
        return byte not in (0x26, 0x36, 0x07, 0x17, 0x37, 0x47)

    def _fields(self, kind: int, sub: int, byte: int) -> _Fields:
        readers = {
            ALLOC: self._alloc,
            GC: self._gc,
            METADATA: self._metadata,
            METHOD: self._method,
            EXCEPTION: self._exception,
            MONITOR: self._monitor,
            HEAP: self._heap,
            SAMPLE: self._sample,
            RUNTIME: self._helper,
            COVERAGE: self._coverage,
            META: self._meta,
        }
        if kind not in readers:
            raise ValueError(f"event {byte:#x}")
        return readers[kind](sub)

    def _alloc(self, sub: int) -> _Fields:
        values = (self.ptr(), self.obj(), self.uleb())
        return values, self.backtrace() if sub == 1 else []

    def _method(self, sub: int) -> _Fields:
        method = self.next_method()
        return (method, self.ptr(), self.uleb(), self.text()) if sub == 4 else (method,), []

    def _exception(self, sub: int) -> _Fields:
        if sub == 1:
            clause = (self.code(), self.uleb(), self.next_method())
            return (*clause, self.obj()) if self.version >= 14 else clause, []
        return (self.obj(),), self.backtrace() if sub & 8 else []

    def _monitor(self, sub: int) -> _Fields:
        what = self.byte() if self.version >= 14 else sub & 7
        return (what, self.obj()), self.backtrace() if sub & 8 else []

    def _helper(self, _sub: int) -> _Fields:
        what = self.code()
        values = (what, self.ptr(), self.uleb())
        return (*values, self.text()) if what == (5 if self.version >= 14 else 6) else values, []

    def _meta(self, sub: int) -> _Fields:
        return ((self.byte() if sub == 0 else self.text()),), []

    def _gc(self, sub: int) -> _Fields:
        if sub == 1:
            return (self.code(), self.code()), []
        if sub == 2:
            return (self.uleb(),), []
        if sub == 3:
            return (), [(self.obj(), self.obj()) for _ in range(self.uleb() // 2)]
        if sub in (4, 6):
            values = (self.uleb(), self.uleb(), self.obj())
            return values, self.backtrace() if sub == 6 else []
        if sub in (5, 7):
            values = (self.uleb(), self.uleb())  # type: ignore[assignment]
            return values, self.backtrace() if sub == 7 else []
        return ((self.obj(),), []) if sub >= 10 else ((), [])

    def _metadata(self, sub: int) -> _Fields:
        mtype, pointer = self.byte(), self.ptr()
        if mtype in (1, 3):
            # A class, or an assembly, with its image.
            image = self.ptr() if mtype == 1 or self.version >= 14 else None
            self._flags()
            return (mtype, pointer, image, self.text()), []
        if mtype == 7:
            return (mtype, pointer, self.ptr(), self.ptr()), []
        self._flags()
        if mtype == 6:
            return (mtype, pointer, self.ptr()), []
        name = self.text() if mtype == 2 or sub == 0 else None
        if mtype == 2 and self.version >= 16 and self.major >= 3 and sub == 2:
            self.text()
        return (mtype, pointer, name), []

    def _flags(self) -> None:
        if self.version < 13:
            self.uleb()

    def _heap(self, sub: int) -> _Fields:
        version = self.version
        if sub == 2:
            values: tuple[Any, ...] = (self.obj(), self.ptr(), self.uleb())
            if version >= 16 and self.major >= 3:
                values = (*values, self.byte())
            offset, pairs = 0, []
            for _ in range(self.uleb()):
                offset += self.uleb() if version >= 2 else 0
                pairs.append((offset, self.obj()))
            return values, pairs
        if sub == 3:
            count = self.uleb()
            if version >= 15:
                return (), [(self.ptr(), self.obj()) for _ in range(count)]
            collections = self.uleb()
            return (collections,), [
                (self.obj(), self.byte() if version == 13 else self.uleb(), self.uleb()) for _ in range(count)
            ]
        if sub == 4:
            return (self.ptr(), self.uleb(), self.byte(), self.ptr(), self.text()), []
        return ((self.ptr(),) if sub == 5 else ()), []

    def _sample(self, sub: int) -> _Fields:
        readers = (self._hit, self._symbol, self._binary, self._descriptions, self._counters)
        return readers[sub](), []

    def _hit(self) -> tuple[Any, ...]:
        version = self.version
        kind = self.code() if version < 14 else 0
        at = self.uleb() if version < 13 else self.time
        thread = self.ptr() if version >= 11 else self.thread
        addresses = [self.ptr() for _ in range(self.uleb())]
        frames = []
        for _ in range(self.uleb() if version >= 6 else 0):
            frames.append(self.next_method())
            if version < 13:
                self.sleb()
                self.sleb()
        return kind, at, thread, addresses, frames

    def _symbol(self) -> tuple[Any, ...]:
        return self.ptr(), self.uleb(), self.text()

    def _binary(self) -> tuple[Any, ...]:
        return self.ptr() if self.version >= 14 else self.sleb(), self.uleb(), self.uleb(), self.text()

    def _coverage(self, sub: int) -> _Fields:
        num_texts = (3, 5, 0, 2)[sub]
        texts = [self.text() for _ in range(num_texts)]
        return (*texts, *(self.uleb() for _ in range(5 if sub == 2 else 3))), []

    def _number(self) -> int:
        return self.byte() if self.version in (13, 14) else self.uleb()

    def _descriptions(self) -> tuple[Any, ...]:
        rows = []
        for _ in range(self.uleb()):
            section = self.uleb()
            category = self.text() if self.version >= 7 and section == 0x8000 else None
            rows.append((section, category, self.text(), self._number(), self._number(), self._number(), self.uleb()))
        return (rows,)

    def _counters(self) -> tuple[Any, ...]:
        since_first_ms = self.uleb() if self.version < 13 else None
        rows = []
        while index := self.uleb():
            rows.append((index, *self._counter_value()))
        return rows, since_first_ms

    def _counter_value(self) -> tuple[int, Any]:
        what = self._number()
        if what == 5:
            self.at += 8
            return what, struct.unpack_from("<d", self.data, self.at - 8)[0]
        if what == 6:
            return what, self.text() if self.byte() else None
        return what, self.uleb() if what in (1, 4) else self.sleb()


def read_events(path: Path) -> Iterator[Event]:
    """The events of a log in the order of the file."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    for _, buffer in _buffers(data):
        while buffer.at < len(buffer.data):
            yield buffer.event()


def event_ranges(data: bytes) -> Iterator[tuple[int, int, int]]:
    """First byte, end and type of each whole event; the log may end within an event or the header of a buffer."""
    for start, buffer in _buffers(data):
        while buffer.at < len(buffer.data):
            at = buffer.at
            try:
                event = buffer.event()
            except (IndexError, ValueError):
                return
            yield start + at, start + buffer.at, event.byte


def buffer_starts(data: bytes) -> list[int]:
    """The offset of the first event of each buffer."""
    return [start for start, _ in _buffers(data)]


HEADER_BYTES = 48


def _buffers(data: bytes) -> Iterator[tuple[int, _Buffer]]:
    """The buffers, each with the offset of its first event."""
    _, major, _, version, pointer_bytes, _ = struct.unpack_from("<IBBBBQ", data)
    assert pointer_bytes == 8
    at = 16 + (8 if major >= 3 else 0) + 16
    if major >= 1:
        at -= 2
        for _ in range(3):
            at += 4 + struct.unpack_from("<I", data, at)[0]
    while at + HEADER_BYTES <= len(data):
        magic, length, *bases = struct.unpack_from("<IIQqqQq", data, at)
        assert magic == 0x4D504C01, hex(at)
        at += HEADER_BYTES
        yield at, _Buffer(data[at : at + length], version, major, tuple(bases))
        at += length
