"""XRay logs of version 5 in FDR mode, assembled as LLVM's document describes them."""

import struct
from pathlib import Path

HZ = 1_000_000_000
"""Ticks per second; the rate by which the runtime states that it read a clock in place of the counter."""

Calls = list[tuple[int, int, int]]
"""Action (0 enters, 1 leaves), function, and ticks since the record before."""


def buffer(tsc: int, calls: Calls, *, tid: int = 7, pid: int = 7, cpu: int = 0) -> bytes:
    """A buffer that begins at a time of both clocks."""
    records = (
        struct.pack("<Bi11x", 0 << 1 | 1, tid)
        + struct.pack("<Bqi3x", 4 << 1 | 1, tsc // HZ, tsc % HZ // 1000)
        + struct.pack("<Bi11x", 9 << 1 | 1, pid)
        + struct.pack("<BHQ5x", 2 << 1 | 1, cpu, tsc)
        + b"".join(struct.pack("<II", action << 1 | function << 4, delta) for action, function, delta in calls)
    )
    return struct.pack("<BQ7x", 7 << 1 | 1, len(records)) + records


def log(path: Path, *buffers: bytes, hz: int = HZ) -> Path:
    """Writes a log of buffers."""
    path.write_bytes(struct.pack("<HHIQQQ", 5, 1, 3, hz, 4096, 0) + b"".join(buffers))
    return path
