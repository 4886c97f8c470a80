"""Binary answers: JSON and columns of numbers in one container, which a page reads without copying.

The layout is that of JSLB version 1, which Firefox Profiler reads: a head, a table of parts, and the parts, each
aligned to 8 bytes. The root part is JSON; its member `columns` has the number of each column's part.
"""

import json
import struct
from collections.abc import Mapping
from typing import Any

MAGIC = bytes([0xDC, 0xDF, *b"JSLB", 1, 0])
TYPES = {"i8": 0, "u8": 1, "i16": 2, "u16": 3, "i32": 4, "u32": 5, "f32": 6, "f64": 7, "i64": 8, "u64": 9}
JSON = 10


def container(head: Mapping[str, Any], columns: Mapping[str, tuple[str, bytes]]) -> bytes:
    """A container.

    Args:
        head: The JSON object, without `columns`.
        columns: Type and little-endian numbers of each column, by name.
    """
    root = {**head, "columns": {name: number for number, name in enumerate(columns, 1)}}
    text = json.dumps(root, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")
    parts = [(JSON, text), *((TYPES[kind], data) for kind, data in columns.values())]
    offset = _aligned(20 + 12 * len(parts))
    table, chunks = [struct.pack("<8s3I", MAGIC, 1, len(parts), 0)], []
    for kind, data in parts:
        table.append(struct.pack("<3I", kind, offset, len(data)))
        padding = _aligned(len(data)) - len(data)
        chunks += [data, bytes(padding)]
        offset += len(data) + padding
    head_bytes = b"".join(table)
    return b"".join([head_bytes, bytes(_aligned(len(head_bytes)) - len(head_bytes)), *chunks])


def _aligned(size: int) -> int:
    return -(-size // 8) * 8
