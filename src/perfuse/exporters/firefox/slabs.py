"""JSLB: JSON whose long arrays are beside it, as numbers in binary form, so that a page need not parse them.

The layout is that of https://github.com/mstange/json-slabs, version 1, which the Firefox Profiler reads: a table of slabs,
then the slabs, each at a multiple of 8 bytes. In the root slab, ``{"$s": N}`` stands for slab N.
"""

import json
import struct
import sys
from array import array
from typing import Any

MAGIC = bytes([0xDC, 0xDF]) + b"JSLB" + bytes([1, 0])
VERSION = 1
_HEAD = struct.Struct("<8sIII")
_ENTRY = struct.Struct("<III")
_INT32, _FLOAT64, _JSON = 4, 7, 10
_SHORTEST = 16
"""Arrays of fewer values stay in the JSON."""


def as_slabs(text: str) -> bytes:
    """A JSON document as JSLB: arrays of numbers, and of texts, become slabs."""
    slabs: list[tuple[int, bytes]] = []
    root = _replaced(json.loads(text), slabs)
    slabs.append((_JSON, _json(root)))
    start = _padded(_HEAD.size + _ENTRY.size * len(slabs))
    parts = [_HEAD.pack(MAGIC, VERSION, len(slabs), len(slabs) - 1)]
    offset = start
    for kind, content in slabs:
        parts.append(_ENTRY.pack(kind, offset, len(content)))
        offset = _padded(offset + len(content))
    parts.append(bytes(start - sum(map(len, parts))))
    for _, content in slabs:
        parts += [content, bytes(_padded(len(content)) - len(content))]
    return b"".join(parts)


def _replaced(value: Any, slabs: list[tuple[int, bytes]]) -> Any:
    """A value in which slabs stand for long arrays."""
    if isinstance(value, dict):
        return {name: _replaced(member, slabs) for name, member in value.items()}
    if not isinstance(value, list):
        return value
    slab = _slab(value) if len(value) >= _SHORTEST else None
    if slab is not None:
        slabs.append(slab)
        return {"$s": len(slabs) - 1}
    return [_replaced(item, slabs) if isinstance(item, dict | list) else item for item in value]


def _slab(values: list[Any]) -> tuple[int, bytes] | None:
    """The slab of an array of numbers or texts."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return _JSON, _json(values)
    if kinds == {int} and min(values) >= -(2**31) and max(values) < 2**31:
        return _INT32, _little_endian(array("i", values))
    if kinds and kinds <= {int, float}:
        return _FLOAT64, _little_endian(array("d", values))
    return None


def _little_endian(values: "array[int] | array[float]") -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _padded(size: int) -> int:
    return -(-size // 8) * 8
