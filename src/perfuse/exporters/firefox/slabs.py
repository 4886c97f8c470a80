"""A JSON document as JSLB: its long arrays are slabs, so that a page need not parse them.

Where an array was, ``{"$s": N}`` stands for slab N.
"""

import json
import sys
from array import array
from typing import Any

from perfuse.output.jslb import TYPES, Slab, json_slab, packed

_SHORTEST = 16
"""Arrays of fewer values stay in the JSON."""


def as_slabs(text: str) -> bytes:
    """A JSON document as JSLB: arrays of numbers, and of texts, become slabs."""
    slabs: list[Slab] = []
    root = _replaced(json.loads(text), slabs)
    slabs.append(json_slab(root))
    return packed(slabs, len(slabs) - 1)


def _replaced(value: Any, slabs: list[Slab]) -> Any:
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


def _slab(values: list[Any]) -> Slab | None:
    """The slab of an array of numbers or texts."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return json_slab(values)
    if kinds == {int} and min(values) >= -(2**31) and max(values) < 2**31:
        return TYPES["i32"], _little_endian(array("i", values))
    if kinds and kinds <= {int, float}:
        return TYPES["f64"], _little_endian(array("d", values))
    return None


def _little_endian(values: "array[int] | array[float]") -> bytes:
    if sys.byteorder == "big":
        values.byteswap()
    return values.tobytes()
