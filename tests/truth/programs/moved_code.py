"""Moves two functions, the first to where the second was, and states both moves afterwards in its own JITDUMP; then the
first returns to where it was.

Each function is busy alone; the program prints when, and at which address.
"""

import ctypes
import json
import os
import platform
import struct
import time
from pathlib import Path

SPIN = {
    "x86_64": bytes.fromhex("48ffcf 75fb c3"),  # dec rdi; jne; ret
    "aarch64": bytes.fromhex("000400f1 e1ffff54 c0035fd6"),  # subs x0, x0, 1; b.ne; ret
}[platform.machine()]
MACHINE = {"x86_64": 62, "aarch64": 183}[platform.machine()]
READ_WRITE_EXECUTE, READ_EXECUTE, PRIVATE, PRIVATE_ANONYMOUS = 7, 5, 2, 0x22
LOAD, MOVE = 0, 1
PID = os.getpid()

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


with Path(f"jit-{PID}.dump").open("w+b", buffering=0) as dump:
    dump.write(struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, MACHINE, 0, PID, now(), 0))
    marker = libc.mmap(None, 4096, READ_EXECUTE, PRIVATE, dump.fileno(), 0)
    cache = libc.mmap(None, 0x3000, READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS, -1, 0)
    places = [cache, cache + 0x1000, cache + 0x2000]

    def record(kind: int, body: bytes) -> None:
        dump.write(struct.pack("<IIQ", kind, 16 + len(body), now()) + body)

    def load(number: int, name: str, address: int) -> None:
        ctypes.memmove(address, SPIN, len(SPIN))
        fields = struct.pack("<IIQQQQ", PID, PID, address, address, len(SPIN), number)
        record(LOAD, fields + name.encode() + b"\0" + SPIN)

    def move(number: int, old: int, new: int) -> None:
        record(MOVE, struct.pack("<IIQQQQQ", PID, PID, new, old, new, len(SPIN), number))

    def busy(function: str, address: int) -> None:
        call = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(address)
        # Time of the processor: beside other work it is as many samples.
        start, end = now(), time.process_time_ns() + 200_000_000
        while time.process_time_ns() < end:
            call(5_000_000)
        print("phase", json.dumps({"function": function, "start_ns": start, "end_ns": now(), "address": address}))

    load(0, "first", places[0])
    load(1, "second", places[1])
    busy("first", places[0])
    busy("second", places[1])
    ctypes.memmove(places[2], SPIN, len(SPIN))
    move(0, places[0], places[1])
    move(1, places[1], places[2])
    busy("first", places[1])
    busy("second", places[2])
    ctypes.memmove(places[0], SPIN, len(SPIN))
    move(0, places[1], places[0])
    busy("first", places[0])
