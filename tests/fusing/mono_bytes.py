"""Mono logs of data version 10 assembled byte by byte: calls whose lengths are known, and code at known addresses."""

import struct

HEADER_ID = 0x4D505A01
BUFFER_ID = 0x4D504C01
LEAVE, ENTER, JIT = 0x13, 0x23, 0x43
"""Event bytes of type METHOD."""


def log(
    pid: int,
    calls_ns: list[int],
    *,
    start_ns: int,
    code: list[tuple[int, int, int]] = [],  # noqa: B006
    started_ms: int = 1_700_000_000_000,
) -> bytes:
    """A log of a process.

    Args:
        pid: The process.
        calls_ns: Lengths of calls that follow each other, all of one method.
        start_ns: Time of the first event.
        started_ms: When its process began, since 1970.
        code: `(address, size, ns after start_ns)` of compiled methods, in time order.
    """
    header = struct.pack("<IBBBBqiiIHH", HEADER_ID, 0, 4, 10, 8, started_ms, 0, 0, pid, 0, 0)
    events = b""
    now = 0
    method = 0
    for index, (address, size, at_ns) in enumerate(code):
        name = b"App:compiled%d ()\0" % index
        events += bytes([JIT]) + _unsigned(at_ns - now) + _signed(16) + _signed(address) + _unsigned(size) + name
        method += 16
        now = at_ns
    for length in calls_ns:
        events += bytes([ENTER]) + _unsigned(0) + _signed(0)
        events += bytes([LEAVE]) + _unsigned(length) + _signed(0)
    buffer = struct.pack("<IIQqqqq", BUFFER_ID, len(events), start_ns, 0, 0, 77, 0x1000)
    return header + buffer + events


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def _signed(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        done = (value == 0 and not low & 0x40) or (value == -1 and low & 0x40)
        out.append(low | (0 if done else 0x80))
        if done:
            return bytes(out)
