"""XRay logs of other sizes, made from a log of version 5 by their bytes."""

import struct
from pathlib import Path

HEADER_BYTES = 32
RECORD_BYTES = 16
"""Size of a metadata record."""
BUFFER_EXTENTS, WALL_TIME, NEW_CPU = 7 * 2 + 1, 4 * 2 + 1, 2 * 2 + 1
"""The first byte of these records."""
PREAMBLE_RECORDS = 5
"""Records at the start of a buffer: BufferExtents, NewBuffer, WallTimeMarker, Pid, NewCPUId."""


def shortened(log: Path, made: Path, num_bytes: int) -> Path:
    """The start of the first buffer of a log, as a whole log of that size."""
    with log.open("rb") as source:
        start = bytearray(source.read(num_bytes - num_bytes % RECORD_BYTES))
    kind, _ = struct.unpack_from("<BQ", start, HEADER_BYTES)
    assert kind == BUFFER_EXTENTS
    struct.pack_into("<BQ", start, HEADER_BYTES, kind, len(start) - HEADER_BYTES - RECORD_BYTES)
    made.write_bytes(start)
    return made


def repeated(log: Path, made: Path, times: int) -> Path:
    """A log with the buffers of another several times, one run after the other."""
    data = log.read_bytes()
    (hz,) = struct.unpack_from("<Q", data, 8)
    buffers = list(_buffers(data))
    part = made.with_suffix(".part")
    with part.open("wb") as out:
        out.write(data[:HEADER_BYTES])
        for run in range(times):
            for begin, end in buffers:
                buffer = bytearray(data[begin:end])
                for at in range(0, PREAMBLE_RECORDS * RECORD_BYTES, RECORD_BYTES):
                    if buffer[at] == WALL_TIME:
                        _add(buffer, "<q", at + 1, run * 60)
                    elif buffer[at] == NEW_CPU:
                        _add(buffer, "<Q", at + 3, run * 60 * hz)
                out.write(buffer)
    part.rename(made)
    return made


def _buffers(data: bytes) -> list[tuple[int, int]]:
    """Where each buffer begins and ends."""
    found, at = [], HEADER_BYTES
    while at < len(data):
        kind, size = struct.unpack_from("<BQ", data, at)
        assert kind == BUFFER_EXTENTS
        found.append((at, at + RECORD_BYTES + size))
        at = found[-1][1]
    return found


def _add(buffer: bytearray, kind: str, at: int, number: int) -> None:
    (value,) = struct.unpack_from(kind, buffer, at)
    struct.pack_into(kind, buffer, at, value + number)
