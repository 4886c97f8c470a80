"""JSLB, version 1: JSON and arrays of numbers in one container, which a page reads without parsing or copying them.

The layout is that of https://github.com/mstange/json-slabs, which the Firefox Profiler reads: a head, a table of slabs,
and the slabs, each aligned to 8 bytes. All numbers are little-endian.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any

MAGIC = bytes([0xDC, 0xDF, *b"JSLB", 1, 0])
TYPES = {"i8": 0, "u8": 1, "i16": 2, "u16": 3, "i32": 4, "u32": 5, "f32": 6, "f64": 7, "i64": 8, "u64": 9}
"""Types of arrays by their name."""
JSON = 10
"""The type of a slab that is JSON."""

Slab = tuple[int, bytes]
"""Type and content of a slab."""


def json_slab(value: Any) -> Slab:
    """A value as JSON."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return JSON, text.encode("utf-8", "backslashreplace")


def packed(slabs: Sequence[Slab], root: int) -> bytes:
    """A container; `root` is the index of its root, which is JSON."""
    offset = _aligned(20 + 12 * len(slabs))
    table, chunks = [struct.pack("<8s3I", MAGIC, 1, len(slabs), root)], []
    for kind, data in slabs:
        table.append(struct.pack("<3I", kind, offset, len(data)))
        padding = _aligned(len(data)) - len(data)
        chunks += [data, bytes(padding)]
        offset += len(data) + padding
    head = b"".join(table)
    return b"".join([head, bytes(_aligned(len(head)) - len(head)), *chunks])


def _aligned(size: int) -> int:
    return -(-size // 8) * 8
